//! Requests with a body, in both framings.

use crate::harness::client::request;

/// The head of a request whose body has this length.
pub(crate) fn head(target: &str, length: usize) -> Vec<u8> {
    request("POST", target, &format!("Content-Length: {length}\r\n")).into_bytes()
}

/// A request with its body, whose length is announced.
pub(crate) fn sized(target: &str, body: &[u8]) -> Vec<u8> {
    [&head(target, body.len()), body].concat()
}

/// The same in chunks of this length.
pub(crate) fn chunked(target: &str, body: &[u8], chunk_bytes: usize) -> Vec<u8> {
    let mut sent = request("POST", target, "Transfer-Encoding: chunked\r\n").into_bytes();
    for chunk in body.chunks(chunk_bytes) {
        sent.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        sent.extend_from_slice(chunk);
        sent.extend_from_slice(b"\r\n");
    }
    sent.extend_from_slice(b"0\r\n\r\n");
    sent
}
