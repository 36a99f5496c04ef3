//! What the connections of one thread have in common: what is asked next, and what was found.
//!
//! Each thread has one desk, and its tasks go there between two waits. So nothing is locked, and
//! nothing is shared with other threads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use super::flight::{PendingRequest, SendPermit};
use super::pace::{Due, RequestSchedule};
use super::reader::{KnownHead, ReadResponse};
use super::shared::{LoadShared, MeasureWindow};
use super::standstill;
use super::tally::{FailureKind, ThreadCounts};
use super::trace::{TraceEntry, micros};
use crate::plan::LoadModel;

thread_local! {
    static COORDINATOR: RefCell<Option<Box<Coordinator>>> = const { RefCell::new(None) };
}

/// Where a thread's connections meet.
pub(super) struct Coordinator {
    pub(super) shared: Arc<LoadShared>,
    /// Requests that may still be sent.
    pub(super) budget: u64,
    /// When measuring begins and ends; known once the load goes.
    pub(super) times: Option<MeasureWindow>,
    pub(super) schedule: Option<RequestSchedule>,
    pub(super) places: Vec<Waiter>,
    /// Places that wait for something to ask, who waits longest first.
    pub(super) idle: VecDeque<u32>,
    pub(super) known: Vec<KnownHead>,
    /// Where in its round each group is.
    pub(super) cursors: Vec<usize>,
    /// Answers until the next one that is looked at whole.
    until_check: u32,
    /// Requests that were handed out and have not ended.
    pub(super) under_way: u64,
    /// Connections that are being opened for the first time.
    pub(super) opening: u32,
    /// When a connection was last made; before that, when the thread began.
    pub(super) opened_at: u64,
    /// Attempts that have failed since a connection was made.
    pub(super) failures_in_line: u64,
    /// Woken when something has ended that the thread itself waits for.
    pub(super) watcher: Option<Waker>,
    pub(super) tally: ThreadCounts,
}

/// What a place has to do.
#[derive(Debug, Default)]
pub(super) enum Waiter {
    /// It asks by itself when it can.
    #[default]
    Busy,
    /// It waits to be handed something.
    Waiting(Waker),
    /// It was handed something.
    Handed(SendPermit),
}

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NextRequest {
    Ask(SendPermit),
    Wait,
    /// Nothing will be asked any more.
    Over,
}

/// Makes a desk that of the running thread.
pub(super) fn enter(desk: Coordinator) {
    COORDINATOR.set(Some(Box::new(desk)));
}

/// Takes the running thread's desk away.
pub(super) fn leave() -> Option<Coordinator> {
    COORDINATOR.take().map(|desk| *desk)
}

/// Goes to the desk of the running thread.
pub(super) fn with<T>(f: impl FnOnce(&mut Coordinator) -> T) -> T {
    try_with(f).expect("the thread has a desk for as long as its tasks run")
}

/// The same where the thread may be ending.
pub(super) fn try_with<T>(f: impl FnOnce(&mut Coordinator) -> T) -> Option<T> {
    COORDINATOR.with_borrow_mut(|desk| desk.as_deref_mut().map(f))
}

impl Coordinator {
    pub(super) fn new(shared: Arc<LoadShared>, thread: u32) -> Self {
        let tally = shared.tally(thread);
        let script = &shared.script;
        Self {
            budget: shared.budget_of(thread),
            times: None,
            schedule: None,
            places: Vec::new(),
            idle: VecDeque::new(),
            known: script.lines.iter().map(|_| KnownHead::default()).collect(),
            cursors: vec![thread as usize; script.groups.len()],
            until_check: 1,
            under_way: 0,
            opening: 0,
            opened_at: shared.now(),
            failures_in_line: 0,
            watcher: None,
            tally,
            shared,
        }
    }

    /// What the connection at a place is to do now.
    ///
    /// - `waits`: whether it can wait to be handed something; else it is only told what is overdue.
    pub(super) fn turn(&mut self, place: u32, now: u64, waits: Option<&Waker>) -> NextRequest {
        let at = place as usize;
        match &mut self.places[at] {
            Waiter::Busy => {}
            Waiter::Waiting(waker) => {
                if let Some(new) = waits {
                    waker.clone_from(new);
                }
                return NextRequest::Wait;
            }
            Waiter::Handed(ticket) => {
                let ticket = *ticket;
                self.places[at] = Waiter::Busy;
                return NextRequest::Ask(ticket);
            }
        }
        let turn = self.next(now);
        if let (NextRequest::Wait, Some(waker)) = (turn, waits) {
            self.places[at] = Waiter::Waiting(waker.clone());
            self.idle.push_back(place);
        }
        turn
    }

    /// Takes the next request, if it is time for one.
    pub(super) fn next(&mut self, now: u64) -> NextRequest {
        let Some(times) = self.times else { return NextRequest::Wait };
        let counted = now >= times.from;
        // What is overdue at the end is not sent after it: no window would hold its answer.
        if now >= times.until || (counted && self.budget == 0) {
            return NextRequest::Over;
        }
        let Some(schedule) = &mut self.schedule else {
            return NextRequest::Ask(self.hand_out(None, counted));
        };
        match schedule.peek() {
            None => NextRequest::Over,
            Some(due) if due.at > now => NextRequest::Wait,
            Some(due) => {
                schedule.take();
                // By when it was due, not by when it is sent.
                NextRequest::Ask(self.hand_out(Some(due), due.at >= times.from))
            }
        }
    }

    fn hand_out(&mut self, due: Option<Due>, counted: bool) -> SendPermit {
        if counted && self.budget != u64::MAX {
            self.budget -= 1;
        }
        self.under_way += 1;
        SendPermit { due, counted }
    }

    /// Wakes all that wait, so that they ask again.
    pub(super) fn rouse(&mut self) {
        for place in std::mem::take(&mut self.idle) {
            let place = &mut self.places[place as usize];
            if let Waiter::Waiting(waker) = std::mem::take(place) {
                waker.wake();
            }
        }
    }

    /// Hands what is due to those that wait for it. Returns when to come again; `None`: nothing
    /// will be due any more.
    pub(super) fn hand_due(&mut self, now: u64) -> Option<u64> {
        if self.times.is_some_and(|times| now >= times.until) {
            return None;
        }
        loop {
            let due_at = self.schedule.as_mut()?.peek()?.at;
            if due_at > now || self.idle.is_empty() {
                return Some(due_at);
            }
            let NextRequest::Ask(ticket) = self.next(now) else { return None };
            let place = self.idle.pop_front()?;
            let place = &mut self.places[place as usize];
            if let Waiter::Waiting(waker) = std::mem::replace(place, Waiter::Handed(ticket)) {
                waker.wake();
            }
        }
    }

    /// The next line of a group.
    pub(super) fn line_of(&mut self, group: u32) -> u32 {
        let round = &self.shared.script.groups[group as usize].round;
        let cursor = &mut self.cursors[group as usize];
        let line = round[*cursor % round.len()];
        *cursor = (*cursor + 1) % round.len();
        line
    }

    /// Whether the answer to the next request is looked at whole.
    pub(super) fn is_checked(&mut self, line: u32) -> bool {
        let every = self.shared.plan.check_every;
        if every == 0 {
            return false;
        }
        if self.shared.script.lines[line as usize].expected.get().is_none() {
            return true;
        }
        self.until_check -= 1;
        if self.until_check == 0 {
            self.until_check = every;
            return true;
        }
        false
    }

    /// Whether nothing is left to do but to wait for `under_way` to end.
    pub(super) fn is_over(&mut self, now: u64) -> bool {
        let Some(times) = self.times else { return false };
        let spent = now >= times.from && self.budget == 0;
        spent
            || now >= times.until
            || self.schedule.as_mut().is_some_and(|all| all.peek().is_none())
    }

    /// A request has been sent.
    pub(super) fn note_sent(&mut self, ticket: &SendPermit, bytes: usize) {
        if ticket.counted {
            self.tally.sent += 1;
            self.tally.bytes_sent += bytes as u64;
        }
    }

    /// Whether a moment is measured.
    #[inline]
    pub(super) fn is_measured(&self, now: u64) -> bool {
        self.times.is_some_and(|times| now >= times.from)
    }

    /// An answer is whole. Judges it, and counts it.
    pub(super) fn note_answer(
        &mut self,
        flight: &PendingRequest,
        answer: &ReadResponse,
        first: u64,
        now: u64,
    ) {
        let failure = self.judge(flight.line, answer);
        if failure.is_none() && self.times.is_some_and(|times| times.measures(now)) {
            self.tally.in_window += 1;
        }
        if flight.ticket.counted {
            self.count_second(now);
            self.tally.answered(answer.status);
            let began = flight.began();
            match failure {
                None => {
                    let latency = now.saturating_sub(began);
                    self.tally.succeed(latency);
                    self.tally.first_byte.record(first.saturating_sub(flight.sent));
                    if let Some(service) = &mut self.tally.service {
                        service.record(now.saturating_sub(flight.sent));
                    }
                    self.count_step(flight, Some(latency), now);
                }
                Some(failure) => {
                    self.tally.fail(failure);
                    self.count_step(flight, None, now);
                }
            }
            self.trace(flight, first, now);
        }
        self.end_one(flight.sent, now);
    }

    /// A request has come to nothing.
    pub(super) fn note_failure(&mut self, flight: &PendingRequest, failure: FailureKind, now: u64) {
        if flight.ticket.counted {
            self.count_second(now);
            self.tally.fail(failure);
            self.count_step(flight, None, now);
        }
        self.end_one(flight.sent, now);
    }

    fn end_one(&mut self, sent: u64, now: u64) {
        if let Some(still) = self.still_at(now) {
            self.tally.stills.ended(still, sent, self.under_way);
        }
        self.under_way -= 1;
        self.tally.last_end = now;
        if self.under_way == 0 && self.budget == 0 {
            self.tell_watcher();
        }
    }

    /// The time since the last request ended, as far as it was measured.
    #[inline]
    pub(super) fn still_at(&self, now: u64) -> Option<standstill::Interval> {
        let times = self.times?;
        Some((self.tally.last_end.max(times.from), now.min(times.until)))
    }

    pub(super) fn tell_watcher(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.wake();
        }
    }

    #[inline]
    fn count_second(&mut self, now: u64) {
        if let Some(times) = self.times {
            self.tally.turn_to(times.elapsed(now));
        }
    }

    fn count_step(&mut self, flight: &PendingRequest, latency: Option<u64>, now: u64) {
        let LoadModel::Ramp { step, .. } = self.shared.plan.load else { return };
        let (Some(due), Some(times)) = (flight.ticket.due, self.times) else { return };
        let end = times.from + super::pace::nanos(step) * (u64::from(due.step) + 1);
        let Some(tally) = self.tally.steps.get_mut(usize::from(due.step)) else { return };
        match latency {
            None => tally.errors += 1,
            Some(latency) => {
                tally.right += 1;
                tally.in_time += u64::from(now < end);
                tally.latency.record(latency);
            }
        }
    }

    /// Whether an answer is what it should be. The first right one says what that is.
    fn judge(&self, line: u32, answer: &ReadResponse) -> Option<FailureKind> {
        if !self.shared.plan.accepts(answer.status) {
            return Some(FailureKind::Status);
        }
        let expected = &self.shared.script.lines[line as usize].expected;
        let Some(expected) = expected.get() else {
            let (status, length) = (answer.status, answer.length);
            let hash = answer.hash.unwrap_or(0);
            _ = expected.set(super::script::ExpectedResponse { status, length, hash });
            return None;
        };
        // An answer of another status has a body of its own.
        if answer.status != expected.status && !self.shared.plan.statuses.is_empty() {
            return None;
        }
        if answer.length != expected.length {
            return Some(FailureKind::Length);
        }
        let differs = answer.hash.is_some_and(|hash| hash != expected.hash);
        differs.then_some(FailureKind::Body)
    }

    fn trace(&mut self, flight: &PendingRequest, first: u64, now: u64) {
        if let Some(trace) = &mut self.tally.trace {
            let began = flight.sent.saturating_sub(flight.connect);
            trace.note(TraceEntry {
                start_us: self.shared.unix_us(began),
                connect_us: micros(flight.connect),
                total_us: micros(now.saturating_sub(began)),
                wait_us: micros(first.saturating_sub(flight.sent)),
            });
        }
    }
}
