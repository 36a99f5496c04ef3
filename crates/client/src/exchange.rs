//! One request and its response on one connection: bytes go out and come in at the same time.
//!
//! A server may respond before it has read the whole request (an error, or an echo), so sending
//! goes on while it receives, until the response has ended. What cannot be sent any more is no
//! error as long as a response comes.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use gustnado_http::head::Decoded;
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::response::{ResponseHead, ResponseView};
use gustnado_tasks::{Connection, ConnectionError, RecvBuf};
use gustnado_tls::Socket;

use super::ClientShared;
use super::connect::RequestOrigin;
use super::error::{ClientError, TimeoutPhase};
use super::total::Total;
use super::upload::BodyUpload;

/// Interim responses to one request. One or two are usual.
const INTERIM_MAX: usize = 16;

/// Pieces sent in a row before other tasks have their turn.
const PIECES_MAX: usize = 16;

/// A response's head together with its bytes.
#[derive(Clone)]
pub(super) struct ReceivedHead {
    bytes: Bytes,
    pub(super) head: ResponseHead,
}

impl ReceivedHead {
    /// - `bytes`: those that the head was decoded from.
    pub(super) fn new(bytes: Bytes, head: ResponseHead) -> Self {
        Self { bytes, head }
    }

    pub(super) fn view(&self) -> ResponseView<'_> {
        self.head.on(&self.bytes)
    }
}

/// The error of a request that got no response.
pub(super) struct RequestFailure {
    pub(super) error: ClientError,
    pub(super) retry: RetryRule,
}

/// Whether a request that got no response may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryRule {
    /// No: the server may have begun.
    Never,
    /// The connection ended before anything was heard: perhaps the server had closed it before the
    /// request. What may have been done already must do no harm a second time (RFC 9110 §9.2.2).
    IfIdempotent,
    /// The server has said that it has not looked at it (RFC 9113 §8.7).
    Always,
}

impl From<ClientError> for RequestFailure {
    fn from(error: ClientError) -> Self {
        Self { error, retry: RetryRule::Never }
    }
}

/// One request and its response on one connection.
pub(super) struct ClientExchange {
    connection: Socket,
    pub(super) upload: BodyUpload,
    total: Total,
    client: Arc<ClientShared>,
    origin: Arc<RequestOrigin>,
    /// When something last moved: bytes sent; once the head is read, bytes received too.
    moved_ms: u64,
    head_read: bool,
    /// Why nothing can be sent any more.
    broken: Option<io::Error>,
    /// The task that the connection's alarm wakes.
    task: Option<Waker>,
    /// The connection's last, as the server was told.
    is_last: bool,
}

impl ClientExchange {
    /// - `is_last`: the connection's, as the server is told.
    pub(super) fn new(
        connection: Socket,
        upload: BodyUpload,
        client: &Arc<ClientShared>,
        origin: &Arc<RequestOrigin>,
        (total, is_last): (Total, bool),
    ) -> Self {
        Self {
            connection,
            upload,
            total,
            client: Arc::clone(client),
            origin: Arc::clone(origin),
            moved_ms: gustnado_tasks::now().mono_ms,
            head_read: false,
            broken: None,
            task: None,
            is_last,
        }
    }

    /// Starts to send: the request's head, and what there is of its body.
    pub(super) fn start(&mut self, cx: &mut Context<'_>, head: &[u8]) -> Result<(), ClientError> {
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(head);
        // A stream that has nothing yet does not keep the head back.
        if let Poll::Ready(Err(error)) = self.upload.poll_fill(cx, &mut out.bytes) {
            Connection::put_back(out);
            return Err(error);
        }
        self.connection.start_send(out);
        Ok(())
    }

    /// Returns the whole head of the final response.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut HeadReader,
    ) -> Poll<Result<ReceivedHead, RequestFailure>> {
        loop {
            if let Some(head) = reader.decode(&mut self.upload, &self.origin)? {
                if self.upload.is_held() {
                    self.upload.give_up(); // it was not wanted (RFC 9110 §10.1.1)
                }
                self.head_read = true;
                self.moved_ms = self.connection.now().mono_ms;
                return Poll::Ready(Ok(head));
            }
            self.poll_upload(cx)?;
            let nothing_received = reader.buffer.is_empty() && reader.interim_count == 0;
            let received = match self.poll_receive(cx, &mut reader.buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(received)) => received,
                Poll::Ready(Err(error)) => {
                    let nothing_received =
                        nothing_received && matches!(error, ClientError::Broken { .. });
                    let retry = retry_after(nothing_received);
                    return Poll::Ready(Err(RequestFailure { error, retry }));
                }
            };
            if received == 0 {
                let received = reader.buffer.len();
                let error = match self.broken.take() {
                    Some(error) if nothing_received => self.broke(error),
                    _ => ClientError::Closed { host: self.host(), received },
                };
                let retry = retry_after(nothing_received);
                return Poll::Ready(Err(RequestFailure { error, retry }));
            }
        }
    }

    /// Sends on, as far as the socket and the body's source let it.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), ClientError> {
        for _ in 0..PIECES_MAX {
            if self.connection.is_sending() {
                let waiting = self.set_deadline();
                match self.connection.poll_sent() {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Ok(())) => self.moved_ms = self.connection.now().mono_ms,
                    Poll::Ready(Err(ConnectionError::Broken(error))) => {
                        self.upload.give_up();
                        self.broken = Some(error);
                        return Ok(());
                    }
                    Poll::Ready(Err(error)) => return Err(self.failed(error, waiting)),
                }
            }
            if !self.upload.is_going() {
                return Ok(());
            }
            let mut out = Connection::outgoing();
            let filled = self.upload.poll_fill(cx, &mut out.bytes);
            if out.bytes.is_empty() {
                Connection::put_back(out);
            } else {
                self.expect_bytes(); // the source may have taken its time
                self.connection.start_send(out);
            }
            match filled {
                Poll::Ready(result) => result?,
                Poll::Pending => return Ok(()),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Receives one piece to the end of `buffer`. Zero bytes are the server's end.
    pub(super) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<Result<usize, ClientError>> {
        let is_other = self.task.as_ref().is_some_and(|task| !task.will_wake(cx.waker()));
        if is_other {
            // The alarm that is armed would wake the task before; without a deadline it is put
            // away, and the next deadline arms one for this task.
            self.connection.set_deadline(u64::MAX);
            if let Poll::Ready(received) = self.connection.poll_recv(false) {
                return Poll::Ready(self.received(received, TimeoutPhase::Bytes, buffer));
            }
        }
        if is_other || self.task.is_none() {
            self.task = Some(cx.waker().clone());
        }
        let waiting = self.set_deadline();
        match self.connection.poll_recv(false) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(ConnectionError::TimedOut)) if self.is_held_too_long() => {
                self.upload.release();
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(received) => Poll::Ready(self.received(received, waiting, buffer)),
        }
    }

    fn received(
        &mut self,
        received: Result<RecvBuf, ConnectionError>,
        waiting: TimeoutPhase,
        buffer: &mut BytesMut,
    ) -> Result<usize, ClientError> {
        let piece = received.map_err(|error| self.failed(error, waiting))?;
        buffer.extend_from_slice(piece.bytes());
        if self.head_read {
            self.moved_ms = self.connection.now().mono_ms;
        }
        Ok(piece.bytes().len())
    }

    /// Waiting for bytes begins, either way: what the caller did until now does not count.
    pub(super) fn expect_bytes(&mut self) {
        self.moved_ms = self.moved_ms.max(gustnado_tasks::now().mono_ms);
    }

    /// The response has ended, and both sides may go on: the connection is kept for the next
    /// request, unless some of this one was not sent.
    pub(super) fn keep(self) {
        if self.is_sent() && !self.is_last {
            self.client.pool.put(self.origin, self.connection);
        }
    }

    /// Returns whether the whole request was sent.
    pub(super) fn is_sent(&self) -> bool {
        self.upload.is_done() && !self.connection.is_sending() && self.broken.is_none()
    }

    /// Returns whether the server has ended its side in order, and was not cut off.
    pub(super) fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    pub(super) fn host(&self) -> Arc<str> {
        Arc::clone(&self.origin.name)
    }

    /// Gives the connection to another protocol.
    pub(super) fn into_socket(mut self) -> Socket {
        self.connection.set_deadline(u64::MAX);
        self.connection
    }

    /// Returns whether the server has kept its word back for long enough (RFC 9110 §10.1.1).
    fn is_held_too_long(&self) -> bool {
        self.upload.is_held()
            && !self.connection.is_sending()
            && self.connection.now().mono_ms < self.total.at_ms
    }

    /// Returns when the present wait has lasted too long, and what it is for.
    fn wait(&self) -> (u64, TimeoutPhase) {
        let state = (self.connection.is_sending(), self.head_read);
        self.total.wait(&self.client.options, &self.upload, self.moved_ms, state)
    }

    fn set_deadline(&mut self) -> TimeoutPhase {
        let (at_ms, waiting) = self.wait();
        self.connection.set_deadline(at_ms);
        waiting
    }

    fn failed(&self, error: ConnectionError, waiting: TimeoutPhase) -> ClientError {
        match error {
            ConnectionError::TimedOut => self.timed_out(waiting),
            ConnectionError::Broken(error) => self.broke(error),
            _ => ClientError::Ending,
        }
    }

    fn broke(&self, error: io::Error) -> ClientError {
        ClientError::Broken { host: self.host(), error }
    }

    fn timed_out(&self, waiting: TimeoutPhase) -> ClientError {
        self.total.timed_out(&self.client.options, waiting, self.host())
    }
}

fn retry_after(nothing_received: bool) -> RetryRule {
    if nothing_received { RetryRule::IfIdempotent } else { RetryRule::Never }
}

/// Reader of a response's head, with the bytes that came so far.
pub(super) struct HeadReader {
    /// In the end, the bytes behind the head.
    pub(super) buffer: BytesMut,
    /// How far the search for the head's end has come.
    seen: usize,
    /// The interim responses before it, `100 Continue` left out.
    pub(super) interim: Vec<ReceivedHead>,
    interim_count: usize,
    method: Method,
    limits: Limits,
    /// The server may switch protocols.
    may_switch: bool,
}

impl HeadReader {
    /// - `may_switch`: 101 is a final response, which was asked for.
    pub(super) fn new(method: Method, limits: Limits, may_switch: bool) -> Self {
        let (buffer, interim) = (BytesMut::new(), Vec::new());
        Self { buffer, seen: 0, interim, interim_count: 0, method, limits, may_switch }
    }

    /// Reads what is there. Interim responses are kept; the final one is returned.
    fn decode(
        &mut self,
        upload: &mut BodyUpload,
        origin: &RequestOrigin,
    ) -> Result<Option<ReceivedHead>, ClientError> {
        let host = || Arc::clone(&origin.name);
        loop {
            let (method, limits) = (self.method, &self.limits);
            let decoded = ResponseHead::decode(&self.buffer, &mut self.seen, method, limits)
                .map_err(|error| ClientError::Head { host: host(), error })?;
            let Decoded::Done(head) = decoded else { return Ok(None) };
            let head = ReceivedHead { bytes: self.buffer.split_to(head.len()).freeze(), head };
            self.seen = 0;
            match head.head.status() {
                100 => upload.release(),
                101 if self.may_switch => return Ok(Some(head)),
                101 => return Err(ClientError::Switched { host: host() }),
                102..200 => self.interim.push(head),
                _ => return Ok(Some(head)),
            }
            self.interim_count += 1;
            if self.interim_count > INTERIM_MAX {
                return Err(ClientError::TooManyInterim { host: host(), limit: INTERIM_MAX });
            }
        }
    }
}
