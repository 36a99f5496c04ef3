//! A response as the client that asked for it reads it (RFC 9112 §4, §5, §6.3).
//!
//! What lives here: the head ([`ResponseHead`], seen through [`Response`]), how long the body is
//! ([`ResponseFraming`]), and the body itself ([`ResponseBody`]). It shares no state with the
//! server's side: the rules differ more than they agree. Where the RFC leaves a choice, the strict
//! one is taken: what two clients could read differently is refused.

mod body;
mod decode;
mod error;
#[cfg(test)]
mod tests;

pub use body::ResponseBody;
pub use error::ResponseError;

use std::fmt;

use crate::head::{Decoded, Span, Version};
use crate::limits::Limits;
use crate::method::Method;
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
    /// All bytes until the server closes (rule 8).
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
    /// Reads one response head from the start of `input`.
    ///
    /// - `input`: all bytes received since the last response; may stop anywhere.
    /// - `seen`: the caller's memory over the calls for one head, 0 at first. It counts the bytes
    ///   already searched for the blank line, so that a slow server costs no rescans.
    /// - `method`: what was asked with; it decides about the body.
    /// - `limits`: of which `head_bytes_max` and `fields_max` count here.
    /// - Done: the head; the body starts [`ResponseHead::len`] bytes into `input`.
    ///
    /// However the bytes are cut, the last verdict is the same. An error comes as soon as it is
    /// certain, whatever may follow: in bytes that come at once by the byte that makes it so, in
    /// others by the end of its line. An interim response (1xx) is a head of its own, and the final
    /// one follows it.
    ///
    /// Three choices: a folded line is refused (RFC 9112 §5.2 lets a gateway do so; a user agent
    /// would have to join it), so is a line feed without carriage return (§2.2), and the space
    /// before an absent reason phrase may be absent too, as many servers have it (§4).
    ///
    /// # Errors
    /// [`ResponseError`]. The connection must then be closed.
    pub fn decode(
        input: &[u8],
        seen: &mut usize,
        method: Method,
        limits: &Limits,
    ) -> Result<Decoded<Self>, ResponseError> {
        decode::decode(input, seen, method, limits)
    }

    /// Bytes of the head, blank line included: 16 to 65,535.
    #[expect(clippy::len_without_is_empty, reason = "a head is never empty")]
    pub fn len(&self) -> usize {
        usize::from(self.fields.end) + 2
    }

    /// The status code, 100 to 999. A code above 599 is to be taken as a 5xx (RFC 9110 §15).
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether another response to the same request follows (RFC 9110 §15.2).
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// The version in the status line.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How the end of the body is found.
    pub fn framing(&self) -> ResponseFraming {
        self.framing
    }

    /// What Content-Length says. Where there is no body, that is what a GET would have brought (RFC
    /// 9110 §8.6).
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Whether the connection can carry another request after the body (RFC 9112 §9.3): on 1.1
    /// unless the server says `close`, on 1.0 only if it says `keep-alive`, and never where the end
    /// of the connection is the end of the body.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// The head together with its bytes: the same `input` it was decoded from, or at least
    /// [`ResponseHead::len`] bytes of it.
    pub fn on<'a>(&'a self, bytes: &'a [u8]) -> Response<'a> {
        debug_assert!(bytes.len() >= self.len());
        Response { head: self, bytes }
    }
}

/// One response head, borrowed: two references, made to be passed by value.
#[derive(Clone, Copy)]
pub struct Response<'a> {
    head: &'a ResponseHead,
    bytes: &'a [u8],
}

impl<'a> Response<'a> {
    /// The status code, 100 to 999.
    pub fn status(self) -> u16 {
        self.head.status
    }

    /// The version.
    pub fn version(self) -> Version {
        self.head.version
    }

    /// The reason phrase, for people; may be empty. Programs read only the code.
    pub fn reason(self) -> &'a [u8] {
        self.head.reason.of(self.bytes)
    }

    /// The first value of a field, by its name in any case. Without the space around it; may be
    /// empty.
    pub fn field(self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// All values of a field in order, by its name in any case.
    pub fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let of_name =
            self.fields().filter(move |field| field.0.eq_ignore_ascii_case(name.as_bytes()));
        of_name.map(|field| field.1)
    }

    /// All field lines in order: name and value, the value without the space around it.
    pub fn fields(self) -> FieldLines<'a> {
        FieldLines::of(self.head.fields.of(self.bytes))
    }
}

impl fmt::Debug for Response<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status(), self.reason().escape_ascii())
    }
}
