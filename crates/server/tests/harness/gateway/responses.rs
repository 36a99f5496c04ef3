//! From responses on streams to the HTTP/1.1 text that a test reads, in the order of requests.

use std::collections::VecDeque;

use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_http::request::FieldLines;
use gustnado_http::response::ResponseHead;

use super::Core;
use super::text::{write_fields, write_status};

/// How much text may wait for a test that does not read, before no more is asked for.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// Responses with which a connection of HTTP/1.1 ends, as the rest of the request is not read.
const LAST: [u16; 4] = [408, 413, 414, 431];

const MALFORMED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// How the text of a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    InOrder,
    Reset,
}

/// A request that was sent, or is being sent.
pub(super) struct Asked {
    pub(super) id: StreamId,
    pub(super) is_head: bool,
    /// It was sent whole.
    pub(super) is_end: bool,
    pub(super) closes: bool,
}

/// The response to one request.
struct Exchange {
    asked: Asked,
    text: VecDeque<u8>,
    /// Bytes of content in the text.
    content_bytes: usize,
    /// Its content comes in chunks.
    is_chunked: bool,
    has_head: bool,
    is_whole: bool,
    /// Nothing comes behind it.
    last: Option<TextEnd>,
}

/// The responses that the test has not read.
#[derive(Default)]
pub(super) struct Responses {
    exchanges: VecDeque<Exchange>,
    end: Option<TextEnd>,
}

impl Responses {
    /// Notes a request.
    pub(super) fn ask(&mut self, asked: Asked) {
        self.exchanges.push_back(Exchange {
            asked,
            text: VecDeque::new(),
            content_bytes: 0,
            is_chunked: false,
            has_head: false,
            is_whole: false,
            last: None,
        });
    }

    /// Whether more is here than a test has to read first.
    pub(super) fn is_full(&self) -> bool {
        self.text_bytes() > TEXT_BYTES_MAX
    }

    /// Whether no response is due.
    pub(super) fn is_idle(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// How much has not been read.
    pub(super) fn text_bytes(&self) -> usize {
        self.exchanges.iter().map(|exchange| exchange.text.len()).sum()
    }

    /// How the text ends, once that is known.
    pub(super) fn end(&self) -> Option<TextEnd> {
        self.end
    }

    fn find(&mut self, id: StreamId) -> Option<&mut Exchange> {
        self.exchanges.iter_mut().find(|exchange| exchange.asked.id == id)
    }

    /// Notes that all of a request was sent.
    pub(super) fn note_sent(&mut self, id: StreamId, core: &mut Core, out: &mut Vec<u8>) {
        let is_over = self.find(id).is_none_or(|exchange| {
            exchange.asked.is_end = true;
            exchange.is_whole
        });
        if is_over {
            core.close(id, ErrorCode::NoError, out);
        }
    }

    /// Takes the head of an interim or final response.
    ///
    /// - `is_leaving`: the server has said that the connection ends.
    pub(super) fn head(
        &mut self,
        (id, is_end): (StreamId, bool),
        (head, bytes): (ResponseHead, &[u8]),
        is_leaving: bool,
    ) {
        let is_newest = self.exchanges.back().is_some_and(|newest| newest.asked.id == id);
        let is_leaving = is_leaving && is_newest;
        let Some(exchange) = self.find(id) else { return };
        let status = head.status();
        let mut text = Vec::new();
        write_status(status, &mut text);
        write_fields(head.on(bytes).fields(), &mut text);
        if !head.is_interim() {
            exchange.has_head = true;
            let has_none = exchange.asked.is_head || matches!(status, 204 | 304);
            if !has_none && head.content_length().is_none() {
                exchange.is_chunked = !is_end;
                let framing =
                    if is_end { "Content-Length: 0\r\n" } else { "Transfer-Encoding: chunked\r\n" };
                text.extend_from_slice(framing.as_bytes());
            }
            exchange.asked.closes |= LAST.contains(&status);
            if exchange.asked.closes || is_leaving {
                text.extend_from_slice(b"Connection: close\r\n");
            }
        }
        text.extend_from_slice(b"\r\n");
        exchange.text.extend(text);
    }

    /// Takes text that the server speaks in place of HTTP/2: it has refused the connection.
    pub(super) fn raw(&mut self, text: &[u8]) {
        if self.exchanges.is_empty() {
            self.ask(Asked { id: 0, is_head: false, is_end: true, closes: true });
        }
        self.exchanges[0].text.extend(text);
    }

    /// Takes content.
    pub(super) fn content(&mut self, id: StreamId, bytes: &[u8]) {
        let Some(exchange) = self.find(id).filter(|_| !bytes.is_empty()) else { return };
        exchange.content_bytes += bytes.len();
        if !exchange.is_chunked {
            exchange.text.extend(bytes);
            return;
        }
        exchange.text.extend(format!("{:x}\r\n", bytes.len()).into_bytes());
        exchange.text.extend(bytes);
        exchange.text.extend(b"\r\n");
    }

    /// Takes the end of a response, with its trailers if it has some. Returns whether its request
    /// is over, too.
    pub(super) fn finish(&mut self, id: StreamId, trailers: Option<FieldLines<'_>>) -> bool {
        let Some(exchange) = self.find(id) else { return true };
        exchange.is_whole = true;
        if exchange.asked.closes {
            exchange.last = Some(TextEnd::InOrder);
        }
        if exchange.is_chunked {
            let mut text = b"0\r\n".to_vec();
            if let Some(fields) = trailers {
                write_fields(fields, &mut text);
            }
            text.extend_from_slice(b"\r\n");
            exchange.text.extend(text);
        }
        exchange.asked.is_end
    }

    /// Ends a response as the server has reset its stream, and with it the connection of the test.
    pub(super) fn reset(&mut self, id: StreamId, code: ErrorCode) {
        let is_over = self.find(id).is_none_or(|exchange| exchange.is_whole);
        if is_over {
            // The rest of the request is not read, so nothing can come behind it.
            match self.find(id) {
                Some(exchange) => exchange.last = Some(TextEnd::InOrder),
                None => self.end = self.end.or(Some(TextEnd::InOrder)),
            }
            return;
        }
        // A malformed request is 400 in HTTP/1.1, and a stream error in HTTP/2 (RFC 9113 §8.1.1).
        if let Some(exchange) = self.find(id)
            && code == ErrorCode::ProtocolError
            && !exchange.has_head
        {
            exchange.text.extend(MALFORMED);
            exchange.is_whole = true;
            exchange.last = Some(TextEnd::InOrder);
        }
        self.cut(id, TextEnd::InOrder);
    }

    /// Ends a response early, and with it the connection of the test.
    pub(super) fn cut(&mut self, id: StreamId, end: TextEnd) {
        if let Some(exchange) = self.find(id).filter(|exchange| !exchange.is_whole) {
            exchange.last = Some(end);
        }
    }

    /// Ends all responses that are not whole: the connection has ended.
    pub(super) fn cut_all(&mut self, end: TextEnd) {
        for exchange in self.exchanges.iter_mut().filter(|exchange| !exchange.is_whole) {
            exchange.last = exchange.last.or(Some(end));
        }
        if self.exchanges.is_empty() {
            self.end = self.end.or(Some(end));
        } else if let Some(last) = self.exchanges.back_mut() {
            last.last = last.last.or(Some(end));
        }
    }

    /// Whether the server's last word for the test is here.
    pub(super) fn has_last(&self) -> bool {
        self.end.is_some() || self.exchanges.iter().any(|exchange| exchange.last.is_some())
    }

    /// Takes text that is here. Returns how much, and on which streams how much of content that
    /// was.
    pub(super) fn take(&mut self, piece: &mut [u8]) -> (usize, Vec<(StreamId, usize)>) {
        let (mut taken, mut contents) = (0, Vec::new());
        while let Some(exchange) = self.exchanges.front_mut() {
            let count = exchange.text.len().min(piece.len() - taken);
            for (to, from) in piece[taken..].iter_mut().zip(exchange.text.drain(..count)) {
                *to = from;
            }
            taken += count;
            let is_empty = exchange.text.is_empty();
            // The lines around chunks are none of the window, and few.
            let content = if is_empty { usize::MAX } else { count }.min(exchange.content_bytes);
            exchange.content_bytes -= content;
            contents.push((exchange.asked.id, content));
            if !is_empty || !exchange.is_whole && exchange.last.is_none() {
                break;
            }
            self.end = self.end.or(exchange.last);
            if self.end.is_some() {
                self.exchanges.clear();
            } else {
                self.exchanges.pop_front();
            }
        }
        (taken, contents)
    }
}
