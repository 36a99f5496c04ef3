//! The response to a request: its head is here, its body comes.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_core::Stream;
use gustnado_http::head::Version;
use gustnado_http::limits::Limits;
use gustnado_http::request::FieldLines;
use gustnado_http::response::{ResponseBody, ResponseFraming, ResponseView};

use super::error::ClientError;
use super::exchange::{ClientExchange, HeadReader, ReceivedHead};

/// Room made at once for a body that is read whole; more is made as it comes.
const WHOLE_BYTES_START: usize = 64 << 10;

/// The response to a request: its head is here, its body comes when it is read.
///
/// Read the body to its end and the connection is used again; drop it before, and the connection
/// closes. A short body with a Content-Length often came with its head: then nothing is left to
/// read from the connection.
pub struct ClientResponse {
    head: ReceivedHead,
    interim: Vec<ReceivedHead>,
    body: ClientResponseBody,
}

impl ClientResponse {
    /// - `reader`: has read the head, and what came with it.
    pub(super) fn new(
        head: ReceivedHead,
        reader: HeadReader,
        exchange: ClientExchange,
        limits: &Limits,
    ) -> Self {
        let HeadReader { interim, buffer, .. } = reader;
        let body = ClientResponseBody::new(&head, buffer, exchange, limits);
        Self { head, interim, body }
    }

    /// Returns the status code, 200 to 999. A code above 599 is to be taken as a 5xx (RFC 9110
    /// §15).
    pub fn status(&self) -> u16 {
        self.head.head.status()
    }

    /// Returns the reason phrase, which may be empty.
    pub fn reason(&self) -> &[u8] {
        self.head.view().reason()
    }

    /// Returns the server's version.
    pub fn version(&self) -> Version {
        self.head.head.version()
    }

    /// Returns the first value of a field, by its name, whose case does not matter; `None` also if
    /// it is not UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_bytes(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Returns the first value of a field, by its name, whose case does not matter. May be empty.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        self.head.view().field(name)
    }

    /// Returns all values of a field in order, by its name, whose case does not matter.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.head.view().values(name)
    }

    /// Returns all field lines in order: name and value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        named(self.head.view().fields())
    }

    /// Returns what Content-Length says. To HEAD, that is what a GET would bring (RFC 9110 §8.6).
    pub fn content_length(&self) -> Option<u64> {
        self.head.head.content_length()
    }

    /// Returns the interim responses that came before (RFC 9110 §15.2), such as 103 Early Hints; at
    /// most 16.
    /// `100 Continue` is not among them.
    pub fn interim(&self) -> impl Iterator<Item = ResponseView<'_>> {
        self.interim.iter().map(ReceivedHead::view)
    }

    /// Returns the next bytes of the body, 1 at least; `None` at its end. See
    /// [`ClientResponseBody::next`].
    pub async fn next(&mut self) -> Option<Result<Bytes, ClientError>> {
        self.body.next().await
    }

    /// Returns the rest of the body, whole.
    ///
    /// - `bytes_max`: a longer one is an error, and the connection closes.
    ///
    /// # Errors
    /// [`ClientError::TooLong`], and what may go wrong while it comes.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, ClientError> {
        self.body.bytes(bytes_max).await
    }

    /// Returns the rest of the body as text, which must be UTF-8 whatever its Content-Type says.
    ///
    /// # Errors
    /// [`ClientError::NotText`], and as [`ClientResponse::bytes`].
    pub async fn text(&mut self, bytes_max: usize) -> Result<String, ClientError> {
        let bytes = self.bytes(bytes_max).await?;
        String::from_utf8(bytes.into()).map_err(|_| ClientError::NotText)
    }

    /// Returns the trailer fields (RFC 9112 §7.1.2). See [`ClientResponseBody::trailers`].
    pub fn trailers(&self) -> Option<impl Iterator<Item = (&str, &[u8])>> {
        self.body.trailers()
    }

    /// Returns the body alone, as a stream.
    pub fn into_body(self) -> ClientResponseBody {
        self.body
    }
}

impl fmt::Debug for ClientResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientResponse")
            .field("head", &self.head.view())
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

/// The body of a response: a stream of runs of bytes, as they come.
///
/// While it is read, what is left of the request's body is sent. After its last bytes it gives its
/// end; after an error too.
pub struct ClientResponseBody {
    decoder: ResponseBody,
    /// Bytes that came and were not read yet.
    buffer: BytesMut,
    /// Until the end, or an error.
    exchange: Option<Box<ClientExchange>>,
    /// The connection can be used again after the body.
    keep_alive: bool,
    /// The caller waits for bytes.
    waiting: bool,
    host: Arc<str>,
}

impl ClientResponseBody {
    fn new(
        head: &ReceivedHead,
        buffer: BytesMut,
        exchange: ClientExchange,
        limits: &Limits,
    ) -> Self {
        let (framing, host) = (head.head.framing(), exchange.host());
        let mut body = Self {
            decoder: ResponseBody::new(framing, limits),
            buffer,
            exchange: Some(Box::new(exchange)),
            keep_alive: head.head.keep_alive(),
            waiting: false,
            host,
        };
        // All of a short body often comes with its head: then the connection is free at once.
        let is_here = framing == ResponseFraming::Length(body.buffer.len() as u64);
        if body.decoder.is_done() || (is_here && body.is_sent()) {
            body.end(is_here);
        }
        body
    }

    /// Returns the next bytes, 1 at least; `None` at the end.
    ///
    /// # Errors
    /// [`ClientError`], after which nothing more comes.
    pub async fn next(&mut self) -> Option<Result<Bytes, ClientError>> {
        poll_fn(|cx| self.poll_bytes(cx)).await
    }

    /// Returns the rest of it, whole; see [`ClientResponse::bytes`].
    ///
    /// # Errors
    /// [`ClientError::TooLong`], and what may go wrong while it comes.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, ClientError> {
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let too_long = ClientError::TooLong { limit_bytes: bytes_max };
        if first.len() > bytes_max {
            self.abandon();
            return Err(too_long);
        }
        let Some(second) = self.next().await.transpose()? else { return Ok(first) };
        let mut whole = BytesMut::with_capacity(bytes_max.min(WHOLE_BYTES_START));
        whole.extend_from_slice(&first);
        let mut next = Some(second);
        while let Some(bytes) = next {
            if bytes.len() > bytes_max - whole.len() {
                self.abandon();
                return Err(too_long);
            }
            whole.extend_from_slice(&bytes);
            next = self.next().await.transpose()?;
        }
        Ok(whole.freeze())
    }

    /// Bytes so far.
    pub fn received(&self) -> u64 {
        self.decoder.received()
    }

    /// Returns the trailer fields in order, once the body was read to its end; `None` before. Many
    /// servers send them only on request ([`super::ClientRequest::accept_trailers`]).
    pub fn trailers(&self) -> Option<impl Iterator<Item = (&str, &[u8])>> {
        self.decoder.trailers().map(named)
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientError>>> {
        if !mem::replace(&mut self.waiting, true)
            && let Some(exchange) = &mut self.exchange
        {
            exchange.expect_bytes();
        }
        let polled = self.poll_step(cx);
        self.waiting = polled.is_pending();
        if let Poll::Ready(Some(Err(_))) = polled {
            self.abandon();
        }
        polled
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientError>>> {
        loop {
            if let Some(exchange) = &mut self.exchange
                && let Err(error) = exchange.poll_upload(cx)
            {
                return Poll::Ready(Some(Err(error)));
            }
            if self.decoder.is_done() {
                self.end(false);
                return Poll::Ready(None);
            }
            if !self.buffer.is_empty() {
                match self.decode() {
                    Ok(data) if data.is_empty() => continue,
                    result => return Poll::Ready(Some(result)),
                }
            }
            let Some(exchange) = &mut self.exchange else { return Poll::Ready(None) };
            let received = ready!(exchange.poll_receive(cx, &mut self.buffer));
            match received {
                Ok(0) if exchange.has_ended() && self.decoder.close() => {}
                Ok(0) => {
                    let (host, received) = (Arc::clone(&self.host), self.decoder.received());
                    return Poll::Ready(Some(Err(ClientError::Truncated { host, received })));
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// One run of data from what is here; empty if that was framing alone.
    fn decode(&mut self) -> Result<Bytes, ClientError> {
        let piece = match self.decoder.decode(&self.buffer) {
            Ok(piece) => piece,
            Err(error) => {
                return Err(ClientError::Body { host: Arc::clone(&self.host), error });
            }
        };
        let (data, framing, done) =
            (piece.data.len(), piece.consumed - piece.data.len(), piece.done);
        self.buffer.advance(framing);
        let data = self.buffer.split_to(data).freeze();
        if done {
            self.end(false);
        }
        Ok(data)
    }

    /// Closes the connection; nothing more comes.
    fn abandon(&mut self) {
        self.exchange = None;
        self.buffer.clear();
    }

    /// Returns whether the whole request was sent.
    fn is_sent(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_sent())
    }

    /// Nothing more is to come: gives the connection back. One on which more came than the response
    /// cannot be trusted.
    ///
    /// - `is_here`: what is in the buffer is the response's, and all of it.
    fn end(&mut self, is_here: bool) {
        if let Some(exchange) = self.exchange.take()
            && self.keep_alive
            && (is_here || self.buffer.is_empty())
        {
            exchange.keep();
        }
    }
}

/// Names are tokens, which are ASCII.
fn named(fields: FieldLines<'_>) -> impl Iterator<Item = (&str, &[u8])> {
    fields.map(|(name, value)| (std::str::from_utf8(name).unwrap_or_default(), value))
}

impl Stream for ClientResponseBody {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_bytes(cx)
    }
}

impl fmt::Debug for ClientResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody")
            .field("received", &self.received())
            .field("done", &self.decoder.is_done())
            .finish_non_exhaustive()
    }
}
