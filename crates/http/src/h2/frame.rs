//! Frames (RFC 9113 §4, §6): their headers, and those that need no state to be written.

use super::error::ErrorCode;

/// Bytes in front of each frame's payload.
pub const FRAME_HEADER_BYTES: usize = 9;

/// The longest payload that may be sent to a peer that has not said otherwise, and that this side
/// takes.
pub const PAYLOAD_BYTES_MAX: usize = 16_384;

/// What a client sends first (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The types of frames, by their numbers.
pub mod kind {
    /// RFC 9113 §6.1
    pub const DATA: u8 = 0;
    /// RFC 9113 §6.2
    pub const HEADERS: u8 = 1;
    /// RFC 9113 §6.3
    pub const PRIORITY: u8 = 2;
    /// RFC 9113 §6.4
    pub const RST_STREAM: u8 = 3;
    /// RFC 9113 §6.5
    pub const SETTINGS: u8 = 4;
    /// RFC 9113 §6.6
    pub const PUSH_PROMISE: u8 = 5;
    /// RFC 9113 §6.7
    pub const PING: u8 = 6;
    /// RFC 9113 §6.8
    pub const GOAWAY: u8 = 7;
    /// RFC 9113 §6.9
    pub const WINDOW_UPDATE: u8 = 8;
    /// RFC 9113 §6.10
    pub const CONTINUATION: u8 = 9;
    /// RFC 9218 §7.1
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames.
pub mod flag {
    /// Of SETTINGS and PING: this answers one.
    pub const ACK: u8 = 1;
    /// Of DATA and HEADERS: the sender is done with the stream.
    pub const END_STREAM: u8 = 1;
    /// Of HEADERS and CONTINUATION: the block of fields ends.
    pub const END_HEADERS: u8 = 4;
    /// Of DATA and HEADERS: the payload begins with the length of its padding.
    pub const PADDED: u8 = 8;
    /// Of HEADERS: the payload has a priority of the old scheme.
    pub const PRIORITY: u8 = 32;
}

/// The settings (RFC 9113 §6.5.2), by their numbers.
pub mod setting {
    /// Bytes of the table of HPACK.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// 0 or 1.
    pub const ENABLE_PUSH: u16 = 2;
    /// Streams that the other side may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// The window of each new stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The longest payload.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// Bytes of a head, before it is compressed.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    /// RFC 8441 §3
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    /// RFC 9218 §2.1
    pub const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// The number of a stream: odd, as clients open them.
pub type StreamId = u32;

/// The nine bytes in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload, up to 2^24 - 1.
    pub len: usize,
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream; 0 is the connection. Without the reserved bit.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads a header, and returns it and what follows; `None` if it is not whole.
    #[inline]
    pub fn read(input: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = input.split_first_chunk::<FRAME_HEADER_BYTES>()?;
        let [high, middle, low, kind, flags, stream @ ..] = *header;
        let len = u32::from_be_bytes([0, high, middle, low]) as usize;
        let stream = u32::from_be_bytes(stream) & STREAM_MASK;
        Some((Self { len, kind, flags, stream }, rest))
    }

    /// Returns its bytes.
    #[inline]
    pub fn bytes(self) -> [u8; FRAME_HEADER_BYTES] {
        debug_assert!(self.len < 1 << 24);
        #[expect(clippy::cast_possible_truncation, reason = "a length has 24 bits")]
        let [_, high, middle, low] = (self.len as u32).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, s0, s1, s2, s3]
    }

    /// Returns whether it has a flag.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

const STREAM_MASK: u32 = !(1 << 31);

/// Reads a 32-bit number at the start of a payload.
pub(super) fn number(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = payload.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// Writes a frame.
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let header = FrameHeader { len: payload.len(), kind, flags, stream };
    out.reserve(FRAME_HEADER_BYTES + payload.len());
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(payload);
}

/// Writes settings.
pub fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(settings.len() * 6);
    for (id, value) in settings {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    write(kind::SETTINGS, 0, 0, &payload, out);
}

/// Writes the end of a stream.
pub fn write_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    write(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes(), out);
}

/// Writes how much more the peer may send.
///
/// - `more`: 1 to 2^31 - 1.
pub fn write_window(stream: u32, more: u32, out: &mut Vec<u8>) {
    debug_assert!(more > 0 && more & !STREAM_MASK == 0);
    write(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes(), out);
}

/// Writes that no stream behind `last` is served.
///
/// - `reason`: for the peer's log.
pub fn write_goaway(last: u32, code: ErrorCode, reason: &str, out: &mut Vec<u8>) {
    let payload = [&last.to_be_bytes()[..], &(code as u32).to_be_bytes(), reason.as_bytes()];
    write(kind::GOAWAY, 0, 0, &payload.concat(), out);
}
