//! The codes of errors (RFC 9113 §7), and what ends a connection.

use std::error::Error;
use std::fmt;

/// Declares each code once.
macro_rules! error_codes {
    ($($id:ident $code:literal $name:literal)+) => {
        /// Why a stream or a connection ends: the code that the peer is sent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $name, "`")]
                $id = $code,
            )+
        }

        impl ErrorCode {
            /// Every code, by its number.
            pub const ALL: &[Self] = &[$(Self::$id),+];

            /// The name in the RFC.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$id => $name,)+
                }
            }
        }
    };
}

error_codes! {
    NoError 0 "NO_ERROR"
    ProtocolError 1 "PROTOCOL_ERROR"
    InternalError 2 "INTERNAL_ERROR"
    FlowControlError 3 "FLOW_CONTROL_ERROR"
    SettingsTimeout 4 "SETTINGS_TIMEOUT"
    StreamClosed 5 "STREAM_CLOSED"
    FrameSizeError 6 "FRAME_SIZE_ERROR"
    RefusedStream 7 "REFUSED_STREAM"
    Cancel 8 "CANCEL"
    CompressionError 9 "COMPRESSION_ERROR"
    ConnectError 10 "CONNECT_ERROR"
    EnhanceYourCalm 11 "ENHANCE_YOUR_CALM"
    InadequateSecurity 12 "INADEQUATE_SECURITY"
    Http11Required 13 "HTTP_1_1_REQUIRED"
}

impl ErrorCode {
    /// Returns the code of a number; unknown ones mean an internal error (RFC 9113 §7).
    pub fn of(number: u32) -> Self {
        let known = usize::try_from(number).ok().and_then(|at| Self::ALL.get(at));
        known.copied().unwrap_or(Self::InternalError)
    }
}

/// What a peer has sent too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flood {
    /// It has reset too many streams (CVE-2023-44487).
    Resets,
    /// It had too many streams reset or refused, by breaking rules and limits (CVE-2025-8671).
    StreamErrors,
    /// Frames that serve no request: PING, SETTINGS, priorities, windows, empty and tiny DATA
    /// (CVE-2019-9511 to 9518).
    IdleFrames,
    /// Fields or settings without end (CVE-2024-27316).
    Fields,
}

impl Flood {
    const fn reason(self) -> &'static str {
        match self {
            Self::Resets => "too many streams were reset",
            Self::StreamErrors => "too many streams broke a rule or a limit",
            Self::IdleFrames => "too many frames serve no request",
            Self::Fields => "a block of fields or settings is too long",
        }
    }
}

/// Why a connection ends: the code, and the sentence that GOAWAY carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2Error {
    /// The code.
    pub code: ErrorCode,
    /// What was wrong, in one sentence of ASCII.
    pub reason: &'static str,
    /// What there was too much of, if that is why.
    pub flood: Option<Flood>,
}

impl H2Error {
    /// - `reason`: one sentence of ASCII.
    pub const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason, flood: None }
    }

    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::ProtocolError, reason)
    }

    pub(super) const fn size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FrameSizeError, reason)
    }

    pub(super) const fn flow(reason: &'static str) -> Self {
        Self::new(ErrorCode::FlowControlError, reason)
    }

    pub(super) const fn flood(flood: Flood) -> Self {
        Self { flood: Some(flood), ..Self::new(ErrorCode::EnhanceYourCalm, flood.reason()) }
    }
}

impl fmt::Display for H2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.reason)
    }
}

impl Error for H2Error {}
