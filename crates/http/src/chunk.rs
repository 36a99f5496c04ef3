//! The encoder of chunked bodies (RFC 9112 §7.1). [`crate::body`] reads them.

use std::io::Write;

/// The chunk of no bytes and the end of an empty trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes one chunk to the end of `out`. Empty data writes nothing: a chunk of no bytes would end
/// the body.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    write_size(out, data.len() as u64);
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Writes the line before a chunk's data, for data that is sent from elsewhere; a line end must
/// follow the data.
///
/// `bytes` is the size of the data, at least 1.
pub fn write_size(out: &mut Vec<u8>, bytes: u64) {
    debug_assert!(bytes > 0);
    write!(out, "{bytes:x}\r\n").expect("a vector takes all bytes");
}

#[cfg(test)]
mod tests {
    use super::{LAST_CHUNK, write_chunk};

    #[test]
    fn chunks_are_framed_in_hexadecimal_and_empty_data_writes_none() {
        let mut out = Vec::new();
        write_chunk(&mut out, b"");
        write_chunk(&mut out, b"hello, chunked world");
        out.extend_from_slice(LAST_CHUNK);
        assert_eq!(out, b"14\r\nhello, chunked world\r\n0\r\n\r\n");
    }
}
