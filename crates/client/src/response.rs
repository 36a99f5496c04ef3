//! The response to a request: its head is here, its body comes.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use gustnado_http::head::Version;
use gustnado_http::limits::Limits;
use gustnado_http::request::FieldLines;
use gustnado_http::response::ResponseView;

use gustnado_tls::Socket;

use super::error::ClientError;
use super::exchange::{ClientExchange, HeadReader, ReceivedHead};
use super::http1_body::Http1Body;
use super::http2::Http2Exchange;

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
        if head.head.status() == 101 {
            let source = BodySource::Switched(Some(Box::new((exchange.into_socket(), buffer))));
            let body = ClientResponseBody { source, received: 0, trailers: None };
            return Self { head, interim, body };
        }
        let source = BodySource::Http1(Http1Body::new(&head, buffer, exchange, limits));
        let body = ClientResponseBody { source, received: 0, trailers: None };
        Self { head, interim, body }
    }

    /// Makes that of a stream.
    pub(super) fn of_http2(
        head: ReceivedHead,
        interim: Vec<ReceivedHead>,
        exchange: Http2Exchange,
    ) -> Self {
        let source = BodySource::Http2(Some(Box::new(exchange)));
        let body = ClientResponseBody { source, received: 0, trailers: None };
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

    /// Returns the connection of a response that switches protocols (101), with the bytes behind
    /// its head.
    #[doc(hidden)]
    pub fn into_switched(self) -> Option<(Socket, Bytes)> {
        let BodySource::Switched(Some(switched)) = self.body.source else { return None };
        let (socket, unread) = *switched;
        Some((socket, unread.freeze()))
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
    source: BodySource,
    /// Of a stream that is over.
    received: u64,
    /// The records of its trailer fields.
    trailers: Option<Bytes>,
}

/// Where a body comes from.
enum BodySource {
    Http1(Http1Body),
    /// `None`: it is over.
    Http2(Option<Box<Http2Exchange>>),
    /// None: the connection goes on in another protocol.
    Switched(Option<Box<(Socket, BytesMut)>>),
}

impl ClientResponseBody {
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
        match &self.source {
            BodySource::Http1(body) => body.received(),
            BodySource::Http2(Some(exchange)) => exchange.received(),
            BodySource::Http2(None) => self.received,
            BodySource::Switched(_) => 0,
        }
    }

    /// Returns the trailer fields in order, once the body was read to its end; `None` before. Many
    /// servers send them only on request ([`super::ClientRequest::accept_trailers`]).
    pub fn trailers(&self) -> Option<impl Iterator<Item = (&str, &[u8])>> {
        match &self.source {
            BodySource::Http1(body) => body.trailers().map(named),
            BodySource::Http2(_) | BodySource::Switched(_) => {
                self.trailers.as_deref().map(|records| named(FieldLines::of_records(records)))
            }
        }
    }

    /// Sends on what there is of the request's body, and reads nothing. It is ready when all of it
    /// was sent.
    ///
    /// # Errors
    /// The source of the request's body has failed.
    #[doc(hidden)]
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        match &mut self.source {
            BodySource::Http2(Some(exchange)) => exchange.poll_sent(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientError>>> {
        let exchange = match &mut self.source {
            BodySource::Http1(body) => return body.poll_bytes(cx),
            BodySource::Http2(None) | BodySource::Switched(_) => return Poll::Ready(None),
            BodySource::Http2(Some(exchange)) => exchange,
        };
        let polled = ready!(exchange.poll_bytes(cx));
        if !matches!(polled, Some(Ok(_))) {
            self.received = exchange.received();
            self.trailers = exchange.trailers();
            self.abandon();
        }
        Poll::Ready(polled)
    }

    /// Gives up what is left; nothing more comes.
    fn abandon(&mut self) {
        match &mut self.source {
            BodySource::Http1(body) => body.abandon(),
            BodySource::Http2(exchange) => *exchange = None,
            BodySource::Switched(switched) => *switched = None,
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
        f.debug_struct("ClientResponseBody")
            .field("received", &self.received())
            .finish_non_exhaustive()
    }
}
