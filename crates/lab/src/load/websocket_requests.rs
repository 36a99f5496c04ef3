//! Messages of one WebSocket that have not come back.
//!
//! A request is a message, and its response is the message that comes back: from an echo, in the
//! order of sending. Where the server sends each message to all, a message says when it was sent
//! and by which connection: each connection that gets it counts a delivery, and the one that has
//! sent it has its response.

use std::collections::VecDeque;

use gustnado_http::websocket::Opcode;

use super::coordinator::Coordinator;
use super::counts::{FailureKind, ServiceState};
use super::pending::{LeaveReason, PendingRequest};
use super::response_reader::ReadResponse;
use super::script::Script;
use super::websocket::{EndedMessage, LoadSocket, MessageStamp, WebSocketFailure};
use crate::plan::{LoadPlan, WebSocketLoad};

/// The status of a message that has come back. (It has none.)
const STATUS: u16 = 200;

/// Messages without a response.
pub(super) struct WebSocketRequests {
    end: LoadSocket,
    load: WebSocketLoad,
    /// Whose handshake it sends.
    kind: u32,
    number: u32,
    message: Vec<u8>,
    pending: VecDeque<PendingRequest>,
    /// When the connection was made, and whether its handshake is still to be sent.
    began: u64,
    is_new: bool,
}

impl WebSocketRequests {
    /// - `kind`: the request of the handshake.
    /// - `number`: of its connection.
    pub(super) fn new(plan: &LoadPlan, load: WebSocketLoad, (kind, number): (u32, u32)) -> Self {
        Self {
            end: LoadSocket::new(number),
            load,
            kind,
            number,
            message: vec![b'x'; load.bytes],
            pending: VecDeque::with_capacity(plan.pipeline as usize),
            began: 0,
            is_new: true,
        }
    }

    /// Begins a connection.
    pub(super) fn begin(&mut self, now: u64) {
        self.reset();
        self.began = now;
    }

    /// Returns whether the server has not accepted the handshake yet.
    pub(super) fn is_opening(&self) -> bool {
        !self.end.is_open()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.end.is_open()
    }

    #[inline]
    pub(super) fn has_room(&self, depth: usize) -> bool {
        self.pending.len() < depth && self.end.is_open()
    }

    /// Returns how long the oldest message has waited, or the handshake, in milliseconds.
    pub(super) fn oldest_ms(&self, now: u64) -> u64 {
        let oldest = self.pending.front().map(|pending| pending.sent);
        let oldest = oldest.or((!self.end.is_open()).then_some(self.began));
        oldest.map_or(0, |since| now.saturating_sub(since) / 1_000_000)
    }

    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.is_new || self.end.has_output()
    }

    pub(super) fn write_output(&mut self, script: &Script, bytes: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_new) {
            bytes.extend_from_slice(&script.kinds[self.kind as usize].bytes);
        }
        self.end.write_output(bytes);
    }

    /// Encodes a message. Returns its bytes.
    #[inline]
    pub(super) fn put(&mut self, pending: PendingRequest, bytes: &mut Vec<u8>) -> usize {
        let before = bytes.len();
        if self.load.is_broadcast {
            // Late ones say when they were due, as their latency is counted from there.
            let stamp = MessageStamp { sent: pending.began(), number: self.number };
            stamp.write(&mut self.message);
        }
        let opcode = if self.load.is_binary { Opcode::Binary } else { Opcode::Text };
        self.end.frame(opcode, &self.message, bytes);
        self.pending.push_back(pending);
        bytes.len() - before
    }

    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> Option<LeaveReason> {
        self.end.receive(bytes);
        loop {
            let was_open = self.end.is_open();
            let hashes = !self.load.is_broadcast
                && self.pending.front().is_some_and(|pending| pending.hashes);
            let next = self.end.next(self.load.is_broadcast, hashes);
            if !was_open && self.end.is_open() {
                coordinator.counts.websocket.opened += 1;
            }
            match next {
                Ok(None) => return None,
                Ok(Some(message)) => self.note(&message, coordinator, service, now),
                Err(failure) => return Some(LeaveReason::Failed(note(failure, coordinator))),
            }
        }
    }

    /// Counts a message that has come.
    fn note(
        &mut self,
        message: &EndedMessage,
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) {
        if self.load.is_broadcast {
            let Some(stamp) = message.stamp else { return coordinator.counts.strays += 1 };
            coordinator.record_delivery(stamp.sent, now);
            if stamp.number != self.number {
                return;
            }
        }
        let Some(pending) = self.pending.pop_front() else {
            return coordinator.counts.strays += 1;
        };
        let hash = if self.load.is_broadcast { None } else { message.hash };
        let response = ReadResponse { status: STATUS, length: message.len, hash, keep_alive: true };
        coordinator.record_response(&pending, &response, now, now);
        coordinator.note_served(service, now);
    }

    /// Handles the end of the connection.
    pub(super) fn end(&mut self, coordinator: &mut Coordinator) -> LeaveReason {
        coordinator.counts.websocket.closed += u64::from(self.end.is_open());
        if self.pending.is_empty() && self.end.is_open() {
            return LeaveReason::Closed;
        }
        LeaveReason::Failed(FailureKind::Reset)
    }

    pub(super) fn drain(&mut self, mut each: impl FnMut(&PendingRequest)) {
        self.pending.drain(..).for_each(|pending| each(&pending));
    }

    pub(super) fn reset(&mut self) {
        self.end = LoadSocket::new(self.number);
        self.pending.clear();
        self.is_new = true;
    }
}

/// Counts why a WebSocket has ended.
pub(super) fn note(failure: WebSocketFailure, coordinator: &mut Coordinator) -> FailureKind {
    let counts = &mut coordinator.counts.websocket;
    match failure {
        WebSocketFailure::Refused => {
            counts.refused += 1;
            FailureKind::Status
        }
        WebSocketFailure::Closed => {
            counts.closed += 1;
            FailureKind::Reset
        }
        WebSocketFailure::Unreadable => FailureKind::Unreadable,
    }
}
