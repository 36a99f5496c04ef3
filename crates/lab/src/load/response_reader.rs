//! Reads responses: where each one ends, and what the counters need of it.
//!
//! Responses to one URL usually share a head, byte for byte, for a second. So a head is compared
//! with the last one of its URL before it is decoded.

use gustnado_http::head::Decoded;
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::response::{ResponseBody, ResponseFraming, ResponseHead};

/// A load generator accepts every well-formed response.
const LIMITS: Limits = Limits {
    head_bytes_max: u16::MAX as usize,
    target_bytes_max: 0,
    fields_max: 1000,
    body_bytes_max: u64::MAX,
};

/// The last head of a URL: its bytes and its meaning.
#[derive(Debug, Default)]
pub(super) struct KnownHead {
    bytes: Vec<u8>,
    head: Option<ResponseHead>,
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadResponse {
    pub(super) status: u16,
    /// Bytes of its body.
    pub(super) length: u64,
    /// Hash of its body, if requested.
    pub(super) hash: Option<u64>,
    pub(super) keep_alive: bool,
}

/// The response is not HTTP.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The parser of the responses on one connection.
#[derive(Debug, Default)]
pub(super) struct ResponseReader {
    /// The beginning of a head, and how much of it was searched for its end.
    rest: Vec<u8>,
    seen: usize,
    body: Option<BodyReader>,
}

/// A body that is being read.
#[derive(Debug)]
struct BodyReader {
    head: ResponseHead,
    left: BodyLeft,
    length: u64,
    hash: Option<BodyHash>,
}

#[derive(Debug)]
enum BodyLeft {
    Bytes(u64),
    Other(Box<ResponseBody>),
}

impl ResponseReader {
    /// Returns whether no byte of a response has arrived yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.rest.is_empty() && self.body.is_none()
    }

    /// Parses more bytes. Returns how many were used, and the response if it is complete; the rest
    /// belongs to the next one.
    ///
    /// - `method`: the method of the request.
    /// - `hashes`: whether its body is hashed. Only the value passed with the head counts.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        known: &mut KnownHead,
        method: Method,
        hashes: bool,
    ) -> Result<(usize, Option<ReadResponse>), Unreadable> {
        if !hashes
            && self.is_fresh()
            && let Some(head) = known.head
            && let ResponseFraming::Length(length) = head.framing()
            && bytes.starts_with(&known.bytes)
            && (bytes.len() - known.bytes.len()) as u64 >= length
        {
            // The whole response in one piece: by far the usual case.
            let body = usize::try_from(length).unwrap_or(usize::MAX);
            return Ok((known.bytes.len() + body, Some(response(&head, length, None))));
        }
        let mut used = 0;
        while self.body.is_none() {
            match self.read_head(&bytes[used..], known, method)? {
                None => return Ok((bytes.len(), None)),
                Some((of_head, head)) => {
                    used += of_head;
                    if !head.is_interim() {
                        self.body = Some(BodyReader::new(head, hashes));
                    }
                }
            }
        }
        let (of_body, response) = self.read_body(&bytes[used..])?;
        Ok((used + of_body, response))
    }

    /// Handles the server's close. Returns the response if that was its end; `None`: it is cut
    /// short, or had not begun.
    pub(super) fn close(&mut self) -> Option<ReadResponse> {
        let BodyLeft::Other(body) = &mut self.body.as_mut()?.left else { return None };
        if !body.close() {
            return None;
        }
        self.body.take().map(BodyReader::response)
    }

    /// Resets the parser for another connection.
    pub(super) fn reset(&mut self) {
        self.rest.clear();
        self.seen = 0;
        self.body = None;
    }

    fn read_head(
        &mut self,
        bytes: &[u8],
        known: &mut KnownHead,
        method: Method,
    ) -> Result<Option<(usize, ResponseHead)>, Unreadable> {
        let before = self.rest.len();
        if before == 0
            && let Some(head) = known.head
            && bytes.starts_with(&known.bytes)
        {
            return Ok(Some((known.bytes.len(), head)));
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let input = if before == 0 {
            bytes
        } else {
            self.rest.extend_from_slice(bytes);
            &self.rest
        };
        match ResponseHead::decode(input, &mut self.seen, method, &LIMITS) {
            Err(_) => Err(Unreadable),
            Ok(Decoded::NeedMore) => {
                if before == 0 {
                    self.rest.extend_from_slice(bytes);
                }
                Ok(None)
            }
            Ok(Decoded::Done(head)) => {
                known.bytes.clear();
                known.bytes.extend_from_slice(&input[..head.len()]);
                known.head = Some(head);
                // The buffered part held no end of a head.
                let used = head.len() - before;
                self.rest.clear();
                self.seen = 0;
                Ok(Some((used, head)))
            }
        }
    }

    fn read_body(&mut self, bytes: &[u8]) -> Result<(usize, Option<ReadResponse>), Unreadable> {
        let Some(body) = &mut self.body else { return Ok((0, None)) };
        let mut used = 0;
        let is_done = match &mut body.left {
            BodyLeft::Bytes(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= take as u64;
                let is_done = *left == 0;
                body.take_in(&bytes[..take]);
                used = take;
                is_done
            }
            BodyLeft::Other(decoder) => loop {
                let piece = decoder.decode(&bytes[used..]).map_err(|_| Unreadable)?;
                used += piece.consumed;
                body.length += piece.data.len() as u64;
                if let Some(hash) = &mut body.hash {
                    hash.take_in(piece.data);
                }
                if piece.done || piece.consumed == 0 || used == bytes.len() {
                    break decoder.is_done();
                }
            },
        };
        let response = if is_done { self.body.take().map(BodyReader::response) } else { None };
        Ok((used, response))
    }
}

impl BodyReader {
    fn new(head: ResponseHead, hashes: bool) -> Self {
        let left = match head.framing() {
            ResponseFraming::None | ResponseFraming::Tunnel => BodyLeft::Bytes(0),
            ResponseFraming::Length(bytes) => BodyLeft::Bytes(bytes),
            framing => BodyLeft::Other(Box::new(ResponseBody::new(framing, &LIMITS))),
        };
        Self { head, left, length: 0, hash: hashes.then(BodyHash::new) }
    }

    fn take_in(&mut self, data: &[u8]) {
        self.length += data.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.take_in(data);
        }
    }

    fn response(self) -> ReadResponse {
        response(&self.head, self.length, self.hash.map(|hash| hash.0))
    }
}

fn response(head: &ResponseHead, length: u64, hash: Option<u64>) -> ReadResponse {
    ReadResponse { status: head.status(), length, hash, keep_alive: head.keep_alive() }
}

/// FNV-1a: the same for every split of the bytes, and good enough to distinguish two bodies that
/// were not forged.
#[derive(Debug)]
pub(super) struct BodyHash(u64);

impl BodyHash {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn value(&self) -> u64 {
        self.0
    }

    pub(super) fn take_in(&mut self, data: &[u8]) {
        for byte in data {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KnownHead, ReadResponse, ResponseReader, Unreadable};
    use gustnado_http::method::Method;

    /// Feeds bytes in pieces of a size, and returns the responses.
    fn read(bytes: &[u8], size: usize, method: Method) -> Result<Vec<ReadResponse>, Unreadable> {
        let (mut reader, mut known) = (ResponseReader::default(), KnownHead::default());
        let mut found = Vec::new();
        for mut piece in bytes.chunks(size) {
            while !piece.is_empty() {
                let (used, response) = reader.read(piece, &mut known, method, true)?;
                piece = &piece[used..];
                found.extend(response);
            }
        }
        found.extend(reader.close());
        Ok(found)
    }

    #[test]
    fn however_bytes_are_cut_the_answers_are_the_same() {
        let bytes =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n\
            HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello";
        let whole = read(bytes, bytes.len(), Method::Get).expect("it is HTTP");
        let lengths: Vec<_> =
            whole.iter().map(|response| (response.status, response.length)).collect();
        assert_eq!(lengths, [(200, 5), (200, 5), (204, 0), (200, 5)]);
        assert_eq!(whole[0].hash, whole[1].hash);
        assert_eq!(whole[0].hash, whole[3].hash);
        assert_ne!(whole[0].hash, whole[2].hash);
        for size in 1..bytes.len() {
            assert_eq!(read(bytes, size, Method::Get).as_ref(), Ok(&whole), "{size}");
        }
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".repeat(2);
        let found = read(&bytes, 7, Method::Head).expect("it is HTTP");
        assert_eq!(found.iter().map(|response| response.length).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn what_is_no_http_is_said_to_be_none() {
        assert_eq!(read(b"SSH-2.0\r\n", 3, Method::Get), Err(Unreadable));
        let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        assert_eq!(read(chunk, 64, Method::Get), Err(Unreadable));
    }

    #[test]
    fn a_head_that_changes_is_read_anew() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\
            Content-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        let found = read(bytes, bytes.len(), Method::Get).expect("it is HTTP");
        assert_eq!(found.iter().map(|response| response.length).collect::<Vec<_>>(), [1, 2, 2]);
    }
}
