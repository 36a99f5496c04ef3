//! Requests the page once, to check that a server is ready and does the same work as the others.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use gustnado_http::head::Decoded;
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::response::{ResponseBody, ResponseHead};

use super::file::BodySpec;

/// The field of a body's kind, as the generator sends it, too.
const KIND: &str = "Content-Type: application/json\r\n";
/// Longest body that is read.
const BYTES_MAX: u64 = (1 << 30) + 1;

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProbeResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Splits a loopback URL into port and path.
pub(super) fn port_and_path(url: &str) -> Option<(u16, &str)> {
    let rest = url.strip_prefix("http://127.0.0.1:")?;
    let (port, _) = rest.split_once('/')?;
    Some((port.parse().ok()?, &rest[port.len()..]))
}

/// Requests a page on a new connection.
///
/// - `socket`: a Unix socket to connect to instead of the port.
/// - `body`: the body of a POST; without one it is a GET.
/// - `most`: the time-out of all of it.
///
/// # Errors
/// A sentence that says why there is no complete response.
pub(super) fn request(
    socket: Option<&Path>,
    port: u16,
    (path, body): (&str, Option<&BodySpec>),
    most: Duration,
) -> Result<ProbeResponse, String> {
    let until = Instant::now() + most;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let mut stream = match socket {
        None => TcpStream::connect_timeout(&address, most),
        // A connected stream socket is used alike for every address family.
        Some(path) => UnixStream::connect(path).map(|stream| OwnedFd::from(stream).into()),
    }
    .map_err(failed("it does not listen"))?;
    let content = body.map(BodySpec::content);
    let (method, framing) = match &content {
        None => ("GET", String::new()),
        Some(content) => ("POST", format!("{KIND}Content-Length: {}\r\n", content.len())),
    };
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{framing}\r\n"
    )
    .into_bytes();
    request.extend(content.unwrap_or_default());
    stream.set_write_timeout(Some(most)).map_err(failed("no bound on sending"))?;
    stream.write_all(&request).map_err(failed("it does not take a request"))?;
    read(&mut stream, until)
}

fn read(stream: &mut TcpStream, until: Instant) -> Result<ProbeResponse, String> {
    let limits = Limits { body_bytes_max: BYTES_MAX, ..Limits::default() };
    let (mut received, mut seen) = (Vec::new(), 0);
    let head = loop {
        match ResponseHead::decode(&received, &mut seen, Method::Get, &limits) {
            Err(error) => return Err(format!("its response is not HTTP: {error}")),
            Ok(Decoded::Done(head)) if head.is_interim() => {
                received.drain(..head.len());
                seen = 0;
            }
            Ok(Decoded::Done(head)) => break head,
            Ok(Decoded::NeedMore) => {
                if receive(stream, &mut received, until)? == 0 {
                    return Err("it closed the connection without a response".to_owned());
                }
            }
        }
    };
    let mut body =
        ProbeBody { decoder: ResponseBody::new(head.framing(), &limits), data: Vec::new() };
    let mut rest = received.split_off(head.len());
    body.take(&mut rest)?;
    while !body.decoder.is_done() {
        if receive(stream, &mut rest, until)? == 0 {
            if body.decoder.close() {
                break;
            }
            return Err("it closed the connection before the end of its response".to_owned());
        }
        body.take(&mut rest)?;
    }
    Ok(ProbeResponse { status: head.status(), body: body.data })
}

struct ProbeBody {
    decoder: ResponseBody,
    data: Vec<u8>,
}

impl ProbeBody {
    /// Decodes `received` as far as possible and removes what it used.
    fn take(&mut self, received: &mut Vec<u8>) -> Result<(), String> {
        let mut at = 0;
        while at < received.len() && !self.decoder.is_done() {
            let piece = self
                .decoder
                .decode(&received[at..])
                .map_err(|error| format!("the body of its response is not HTTP: {error}"))?;
            self.data.extend_from_slice(piece.data);
            if piece.consumed == 0 {
                break;
            }
            at += piece.consumed;
        }
        received.drain(..at);
        Ok(())
    }
}

fn receive(stream: &mut TcpStream, to: &mut Vec<u8>, until: Instant) -> Result<usize, String> {
    let mut buffer = [0; 16 << 10];
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err("it did not respond in time".to_owned());
    }
    let waited = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut buffer));
    match waited {
        Ok(count) => {
            to.extend_from_slice(&buffer[..count]);
            Ok(count)
        }
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Err("it did not respond in time".to_owned())
        }
        Err(error) => Err(format!("its response broke off: {error}")),
    }
}

/// Describes the difference between a response and the correct one; `None` if there is none.
pub(super) fn difference(found: &ProbeResponse, right: &[u8]) -> Option<String> {
    if !(200..300).contains(&found.status) {
        return Some(format!("expected status 200, found {}", found.status));
    }
    if found.body.len() != right.len() {
        let (right, found) = (right.len(), found.body.len());
        return Some(format!("expected {right} bytes, found {found}"));
    }
    let at = found.body.iter().zip(right).position(|(found, right)| found != right)?;
    Some(format!("its bytes differ from byte {at} on"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Parses bytes that a server sends before it closes.
    fn responded(bytes: &'static [u8]) -> Result<ProbeResponse, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("it connects");
                let mut request = [0; 512];
                let _ = stream.read(&mut request).expect("it asks");
                stream.write_all(bytes).expect("it reads");
            });
            request(None, port, ("/x", None), PATIENCE)
        })
    }

    #[test]
    fn an_answer_is_read_however_it_is_framed() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
            b"HTTP/1.0 200 OK\r\n\r\nhello",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
              2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ] {
            let found = responded(bytes).expect("whole");
            assert_eq!((found.status, &*found.body), (200, &b"hello"[..]));
        }
    }

    #[test]
    fn what_is_no_whole_answer_is_said_in_words() {
        for (bytes, words) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"[..], "before the end"),
            (b"", "without a response"),
            (b"SSH-2.0-x\r\n\r\n", "is not HTTP"),
        ] {
            let error = responded(bytes).expect_err("not whole");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_does_not_listen() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        drop(listener);
        let error = request(None, port, ("/", None), PATIENCE).expect_err("nobody is there");
        assert!(error.contains("does not listen"), "{error}");
    }

    #[test]
    fn unequal_work_is_found() {
        let of = |status, body: &[u8]| ProbeResponse { status, body: body.to_vec() };
        assert_eq!(difference(&of(200, b"abc"), b"abc"), None);
        let status = difference(&of(404, b"abc"), b"abc");
        assert_eq!(status.as_deref(), Some("expected status 200, found 404"));
        let length = difference(&of(200, b"ab"), b"abc");
        assert_eq!(length.as_deref(), Some("expected 3 bytes, found 2"));
        let bytes = difference(&of(200, b"axc"), b"abc");
        assert_eq!(bytes.as_deref(), Some("its bytes differ from byte 1 on"));
    }

    #[test]
    fn a_url_has_a_port_and_a_path() {
        assert_eq!(port_and_path("http://127.0.0.1:80/a?b"), Some((80, "/a?b")));
        assert_eq!(port_and_path("http://example.org:80/a"), None);
    }
}
