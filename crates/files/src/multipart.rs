//! The frame of a `multipart/byteranges` body (RFC 9110 §14.6): the bytes between the parts.

use std::hash::{BuildHasher, Hasher, RandomState};

use gustnado_http::range::ByteRange;

use super::content_type::ContentType;

/// The frame around the ranges of one response.
pub(super) struct MultipartRanges {
    boundary: String,
    /// The bytes before each part, in order.
    pub(super) part_heads: Vec<Vec<u8>>,
    /// The bytes after the last part.
    pub(super) closing: Vec<u8>,
}

impl MultipartRanges {
    /// Frames `ranges` of a representation of `size` bytes.
    ///
    /// The boundary must not occur in the parts (RFC 2046 §5.1.1). It is 64 random bits made for
    /// this response, so that the author of the files cannot foresee it.
    pub(super) fn new(
        content_type: &ContentType,
        ranges: &[ByteRange],
        size: u64,
    ) -> MultipartRanges {
        let random = RandomState::new().build_hasher().finish();
        let boundary = format!("{random:016x}");
        let part_heads = ranges.iter().map(|range| {
            let head = format!(
                "\r\n--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {}\r\n\r\n",
                content_range(*range, size)
            );
            head.into_bytes()
        });
        let part_heads = part_heads.collect();
        let closing = format!("\r\n--{boundary}--\r\n").into_bytes();
        MultipartRanges { boundary, part_heads, closing }
    }

    /// Returns the value of the response's own `Content-Type`.
    pub(super) fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Returns the length of the whole body.
    pub(super) fn body_bytes(&self, ranges: &[ByteRange]) -> u64 {
        let heads: usize = self.part_heads.iter().map(Vec::len).sum();
        let parts: u64 = ranges.iter().map(|range| range.len).sum();
        (heads + self.closing.len()) as u64 + parts
    }
}

/// Returns the value of `Content-Range` for one range (RFC 9110 §14.4).
pub(super) fn content_range(range: ByteRange, size: u64) -> String {
    let ByteRange { offset, len } = range;
    format!("bytes {offset}-{}/{size}", offset + len - 1)
}
