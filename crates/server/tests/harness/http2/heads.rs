//! Heads of requests, as they are in blocks of fields and in frames.

use gustnado_http::h2::frame::{flag, kind};

use super::frame_of;

/// A field that no table keeps, in plain letters.
pub(crate) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        if let Some(len) = u8::try_from(text.len()).ok().filter(|len| *len < 127) {
            bytes.push(len);
        } else {
            // A longer number (RFC 7541 §5.1).
            bytes.push(127);
            let mut left = text.len() - 127;
            while left >= 128 {
                bytes.push(u8::try_from(left % 128).expect("seven bits") | 128);
                left /= 128;
            }
            bytes.push(u8::try_from(left).expect("seven bits"));
        }
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// The block of a request.
pub(crate) fn block(method: &str, target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let all = [
        (":method", method),
        (":scheme", "http"),
        (":path", target),
        (":authority", "gust.example"),
    ];
    all.iter().chain(fields).flat_map(|(name, value)| literal(name, value)).collect()
}

/// The frame of a request whose head fits into one.
pub(crate) fn request_frame(
    stream: u32,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    is_end: bool,
) -> Vec<u8> {
    let flags = flag::END_HEADERS | if is_end { flag::END_STREAM } else { 0 };
    frame_of(kind::HEADERS, flags, stream, &block(method, target, fields))
}

/// The frame of a request for a tunnel in a protocol (RFC 8441).
pub(crate) fn tunnel_frame(stream: u32, target: &str, protocol: &str) -> Vec<u8> {
    let block = block("CONNECT", target, &[]);
    let block = [literal(":protocol", protocol), block].concat();
    frame_of(kind::HEADERS, flag::END_HEADERS, stream, &block)
}

/// The field that the table has got last, in a block (RFC 7541 §6.1).
pub(crate) const KEPT: u8 = 0x80 | 0x3e;
