//! Requests the page once, to check that a server is ready and does the same work as the others.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use gustnado_client::{Client, ClientError, ClientOptions, ConnectorSettings, Http2Use, Trust};
use gustnado_tasks::{Endpoint, block_on};

use super::file::{BodySpec, PageSpec, ScenarioSpec};
use crate::outcome::Outcome;

/// The kind of a body, as the generator says it, too.
const KIND: &str = "application/json";
/// Time-out of a message.
const MESSAGE: Duration = Duration::from_secs(5);
/// Longest body that is read.
const BYTES_MAX: usize = (1 << 30) + 1;

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProbeResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Requests a page on a new connection. By TLS any certificate will do.
///
/// - `http2`: how it is asked.
/// - `socket`: a Unix socket to connect to instead of the URL's host.
/// - `body`: the body of a POST; without one it is a GET.
/// - `most`: the time-out of all of it.
///
/// # Errors
/// A sentence that says why there is no complete response.
pub(super) fn request(
    http2: Http2Use,
    socket: Option<&Path>,
    url: &str,
    body: Option<&BodySpec>,
    most: Duration,
) -> Result<ProbeResponse, String> {
    let tls = ConnectorSettings { trust: Trust::Anyone, ..ConnectorSettings::default() };
    let client = Client::new(ClientOptions { tls, http2, ..ClientOptions::default() });
    let mut request = match body {
        None => client.get(url),
        Some(body) => client.post(url).header("Content-Type", KIND).body(body.content()),
    };
    if let Some(path) = socket {
        request = request.via(Endpoint::Unix(path.to_owned()));
    }
    let asked = async {
        let mut response = request.total_timeout(most).alone().send().await?;
        let body = response.bytes(BYTES_MAX).await?.to_vec();
        Ok(ProbeResponse { status: response.status(), body })
    };
    let asked = block_on(asked).map_err(|error| format!("no thread for it: {error}"))?;
    asked.map_err(|error: ClientError| match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {source}"),
    })
}

/// Returns the load that is one message over a WebSocket.
pub(super) fn one_message(page: Option<&PageSpec>) -> ScenarioSpec {
    ScenarioSpec {
        page: page.cloned(),
        connections: 1,
        requests: Some(1),
        duration: MESSAGE,
        keep_alive: true,
        pipeline: 1,
        threads: Some(1),
        arguments: ["--check-every", "1"].map(str::to_owned).to_vec(),
        ..ScenarioSpec::default()
    }
}

/// Returns an empty response if that message has come back.
///
/// # Errors
/// It has not.
pub(super) fn response_to_message(outcome: &Outcome) -> Result<ProbeResponse, String> {
    if outcome.requests == 1 {
        return Ok(ProbeResponse { status: 200, body: Vec::new() });
    }
    Err(format!("no message came back over a WebSocket ({:?})", outcome.errors))
}

/// Describes the difference between a response and the correct one; `None` if there is none.
///
/// - `accepts`: whether a status is one of a successful response.
pub(super) fn difference(
    found: &ProbeResponse,
    right: &[u8],
    accepts: impl Fn(u16) -> bool,
) -> Option<String> {
    if !accepts(found.status) {
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
    use std::io::{Read, Write};
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
            let url = format!("http://127.0.0.1:{port}/x");
            request(Http2Use::ByAlpn, None, &url, None, PATIENCE)
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
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"[..], "before its end"),
            (b"", "without a response"),
            (b"SSH-2.0-x\r\n\r\n", "cannot be read"),
        ] {
            let error = responded(bytes).expect_err("not whole");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_does_not_listen() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        drop(listener);
        let error =
            request(Http2Use::ByAlpn, None, &url, None, PATIENCE).expect_err("nobody is there");
        assert!(error.contains("cannot connect"), "{error}");
    }

    #[test]
    fn unequal_work_is_found() {
        let of = |status, body: &[u8]| ProbeResponse { status, body: body.to_vec() };
        let is_2xx = |status| (200..300).contains(&status);
        assert_eq!(difference(&of(200, b"abc"), b"abc", is_2xx), None);
        let status = difference(&of(404, b"abc"), b"abc", is_2xx);
        assert_eq!(status.as_deref(), Some("expected status 200, found 404"));
        let length = difference(&of(200, b"ab"), b"abc", is_2xx);
        assert_eq!(length.as_deref(), Some("expected 3 bytes, found 2"));
        let bytes = difference(&of(200, b"axc"), b"abc", is_2xx);
        assert_eq!(bytes.as_deref(), Some("its bytes differ from byte 1 on"));
    }
}
