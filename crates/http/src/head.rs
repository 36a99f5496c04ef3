//! The request head: request line and fields (RFC 9112 §2, §3, §5, §6).
//!
//! One pass over the bytes checks all of them and keeps offsets only; [`crate::request`] reads the
//! bytes through those. Where the RFC leaves a choice, the strict one is taken: anything two
//! servers in a row could read differently is refused.

mod decode;
mod error;
mod fields;
mod http2;
mod retarget;
#[cfg(test)]
mod tests;
mod unfinished;

pub use error::HeadError;

use crate::fields::{HeaderId, INDEXED};
use crate::method::Method;
use crate::target::TargetForm;

/// A verdict on bytes that may stop anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// All of it was there.
    Done(T),
    /// Not an error: call again with more bytes.
    NeedMore,
}

/// Why a pass over a head stopped before its end.
///
/// An error is that of the first byte after which it was certain: so it is the same whether or not
/// a pass was made just then.
pub(crate) enum Stop<E = HeadError> {
    /// The bytes can still become a head that is served, or one that is refused for a reason that
    /// only bytes to come can tell: a version or a coding that is not known here, a target that its
    /// method does not allow, or a limit. In a request, the caller that gets it asks
    /// [`unfinished`] first.
    NeedMore,
    Bad(E),
}

impl<E> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Self::Bad(error)
    }
}

/// What a head may be long at most, whatever the limits say: offsets have 16 bits.
pub(crate) const HEAD_BYTES_MAX: usize = u16::MAX as usize;

/// The versions that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

/// How the end of a request body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// That many bytes.
    Length(u64),
    /// Chunks, up to the one of no bytes.
    Chunked,
    /// Up to the end of its stream (RFC 9113 §8.1).
    ToEnd,
}

/// A part of the head, in bytes from the start of the input. Empty at 0 means absent: nothing
/// starts there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u16,
    pub(crate) end: u16,
}

impl Span {
    #[expect(clippy::cast_possible_truncation, reason = "a head is at most 65,535 bytes long")]
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && u16::try_from(end).is_ok());
        Self { start: start as u16, end: end as u16 }
    }

    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[usize::from(self.start)..usize::from(self.end)]
    }
}

/// A checked request head: plain data, detached from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    content_length: u64,
    /// The places of the fields that need no search, by their id: conditions, Range and Host.
    indexed: [Span; INDEXED],
    pub(crate) target: Span,
    /// The whole field section: from the first field line to the blank line.
    pub(crate) fields: Span,
    pub(crate) path_start: u16,
    /// Where the `?` is; 0 if there is none.
    pub(crate) query: u16,
    flags: u16,
    method: Method,
    version: Version,
    pub(crate) form: TargetForm,
}

impl Head {
    /// Bytes of the head, blank line included: 1 to 65,535. That of HTTP/2 has as many behind it.
    #[expect(clippy::len_without_is_empty, reason = "a head is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.fields.end) + 2
    }

    /// How the end of the body is found.
    #[inline]
    pub fn framing(&self) -> Framing {
        if self.has(CHUNKED) {
            Framing::Chunked
        } else if self.has(LENGTH) {
            Framing::Length(self.content_length)
        } else if self.has(TO_END) {
            Framing::ToEnd
        } else {
            Framing::None
        }
    }

    /// Whether a body follows, of at least one byte if its length is known.
    #[inline]
    pub fn has_body(&self) -> bool {
        !matches!(self.framing(), Framing::None | Framing::Length(0))
    }

    /// Whether the client wants to go on after this request (RFC 9112 §9.3): on 1.1 unless it says
    /// `close`, on 1.0 only if it says `keep-alive`.
    #[inline]
    pub fn keep_alive(&self) -> bool {
        !self.has(CLOSE) && (self.version != Version::Http10 || self.has(KEEP_ALIVE))
    }

    /// Whether the client would rather go on in another protocol, which its Upgrade field names
    /// (RFC 9110 §7.8), or in HTTP/2 its `:protocol` (RFC 8441 §4). Never on 1.0.
    #[inline]
    pub fn wants_upgrade(&self) -> bool {
        self.has(UPGRADE) && self.version != Version::Http10
    }

    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    /// Never on 1.0, nor without a body.
    #[inline]
    pub fn expects_continue(&self) -> bool {
        self.has(CONTINUE) && self.version != Version::Http10 && self.has_body()
    }

    /// The version in the request line.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The method.
    #[inline]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether the answer may be other than the whole: there is a condition, or a range. `If-Range`
    /// alone means nothing (RFC 9110 §13.1.5).
    #[inline]
    pub fn is_conditional(&self) -> bool {
        self.has(CONDITIONAL)
    }

    /// The place of the first value of a field whose place is kept, if there was one.
    #[inline]
    pub(crate) fn indexed(&self, id: HeaderId) -> Option<Span> {
        let span = self.indexed[id as usize];
        (span.start != 0).then_some(span)
    }

    /// Whether its user was verified: see [`Head::note_verified_user`].
    pub fn has_verified_user(&self) -> bool {
        self.has(VERIFIED)
    }

    /// Notes that the user in its Authorization field was verified, or will be before its handler
    /// runs.
    pub fn note_verified_user(&mut self) {
        self.flags |= VERIFIED;
    }

    #[inline]
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Connection says close.
const CLOSE: u16 = 1;
/// Connection says keep-alive.
const KEEP_ALIVE: u16 = 2;
/// Expect says 100-continue.
const CONTINUE: u16 = 4;
/// There is a Content-Length.
const LENGTH: u16 = 8;
/// There is a Transfer-Encoding.
const CODED: u16 = 16;
/// The last transfer coding so far is chunked.
const CHUNKED: u16 = 32;
/// A transfer coding so far is unknown.
const CODING_UNKNOWN: u16 = 64;
/// There is a condition or a range.
const CONDITIONAL: u16 = 128;
/// Connection says upgrade, or in HTTP/2 there is a protocol.
const UPGRADE: u16 = 256;
/// The body ends with its stream.
const TO_END: u16 = 512;
/// Its user was verified. No head is decoded with it.
const VERIFIED: u16 = 1024;
