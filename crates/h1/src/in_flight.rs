//! A handler at work on a request: the connection waits for it, and does meanwhile what it asks
//! for.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use gustnado_http::body::{BodyDecoder, BodyError as TooMuch};
use gustnado_http::response_writer::continue_100;
use gustnado_http::status::Status;
use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, Rate};

use super::Conn;
use super::body::UNWANTED_BYTES_MAX;
use super::body_end::BodyEnd;
use super::timeouts::RouteTimeouts;
use gustnado_app::hooks::Limit;
use gustnado_web::body_channel::{BodyChannel, BodyDemand, BodyError};
use gustnado_web::handler::RunningHandler;
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{Content, Response};
use gustnado_web::routes::Table;

/// For so long a handler may ignore that its request's body is broken, where clients that send no
/// more are not waited for at all.
const SPOILT_MS: u64 = 10_000;

/// A request that is being answered.
pub(super) struct InFlight {
    pub(super) parts: RequestHeadRef,
    pub(super) table: Arc<Table>,
    answering: RunningHandler,
    pub(super) incoming: Incoming,
    /// Set when the client has sent its last byte: when it is taken for gone.
    pub(super) gone_ms: Option<u64>,
    /// The client has said that this was its last byte: it may have gone, and the end of the server
    /// does not wait for it.
    is_half_closed: bool,
    /// What is special about its route's time.
    pub(super) timeouts: Option<RouteTimeouts>,
    /// When the handler, or the stream, has had nothing to say for too long.
    pub(super) idle_until_ms: u64,
    /// That time has come.
    pub(super) is_overdue: bool,
}

/// The request's body, still coming.
pub(super) struct Incoming {
    pub(super) decoder: BodyDecoder,
    /// The client waits for `100 Continue`.
    pub(super) expects_continue: bool,
    pub(super) began_ms: u64,
    pub(super) patience: ProgressTimeout,
    /// Since when bytes are waited for, if they are. (The handler may be polled more often than
    /// they come, and that must not buy the client time.)
    pub(super) waits_since_ms: Option<u64>,
    /// Until when a client that was too slow has been given more time.
    pub(super) granted_ms: u64,
    /// How fast it is to come, by its route.
    pub(super) read: Option<Rate>,
    /// It cannot be read to its end: this connection's next request will not be found.
    pub(super) is_spoilt: bool,
    /// It is a CONNECT: what comes behind its head is no request of ours either way.
    pub(super) is_tunnel: bool,
    /// How long the handler may go on once the client has sent its last byte.
    pub(super) half_close_ms: u64,
}

/// What the connection has to do for somebody else than its peer.
pub(super) enum ConnAction {
    /// The handler has more to read.
    Fed,
    /// This is to be sent before the answer.
    Say(Vec<u8>),
}

/// What a handler's turn comes to.
enum Step {
    Answer(Option<Response>),
    Say(Vec<u8>),
}

impl InFlight {
    pub(super) fn new(
        parts: RequestHeadRef,
        table: Arc<Table>,
        answering: RunningHandler,
        incoming: Incoming,
        timeouts: Option<RouteTimeouts>,
    ) -> Self {
        let idle_until_ms =
            timeouts.map_or(u64::MAX, |timeouts| timeouts.idle_from(incoming.began_ms));
        Self {
            parts,
            table,
            answering,
            incoming,
            gone_ms: None,
            is_half_closed: false,
            timeouts,
            idle_until_ms,
            is_overdue: false,
        }
    }

    /// Something has moved: the handler, or the stream, may be quiet for as long as at first.
    pub(super) fn note_progress(&mut self, now_ms: u64) {
        if let Some(timeouts) = self.timeouts {
            self.idle_until_ms = timeouts.idle_from(now_ms);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // Whoever reads the body elsewhere is not to wait for ever.
        if self.parts.head().has_body() {
            self.parts.channel().end(Err(BodyError::Gone));
        }
    }
}

impl Incoming {
    /// Has the client go on, if it waits for that and a stream is about to be made of its body:
    /// once the answer has begun, there is no place for it (RFC 9110 §10.1.1).
    pub(super) fn invite(&mut self, channel: &BodyChannel, response: &Response, out: &mut Vec<u8>) {
        let is_stream = matches!(response.content, Content::Stream(_));
        if self.expects_continue && is_stream && !channel.is_given_up() {
            self.expects_continue = false;
            out.extend_from_slice(continue_100());
        }
    }

    /// How the body ends if the response is written now: what is left of it is read once the
    /// response has been sent, unless that is too much. (What a stream is made of is read by it.)
    pub(super) fn end(&self, channel: &BodyChannel, response: &Response) -> BodyEnd {
        let is_read_on =
            || matches!(response.content, Content::Stream(_)) && !channel.is_given_up();
        match self.decoder.is_done() {
            _ if self.is_spoilt || self.is_tunnel => BodyEnd::Close,
            true => BodyEnd::Read,
            false if self.is_worth_draining() || is_read_on() => BodyEnd::Drain,
            false => BodyEnd::Close,
        }
    }

    /// What is left of the body is no longer wanted. Returns whether it is worth reading to its
    /// end, to get to the next request.
    pub(super) fn is_worth_draining(&self) -> bool {
        let is_short = |bytes| bytes <= UNWANTED_BYTES_MAX;
        !self.is_spoilt && !self.expects_continue && self.decoder.left().is_none_or(is_short)
    }
}

impl Conn {
    /// Waits for a handler's answer.
    ///
    /// # Errors
    /// The connection is lost, and the handler's task is to be dropped.
    pub(super) async fn answer_of(
        &mut self,
        in_flight: &mut InFlight,
    ) -> Result<Response, ConnectionError> {
        loop {
            let step = poll_fn(|context| {
                loop {
                    let mut answer = None;
                    if in_flight.answering.poll(context, &mut answer) {
                        return Poll::Ready(Ok(Step::Answer(answer)));
                    }
                    match ready!(self.poll_action(in_flight, context)) {
                        Ok(ConnAction::Fed) => {}
                        Ok(ConnAction::Say(bytes)) => return Poll::Ready(Ok(Step::Say(bytes))),
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
            });
            match step.await {
                Ok(Step::Say(bytes)) => {
                    let mut out = Connection::outgoing();
                    out.bytes.extend_from_slice(&bytes);
                    self.app.count_response(0, bytes.len() as u64);
                    let target = in_flight.parts.view().target();
                    self.send_within(out, self.app.times.write, target).await?;
                }
                Ok(Step::Answer(answer)) => return Ok(self.app.response_or_500(answer)),
                Err(error) if in_flight.is_overdue => {
                    self.note(&error);
                    return Ok(Response::new(Status::SERVICE_UNAVAILABLE).close());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what the handler asks for, or else watches the peer.
    pub(super) fn poll_action(
        &mut self,
        in_flight: &mut InFlight,
        context: &Context<'_>,
    ) -> Poll<Result<ConnAction, ConnectionError>> {
        let channel = in_flight.parts.channel();
        let said = channel.take_interim();
        if !said.is_empty() {
            return Poll::Ready(Ok(ConnAction::Say(said)));
        }
        match channel.poll_demand(context) {
            BodyDemand::Bytes => self.poll_feed(in_flight),
            BodyDemand::Nothing | BodyDemand::GivenUp => self.poll_watch(in_flight),
        }
    }

    /// Gets bytes of the body for a reader that waits for them.
    fn poll_feed(&mut self, in_flight: &mut InFlight) -> Poll<Result<ConnAction, ConnectionError>> {
        loop {
            let InFlight { incoming, parts, .. } = in_flight;
            let channel = parts.channel();
            if self.feed_unread(incoming, parts) {
                let now_ms = self.socket.now().mono_ms;
                in_flight.note_progress(now_ms);
                return Poll::Ready(Ok(ConnAction::Fed));
            }
            if std::mem::take(&mut incoming.expects_continue) {
                return Poll::Ready(Ok(ConnAction::Say(continue_100().to_vec())));
            }
            ready!(self.socket.poll_reading())?;
            let received = incoming.decoder.received();
            if incoming.waits_since_ms.is_none() {
                self.socket.refresh_now();
            }
            let now_ms = self.socket.now().mono_ms;
            let since_ms = *incoming.waits_since_ms.get_or_insert(now_ms);
            let deadline = incoming.patience.deadline_ms(incoming.began_ms, since_ms, received);
            self.socket.set_deadline(deadline.max(incoming.granted_ms));
            let failed = match ready!(self.socket.poll_recv(false)) {
                Ok(piece) if piece.bytes().is_empty() => {
                    in_flight.is_half_closed = true;
                    BodyError::Gone
                }
                Ok(piece) => {
                    incoming.waits_since_ms = None;
                    incoming.began_ms += self.socket.charge_read(&piece);
                    self.hold(&piece);
                    continue;
                }
                Err(ConnectionError::TimedOut) => {
                    let (silence_ms, target) =
                        (incoming.patience.silence_ms, parts.view().target());
                    let granted = self.more_time(Limit::Body, silence_ms, received, target);
                    if let Some(until_ms) = granted {
                        incoming.granted_ms = until_ms;
                        continue;
                    }
                    self.note(&ConnectionError::TimedOut);
                    BodyError::TooSlow
                }
                Err(error) => return Poll::Ready(Err(error)),
            };
            incoming.is_spoilt = true;
            channel.end(Err(failed));
            return Poll::Ready(Ok(ConnAction::Fed));
        }
    }

    /// Hands over what is on hold. Returns whether the reader has something to read by that.
    fn feed_unread(&mut self, incoming: &mut Incoming, parts: &RequestHeadRef) -> bool {
        let (decoder, channel) = (&mut incoming.decoder, parts.channel());
        let Some(mut unread) = self.unread.take() else {
            if decoder.is_done() {
                channel.end(Ok(()));
            }
            return decoder.is_done();
        };
        // (Many small chunks are one piece: each would cost the reader a turn.)
        let (mut used, mut data, mut end) = (0, BytesMut::new(), None);
        while end.is_none() && (used < unread.bytes.len() || decoder.is_done()) {
            match decoder.decode(&unread.bytes[used..]) {
                Ok(piece) => {
                    used += piece.consumed;
                    data.extend_from_slice(piece.data);
                    end = piece.done.then_some(Ok(()));
                }
                Err(error) => {
                    incoming.is_spoilt = true;
                    if let TooMuch::TooLarge { limit_bytes } = error {
                        let numbers = (limit_bytes, decoder.received());
                        self.note_size(Limit::BodyBytes, numbers, parts.view().target());
                    }
                    end = Some(Err(BodyError::of(error)));
                }
            }
        }
        let fed = !data.is_empty() || end.is_some();
        if !data.is_empty() {
            channel.put(data.freeze());
        }
        if let Some(end) = end {
            channel.end(end);
        }
        if used < unread.bytes.len() {
            unread.bytes.drain(..used);
            unread.seen = 0;
            self.unread = Some(unread);
        }
        fed
    }

    /// Waits for the peer to go, and takes what it sends meanwhile, within bounds.
    fn poll_watch(
        &mut self,
        in_flight: &mut InFlight,
    ) -> Poll<Result<ConnAction, ConnectionError>> {
        loop {
            let unread = self.unread.as_ref().map_or(0, |unread| unread.bytes.len());
            let paused_ms = self.socket.read_pause_ms();
            if in_flight.incoming.is_spoilt && in_flight.gone_ms.is_none() {
                // What is behind a broken body is nobody's: its client sends no more.
                let patience_ms = match self.app.times.half_close_ms {
                    0 => SPOILT_MS,
                    patience_ms => patience_ms,
                };
                in_flight.gone_ms = Some(self.socket.now().mono_ms.saturating_add(patience_ms));
            }
            let gone_ms = in_flight.gone_ms.unwrap_or(u64::MAX);
            let until_ms = gone_ms.min(in_flight.idle_until_ms);
            self.socket.set_deadline(until_ms.min(paused_ms));
            let is_held = paused_ms < u64::MAX || unread >= self.app.read_ahead_bytes;
            let waited = if in_flight.gone_ms.is_some() || is_held {
                self.socket.poll_deadline(in_flight.is_half_closed).map(Err)
            } else {
                self.socket.poll_recv(false)
            };
            match ready!(waited) {
                Err(ConnectionError::TimedOut) if paused_ms < until_ms => {}
                Ok(piece) if piece.bytes().is_empty() => {
                    let patience_ms = in_flight.incoming.half_close_ms;
                    if patience_ms == 0 {
                        let gone = io::ErrorKind::ConnectionAborted;
                        return Poll::Ready(Err(ConnectionError::Broken(gone.into())));
                    }
                    in_flight.is_half_closed = true;
                    in_flight.gone_ms = Some(self.socket.now().mono_ms.saturating_add(patience_ms));
                }
                Ok(piece) => {
                    in_flight.incoming.began_ms += self.socket.charge_read(&piece);
                    self.hold(&piece);
                }
                Err(ConnectionError::TimedOut) if self.may_wait_on(in_flight) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
