//! Coordinates the connections of one thread: assigns requests and records their results.
//!
//! Each thread has its own coordinator, which its tasks use between two waits. Nothing is locked or
//! shared with other threads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use super::counts::{FailureKind, ServiceState, ThreadCounts};
use super::pending::{PendingRequest, SendPermit};
use super::response_reader::{KnownHead, ReadResponse};
use super::schedule::{Due, RequestSchedule};
use super::shared::{LoadShared, MeasureWindow};
use super::standstill;
use super::trace::{TraceEntry, micros};

thread_local! {
    static COORDINATOR: RefCell<Option<Box<Coordinator>>> = const { RefCell::new(None) };
}

/// Coordinates the connections of one thread.
pub(super) struct Coordinator {
    pub(super) shared: Arc<LoadShared>,
    /// Requests that this thread may still send.
    pub(super) budget: u64,
    /// Begin and end of measuring; known once the load has started.
    pub(super) times: Option<MeasureWindow>,
    /// Whether connections send requests that are not measured, until each had a response.
    pub(super) ramps_up: bool,
    /// When a connection had its first response for the last time.
    pub(super) served_at: u64,
    pub(super) schedule: Option<RequestSchedule>,
    slots: Vec<SlotState>,
    /// Slots that took a counted request, and the number of the others.
    has_taken: Vec<bool>,
    untaken: u64,
    /// Slots that wait for a request, the longest waiting first.
    pub(super) idle: VecDeque<u32>,
    pub(super) known: Vec<KnownHead>,
    /// Position of each group in its round.
    pub(super) cursors: Vec<usize>,
    /// Responses until the next one whose body is checked.
    until_check: u32,
    /// Requests that were permitted and have not ended.
    pub(super) under_way: u64,
    /// Connections that are being opened for the first time.
    pub(super) opening: u32,
    /// When a connection was last established; before that, when the thread began.
    pub(super) opened_at: u64,
    /// Connection attempts that have failed in a row.
    pub(super) failures_in_a_row: u64,
    /// Woken when something has ended that the thread itself waits for.
    pub(super) thread_waker: Option<Waker>,
    pub(super) counts: ThreadCounts,
}

/// State of one connection's slot.
#[derive(Debug, Default)]
pub(super) enum SlotState {
    /// Its connection takes a request when it can.
    #[default]
    Busy,
    /// Its connection waits for a request.
    Waiting(Waker),
    /// A request was assigned to it.
    Assigned(SendPermit),
}

/// Next step of a connection that can send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NextRequest {
    Send(SendPermit),
    Wait,
    /// No request will be due any more.
    Over,
}

/// Installs the coordinator of the running thread.
pub(super) fn install(coordinator: Coordinator) {
    COORDINATOR.set(Some(Box::new(coordinator)));
}

/// Removes the coordinator of the running thread.
pub(super) fn uninstall() -> Option<Coordinator> {
    COORDINATOR.take().map(|coordinator| *coordinator)
}

/// Calls `f` with the coordinator of the running thread.
pub(super) fn with<T>(f: impl FnOnce(&mut Coordinator) -> T) -> T {
    try_with(f).expect("the thread has a desk for as long as its tasks run")
}

/// The same, for a thread that may be ending.
pub(super) fn try_with<T>(f: impl FnOnce(&mut Coordinator) -> T) -> Option<T> {
    COORDINATOR.with_borrow_mut(|coordinator| coordinator.as_deref_mut().map(f))
}

impl Coordinator {
    pub(super) fn new(shared: Arc<LoadShared>, thread: u32) -> Self {
        let counts = shared.counts(thread);
        let script = &shared.script;
        Self {
            budget: shared.budget_of(thread),
            times: None,
            ramps_up: false,
            served_at: 0,
            schedule: None,
            slots: Vec::new(),
            has_taken: Vec::new(),
            untaken: 0,
            idle: VecDeque::new(),
            known: script.kinds.iter().map(|_| KnownHead::default()).collect(),
            cursors: vec![thread as usize; script.groups.len()],
            until_check: 1,
            under_way: 0,
            opening: 0,
            opened_at: shared.now(),
            failures_in_a_row: 0,
            thread_waker: None,
            counts,
            shared,
        }
    }

    /// Adds the slot of one connection.
    pub(super) fn add_slot(&mut self) -> u32 {
        let slot = u32::try_from(self.slots.len()).expect("connections are a million at most");
        self.slots.push(SlotState::default());
        self.has_taken.push(false);
        self.untaken += 1;
        slot
    }

    /// The number of connections that send requests.
    pub(super) fn connections(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Returns what the connection at a slot does now.
    ///
    /// - `is_new`: whether it had no response yet, and no request of it is under way.
    /// - `waits`: its waker, if it can wait for a request; without one, it only gets overdue
    ///   requests.
    pub(super) fn next_for(
        &mut self,
        slot: u32,
        now: u64,
        is_new: bool,
        waits: Option<&Waker>,
    ) -> NextRequest {
        let at = slot as usize;
        match &mut self.slots[at] {
            SlotState::Busy => {}
            SlotState::Waiting(waker) => {
                if let Some(new) = waits {
                    waker.clone_from(new);
                }
                return NextRequest::Wait;
            }
            SlotState::Assigned(permit) => {
                let permit = *permit;
                self.slots[at] = SlotState::Busy;
                return NextRequest::Send(permit);
            }
        }
        let next_for = self.next(slot, now, is_new);
        if let (NextRequest::Wait, Some(waker)) = (next_for, waits) {
            self.slots[at] = SlotState::Waiting(waker.clone());
            self.idle.push_back(slot);
        }
        next_for
    }

    /// Takes the next request, if it is due.
    ///
    /// - `is_new`: see [`Coordinator::next_for`].
    fn next(&mut self, slot: u32, now: u64, is_new: bool) -> NextRequest {
        let Some(times) = self.times else {
            // With a rate, nothing but the first request of each connection is due.
            let is_due = self.ramps_up && (is_new || self.shared.plan.last_rate().is_none());
            return if is_due {
                NextRequest::Send(self.permit_one(None, false))
            } else {
                NextRequest::Wait
            };
        };
        let counted = now >= times.from;
        // An overdue request is not sent after the end: its response would lie outside the window.
        if now >= times.until || (counted && self.budget == 0) {
            return NextRequest::Over;
        }
        let Some(schedule) = &mut self.schedule else {
            if counted && !self.takes_one(slot) {
                return NextRequest::Over;
            }
            return NextRequest::Send(self.permit_one(None, counted));
        };
        match schedule.peek() {
            Some(due) if due.at <= now => {
                schedule.take();
                // It counts by when it was due, not by when it is sent.
                NextRequest::Send(self.permit_one(Some(due), due.at >= times.from))
            }
            // After the last one, the connection is held until the end.
            Some(_) | None => NextRequest::Wait,
        }
    }

    /// Returns whether a slot takes one of a number of requests. All that are left are reserved for
    /// slots that took none yet: each of those takes one, also if it cannot connect.
    fn takes_one(&mut self, slot: u32) -> bool {
        let has_taken = &mut self.has_taken[slot as usize];
        if !std::mem::replace(has_taken, true) {
            self.untaken -= 1;
            return true;
        }
        self.budget > self.untaken
    }

    fn permit_one(&mut self, due: Option<Due>, counted: bool) -> SendPermit {
        if counted && self.budget != u64::MAX {
            self.budget -= 1;
        }
        self.under_way += 1;
        SendPermit { due, counted }
    }

    /// Wakes all idle connections, so that they take requests again.
    pub(super) fn wake_idle(&mut self) {
        for slot in std::mem::take(&mut self.idle) {
            let slot = &mut self.slots[slot as usize];
            if let SlotState::Waiting(waker) = std::mem::take(slot) {
                waker.wake();
            }
        }
    }

    /// Assigns due requests to idle connections. Returns when the next one is due; `None`: none
    /// will be.
    pub(super) fn dispatch_due(&mut self, now: u64) -> Option<u64> {
        if self.times.is_some_and(|times| now >= times.until) {
            return None;
        }
        loop {
            let due_at = self.schedule.as_mut()?.peek()?.at;
            if due_at > now || self.idle.is_empty() {
                return Some(due_at);
            }
            let slot = *self.idle.front()?;
            let NextRequest::Send(permit) = self.next(slot, now, false) else { return None };
            self.idle.pop_front();
            let slot = &mut self.slots[slot as usize];
            if let SlotState::Waiting(waker) = std::mem::replace(slot, SlotState::Assigned(permit))
            {
                waker.wake();
            }
        }
    }

    /// Returns the next request kind of a group.
    pub(super) fn next_kind(&mut self, group: u32) -> u32 {
        let round = &self.shared.script.groups[group as usize].round;
        let cursor = &mut self.cursors[group as usize];
        let kind = round[*cursor % round.len()];
        *cursor = (*cursor + 1) % round.len();
        kind
    }

    /// Returns whether the body of the next response is checked.
    pub(super) fn is_checked(&mut self, kind: u32) -> bool {
        let every = self.shared.plan.check_every;
        if every == 0 {
            return false;
        }
        if self.shared.script.kinds[kind as usize].expected.get().is_none() {
            return true;
        }
        self.until_check -= 1;
        if self.until_check == 0 {
            self.until_check = every;
            return true;
        }
        false
    }

    /// Returns whether nothing is left but to wait for the requests `under_way`.
    pub(super) fn is_over(&self, now: u64) -> bool {
        let Some(times) = self.times else { return false };
        now >= times.until || (now >= times.from && self.budget == 0)
    }

    /// Counts a sent request.
    pub(super) fn record_sent(&mut self, permit: &SendPermit, bytes: usize) {
        if permit.counted {
            self.counts.sent += 1;
            self.counts.bytes_sent += bytes as u64;
        }
    }

    /// Returns whether measuring has begun.
    #[inline]
    pub(super) fn is_measured(&self, now: u64) -> bool {
        self.times.is_some_and(|times| now >= times.from)
    }

    /// Returns whether a moment lies within the measured time.
    #[inline]
    pub(super) fn is_in_window(&self, now: u64) -> bool {
        self.times.is_some_and(|times| times.measures(now))
    }

    /// Notes that a connection had a response.
    pub(super) fn note_served(&mut self, service: &mut ServiceState, now: u64) {
        let first = service.serve(self.is_in_window(now));
        self.counts.served += first.ever;
        self.counts.served_in_window += first.in_window;
        if first.ever > 0 {
            self.served_at = now;
        }
    }

    /// Begins the ramp-up.
    pub(super) fn ramp_up(&mut self) {
        self.ramps_up = self.shared.plan.ramps_up();
        self.wake_idle();
    }

    /// Counts received bytes.
    pub(super) fn record_received(&mut self, bytes: usize, now: u64) {
        if self.is_measured(now) {
            self.counts.bytes_received += bytes as u64;
        }
        if self.is_in_window(now) {
            self.counts.bytes_in_window += bytes as u64;
        }
    }

    /// Counts a message to all that a connection got within the measured time.
    ///
    /// - `sent`: when it was sent, or was due.
    pub(super) fn record_delivery(&mut self, sent: u64, now: u64) {
        if self.is_in_window(now) {
            self.counts.websocket.deliveries += 1;
            self.counts.websocket.delivery.record(now.saturating_sub(sent));
        }
    }

    /// Checks and counts a complete response.
    pub(super) fn record_response(
        &mut self,
        pending: &PendingRequest,
        response: &ReadResponse,
        first: u64,
        now: u64,
    ) {
        let failure = self.check_response(pending.kind, response);
        if failure.is_none() {
            let in_window = self.is_in_window(now);
            let counted = pending.permit.counted;
            self.counts.in_window += u64::from(in_window);
            self.counts.before += u64::from(!counted);
            self.counts.late += u64::from(counted && !in_window);
        }
        if pending.permit.counted {
            self.count_second(now);
            self.counts.responded(response.status);
            let began = pending.began();
            match failure {
                None => {
                    let latency = now.saturating_sub(began);
                    self.counts.succeed(latency);
                    self.counts.first_byte.record(first.saturating_sub(pending.sent));
                    if let Some(service) = &mut self.counts.service {
                        service.record(now.saturating_sub(pending.sent));
                    }
                    self.count_step(pending, Some(latency), now);
                }
                Some(failure) => {
                    self.counts.fail(failure);
                    self.count_step(pending, None, now);
                }
            }
            self.trace(pending, first, now);
        }
        self.finish_request(pending.sent, now);
    }

    /// Counts a failed request.
    pub(super) fn record_failure(
        &mut self,
        pending: &PendingRequest,
        failure: FailureKind,
        now: u64,
    ) {
        if pending.permit.counted {
            self.count_second(now);
            self.counts.fail(failure);
            self.count_step(pending, None, now);
        }
        self.finish_request(pending.sent, now);
    }

    fn finish_request(&mut self, sent: u64, now: u64) {
        if let Some(standstill) = self.standstill_at(now) {
            self.counts.standstills.ended(standstill, sent, self.under_way);
        }
        self.under_way -= 1;
        self.counts.last_end = now;
        if self.under_way == 0 && self.budget == 0 {
            self.wake_thread();
        }
    }

    /// The interval since the last request ended, as far as it was measured.
    #[inline]
    pub(super) fn standstill_at(&self, now: u64) -> Option<standstill::Interval> {
        let times = self.times?;
        Some((self.counts.last_end.max(times.from), now.min(times.until)))
    }

    pub(super) fn wake_thread(&mut self) {
        if let Some(thread_waker) = self.thread_waker.take() {
            thread_waker.wake();
        }
    }

    #[inline]
    fn count_second(&mut self, now: u64) {
        if let Some(times) = self.times {
            self.counts.turn_to(times.elapsed(now));
        }
    }

    fn count_step(&mut self, pending: &PendingRequest, latency: Option<u64>, now: u64) {
        let (Some(due), Some(times)) = (pending.permit.due, self.times) else { return };
        let Some((_, end)) = self.shared.plan.stage_span(due.step) else { return };
        let end = times.from.saturating_add(end);
        let Some(counts) = self.counts.steps.get_mut(usize::from(due.step)) else { return };
        match latency {
            None => counts.errors += 1,
            Some(latency) => {
                counts.right += 1;
                counts.in_time += u64::from(now < end);
                counts.latency.record(latency);
            }
        }
    }

    /// Returns why a response is wrong, if it is. The first successful one sets the expectation.
    fn check_response(&self, kind: u32, response: &ReadResponse) -> Option<FailureKind> {
        if !self.shared.plan.accepts(response.status) {
            return Some(FailureKind::Status);
        }
        let expected = &self.shared.script.kinds[kind as usize].expected;
        let Some(expected) = expected.get() else {
            let (status, length) = (response.status, response.length);
            let hash = response.hash.unwrap_or(0);
            _ = expected.set(super::script::ExpectedResponse { status, length, hash });
            return None;
        };
        // A response with another status has another body.
        if response.status != expected.status && !self.shared.plan.statuses.is_empty() {
            return None;
        }
        if response.length != expected.length {
            return Some(FailureKind::Length);
        }
        let differs = response.hash.is_some_and(|hash| hash != expected.hash);
        differs.then_some(FailureKind::Body)
    }

    fn trace(&mut self, pending: &PendingRequest, first: u64, now: u64) {
        if let Some(trace) = &mut self.counts.trace {
            let began = pending.sent.saturating_sub(pending.connect);
            trace.note(TraceEntry {
                start_us: self.shared.unix_us(began),
                connect_us: micros(pending.connect),
                total_us: micros(now.saturating_sub(began)),
                wait_us: micros(first.saturating_sub(pending.sent)),
            });
        }
    }
}

#[cfg(test)]
mod tests;
