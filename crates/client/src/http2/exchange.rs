//! One request and its response on a stream.
//!
//! The body goes out while the response comes in. A time-out here ends the stream alone, and a
//! connection on which nothing came meanwhile gets no more requests.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use gustnado_http::fields::FieldName;
use gustnado_http::h2::hpack::Encoder;
use gustnado_http::h2::{ErrorCode, H2Error, StreamId};
use gustnado_http::method::Method;
use gustnado_tasks::{Sleep, sleep};

use super::connection::{ConnectionState, Http2Connection};
use super::end::ConnectionEnd;
use super::slot::{INTERIM_MAX, SlotHandle, StreamFailure, StreamSlot};
use crate::ClientShared;
use crate::connect::RequestOrigin;
use crate::error::{ClientError, TimeoutPhase};
use crate::exchange::{ReceivedHead, RequestFailure, RetryRule};
use crate::total::Total;
use crate::upload::BodyUpload;

/// What is about to be sent for all requests of a connection: beyond that, bodies wait.
const OUT_BYTES_MAX: usize = 256 << 10;

/// Pieces of a body in a row before other tasks have their turn.
const PIECES_MAX: usize = 16;

/// The fields of a request.
pub(crate) struct Http2Head<'a> {
    pub(crate) method: Method,
    pub(crate) is_tls: bool,
    pub(crate) authority: &'a str,
    pub(crate) target: &'a str,
    pub(crate) fields: &'a [(String, Vec<u8>)],
    /// The protocol of the tunnel that is asked for.
    pub(crate) protocol: Option<&'a str>,
}

impl Http2Head<'_> {
    fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) {
        let method = match self.protocol {
            Some(_) => "CONNECT",
            None => self.method.as_str().unwrap_or_default(),
        };
        let line = (method, self.is_tls);
        let place = (self.authority.as_bytes(), self.target.as_bytes());
        encoder.request_line(line, place, false, out);
        if let Some(protocol) = self.protocol {
            encoder.field(FieldName::from(":protocol"), protocol.as_bytes(), out);
        }
        for (name, value) in self.fields {
            // What is about an HTTP/1 connection has no place here (RFC 9113 §8.2.2).
            let is_foreign = |of: &&str| name.eq_ignore_ascii_case(of);
            if !["keep-alive", "proxy-connection", "upgrade"].iter().any(is_foreign) {
                encoder.field(FieldName::from(name.as_str()), value, out);
            }
        }
    }
}

/// One request and its response on a stream.
pub(crate) struct Http2Exchange {
    connection: Arc<Http2Connection>,
    id: StreamId,
    slot: SlotHandle,
    upload: BodyUpload,
    /// A piece of the body, and how much of it was sent.
    piece: Vec<u8>,
    sent: usize,
    /// The end of the body was sent.
    is_body_sent: bool,
    total: Total,
    client: Arc<ClientShared>,
    origin: Arc<RequestOrigin>,
    /// When it began, and when something last moved.
    began_ms: u64,
    moved_ms: u64,
    head_read: bool,
    timer: Option<(u64, Sleep)>,
    received: u64,
}

impl Http2Exchange {
    /// Opens a stream, once there is room for one; `None`: there will be none, and the body is
    /// given back.
    pub(crate) async fn open(
        connection: &Arc<Http2Connection>,
        head: Http2Head<'_>,
        upload: BodyUpload,
        (client, origin): (&Arc<ClientShared>, &Arc<RequestOrigin>),
        total: Total,
    ) -> Result<Self, BodyUpload> {
        let is_end = upload.is_done();
        let ends = (head.method == Method::Head, is_end);
        let opened =
            poll_fn(|cx| connection.poll_open(cx, ends, |encoder, out| head.encode(encoder, out)));
        let Some((id, slot)) = opened.await else { return Err(upload) };
        let now_ms = gustnado_tasks::now().mono_ms;
        Ok(Self {
            connection: Arc::clone(connection),
            id,
            slot,
            upload,
            piece: Vec::new(),
            sent: 0,
            is_body_sent: is_end,
            total,
            client: Arc::clone(client),
            origin: Arc::clone(origin),
            began_ms: now_ms,
            moved_ms: now_ms,
            head_read: false,
            timer: None,
            received: 0,
        })
    }

    /// Returns the head of the final response, and the interim ones before it.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(ReceivedHead, Vec<ReceivedHead>), RequestFailure>> {
        self.poll_upload(cx)?;
        loop {
            let slot = Arc::clone(&self.slot);
            let mut slot = slot.lock();
            if std::mem::take(&mut slot.is_continued) && self.upload.is_held() {
                drop(slot);
                self.release_body();
                self.poll_upload(cx)?;
                continue;
            }
            if let Some(head) = slot.head.take() {
                let interim = slot.interim.drain(..).collect();
                drop(slot);
                if self.upload.is_held() {
                    self.upload.give_up(); // it was not wanted (RFC 9110 §10.1.1)
                }
                self.head_read = true;
                self.expect_bytes();
                return Poll::Ready(Ok((head, interim)));
            }
            if let Some(failure) = slot.failure.clone() {
                return Poll::Ready(Err(self.failure(&failure, &slot)));
            }
            slot.wait(cx.waker());
            drop(slot);
            match self.poll_timer(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => self.poll_upload(cx)?,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Returns the next bytes of the body; `None` at its end.
    pub(crate) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ClientError>>> {
        self.poll_upload(cx)?;
        let slot = Arc::clone(&self.slot);
        let mut slot = slot.lock();
        if !slot.data.is_empty() {
            let bytes = slot.take_data();
            drop(slot);
            self.received += bytes.len() as u64;
            self.expect_bytes();
            let mut state = self.connection.state.lock();
            let ConnectionState { core, out, .. } = &mut *state;
            core.take(self.id, bytes.len(), out);
            if !state.out.is_empty() {
                state.wake_driver();
            }
            return Poll::Ready(Some(Ok(bytes)));
        }
        if slot.is_ended {
            return Poll::Ready(None);
        }
        if let Some(failure) = slot.failure.clone() {
            return Poll::Ready(Some(Err(self.failure(&failure, &slot).error)));
        }
        slot.wait(cx.waker());
        drop(slot);
        match self.poll_timer(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }

    /// Sends on what there is of the request's body. It is ready when all of it was sent.
    pub(crate) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        self.poll_upload(cx)?;
        if self.is_body_sent { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Bytes of the response's body so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the records of the trailer fields, once the body was read.
    pub(crate) fn trailers(&self) -> Option<Bytes> {
        let slot = self.slot.lock();
        let is_over = slot.is_ended && slot.data.is_empty();
        is_over.then(|| slot.trailers.clone().unwrap_or_default())
    }

    /// Waiting for bytes begins: what the caller did until now does not count.
    pub(crate) fn expect_bytes(&mut self) {
        self.moved_ms = self.moved_ms.max(gustnado_tasks::now().mono_ms);
    }

    fn release_body(&mut self) {
        self.upload.release();
        self.expect_bytes();
    }

    /// Sends on, as far as the windows and the body's source let it.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), ClientError> {
        for _ in 0..PIECES_MAX {
            if self.is_body_sent {
                return Ok(());
            }
            if self.sent < self.piece.len() || self.upload.is_done() {
                if !self.send_piece(cx) {
                    return Ok(());
                }
                continue;
            }
            if !self.upload.is_going() {
                return Ok(());
            }
            self.piece.clear();
            self.sent = 0;
            match self.upload.poll_fill(cx, &mut self.piece) {
                Poll::Ready(result) => result?,
                Poll::Pending => return Ok(()),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Sends what the windows allow of the piece. Returns whether all of it was.
    fn send_piece(&mut self, cx: &mut Context<'_>) -> bool {
        // First, so that no window that comes meanwhile is missed.
        self.slot.lock().wait(cx.waker());
        let mut state = self.connection.state.lock();
        if state.out.len() > OUT_BYTES_MAX {
            state.wait(cx.waker());
            return false;
        }
        let ConnectionState { core, out, .. } = &mut *state;
        let Some(stream) = core.stream(self.id) else {
            // It is over: nothing more is wanted.
            self.is_body_sent = true;
            return true;
        };
        debug_assert!(!stream.is_local_closed);
        let is_last = self.upload.is_done();
        let rest = &self.piece[self.sent..];
        let count = core.write_data(self.id, rest, is_last, out);
        let is_all = count == rest.len();
        self.sent += count;
        self.is_body_sent = is_all && is_last;
        if count > 0 || self.is_body_sent {
            state.wake_driver();
            drop(state);
            self.expect_bytes();
        }
        is_all
    }

    /// Checks the time of the present wait. Ready without an error: the body is released.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        loop {
            let (at_ms, waiting) = self.wait();
            if at_ms == u64::MAX {
                self.timer = None;
                return Poll::Pending;
            }
            let now_ms = gustnado_tasks::now().mono_ms;
            if at_ms <= now_ms {
                if self.upload.is_held() && waiting == TimeoutPhase::Head {
                    self.release_body();
                    return Poll::Ready(Ok(()));
                }
                self.suspect();
                return Poll::Ready(Err(self.timed_out(waiting)));
            }
            if self.timer.as_ref().is_none_or(|(of_ms, _)| *of_ms != at_ms) {
                self.timer = Some((at_ms, sleep(Duration::from_millis(at_ms - now_ms))));
            }
            let Some((_, timer)) = &mut self.timer else { return Poll::Pending };
            if Pin::new(timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
        }
    }

    /// Returns when the present wait has lasted too long, and what it is for.
    fn wait(&self) -> (u64, TimeoutPhase) {
        let state = (self.sent < self.piece.len(), self.head_read);
        self.total.wait(&self.client.options, &self.upload, self.moved_ms, state)
    }

    /// After a time-out: if nothing at all has come since the request, the server may be gone, and
    /// no request is to wait for it again.
    fn suspect(&self) {
        let is_silent = self.connection.state.lock().received_ms < self.began_ms;
        if is_silent {
            self.connection.leave();
        }
    }

    fn timed_out(&self, waiting: TimeoutPhase) -> ClientError {
        self.total.timed_out(&self.client.options, waiting, self.host())
    }

    fn host(&self) -> Arc<str> {
        Arc::clone(&self.origin.name)
    }

    /// Returns the error of a failure, and whether the request may be sent again.
    fn failure(&self, failure: &StreamFailure, slot: &StreamSlot) -> RequestFailure {
        let host = self.host();
        let error = match failure {
            StreamFailure::Refused => {
                let error = ClientError::Reset { host, code: ErrorCode::RefusedStream };
                return RequestFailure { error, retry: RetryRule::Always };
            }
            StreamFailure::Reset(code) => ClientError::Reset { host, code: *code },
            StreamFailure::Malformed(code, reason) => {
                ClientError::Http2 { host, error: H2Error::new(*code, reason) }
            }
            StreamFailure::TooManyInterim => {
                ClientError::TooManyInterim { host, limit: INTERIM_MAX }
            }
            StreamFailure::Lost(end) => {
                let by_chance = matches!(end, ConnectionEnd::Closed | ConnectionEnd::Broken(..));
                let is_untouched = !self.head_read && slot.is_untouched();
                let may_again = by_chance && is_untouched;
                let retry = if may_again { RetryRule::IfIdempotent } else { RetryRule::Never };
                return RequestFailure { error: self.lost(end), retry };
            }
        };
        error.into()
    }

    fn lost(&self, end: &ConnectionEnd) -> ClientError {
        let host = self.host();
        match end {
            ConnectionEnd::Closed if self.head_read => {
                ClientError::Truncated { host, received: self.received }
            }
            ConnectionEnd::Closed => ClientError::Closed { host, received: 0 },
            ConnectionEnd::Broken(kind, text) => {
                ClientError::Broken { host, error: io::Error::new(*kind, text.clone()) }
            }
            ConnectionEnd::Protocol(error) => ClientError::Http2 { host, error: *error },
            ConnectionEnd::GoAway(code) => ClientError::Reset { host, code: *code },
            ConnectionEnd::Ending => ClientError::Ending,
        }
    }
}

impl Drop for Http2Exchange {
    fn drop(&mut self) {
        self.connection.state.lock().close(self.id, ErrorCode::Cancel);
    }
}
