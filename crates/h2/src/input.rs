//! What is received: frame by frame, up to what there is room to respond to.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gustnado_app::app::App;
use gustnado_app::bodies::BlockedMemory;
use gustnado_app::hooks::Limit;
use gustnado_config::UNCHARGED_BYTES;
use gustnado_http::h2::frame::{FrameHeader, kind};
use gustnado_http::h2::{ErrorCode, H2Error, H2Event, H2Scratch, HeadLimit, Step, Stream};
use gustnado_observe::stats::{Added, Fault, Http2Fault};
use gustnado_tasks::{Charge, Connection, ConnectionError, MemoryKind};
use gustnado_web::body::BodyError;

use crate::active::Active;
use crate::respond::{Received, StreamReply};
use crate::{Http2Conn, SCRATCH};

/// The cost of each response, in a turn with several, to the task's budget for one run.
const RESPONSE_UNITS: u32 = 2;

/// The memory of input that is not whole.
pub(super) struct PartialInput {
    charge: Charge,
    /// The same where heads hold much: then it may be cut.
    blocked: Option<BlockedMemory>,
}

impl Http2Conn {
    /// Reads what waits, or receives.
    pub(super) fn poll_input(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ConnectionError>> {
        if self.has_unread {
            let unread = mem::take(&mut self.unread);
            self.has_unread = false;
            self.read(&unread, context);
            return Poll::Ready(Ok(()));
        }
        match self.phase {
            // Nothing else looks at the times of a client that sends no more. If the server ends,
            // it waits only for responses that have begun.
            phase if phase.only_responds() && !self.is_sending() => {
                let mut streams = self.core.streams().iter();
                let is_waiting = streams.all(|stream| stream.state.rest.is_none());
                return self.socket.poll_deadline(is_waiting).map(Err);
            }
            phase if !phase.reads() => return Poll::Pending,
            _ if self.read_pause_ms() != u64::MAX => return self.poll_pause().map(Err),
            _ => {}
        }
        let is_idle = self.is_idle() && !self.has_begun_request();
        let piece = if self.has_partial() || is_idle {
            ready!(self.socket.poll_recv_or_give_way(is_idle && !self.has_partial()))?
        } else {
            ready!(self.socket.poll_recv(!self.is_end_told))?
        };
        if self.app.times.ping_ms > 0 {
            self.timers.note_alive(self.socket.now().mono_ms, &self.app);
        }
        if self.socket.is_paced() {
            let pause_ms = self.socket.charge_read(&piece);
            self.timers.extend(pause_ms);
        }
        if piece.bytes().is_empty() {
            self.lose_peer();
        } else if self.unread.is_empty() {
            self.read(piece.bytes(), context);
        } else {
            let mut unread = mem::take(&mut self.unread).into_vec();
            unread.extend_from_slice(piece.bytes());
            drop(piece);
            self.read(&unread, context);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether the head of a request has come in part. Parts of other frames do not count:
    /// a client could always keep one open.
    pub(super) fn has_begun_request(&self) -> bool {
        let is_headers = |(header, _): (FrameHeader, _)| header.kind == kind::HEADERS;
        self.phase.reads()
            && (self.core.is_within_block()
                || FrameHeader::read(&self.unread).is_some_and(is_headers))
    }

    /// Reads frames, and keeps the bytes of the last one if it is not whole.
    fn read(&mut self, input: &[u8], context: &mut Context<'_>) {
        let mut app = Arc::clone(&self.app);
        if app.notice().has_news() {
            app = self.renewed(app);
        }
        let mut scratch = SCRATCH.take();
        let (mut used, first) = (0, self.requests);
        while self.phase.reads() {
            if !self.has_room() {
                self.has_unread = used < input.len();
                break;
            }
            let out = self.next.get_or_insert_with(Connection::outgoing);
            let now_ms = self.socket.now().mono_ms;
            let (h2, limits) = (&app.h2, &app.limits);
            let mut step = Step { scratch: &mut scratch, h2, limits, now_ms, out: &mut out.bytes };
            match self.core.next(&input[used..], &mut step) {
                Ok((more, event)) => {
                    used += more;
                    let Some(event) = event else { break };
                    self.act_on(event, &scratch, &app, context);
                }
                Err(error) => self.break_off(error),
            }
        }
        SCRATCH.set(scratch);
        let rest = if self.phase.reads() { &input[used..] } else { &[] };
        if !rest.is_empty() || !self.unread.is_empty() {
            self.unread = rest.into();
        }
        self.charge_partial();
        let responses = self.requests.wrapping_sub(first);
        let came = (self.input_end(used > 0), responses > 0);
        self.timers.note_input(self.socket.now().mono_ms, &app, came);
        if responses > 1 {
            gustnado_tasks::charge(RESPONSE_UNITS * responses);
        }
    }

    fn act_on(
        &mut self,
        event: H2Event<'_, Box<Active>>,
        scratch: &H2Scratch,
        app: &Arc<App>,
        context: &mut Context<'_>,
    ) {
        match event {
            H2Event::Request { id, head, is_end } => {
                self.requests = self.requests.saturating_add(1);
                let bytes = scratch.head_bytes();
                let mut received = Received::new(id, &head, bytes, is_end);
                if app.access_log.is_some() {
                    self.open_exchange(&mut received.reply, (Some(&head), bytes), app);
                }
                if !self.socket.is_paced() || !self.is_past_rate(&mut received, app) {
                    self.respond(&mut received, app, context);
                }
                if app.policy.is_some_and(|policy| {
                    policy.requests_max.is_some_and(|max| u64::from(self.requests) >= max)
                }) {
                    self.announce_end();
                }
            }
            H2Event::Refused { id, status, past, is_head, is_end } => {
                if let Some((limit, reached)) = past {
                    self.note_head_limit(limit, reached, app);
                }
                // Nothing of it says what a proxy has seen.
                let is_insecure = app.has_hsts() && !self.socket.is_sealed();
                let reply = StreamReply::of_stream(id, is_end);
                let mut reply = StreamReply { is_open: false, is_insecure, ..reply };
                if app.access_log.is_some() {
                    self.open_exchange(&mut reply, (None, scratch.head_bytes()), app);
                }
                self.write_refusal_of(&mut reply, (status, is_head), app);
            }
            H2Event::Data { id, bytes, is_end } => {
                self.take_data(id, bytes, is_end, app, context);
            }
            H2Event::Trailers { id } => {
                self.take_trailers(id, scratch.trailer_records());
                self.take_data(id, b"", true, app, context);
            }
            H2Event::Reset { stream, code, by_peer } => {
                self.note_dropped(stream.as_ref(), code, by_peer);
            }
            H2Event::Window => {}
        }
    }

    /// Notes that a stream is over before its response is; its handler ends with it.
    fn note_dropped(&self, stream: Option<&Stream<Box<Active>>>, code: ErrorCode, by_peer: bool) {
        if let Some(parts) = stream.and_then(|stream| stream.state.parts.as_ref()) {
            parts.channel().end(Err(BodyError::Gone));
        }
        self.count_fault(match code {
            _ if by_peer => Http2Fault::Reset,
            ErrorCode::RefusedStream => Http2Fault::Refused,
            _ => Http2Fault::Stream,
        });
    }

    fn count_fault(&self, fault: Http2Fault) {
        self.app.count(&Added { fault: Some(Fault::Http2(fault)), ..Added::default() });
    }

    /// Ends the connection, which has broken a rule, and says so.
    fn break_off(&mut self, error: H2Error) {
        self.count_fault(Http2Fault::Connection(error.flood));
        self.fail(error);
    }

    /// Reports a head that is past a limit.
    #[cold]
    fn note_head_limit(&self, limit: HeadLimit, reached: usize, app: &App) {
        let (limit, configured) = match limit {
            HeadLimit::Bytes => (Limit::HeadBytes, app.limits.head_bytes_max),
            HeadLimit::Target => (Limit::TargetBytes, app.limits.target_bytes_max),
            HeadLimit::Fields => (Limit::HeaderFields, app.limits.fields_max),
        };
        app.note_size(self.requests, limit, (configured as u64, reached as u64), b"");
    }

    /// Charges the beginning of a frame, and of a block of fields, whose rest is waited for.
    fn charge_partial(&mut self) {
        let held = self.unread.len() + self.core.block_bytes();
        if held <= UNCHARGED_BYTES {
            if let Some(rare) = &mut self.rare {
                rare.partial = None;
            }
            return;
        }
        let Self { app, socket, rare, .. } = self;
        let partial = rare.get_or_insert_default().partial.get_or_insert_with(|| {
            let charge = Charge::new(MemoryKind::Heads);
            PartialInput { charge, blocked: None }
        });
        partial.charge.set(held);
        if partial.blocked.is_none() {
            let client = || app.peer_key(socket);
            partial.blocked = BlockedMemory::enter(app.bodies(), MemoryKind::Heads, client);
        }
        if let Some(blocked) = &partial.blocked {
            blocked.set(held);
        }
    }
}
