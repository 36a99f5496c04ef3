//! A response as the client that asked for it reads it (RFC 9112 §4, §5, §6.3).
//!
//! What lives here: the head ([`ResponseHead`], seen through [`ResponseView`]), how long the body
//! is ([`ResponseFraming`]), and the body itself ([`ResponseBody`]). It shares no state with the
//! server's side: the rules differ more than they agree. Where the RFC leaves a choice, the strict
//! one is taken: what two clients could read differently is refused.

mod body;
mod decode;
mod error;
mod http2;
#[cfg(test)]
mod tests;

pub use body::ResponseBody;
pub use error::ResponseError;

use std::fmt;

use crate::head::{Span, Version};
use crate::request::FieldLines;

/// How the end of a response's body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// No body: the request was HEAD, or the status is 1xx, 204 or 304 (rule 1).
    None,
    /// A tunnel begins: what follows is no message (rule 2, a 2xx to CONNECT).
    Tunnel,
    /// Chunks, up to the one of no bytes (rule 4).
    Chunked,
    /// That many bytes (rule 6).
    Length(u64),
    /// All bytes until the server closes (rule 8). By HTTP/2: until it ends the stream.
    UntilClose,
}

/// A checked response head: plain data, detached from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    framing: ResponseFraming,
    content_length: Option<u64>,
    reason: Span,
    /// The whole field section: from the first field line to the blank line.
    fields: Span,
    status: u16,
    version: Version,
    keep_alive: bool,
}

impl ResponseHead {
    /// Bytes of the head, blank line included: 16 to 65,535.
    #[expect(clippy::len_without_is_empty, reason = "a head is never empty")]
    pub fn len(&self) -> usize {
        usize::from(self.fields.end) + 2
    }

    /// Returns the status code, 100 to 999. A code above 599 is to be taken as a 5xx (RFC 9110
    /// §15).
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns whether another response to the same request follows (RFC 9110 §15.2).
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Returns the version in the status line.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How the end of the body is found.
    pub fn framing(&self) -> ResponseFraming {
        self.framing
    }

    /// Returns what Content-Length says. Where there is no body, that is what a GET would have
    /// brought (RFC 9110 §8.6).
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Returns whether the connection can carry another request after the body (RFC 9112 §9.3): on
    /// 1.1 unless the server says `close`, on 1.0 only if it says `keep-alive`, and never where the
    /// end of the connection is the end of the body.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Returns the head together with its bytes: the same `input` it was decoded from, or at least
    /// [`ResponseHead::len`] bytes of it.
    pub fn on<'a>(&'a self, bytes: &'a [u8]) -> ResponseView<'a> {
        debug_assert!(bytes.len() >= self.len());
        ResponseView { head: self, bytes }
    }
}

/// One response head, borrowed: two references, made to be passed by value.
#[derive(Clone, Copy)]
pub struct ResponseView<'a> {
    head: &'a ResponseHead,
    bytes: &'a [u8],
}

impl<'a> ResponseView<'a> {
    /// Returns the status code, 100 to 999.
    pub fn status(self) -> u16 {
        self.head.status
    }

    /// Returns the version.
    pub fn version(self) -> Version {
        self.head.version
    }

    /// Returns the reason phrase, for people; may be empty. Programs read only the code.
    pub fn reason(self) -> &'a [u8] {
        self.head.reason.of(self.bytes)
    }

    /// Returns the first value of a field, by its name; case does not matter. Without the space
    /// around it; may be empty.
    pub fn field(self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// Returns all values of a field in order, by its name; case does not matter.
    pub fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let of_name =
            self.fields().filter(move |field| field.0.eq_ignore_ascii_case(name.as_bytes()));
        of_name.map(|field| field.1)
    }

    /// Returns all field lines in order: name and value, the value without the space around it.
    pub fn fields(self) -> FieldLines<'a> {
        let section = self.head.fields.of(self.bytes);
        if self.head.version == Version::Http2 {
            FieldLines::of_records(section)
        } else {
            FieldLines::of(section)
        }
    }
}

impl fmt::Debug for ResponseView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status(), self.reason().escape_ascii())
    }
}
