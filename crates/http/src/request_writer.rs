//! The head of a request that a client sends, from request line to blank line (RFC 9112 §3, §5).
//!
//! What is written here cannot be split: the target has one of the four forms, names are tokens,
//! values hold no control byte, and the fields that frame the body, name the host or bind the
//! connection are written by their own functions only. The body follows as it is, or in chunks made
//! with [`crate::chunk`]. The server's side of a head is [`crate::head`].

use std::error::Error;
use std::fmt;

use crate::fields::{FieldError, HeaderId, check_syntax};
use crate::method::Method;
use crate::response_writer::write_line;
use crate::syntax::{PATH, skip, skip_query};
use crate::target;

/// The writer of one request's head, at the end of a buffer.
#[must_use = "the head is not whole before `finish`"]
#[derive(Debug)]
pub struct RequestWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Where the last digit of the version is.
    version_at: usize,
}

impl<'o> RequestWriter<'o> {
    /// Starts a head with its request line and Host. The version is HTTP/1.1 unless
    /// [`RequestWriter::old`] changes it.
    ///
    /// - `target`: percent-encoded already, in a form that the method allows (RFC 9112 §3.2): a
    ///   path with an optional query, or `*` with OPTIONS, or `host:port` with CONNECT, or an
    ///   absolute http URL to a proxy.
    /// - `host`: a host with an optional port, as the target's URL says them (RFC 9110 §7.2).
    ///
    /// # Errors
    /// [`RequestWriteError`], and nothing is written.
    pub fn start(
        out: &'o mut Vec<u8>,
        method: Method,
        target: &[u8],
        host: &[u8],
    ) -> Result<Self, RequestWriteError> {
        if !skip_query(skip(target, PATH)).is_empty() || target::form(target, method).is_none() {
            return Err(RequestWriteError::Target);
        }
        target::authority(host).ok_or(RequestWriteError::Host)?;
        let method = method.as_str().ok_or(RequestWriteError::Method)?.as_bytes();
        out.reserve(method.len() + target.len() + host.len() + 20);
        for part in [method, b" ", target, b" HTTP/1.1"] {
            out.extend_from_slice(part);
        }
        let version_at = out.len() - 1;
        for part in [b"\r\nHost: ", host, b"\r\n"] {
            out.extend_from_slice(part);
        }
        Ok(Self { out, version_at })
    }

    /// Makes it a request of HTTP/1.0. Such a server closes the connection after its answer, unless
    /// [`RequestWriter::keep_alive`] asks it not to.
    pub fn old(&mut self) {
        self.out[self.version_at] = b'0';
    }

    /// Writes one field line.
    ///
    /// # Errors
    /// [`FieldError`], and nothing is written, if the line could split the request, misframe its
    /// body or send it to another host.
    pub fn field(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        let field = name.into();
        check_syntax(field, value)?;
        if field.id().is_some_and(|id| OWN_FIELDS.contains(&id)) {
            return Err(FieldError::Framing);
        }
        self.line(name.as_bytes(), value);
        Ok(())
    }

    /// Writes `Content-Length`, in bytes. Call it once, for a body whose length is known; and for
    /// an empty one where the method gives a body a meaning (RFC 9110 §8.6).
    pub fn content_length(&mut self, bytes: u64) {
        self.line(b"Content-Length", itoa::Buffer::new().format(bytes).as_bytes());
    }

    /// Writes `Transfer-Encoding: chunked`, for a body made with [`crate::chunk`]. Call it instead
    /// of [`RequestWriter::content_length`]; only a 1.1 server understands it (RFC 9112 §6.1).
    pub fn chunked(&mut self) {
        self.line(b"Transfer-Encoding", b"chunked");
    }

    /// Asks the server for a word before the body is sent (RFC 9110 §10.1.1).
    pub fn expect_continue(&mut self) {
        self.line(b"Expect", b"100-continue");
    }

    /// Says that trailers will be read (RFC 9110 §10.1.4).
    pub fn accept_trailers(&mut self) {
        self.line(b"TE", b"trailers");
        self.line(b"Connection", b"TE");
    }

    /// Says that this is the connection's last request (RFC 9112 §9.6).
    pub fn close(&mut self) {
        self.line(b"Connection", b"close");
    }

    /// Says that another request may follow, which goes without saying in 1.1 (RFC 9112 §C.2.2).
    pub fn keep_alive(&mut self) {
        self.line(b"Connection", b"keep-alive");
    }

    /// Asks the server to go on in another protocol (RFC 9110 §7.8).
    ///
    /// # Errors
    /// [`FieldError`], and nothing is written: the name cannot be the value of a field.
    pub fn upgrade(&mut self, protocol: &str) -> Result<(), FieldError> {
        self.field("Upgrade", protocol.as_bytes())?;
        self.line(b"Connection", b"Upgrade");
        Ok(())
    }

    /// Writes the blank line. The body, if there is one, comes right after it.
    pub fn finish(self) {
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, name: &[u8], value: &[u8]) {
        write_line(self.out, name, value);
    }
}

/// Two of one of these, or one that disagrees with the body, would let the server see a second
/// request, or one for somebody else.
const OWN_FIELDS: [HeaderId; 6] = [
    HeaderId::ContentLength,
    HeaderId::TransferEncoding,
    HeaderId::Connection,
    HeaderId::Host,
    HeaderId::Expect,
    HeaderId::Te,
];

/// Why a request's head was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestWriteError {
    /// The method is [`Method::Other`], which has no token of its own.
    Method,
    /// The target has a byte that must be percent-encoded, or a form that the method does not
    /// allow.
    Target,
    /// The host is not a host with an optional port.
    Host,
}

impl fmt::Display for RequestWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "the method must be one that has a name",
            Self::Target => {
                "the target needs percent-encoding, or has a form that the method does not allow"
            }
            Self::Host => "the host must be a name or an address, with an optional port",
        })
    }
}

impl Error for RequestWriteError {}

#[cfg(test)]
mod tests {
    use super::{RequestWriteError, RequestWriter};
    use crate::fields::FieldError;
    use crate::method::Method;

    #[test]
    fn a_request_is_written_behind_what_was_there() {
        let mut out = b"before".to_vec();
        let mut writer =
            RequestWriter::start(&mut out, Method::Post, b"/a?b=c", b"h.example:81").expect("good");
        writer.field("X-Y", b"a \xe9\t").expect("a good field");
        writer.expect_continue();
        writer.accept_trailers();
        writer.close();
        writer.content_length(12);
        writer.finish();
        let want = b"beforePOST /a?b=c HTTP/1.1\r\nHost: h.example:81\r\nX-Y: a \xe9\t\r\n\
            Expect: 100-continue\r\nTE: trailers\r\nConnection: TE\r\nConnection: close\r\n\
            Content-Length: 12\r\n\r\n";
        assert_eq!(out.escape_ascii().to_string(), want.escape_ascii().to_string());
    }

    #[test]
    fn an_old_request_says_so_and_may_ask_to_be_kept() {
        let mut out = b"before".to_vec();
        let mut writer = RequestWriter::start(&mut out, Method::Get, b"/1.1", b"h").expect("good");
        writer.old();
        writer.keep_alive();
        writer.finish();
        assert_eq!(out, b"beforeGET /1.1 HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
    }

    #[test]
    fn targets_and_hosts_that_could_split_a_request_are_refused() {
        let mut out = Vec::new();
        for target in ["", "a", "/a b", "/a\r\nX: y", "/é", "/\"", "/a#b", "*", "h:80", "\n"] {
            let refused =
                RequestWriter::start(&mut out, Method::Get, target.as_bytes(), b"h").err();
            assert_eq!(refused, Some(RequestWriteError::Target), "{target:?}");
        }
        for host in ["", "h\r\nX: y", "u@h", "h:x", "h h", "é", "h/", "[::1"] {
            let refused = RequestWriter::start(&mut out, Method::Get, b"/", host.as_bytes()).err();
            assert_eq!(refused, Some(RequestWriteError::Host), "{host:?}");
        }
        assert!(out.is_empty());
        RequestWriter::start(&mut out, Method::Options, b"*", b"[::1]:80").expect("good").finish();
        RequestWriter::start(&mut out, Method::Connect, b"h:443", b"h:443").expect("good").finish();
    }

    #[test]
    fn nothing_can_split_a_request() {
        let mut out = Vec::new();
        let mut writer = RequestWriter::start(&mut out, Method::Get, b"/", b"h").expect("good");
        for name in ["", "a b", "a:", "a\r\n", "a\r\nb: c", "é", "a\0"] {
            assert_eq!(writer.field(name, b"v"), Err(FieldError::Name), "{name:?}");
        }
        for value in [b"a\r\nb: c".as_slice(), b"\n", b"\r", b"\0", b"a\x7f", b"\r\n\r\nbody"] {
            assert_eq!(writer.field("X", value), Err(FieldError::Value));
        }
        let own = ["content-length", "Transfer-Encoding", "CONNECTION", "host", "expect", "Te"];
        for name in own {
            assert_eq!(writer.field(name, b"0"), Err(FieldError::Framing), "{name}");
        }
        writer.finish();
        assert_eq!(out, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    }
}
