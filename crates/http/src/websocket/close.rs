//! Why a WebSocket closes (RFC 6455 §7.4).

use std::error::Error;
use std::fmt;

/// The longest reason: a control frame has 125 bytes, two of them are the code (RFC 6455 §5.5.1).
pub const REASON_BYTES_MAX: usize = 123;

/// The code of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The purpose is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The server goes down, or a browser has left the page.
    pub const GOING_AWAY: Self = Self(1001);
    /// The peer has broken a rule of the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// Messages of this kind are not accepted.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// What an application is told where the close frame had no code. It is never sent.
    pub const NO_STATUS: Self = Self(1005);
    /// What an application is told where there was no close frame. It is never sent.
    pub const ABNORMAL: Self = Self(1006);
    /// A message does not hold what it says, such as text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// A rule of the application is broken.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// A message is too long.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// The server fails at something that it did not expect.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// The server starts again: come back.
    pub const SERVICE_RESTART: Self = Self(1012);
    /// The server has too much to do: come back later.
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// Returns whether it may be in a close frame: it is assigned, or free for libraries (3000 to
    /// 3999) and applications (4000 to 4999) (RFC 6455 §7.4.2).
    pub const fn may_be_sent(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a close frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReason<'a> {
    /// The code; [`CloseCode::NO_STATUS`] if there was none.
    pub code: CloseCode,
    /// A text for a log, of 123 bytes at most.
    pub text: &'a str,
}

impl<'a> CloseReason<'a> {
    /// Reads the payload of a close frame.
    ///
    /// # Errors
    /// It is one byte, has a code that may not be sent, or a text that is not UTF-8.
    pub fn read(payload: &'a [u8]) -> Result<Self, Violation> {
        if payload.is_empty() {
            return Ok(Self { code: CloseCode::NO_STATUS, text: "" });
        }
        let Some((code, text)) = payload.split_first_chunk::<2>() else {
            return Err(Violation::protocol("a close frame of one byte"));
        };
        let code = CloseCode(u16::from_be_bytes(*code));
        if !code.may_be_sent() {
            return Err(Violation::protocol("a close frame with a code that is not one"));
        }
        let Ok(text) = str::from_utf8(text) else {
            return Err(Violation::utf8("the reason of a close frame is not UTF-8"));
        };
        Ok(Self { code, text })
    }

    /// Writes the payload of a close frame. A text that is too long is cut between two characters;
    /// a code that may not be sent leaves an empty payload.
    pub fn write(self, out: &mut Vec<u8>) {
        if !self.code.may_be_sent() {
            return;
        }
        out.extend_from_slice(&self.code.0.to_be_bytes());
        let end = self.text.floor_char_boundary(REASON_BYTES_MAX);
        out.extend_from_slice(&self.text.as_bytes()[..end]);
    }
}

/// Why a WebSocket has to be closed: what its peer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The code of the close frame.
    pub code: CloseCode,
    /// What was wrong, in a few words of ASCII.
    pub reason: &'static str,
}

impl Violation {
    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self { code: CloseCode::PROTOCOL_ERROR, reason }
    }

    /// A message does not hold what it says.
    pub const fn data(reason: &'static str) -> Self {
        Self { code: CloseCode::INVALID_PAYLOAD, reason }
    }

    pub(super) const fn utf8(reason: &'static str) -> Self {
        Self { code: CloseCode::INVALID_PAYLOAD, reason }
    }

    /// A message, a frame or the number of frames of a message is beyond its limit.
    pub const fn too_big(reason: &'static str) -> Self {
        Self { code: CloseCode::MESSAGE_TOO_BIG, reason }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl Error for Violation {}
