//! Requests that the engine's parser and Twisted's read alike.
//!
//! The engine's parser reads them. What it refuses, and the little that it takes and a release of
//! Twisted reads otherwise, is no plain request: Twisted's own code gets it. Nothing here needs
//! Python, so `fuzz/src/twisted.rs` can compare it with Twisted's rules.

use gustnado_http::head::{Decoded, Framing, Head, Version};
use gustnado_http::limits::Limits;
use gustnado_http::request::{FieldLines, RequestView};

/// Twisted's own limits, each a little lower: it counts lines and fields in its own way.
const LIMITS: Limits = Limits {
    head_bytes_max: 16_383,
    target_bytes_max: 16_383,
    fields_max: 499,
    body_bytes_max: u64::MAX,
};

/// Where the minor version is, in bytes from the end of the target.
const MINOR_VERSION: usize = b" HTTP/1.".len();

/// A complete request with its body.
pub(super) struct PlainRequest<'a> {
    bytes: &'a [u8],
    head: Head,
}

impl<'a> PlainRequest<'a> {
    /// Reads a request at the beginning of the received bytes. `None` if it is incomplete or not
    /// plain.
    pub(super) fn read(received: &'a [u8]) -> Option<Self> {
        // The engine skips up to four empty lines there, and Twisted one.
        if received.first() == Some(&b'\r') {
            return None;
        }
        let Ok(Decoded::Done(head)) = Head::decode(received, &mut 0, &LIMITS) else {
            return None;
        };
        let body_bytes = match head.framing() {
            Framing::None => 0,
            Framing::Length(length) => usize::try_from(length).ok()?,
            Framing::Chunked | Framing::ToEnd => return None,
        };
        let bytes = received.get(..head.len().checked_add(body_bytes)?)?;
        let request = Self { bytes, head };
        request.is_plain().then_some(request)
    }

    /// Returns whether every release of Twisted reads it as the engine does.
    fn is_plain(&self) -> bool {
        let version = self.method().len() + 1 + self.target().len() + MINOR_VERSION;
        // The engine serves later minor versions as 1.1, and Twisted refuses them.
        matches!(self.bytes.get(version), Some(b'0' | b'1'))
            && is_token_everywhere(self.method())
            && self.fields().all(|(name, _)| is_token_everywhere(name) && !is_special(name))
    }

    fn view(&self) -> RequestView<'_> {
        self.head.on(self.bytes)
    }

    /// Returns the length of the whole request.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the lines of the head with their ends, except the empty one.
    pub(super) fn head_lines(&self) -> &'a [u8] {
        &self.bytes[..self.head.len() - b"\r\n".len()]
    }

    pub(super) fn method(&self) -> &[u8] {
        self.view().method_token()
    }

    pub(super) fn target(&self) -> &[u8] {
        self.view().target()
    }

    /// Returns whether it is HTTP/1.0.
    pub(super) fn is_old(&self) -> bool {
        self.head.version() == Version::Http10
    }

    /// Returns names as received, and values without surrounding blanks.
    pub(super) fn fields(&self) -> FieldLines<'_> {
        self.view().fields()
    }

    pub(super) fn body(&self) -> &'a [u8] {
        &self.bytes[self.head.len()..]
    }
}

/// Returns whether every release takes these bytes of a token: 24.7 refuses an ampersand.
fn is_token_everywhere(token: &[u8]) -> bool {
    !token.contains(&b'&')
}

/// Returns whether Twisted does more with a field than to keep it.
fn is_special(name: &[u8]) -> bool {
    match name.len() {
        6 => name.eq_ignore_ascii_case(b"expect"),
        7 => name.eq_ignore_ascii_case(b"upgrade"),
        _ => false,
    }
}
