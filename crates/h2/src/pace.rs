//! Pace: of the connection, whose sends leave in small steps; of routes, whose streams have parts
//! of a send; the time before a first byte; the rate of requests.

use std::sync::Arc;
use std::task::Poll;

use gustnado_app::app::App;
use gustnado_http::h2::StreamId;
use gustnado_http::method::Method;
use gustnado_http::status::Status;
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{Connection, ConnectionError};
use gustnado_tls::{Grant, ResponsePace, RoutePacer};
use gustnado_web::response::Response;

use crate::Http2Conn;
use crate::active::Rest;
use crate::respond::{Received, StreamReply};
use crate::stream_pace::{HeldResponse, StreamPace};

/// The most bytes in one step at a pace, however fast it is: a larger one would be a burst.
const STEP_BYTES_MAX: u64 = 64 << 10;

/// What a connection keeps where something is paced.
#[derive(Default)]
pub(super) struct ConnPace {
    /// What is sent next, as far as it has not left.
    waiting: Vec<u8>,
    /// How much of that has left.
    at: usize,
    /// How much of the rest may be sent, and when.
    granted: Option<Grant>,
    /// Those of the routes that have responded.
    routes: Vec<RoutePacer>,
}

impl ConnPace {
    fn left(&self) -> usize {
        self.waiting.len() - self.at
    }

    fn route(&mut self, pace: &Arc<ResponsePace>) -> &mut RoutePacer {
        let at = self.routes.iter().position(|route| route.is_of(pace)).unwrap_or_else(|| {
            self.routes.push(RoutePacer::new(pace));
            self.routes.len() - 1
        });
        &mut self.routes[at]
    }
}

impl Http2Conn {
    /// Returns whether something waits for the pace of the connection.
    pub(super) fn has_paced_rest(&self) -> bool {
        self.conn_pace().is_some_and(|pace| pace.left() > 0)
    }

    fn conn_pace(&self) -> Option<&ConnPace> {
        self.rare.as_ref()?.pace.as_deref()
    }

    /// Returns when more of that may be sent, if it is not now; `u64::MAX` if nothing waits.
    pub(super) fn paced_send_ms(&self) -> u64 {
        let granted = self.conn_pace().and_then(|pace| pace.granted);
        let now_ms = self.now_ms();
        granted.filter(|grant| grant.at_ms > now_ms).map_or(u64::MAX, |grant| grant.at_ms)
    }

    /// Begins the next step of what is to be sent, if its time has come. Returns whether something
    /// has changed.
    #[cold]
    pub(super) fn start_paced_send(&mut self) -> bool {
        let now_ms = self.now_ms();
        if !self.has_paced_rest() && self.next.as_ref().is_some_and(|next| !next.is_empty()) {
            self.begin_content();
        }
        let rare = &mut **self.rare.get_or_insert_default();
        let pace = rare.pace.get_or_insert_default();
        if pace.left() == 0 {
            let Some(mut next) = self.next.take_if(|next| !next.is_empty()) else { return false };
            (pace.waiting, pace.at) = (next.take_bytes(), 0);
            Connection::put_back(next);
            if let Some(leaving) = &mut rare.leaving {
                leaving.begin();
            }
        }
        let is_new = pace.granted.is_none();
        let wanted = (pace.left() as u64).min(STEP_BYTES_MAX);
        let socket = &mut self.socket;
        let grant = *pace.granted.get_or_insert_with(|| socket.grant(now_ms, wanted));
        if grant.at_ms > now_ms {
            return is_new;
        }
        pace.granted = None;
        let count = usize::try_from(grant.bytes).unwrap_or(usize::MAX).min(pace.left());
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(&pace.waiting[pace.at..pace.at + count]);
        pace.at += count;
        if pace.left() == 0 {
            (pace.waiting, pace.at) = (Vec::new(), 0);
        }
        self.timers.begin_send(now_ms, self.send_patience());
        self.socket.start_send(out);
        true
    }

    /// Waits for the pace, where no other operation does.
    pub(super) fn poll_pause(&mut self) -> Poll<ConnectionError> {
        let idle = self.is_idle();
        self.socket.poll_deadline(idle)
    }

    /// Returns until when nothing is received; `u64::MAX`: it may be.
    pub(super) fn read_pause_ms(&self) -> u64 {
        if self.socket.is_paced() { self.socket.read_pause_ms() } else { u64::MAX }
    }

    /// Responds with 429 to a request past the rate of its client. Returns whether it did.
    #[cold]
    pub(super) fn is_past_rate(&mut self, received: &mut Received<'_>, app: &App) -> bool {
        let Err(wait_ms) = self.socket.admit(self.now_ms()) else { return false };
        let prefix = app.response_prefix(self.socket.now().unix_secs);
        let after_secs = wait_ms.div_ceil(1_000).max(1).to_string();
        let page = app.routeless_page(Status::TOO_MANY_REQUESTS, prefix.opening.lines());
        let response = page.header("Retry-After", after_secs);
        app.count(&Added { fault: Some(Fault::TooManyRequests), ..Added::default() });
        let head_only = received.view().method() == Method::Head;
        self.write_response(&mut received.reply, response, head_only, app);
        true
    }

    /// Returns when a response may begin, where that is not now.
    #[inline]
    pub(super) fn held_until(
        &mut self,
        reply: &StreamReply<'_>,
        response: &Response,
    ) -> Option<u64> {
        let pace = response.extras.as_ref().and_then(|extras| extras.pace.as_ref());
        if pace.is_none() && !self.socket.is_paced() || reply.was_held {
            return None;
        }
        let now_ms = self.now_ms();
        let stream = if reply.is_open { self.core.stream(reply.id) } else { None };
        let read_ms = stream.map_or(now_ms, |stream| stream.state.read_ms);
        let of_route = pace.map_or(0, |pace| pace.first_byte_at_ms(read_ms));
        let at_ms = self.socket.first_byte_at_ms(read_ms).max(of_route);
        (at_ms > now_ms).then_some(at_ms)
    }

    /// Keeps a response until it may begin.
    #[cold]
    pub(super) fn hold_response(
        &mut self,
        reply: &mut StreamReply<'_>,
        (response, head_only): (Response, bool),
        until_ms: u64,
    ) {
        self.open(reply);
        let has_pieces = reply.has_pieces;
        if let Some(stream) = self.core.stream(reply.id) {
            let held = HeldResponse { response, head_only, has_pieces, until_ms };
            stream.state.rest = Some(Rest::Held(Box::new(held)));
            self.has_held = true;
        }
    }

    /// Writes the responses that may begin now.
    pub(super) fn release_held(&mut self) {
        if !self.has_held {
            return;
        }
        let (now_ms, mut due) = (self.now_ms(), Vec::new());
        self.has_held = false;
        for stream in self.core.streams() {
            if let Some(Rest::Held(held)) = &stream.state.rest {
                self.has_held = true;
                if held.until_ms <= now_ms {
                    due.push(stream.id);
                }
            }
        }
        let app = Arc::clone(&self.app);
        for id in due {
            let Some(stream) = self.core.stream(id) else { continue };
            let is_end = stream.is_remote_closed;
            let Some(Rest::Held(held)) = stream.state.rest.take() else { continue };
            let HeldResponse { response, head_only, has_pieces, .. } = *held;
            let mut reply =
                StreamReply { has_pieces, was_held: true, ..StreamReply::of_stream(id, is_end) };
            self.write_response(&mut reply, response, head_only, &app);
            self.send_tunnel(id);
        }
    }

    /// Sets the pace of an open stream's content, and charges its head.
    #[cold]
    pub(super) fn begin_route(&mut self, id: StreamId, pace: Arc<ResponsePace>, head_bytes: usize) {
        let now_ms = self.now_ms();
        let Some(stream) = self.core.stream(id) else { return };
        let routes = self.rare.get_or_insert_default().pace.get_or_insert_default();
        routes.route(&pace).charge(now_ms, head_bytes as u64);
        stream.state.pace = Some(Box::new(StreamPace { pace, bytes: 0, at_ms: 0 }));
    }

    /// Returns how much of a stream's content its route lets leave now, of so many bytes.
    pub(super) fn granted(&mut self, id: StreamId, wanted: usize) -> usize {
        let now_ms = self.now_ms();
        let Self { core, rare, .. } = self;
        let Some(stream) = core.stream(id) else { return 0 };
        let Some(own) = &mut stream.state.pace else { return wanted };
        if own.bytes == 0 {
            let pace = rare.get_or_insert_default().pace.get_or_insert_default();
            let route = pace.route(&own.pace);
            let grant = route.grant(now_ms, (wanted as u64).min(STEP_BYTES_MAX));
            own.bytes = usize::try_from(grant.bytes).unwrap_or(usize::MAX);
            own.at_ms = grant.at_ms;
        }
        if own.at_ms > now_ms { 0 } else { wanted.min(own.bytes) }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.socket.now().mono_ms
    }
}
