//! Requests by HTTP/2 on one connection, each on its stream.
//!
//! The head of a request is encoded twice: from the third time on its bytes are the same, because
//! all its fields are in the table. The windows are as large as they can be, so that a response
//! needs no `WINDOW_UPDATE`, as a rule.

use std::mem;

use gustnado_http::h2::{
    ClientStream, ErrorCode, H2Client, H2ClientEvent, H2ClientLimits, PreparedBlock, StreamId,
};

use super::coordinator::Coordinator;
use super::counts::{FailureKind, ServiceState};
use super::pending::{LeaveReason, PendingRequest};
use super::response_reader::{BodyHash, ReadResponse};
use super::script::Script;
use crate::plan::LoadPlan;

/// A load generator accepts what it can hold, and reads it at once.
const LIMITS: H2ClientLimits = H2ClientLimits {
    window_bytes: i32::MAX as u32,
    window_bytes_max: i32::MAX as u32,
    connection_window_bytes: i32::MAX as u32,
    head_bytes_max: u16::MAX as usize,
    fields_max: 1000,
    glitches: gustnado_http::h2::GlitchLimits { burst: 1_000, per_second: 100 },
};

/// Paths are kept in the table of a connection up to so many kinds of requests.
const PATHS_KEPT: usize = 32;

/// Requests without a response.
pub(super) struct Http2Requests {
    core: H2Client<StreamedRequest>,
    /// What the protocol has to say, and rests of bodies.
    out: Vec<u8>,
    /// The beginning of a frame.
    unread: Vec<u8>,
    /// By the kind of request.
    blocks: Vec<PreparedBlock>,
    /// Requests that the server has refused without a look at them. They are sent again.
    refused: Vec<PendingRequest>,
    /// The connection's only request has its response.
    is_over: bool,
}

/// One request and what has come of its response.
struct StreamedRequest {
    pending: PendingRequest,
    /// Arrival time of the head; 0 before it.
    first: u64,
    status: u16,
    length: u64,
    hash: Option<BodyHash>,
    /// How much of the body was sent.
    sent: usize,
}

impl Http2Requests {
    pub(super) fn new(plan: &LoadPlan) -> Self {
        let mut blocks = Vec::new();
        blocks.resize_with(plan.requests.len(), PreparedBlock::default);
        let core = H2Client::new(LIMITS, &mut Vec::new());
        let (out, unread, refused) = (Vec::new(), Vec::new(), Vec::new());
        Self { core, out, unread, blocks, refused, is_over: false }
    }

    /// Begins a connection.
    ///
    /// - `received`: what has come right behind the handshake.
    pub(super) fn begin(&mut self, received: Vec<u8>) {
        self.out.clear();
        self.core = H2Client::new(LIMITS, &mut self.out);
        self.unread = received;
        self.blocks.iter_mut().for_each(PreparedBlock::clear);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.core.open_streams() == 0 && self.refused.is_empty()
    }

    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    #[inline]
    pub(super) fn has_room(&self, depth: usize) -> bool {
        self.core.open_streams() + self.refused.len() < depth && self.core.can_open()
    }

    pub(super) fn oldest_ms(&self, now: u64) -> u64 {
        let oldest = self.core.oldest().map(|stream| stream.state.pending.sent);
        oldest.map_or(0, |sent| now.saturating_sub(sent) / 1_000_000)
    }

    #[inline]
    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty() || !self.refused.is_empty() && self.core.can_open()
    }

    pub(super) fn write_output(&mut self, script: &Script, bytes: &mut Vec<u8>) {
        bytes.append(&mut self.out);
        while self.core.can_open()
            && let Some(pending) = self.refused.pop()
        {
            self.put(pending, script, bytes);
        }
    }

    /// Encodes a request. Returns its bytes.
    #[inline]
    pub(super) fn put(
        &mut self,
        pending: PendingRequest,
        script: &Script,
        bytes: &mut Vec<u8>,
    ) -> usize {
        let before = bytes.len();
        let kind = pending.kind as usize;
        let request = &script.kinds[kind];
        let hash = pending.hashes.then(BodyHash::new);
        let state = StreamedRequest { pending, first: 0, status: 0, length: 0, hash, sent: 0 };
        let ends = (request.is_head(), request.http2.body.is_empty());
        let keeps_path = script.kinds.len() <= PATHS_KEPT;
        let block = &mut self.blocks[kind];
        let id = self.core.open_prepared(block, ends, state, bytes, |encoder, out| {
            request.http2.encode(keeps_path, encoder, out);
        });
        if !ends.1 {
            let sent = self.core.write_data(id, &request.http2.body, true, bytes);
            if let Some(stream) = self.core.stream(id) {
                stream.state.sent = sent;
            }
        }
        bytes.len() - before
    }

    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> Option<LeaveReason> {
        if self.unread.is_empty() {
            let used = self.read(bytes, coordinator, service, now);
            return self.after_reading(used.map(|used| &bytes[used..]));
        }
        let mut all = mem::take(&mut self.unread);
        all.extend_from_slice(bytes);
        let used = self.read(&all, coordinator, service, now);
        self.after_reading(used.map(|used| &all[used..]))
    }

    /// Keeps what is left, and returns the reason to leave the connection, if there is one.
    fn after_reading(&mut self, left: Result<&[u8], FailureKind>) -> Option<LeaveReason> {
        match left {
            Err(failure) => return Some(LeaveReason::Failed(failure)),
            Ok(rest) => self.unread.extend_from_slice(rest),
        }
        let is_over = (self.is_over || self.core.is_used_up()) && self.core.open_streams() == 0;
        is_over.then_some(LeaveReason::Closed)
    }

    /// Reads whole frames. Returns how many bytes they have.
    fn read(
        &mut self,
        bytes: &[u8],
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> Result<usize, FailureKind> {
        let (now_ms, mut used) = (now / 1_000_000, 0);
        loop {
            let next = self.core.next(&bytes[used..], now_ms, &mut self.out);
            let (more, event) = next.map_err(|_| FailureKind::Unreadable)?;
            used += more;
            let ended = match event {
                None => return Ok(used),
                Some(H2ClientEvent::Response { id, head, is_end }) => {
                    if let Some(stream) = self.core.stream(id) {
                        (stream.state.first, stream.state.status) = (now, head.status());
                    }
                    is_end.then_some(id)
                }
                Some(H2ClientEvent::Data { id, bytes, is_end }) => {
                    if let Some(stream) = self.core.stream(id) {
                        stream.state.take_in(bytes);
                    }
                    if !is_end {
                        self.core.take(id, bytes.len(), &mut self.out);
                    }
                    is_end.then_some(id)
                }
                Some(H2ClientEvent::Trailers { id }) => Some(id),
                Some(H2ClientEvent::Interim { .. }) => None,
                Some(H2ClientEvent::Window) => {
                    self.send_bodies(&coordinator.shared.script);
                    None
                }
                Some(H2ClientEvent::GoAway { refused, .. }) => {
                    self.refused.extend(refused.into_iter().map(|stream| stream.state.pending));
                    None
                }
                Some(H2ClientEvent::Reset { stream, code, fault }) => {
                    self.reset_stream(&stream, (code, fault), coordinator, now);
                    None
                }
            };
            if let Some(id) = ended {
                self.finish(id, coordinator, service, now);
            }
        }
    }

    /// Counts a whole response.
    #[inline]
    fn finish(
        &mut self,
        id: StreamId,
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) {
        let Some(stream) = self.core.close(id, ErrorCode::Cancel, &mut self.out) else { return };
        let StreamedRequest { pending, first, status, length, hash, .. } = stream.state;
        let hash = hash.map(|hash| hash.value());
        let response = ReadResponse { status, length, hash, keep_alive: true };
        coordinator.record_response(&pending, &response, first, now);
        coordinator.note_served(service, now);
        self.is_over = !coordinator.shared.plan.keep_alive;
    }

    fn reset_stream(
        &mut self,
        stream: &ClientStream<StreamedRequest>,
        (code, fault): (ErrorCode, Option<&'static str>),
        coordinator: &mut Coordinator,
        now: u64,
    ) {
        let pending = stream.state.pending;
        if fault.is_none() && code == ErrorCode::RefusedStream {
            // It was not looked at (RFC 9113 §8.7).
            return self.refused.push(pending);
        }
        let failure = match fault {
            Some(_) => FailureKind::Unreadable,
            None if stream.state.first > 0 => FailureKind::Short,
            None => FailureKind::Reset,
        };
        coordinator.record_failure(&pending, failure, now);
    }

    /// Sends rests of bodies, as far as the windows go now.
    fn send_bodies(&mut self, script: &Script) {
        let unsent = |stream: &&mut ClientStream<StreamedRequest>| !stream.is_local_closed;
        let ids: Vec<StreamId> =
            self.core.streams().filter(unsent).map(|stream| stream.id).collect();
        for id in ids {
            let Some(stream) = self.core.stream(id) else { continue };
            let (kind, sent) = (stream.state.pending.kind as usize, stream.state.sent);
            let rest = &script.kinds[kind].http2.body[sent..];
            let count = self.core.write_data(id, rest, true, &mut self.out);
            if let Some(stream) = self.core.stream(id) {
                stream.state.sent += count;
            }
        }
    }

    /// Handles the server's close.
    pub(super) fn end(&self) -> LeaveReason {
        match self.core.oldest() {
            None => LeaveReason::Closed,
            Some(stream) if stream.state.first > 0 => LeaveReason::Failed(FailureKind::Short),
            Some(_) => LeaveReason::Failed(FailureKind::Reset),
        }
    }

    pub(super) fn drain(&mut self, mut each: impl FnMut(&PendingRequest)) {
        self.core.streams().for_each(|stream| each(&stream.state.pending));
        self.refused.drain(..).for_each(|pending| each(&pending));
        self.reset();
    }

    /// Forgets the connection. Requests that were refused stay.
    pub(super) fn reset(&mut self) {
        self.core = H2Client::new(LIMITS, &mut Vec::new());
        self.out.clear();
        self.unread.clear();
        self.is_over = false;
    }
}

impl StreamedRequest {
    #[inline]
    fn take_in(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.take_in(bytes);
        }
    }
}

/// One request alone on a connection that is held afterwards.
pub(super) struct SingleRequest {
    core: H2Client<()>,
    out: Vec<u8>,
    unread: Vec<u8>,
    status: u16,
    is_done: bool,
}

impl SingleRequest {
    /// - `received`: what has come right behind the handshake.
    pub(super) fn new(script: &Script, kind: u32, received: Vec<u8>) -> Self {
        let request = &script.kinds[kind as usize];
        let mut out = Vec::new();
        let mut core = H2Client::new(LIMITS, &mut out);
        let ends = (request.is_head(), request.http2.body.is_empty());
        let id = core.open(ends, (), &mut out, |encoder, out| {
            request.http2.encode(false, encoder, out);
        });
        // Of a long body only the beginning is sent: the connection is what counts.
        core.write_data(id, &request.http2.body, true, &mut out);
        Self { core, out, unread: received, status: 0, is_done: false }
    }

    pub(super) fn write_output(&mut self, bytes: &mut Vec<u8>) {
        bytes.append(&mut self.out);
    }

    /// Returns the status, once the response is whole.
    pub(super) fn status(&self) -> Option<u16> {
        self.is_done.then_some(self.status)
    }

    /// Reads received bytes.
    pub(super) fn take_in(&mut self, bytes: &[u8], now_ms: u64) -> Result<(), FailureKind> {
        self.unread.extend_from_slice(bytes);
        let mut used = 0;
        loop {
            let next = self.core.next(&self.unread[used..], now_ms, &mut self.out);
            let (more, event) = next.map_err(|_| FailureKind::Unreadable)?;
            used += more;
            match event {
                None => break,
                Some(H2ClientEvent::Response { head, is_end, .. }) => {
                    (self.status, self.is_done) = (head.status(), is_end);
                }
                Some(H2ClientEvent::Data { id, bytes, is_end }) => {
                    self.core.take(id, bytes.len(), &mut self.out);
                    self.is_done |= is_end;
                }
                Some(H2ClientEvent::Trailers { .. }) => self.is_done = true,
                Some(H2ClientEvent::Interim { .. } | H2ClientEvent::Window) => {}
                Some(H2ClientEvent::Reset { .. } | H2ClientEvent::GoAway { .. }) => {
                    return Err(FailureKind::Reset);
                }
            }
        }
        self.unread.drain(..used);
        Ok(())
    }
}
