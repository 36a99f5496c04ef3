//! What either side writes in several frames where one is too short: blocks of fields, content.

use super::frame::{FRAME_HEADER_BYTES, FrameHeader, StreamId, flag, kind, write};
use super::hpack::Encoder;

/// Writes a block of fields.
///
/// - `is_end`: nothing follows on the stream.
/// - `frame_max`: the longest payload that the peer takes.
/// - `encode`: writes the fields.
#[inline]
pub(super) fn write_block(
    encoder: &mut Encoder,
    (id, is_end): (StreamId, bool),
    frame_max: u32,
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    encoder.begin(out);
    encode(encoder, out);
    let len = out.len() - start - FRAME_HEADER_BYTES;
    let end = if is_end { flag::END_STREAM } else { 0 };
    if len > frame_max as usize {
        return split_block((id, end), start, frame_max as usize, out);
    }
    let header =
        FrameHeader { len, kind: kind::HEADERS, flags: end | flag::END_HEADERS, stream: id };
    out[start..start + FRAME_HEADER_BYTES].copy_from_slice(&header.bytes());
}

/// Puts the headers of CONTINUATION frames between the parts of a block that is too long for one
/// frame.
#[cold]
fn split_block((id, end): (StreamId, u8), start: usize, frame_max: usize, out: &mut Vec<u8>) {
    let block = out.split_off(start + FRAME_HEADER_BYTES);
    out.truncate(start);
    let count = block.len().div_ceil(frame_max);
    for (at, part) in block.chunks(frame_max).enumerate() {
        let (kind, first) = if at == 0 { (kind::HEADERS, end) } else { (kind::CONTINUATION, 0) };
        let last = if at + 1 == count { flag::END_HEADERS } else { 0 };
        write(kind, first | last, id, part, out);
    }
}

/// Writes content, in one frame at least.
#[inline]
pub(super) fn write_content(
    (id, is_end): (StreamId, bool),
    bytes: &[u8],
    frame_max: u32,
    out: &mut Vec<u8>,
) {
    let mut rest = bytes;
    loop {
        let (piece, behind) = rest.split_at(rest.len().min(frame_max as usize));
        rest = behind;
        let flags = if is_end && rest.is_empty() { flag::END_STREAM } else { 0 };
        write(kind::DATA, flags, id, piece, out);
        if rest.is_empty() {
            return;
        }
    }
}
