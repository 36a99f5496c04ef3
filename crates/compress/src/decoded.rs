//! What a client makes of encoded bytes, for tests.

use flate2::{Decompress, FlushDecompress};
use gustnado_http::content_coding::ContentCoding;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Returns text that looks like a program's, always the same.
pub(crate) fn text(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut out = Vec::with_capacity(length + 64);
    while out.len() < length {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let line = format!("const name{} = values[{}];\n", state >> 52, state >> 58);
        out.extend_from_slice(line.as_bytes());
    }
    out.truncate(length);
    out
}

/// Returns what can be read of an encoded body, whole or begun.
pub(crate) fn decoded(coding: ContentCoding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 << 10);
    match coding {
        ContentCoding::Gzip => {
            let mut decoder = Decompress::new_gzip(15);
            loop {
                let at = usize::try_from(decoder.total_in()).expect("small");
                let before = (decoder.total_in(), decoder.total_out());
                decoder
                    .decompress_vec(&bytes[at..], &mut out, FlushDecompress::None)
                    .expect("gzip");
                if before == (decoder.total_in(), decoder.total_out()) {
                    return out;
                }
                out.reserve(64 << 10);
            }
        }
        _ => read_zstd(&mut DCtx::create(), bytes, out),
    }
}

/// Returns what a prepared decoder reads of a Zstandard frame.
pub(crate) fn read_zstd(decoder: &mut DCtx<'_>, bytes: &[u8], mut out: Vec<u8>) -> Vec<u8> {
    let mut input = InBuffer::around(bytes);
    loop {
        let at = out.len();
        let mut output = OutBuffer::around_pos(&mut out, at);
        decoder.decompress_stream(&mut output, &mut input).expect("a frame of Zstandard");
        if input.pos() == bytes.len() && out.len() < out.capacity() {
            return out;
        }
        out.reserve(64 << 10);
    }
}
