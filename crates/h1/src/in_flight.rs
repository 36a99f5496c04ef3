//! A request whose handler is running. Meanwhile the connection feeds it the body, sends interim
//! responses and watches the peer.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gustnado_config::BodyPolicy;
use gustnado_http::body::BodyDecoder;
use gustnado_http::response_writer::{continue_100, interim_heads};
use gustnado_http::status::Status;
use gustnado_tasks::{
    Connection, ConnectionError, ProgressTimeout, ProgressWindow, Rate, RecvBuf, note_step, now,
};

use super::Conn;
use super::body_end::BodyEnd;
use super::timeouts::RouteTimeouts;
use super::trailers::TrailerMemory;
use gustnado_app::bodies::BodyHold;
use gustnado_app::hooks::Limit;
use gustnado_web::body_channel::{BodyChannel, BodyDemand, BodyError};
use gustnado_web::handler::RunningHandler;
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{Content, Response};
use gustnado_web::routes::RouteTable;

/// How long the bytes behind a piece of a large body are left to the kernel, for a reader that asks
/// for them soon. Read ahead they would be copied, and would come in small pieces. Longer than a
/// turn in which each of many readers copies a large piece; a client that goes away meanwhile is
/// noticed so much later.
const READER_MS: u64 = 50;

/// How long a handler may ignore that its request's body is broken, if there is no half-close
/// time-out.
const BROKEN_BODY_MS: u64 = 10_000;

/// A request whose handler is running.
pub(super) struct InFlight {
    pub(super) parts: RequestHeadRef,
    pub(super) table: Arc<RouteTable>,
    running: RunningHandler,
    pub(super) incoming: Incoming,
    /// When the client is taken for gone; set once it has sent its last byte.
    pub(super) gone_ms: Option<u64>,
    /// The client has shut down its sending side: it may be gone, so a drain does not wait for it.
    is_half_closed: bool,
    /// Time-outs of its route, if it has its own.
    pub(super) timeouts: Option<RouteTimeouts>,
    /// When the handler or the stream has been silent for too long.
    pub(super) idle_until_ms: u64,
    /// That time has passed, so the response is 503.
    pub(super) is_overdue: bool,
}

/// The request's body, still coming.
pub(super) struct Incoming {
    pub(super) decoder: BodyDecoder,
    /// The memory of its trailers, as far as they have come.
    pub(super) trailers: TrailerMemory,
    /// The client waits for `100 Continue`.
    pub(super) expects_continue: bool,
    pub(super) began_ms: u64,
    pub(super) patience: ProgressTimeout,
    pub(super) window: ProgressWindow,
    /// The memory that it takes, where its reader collects it.
    pub(super) hold: BodyHold,
    /// Where it may be kept; `None` is in memory.
    pub(super) body_policy: Option<BodyPolicy>,
    /// Since when bytes are awaited, if they are. Kept over polls: the handler may be polled more
    /// often than bytes arrive, and each poll would otherwise give the client a new deadline.
    pub(super) waits_since_ms: Option<u64>,
    /// Until when the program has extended the client's time.
    pub(super) granted_ms: u64,
    /// When its reader was last given bytes.
    pub(super) handed_ms: u64,
    /// Its rate, if its route has one.
    pub(super) read: Option<Rate>,
    /// It cannot be read to its end, so the next request on this connection cannot be found.
    pub(super) is_broken: bool,
    /// The request is a CONNECT: what follows its head belongs to a tunnel, not to HTTP.
    pub(super) is_tunnel: bool,
    /// How long the handler may run on after the client has sent its last byte.
    pub(super) half_close_ms: u64,
    /// Names its route.
    pub(super) label: u32,
}

/// The outcome of a poll on behalf of the handler.
pub(super) enum ConnAction {
    /// The body channel has more to read, or has ended.
    BodyFed,
    /// Send these bytes before the response.
    SendInterim(Vec<u8>),
}

/// The outcome of polling a handler.
enum HandlerPoll {
    Response(Option<Response>),
    SendInterim(Vec<u8>),
}

impl InFlight {
    pub(super) fn new(
        parts: RequestHeadRef,
        table: Arc<RouteTable>,
        running: RunningHandler,
        incoming: Incoming,
        timeouts: Option<RouteTimeouts>,
    ) -> Self {
        let idle_until_ms =
            timeouts.map_or(u64::MAX, |timeouts| timeouts.idle_from(incoming.began_ms));
        Self {
            parts,
            table,
            running,
            incoming,
            gone_ms: None,
            is_half_closed: false,
            timeouts,
            idle_until_ms,
            is_overdue: false,
        }
    }

    /// Restarts the idle time-out: the handler or the stream has made progress.
    pub(super) fn note_progress(&mut self, now_ms: u64) {
        if let Some(timeouts) = self.timeouts {
            self.idle_until_ms = timeouts.idle_from(now_ms);
        }
    }

    /// Ends the body with an error: its rest cannot be read.
    pub(super) fn break_off(&mut self, error: BodyError) -> ConnAction {
        self.incoming.is_broken = true;
        self.parts.channel().end(Err(error));
        ConnAction::BodyFed
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // The body may be read in another task, which would otherwise wait for ever.
        if self.parts.head().has_body() {
            self.parts.channel().end(Err(BodyError::Gone));
        }
    }
}

impl Incoming {
    /// Notes that no bytes are waited for: until they are, the client's time stands still.
    pub(super) fn stop_waiting(&mut self, now_ms: u64) {
        self.waits_since_ms = None;
        self.window.stop(now_ms);
    }

    /// Returns until when a reader of a large body is expected to ask for more.
    fn reader_ms(&self, now_ms: u64) -> Option<u64> {
        let until_ms = self.handed_ms + READER_MS;
        let more_comes = !self.decoder.is_done() && Conn::is_large(&self.decoder);
        (until_ms > now_ms && more_comes).then_some(until_ms)
    }

    /// Writes `100 Continue` if the client waits for it and the response streams from the body:
    /// once the final head is out there is no place for it (RFC 9110 §10.1.1).
    pub(super) fn write_continue(
        &mut self,
        channel: &BodyChannel,
        response: &Response,
        out: &mut Vec<u8>,
    ) {
        let is_stream = matches!(response.content, Content::Stream(_));
        if self.expects_continue && is_stream && !channel.is_given_up() {
            self.expects_continue = false;
            out.extend_from_slice(continue_100());
        }
    }

    /// Returns how the body ends if the response is written now. The rest is read once the response
    /// has been sent, unless it is too long; a streamed response reads the body itself.
    ///
    /// - `bytes_max`: how much of an announced rest is not too long.
    pub(super) fn end(
        &self,
        channel: &BodyChannel,
        response: &Response,
        bytes_max: u64,
    ) -> BodyEnd {
        let is_read_on =
            || matches!(response.content, Content::Stream(_)) && !channel.is_given_up();
        match self.decoder.is_done() {
            _ if self.is_broken || self.is_tunnel => BodyEnd::Close,
            true => BodyEnd::Read,
            false if self.is_worth_draining(bytes_max) || is_read_on() => BodyEnd::Drain,
            false => BodyEnd::Close,
        }
    }

    /// Returns whether the rest of the body is short enough to skip. A new request on a new
    /// connection costs less than reading a long one.
    pub(super) fn is_worth_draining(&self, bytes_max: u64) -> bool {
        let is_short = |bytes| bytes <= bytes_max;
        !self.is_broken && !self.expects_continue && self.decoder.left().is_none_or(is_short)
    }
}

impl Conn {
    /// Waits for a handler's response.
    ///
    /// # Errors
    /// The connection is lost, and the handler's task is to be dropped.
    pub(super) async fn response_of(
        &mut self,
        in_flight: &mut InFlight,
    ) -> Result<Response, ConnectionError> {
        loop {
            let polled = poll_fn(|context| {
                loop {
                    let mut response = None;
                    note_step(in_flight.incoming.label);
                    if in_flight.running.poll(context, &mut response) {
                        return Poll::Ready(Ok(HandlerPoll::Response(response)));
                    }
                    // The handler is polled first and again after each action: what it waits for
                    // may be what this poll brings, and nothing else would wake it.
                    match ready!(self.poll_action(in_flight, context)) {
                        Ok(ConnAction::BodyFed) => {}
                        Ok(ConnAction::SendInterim(bytes)) => {
                            return Poll::Ready(Ok(HandlerPoll::SendInterim(bytes)));
                        }
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
            });
            match polled.await {
                Ok(HandlerPoll::SendInterim(bytes)) => {
                    let mut out = Connection::outgoing();
                    out.bytes.extend_from_slice(&bytes);
                    self.app.count_response(0, bytes.len() as u64);
                    let target = in_flight.parts.view().target();
                    self.send_within(out, self.app.times.write, target).await?;
                }
                Ok(HandlerPoll::Response(response)) => {
                    return Ok(self.app.response_or_500(response));
                }
                Err(error) if in_flight.is_overdue => {
                    self.note(&error);
                    return Ok(Response::new(Status::SERVICE_UNAVAILABLE).close());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what the handler asks for, else watches the peer.
    pub(super) fn poll_action(
        &mut self,
        in_flight: &mut InFlight,
        context: &Context<'_>,
    ) -> Poll<Result<ConnAction, ConnectionError>> {
        let channel = in_flight.parts.channel();
        // Interim responses first: they must precede the final head, and a client that waits for
        // 100 sends no body before it.
        let interim = channel.take_interim();
        if !interim.is_empty() && self.app.sends_early_hints(in_flight.parts.view()) {
            return Poll::Ready(Ok(ConnAction::SendInterim(interim_heads(&interim))));
        }
        if let Some(cut) = in_flight.incoming.hold.cut()
            && !in_flight.incoming.is_broken
        {
            self.note_cut();
            return Poll::Ready(Ok(in_flight.break_off(cut.error())));
        }
        match channel.poll_demand(context) {
            BodyDemand::Bytes => self.poll_feed(in_flight, context),
            BodyDemand::Spilling => self.poll_watch(in_flight, true),
            BodyDemand::Nothing | BodyDemand::GivenUp => {
                self.settle_hold(in_flight);
                self.poll_watch(in_flight, false)
            }
        }
    }

    /// Receives bytes of the body for a reader that waits for them.
    fn poll_feed(
        &mut self,
        in_flight: &mut InFlight,
        context: &Context<'_>,
    ) -> Poll<Result<ConnAction, ConnectionError>> {
        loop {
            // Before the bytes that are here, too: a reader that always comes late finds some each
            // time, and would be charged for none.
            if !in_flight.incoming.decoder.is_done()
                && let Some(action) = ready!(self.poll_collect(in_flight, context))?
            {
                return Poll::Ready(Ok(action));
            }
            let InFlight { incoming, parts, .. } = in_flight;
            if self.feed_unread(incoming, parts) {
                in_flight.note_progress(self.socket.now().mono_ms);
                return Poll::Ready(Ok(ConnAction::BodyFed));
            }
            if std::mem::take(&mut incoming.expects_continue) {
                return Poll::Ready(Ok(ConnAction::SendInterim(continue_100().to_vec())));
            }
            // Before the deadline is set: a pause of the server's own pace must not count as the
            // peer's silence.
            ready!(self.socket.poll_reading())?;
            let received = incoming.decoder.received();
            let channel = parts.channel();
            let deadline = self.body_deadline_ms(incoming);
            self.socket.set_deadline(deadline.max(incoming.granted_ms));
            let failed = match ready!(self.poll_recv_incoming(incoming, channel)) {
                Ok(piece) if !piece.bytes().is_empty() => {
                    incoming.stop_waiting(self.socket.now().mono_ms);
                    incoming.handed_ms = self.socket.now().mono_ms;
                    incoming.began_ms += self.socket.charge_read(&piece);
                    if self.feed(piece.into_bytes(), incoming, parts) {
                        in_flight.note_progress(self.socket.now().mono_ms);
                        return Poll::Ready(Ok(ConnAction::BodyFed));
                    }
                    continue;
                }
                Ok(_) => {
                    in_flight.is_half_closed = true;
                    BodyError::Gone
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
            return Poll::Ready(Ok(in_flight.break_off(failed)));
        }
    }

    /// Receives more of a body: only so much at once as may be held, if it is collected.
    fn poll_recv_incoming(
        &mut self,
        incoming: &Incoming,
        channel: &BodyChannel,
    ) -> Poll<Result<RecvBuf, ConnectionError>> {
        let Incoming { decoder, hold, .. } = incoming;
        let has_room = channel.held().is_none_or(|held| hold.has_room(held.bytes));
        self.poll_recv_body(decoder, has_room, false)
    }

    /// Returns until when the next bytes of a body have to come.
    fn body_deadline_ms(&mut self, incoming: &mut Incoming) -> u64 {
        if incoming.waits_since_ms.is_none() {
            self.socket.refresh_now();
            incoming.window.resume(self.socket.now().mono_ms);
        }
        let since_ms = *incoming.waits_since_ms.get_or_insert(self.socket.now().mono_ms);
        let received = incoming.decoder.received();
        incoming.window.deadline_ms(incoming.patience, since_ms, received)
    }

    /// Watches for the peer's close, and buffers what it sends meanwhile, up to a bound.
    ///
    /// - `is_body_next`: the reader asks for the next bytes soon, so that they stay in the kernel.
    fn poll_watch(
        &mut self,
        in_flight: &mut InFlight,
        is_body_next: bool,
    ) -> Poll<Result<ConnAction, ConnectionError>> {
        loop {
            let (unread, is_short) = self
                .unread
                .as_ref()
                .map_or((0, false), |unread| (unread.bytes.len(), unread.is_over_budget()));
            let paused_ms = match self.socket.read_pause_ms() {
                u64::MAX => in_flight.incoming.reader_ms(now().mono_ms),
                paced_ms => Some(paced_ms),
            };
            if in_flight.incoming.is_broken && in_flight.gone_ms.is_none() {
                // Bytes behind a broken body belong to no request, so the connection is treated as
                // half-closed.
                let patience_ms = match self.app.times.half_close_ms {
                    0 => BROKEN_BODY_MS,
                    patience_ms => patience_ms,
                };
                in_flight.gone_ms = Some(self.socket.now().mono_ms.saturating_add(patience_ms));
            }
            let gone_ms = in_flight.gone_ms.unwrap_or(u64::MAX);
            let until_ms = gone_ms.min(in_flight.idle_until_ms);
            self.socket.set_deadline(until_ms.min(paused_ms.unwrap_or(u64::MAX)));
            // Past the read-ahead limit the socket is no longer read: the kernel's window then
            // stops the peer.
            let is_full = unread >= self.app.read_ahead_bytes || is_short;
            let is_held = paused_ms.is_some() || is_full || is_body_next;
            let waited = if in_flight.gone_ms.is_some() || is_held {
                self.socket.poll_deadline(in_flight.is_half_closed).map(Err)
            } else {
                self.socket.poll_recv(false)
            };
            match ready!(waited) {
                // Only a pause has ended, no time-out.
                Err(ConnectionError::TimedOut) if paused_ms.is_some_and(|ms| ms < until_ms) => {}
                Ok(piece) if piece.bytes().is_empty() => {
                    let patience_ms = in_flight.incoming.half_close_ms;
                    // A client that closes while its handler runs has usually gone. Without a
                    // half-close time-out the handler is dropped at once.
                    if patience_ms == 0 {
                        let gone = io::ErrorKind::ConnectionAborted;
                        return Poll::Ready(Err(ConnectionError::Broken(gone.into())));
                    }
                    in_flight.is_half_closed = true;
                    in_flight.gone_ms = Some(self.socket.now().mono_ms.saturating_add(patience_ms));
                }
                Ok(piece) => {
                    in_flight.incoming.began_ms += self.socket.charge_read(&piece);
                    self.keep_unread(&piece);
                    if let Some(unread) = &mut self.unread {
                        unread.charge();
                    }
                }
                Err(ConnectionError::TimedOut) if self.may_wait_on(in_flight) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
