//! Requests the page once, to check that a server is ready and does the same work as the others.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use gustnado_client::{Client, ClientError, ClientOptions, ConnectorSettings, Http2Use, Trust};
use gustnado_compress::decompress;
use gustnado_http::content_coding::ContentCoding;
use gustnado_tasks::{Endpoint, block_on};

use super::file::{BodySpec, PageSpec, ScenarioSpec};
use crate::figures::{decimal, real};
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
    /// The value of `Content-Encoding`; empty without it.
    pub(super) coding: String,
    pub(super) body: Vec<u8>,
}

/// A request for a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRequest<'a> {
    /// A Unix socket to connect to instead of the URL's host.
    pub(super) socket: Option<&'a Path>,
    pub(super) url: &'a str,
    /// The body of a POST; without one it is a GET.
    pub(super) body: Option<&'a BodySpec>,
    /// The content coding that it accepts.
    pub(super) coding: Option<ContentCoding>,
}

/// Requests a page on a new connection. By TLS any certificate will do.
///
/// - `http2`: how it is asked.
/// - `most`: the time-out of all of it.
///
/// # Errors
/// A sentence that says why there is no complete response.
pub(super) fn request(
    http2: Http2Use,
    ProbeRequest { socket, url, body, coding }: ProbeRequest<'_>,
    most: Duration,
) -> Result<ProbeResponse, String> {
    let tls = ConnectorSettings { trust: Trust::Anyone, ..ConnectorSettings::default() };
    let client = Client::new(ClientOptions { tls, http2, ..ClientOptions::default() });
    let mut request = match body {
        None => client.get(url),
        Some(body) => client.post(url).header("Content-Type", KIND).body(body.content()),
    };
    if let Some(coding) = coding {
        request = request.header("Accept-Encoding", coding.name());
    }
    if let Some(path) = socket {
        request = request.via(Endpoint::Unix(path.to_owned()));
    }
    let asked = async {
        let mut response = request.total_timeout(most).alone().send().await?;
        let body = response.bytes(BYTES_MAX).await?.to_vec();
        let coding = response.header("Content-Encoding").unwrap_or_default().to_owned();
        Ok(ProbeResponse { status: response.status(), coding, body })
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
        return Ok(ProbeResponse { status: 200, coding: String::new(), body: Vec::new() });
    }
    Err(format!("no message came back over a WebSocket ({:?})", outcome.errors))
}

/// Checks the status of a response.
///
/// - `accepts`: whether a status is one of a successful response.
///
/// # Errors
/// A sentence that says which one it has.
pub(super) fn check_status(
    found: &ProbeResponse,
    accepts: impl Fn(u16) -> bool,
) -> Result<(), String> {
    if accepts(found.status) {
        return Ok(());
    }
    Err(format!("expected status 200, found {}", found.status))
}

/// Returns the content of a response, decoded.
///
/// # Errors
/// It is not in the coding that was asked for.
pub(super) fn decoded(
    found: &ProbeResponse,
    coding: Option<ContentCoding>,
) -> Result<Vec<u8>, String> {
    let wanted = coding.map_or("", ContentCoding::name);
    if !found.coding.eq_ignore_ascii_case(wanted) {
        let [wanted, found] =
            [wanted, &*found.coding].map(|name| if name.is_empty() { "none" } else { name });
        return Err(format!("expected Content-Encoding {wanted}, found {found}"));
    }
    let Some(coding) = coding else { return Ok(found.body.clone()) };
    decompress(coding, &found.body, BYTES_MAX).map_err(|error| error.to_string())
}

/// Compares content with the correct one.
///
/// # Errors
/// A sentence with the difference.
pub(super) fn compare_content(found: &[u8], right: &[u8]) -> Result<(), String> {
    if found.len() != right.len() {
        let (right, found) = (right.len(), found.len());
        return Err(format!("expected {right} bytes, found {found}"));
    }
    match found.iter().zip(right).position(|(found, right)| found != right) {
        None => Ok(()),
        Some(at) => Err(format!("its bytes differ from byte {at} on")),
    }
}

/// Compares the length of an encoded response with that of the first one: shorter is more work.
///
/// - `tolerance`: the greatest share by which it may be longer.
///
/// # Errors
/// A sentence with the difference.
pub(super) fn compare_lengths(found: usize, first: usize, tolerance: f64) -> Result<(), String> {
    let share = real(found.saturating_sub(first) as u64) / real(first.max(1) as u64);
    if share <= tolerance {
        return Ok(());
    }
    let (share, most) = (decimal(share * 100.0), decimal(tolerance * 100.0));
    Err(format!(
        "expected {first} encoded bytes, found {found}: {share} % more, of {most} % that \
         size_tolerance allows; choose another level"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn plain(url: &str) -> ProbeRequest<'_> {
        ProbeRequest { socket: None, url, body: None, coding: None }
    }

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
            request(Http2Use::ByAlpn, plain(&url), PATIENCE)
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
        let error = request(Http2Use::ByAlpn, plain(&url), PATIENCE).expect_err("nobody is there");
        assert!(error.contains("cannot connect"), "{error}");
    }

    fn response(status: u16, coding: &str, body: &[u8]) -> ProbeResponse {
        ProbeResponse { status, coding: coding.to_owned(), body: body.to_vec() }
    }

    #[test]
    fn an_encoded_response_is_compared_by_its_content() {
        let gzip = Some(ContentCoding::Gzip);
        // `abc`, by gzip.
        let body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03KLJ\x06\0\xc2A$5\x03\0\0\0";
        assert_eq!(decoded(&response(200, "GZIP", body), gzip), Ok(b"abc".to_vec()));
        let plain = decoded(&response(200, "", b"abc"), gzip);
        assert_eq!(plain.expect_err("plain"), "expected Content-Encoding gzip, found none");
        let unasked = decoded(&response(200, "gzip", body), None);
        assert_eq!(unasked.expect_err("coded"), "expected Content-Encoding none, found gzip");
        let broken = decoded(&response(200, "gzip", &body[..9]), gzip);
        assert_eq!(broken.expect_err("cut"), "it is not a complete body in gzip");
    }

    #[test]
    fn an_encoded_response_may_be_longer_by_a_share() {
        assert_eq!(compare_lengths(1_030, 1_000, 0.03), Ok(()));
        assert_eq!(compare_lengths(500, 1_000, 0.03), Ok(()));
        let found = compare_lengths(1_031, 1_000, 0.03).expect_err("too long");
        assert!(
            found.starts_with("expected 1000 encoded bytes, found 1031: 3.10 % more"),
            "{found}"
        );
        assert_eq!(compare_lengths(0, 0, 0.0), Ok(()));
    }

    #[test]
    fn unequal_work_is_found() {
        let is_2xx = |status| (200..300).contains(&status);
        assert_eq!(check_status(&response(200, "", b"abc"), is_2xx), Ok(()));
        let status = check_status(&response(404, "", b"abc"), is_2xx);
        assert_eq!(status.expect_err("404"), "expected status 200, found 404");
        assert_eq!(compare_content(b"abc", b"abc"), Ok(()));
        let length = compare_content(b"ab", b"abc");
        assert_eq!(length.expect_err("shorter"), "expected 3 bytes, found 2");
        let bytes = compare_content(b"axc", b"abc");
        assert_eq!(bytes.expect_err("others"), "its bytes differ from byte 1 on");
    }
}
