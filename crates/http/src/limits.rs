//! The limits that the decoders keep.

/// How much of one request is taken before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, blank line included: 1 to 65,535 (more counts as 65,535). Past it:
    /// 431. The trailer section of a chunked body keeps the same limit.
    pub head_bytes_max: usize,
    /// Bytes of a request target. Past it: 414.
    pub target_bytes_max: usize,
    /// Field lines in a request head, and again in a trailer section. Past it: 431.
    pub fields_max: usize,
    /// Bytes of a request body, framing not counted. Past it: 413.
    pub body_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 16_384,
            target_bytes_max: 8_192,
            fields_max: 100,
            body_bytes_max: 1 << 20,
        }
    }
}
