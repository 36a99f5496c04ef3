//! Requests by HTTP/1 on one connection: responses come in the order of requests.

use std::collections::VecDeque;

use super::coordinator::Coordinator;
use super::counts::{FailureKind, ServiceState};
use super::pending::{LeaveReason, PendingRequest};
use super::response_reader::ResponseReader;
use super::script::Script;

/// Requests without a response, in their order.
pub(super) struct Http1Requests {
    reader: ResponseReader,
    pending: VecDeque<PendingRequest>,
    /// Arrival time of the first byte of the current response; 0 before it.
    first: u64,
}

impl Http1Requests {
    pub(super) fn new(depth: usize) -> Self {
        let pending = VecDeque::with_capacity(depth);
        Self { reader: ResponseReader::default(), pending, first: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    #[inline]
    pub(super) fn put(
        &mut self,
        pending: PendingRequest,
        script: &Script,
        bytes: &mut Vec<u8>,
    ) -> usize {
        let request = &script.kinds[pending.kind as usize].bytes;
        bytes.extend_from_slice(request);
        self.pending.push_back(pending);
        request.len()
    }

    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> Option<LeaveReason> {
        let mut at = 0;
        while at < bytes.len() {
            let Some(pending) = self.pending.front() else {
                coordinator.counts.strays += 1;
                return Some(LeaveReason::Closed);
            };
            if self.first == 0 {
                self.first = now;
            }
            let kind = pending.kind as usize;
            let method = coordinator.shared.script.kinds[kind].method;
            let known = &mut coordinator.known[kind];
            let Ok((used, response)) =
                self.reader.read(&bytes[at..], known, method, pending.hashes)
            else {
                return Some(LeaveReason::Failed(FailureKind::Unreadable));
            };
            at += used;
            let Some(response) = response else { continue };
            coordinator.record_response(pending, &response, self.first, now);
            coordinator.note_served(service, now);
            self.first = 0;
            self.pending.pop_front();
            if !(response.keep_alive && coordinator.shared.plan.keep_alive) {
                return Some(self.after_last());
            }
        }
        None
    }

    /// Handles the server's close.
    pub(super) fn end(
        &mut self,
        coordinator: &mut Coordinator,
        service: &mut ServiceState,
        now: u64,
    ) -> LeaveReason {
        let Some(pending) = self.pending.front() else { return LeaveReason::Closed };
        if let Some(response) = self.reader.close() {
            coordinator.record_response(pending, &response, self.first, now);
            coordinator.note_served(service, now);
            self.pending.pop_front();
            return self.after_last();
        }
        LeaveReason::Failed(if self.reader.is_fresh() {
            FailureKind::Reset
        } else {
            FailureKind::Short
        })
    }

    /// After the last response of the connection: what is left gets none.
    fn after_last(&self) -> LeaveReason {
        if self.pending.is_empty() {
            LeaveReason::Closed
        } else {
            LeaveReason::Failed(FailureKind::Reset)
        }
    }

    pub(super) fn drain(&mut self, mut each: impl FnMut(&PendingRequest)) {
        self.pending.drain(..).for_each(|pending| each(&pending));
    }

    pub(super) fn reset(&mut self) {
        self.reader.reset();
        self.pending.clear();
        self.first = 0;
    }
}
