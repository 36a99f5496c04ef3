//! Counters of one thread. Nothing is shared while the load runs.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::standstill::Standstills;
use super::trace::Trace;
use crate::outcome::Errors;

/// Longest latency that the histogram separates from longer ones: an hour, in microseconds.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    Refused,
    Unconnected,
    NoPort,
    Handshake,
    Reset,
    TimedOut,
    Short,
    Status,
    Length,
    Body,
    Unreadable,
}

/// Whether a connection sent a request, or had to, and whether it had a response, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServiceState {
    NotAsked,
    Asked,
    /// It had a response before measuring, or after it.
    Served,
    /// It had a response within the measured time.
    ServedInWindow,
}

/// Whether a connection was ever open, and whether the server holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenState {
    Unopened,
    /// It is open, or the server closed it after a whole response and did not refuse it since.
    Held,
    /// It broke, or could not be opened again.
    Lost,
}

/// What a response is to its connection: 1 for the first one at all, 1 for the first one within the
/// measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstService {
    pub(super) ever: u64,
    pub(super) in_window: u64,
}

impl ServiceState {
    /// Notes a request. Returns 1 if it is the first one.
    pub(super) fn ask(&mut self) -> u64 {
        let first = *self == Self::NotAsked;
        if first {
            *self = Self::Asked;
        }
        u64::from(first)
    }

    /// Notes a response.
    pub(super) fn serve(&mut self, in_window: bool) -> FirstService {
        let before = *self;
        let now = if in_window { Self::ServedInWindow } else { Self::Served };
        *self = before.max(now);
        FirstService {
            ever: u64::from(before < Self::Served),
            in_window: u64::from(in_window && before < Self::ServedInWindow),
        }
    }

    /// Returns whether it ever had a response.
    pub(super) fn is_served(self) -> bool {
        self >= Self::Served
    }
}

impl Errors {
    pub(super) fn count(&mut self, failure: FailureKind) {
        *match failure {
            FailureKind::Refused => &mut self.refused,
            FailureKind::Unconnected => &mut self.unconnected,
            FailureKind::NoPort => &mut self.no_port,
            FailureKind::Handshake => &mut self.handshake,
            FailureKind::Reset => &mut self.reset,
            FailureKind::TimedOut => &mut self.timed_out,
            FailureKind::Short => &mut self.short,
            FailureKind::Status => &mut self.status,
            FailureKind::Length => &mut self.length,
            FailureKind::Body => &mut self.body,
            FailureKind::Unreadable => &mut self.unreadable,
        } += 1;
    }
}

/// A histogram of times in microseconds, with three significant digits.
#[derive(Clone, Debug)]
pub(crate) struct LatencyHistogram(pub(crate) Histogram<u64>);

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are allowed"))
    }
}

impl LatencyHistogram {
    /// Records a time in nanoseconds.
    pub(super) fn record(&mut self, nanos: u64) {
        self.record_times(nanos, 1);
    }

    fn record_times(&mut self, nanos: u64, count: u64) {
        let micros = ((nanos + 500) / 1000).min(LATENCY_US_MAX);
        // The histogram resizes itself for any value.
        _ = self.0.record_n(micros, count);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("it resizes itself for any value");
    }
}

/// Counters of one second of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadSecond {
    /// Seconds since measuring began.
    pub(super) second: u64,
    pub(super) right: u64,
    pub(super) errors: u64,
    pub(super) connections: u64,
    pub(super) latency: LatencyHistogram,
}

/// Counters of one step of a ramp on one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct StepCounts {
    pub(super) right: u64,
    /// Successful responses that arrived before the step's end.
    pub(super) in_time: u64,
    pub(super) errors: u64,
    pub(super) latency: LatencyHistogram,
}

/// Counters of `WebSocket`s.
#[derive(Clone, Debug, Default)]
pub(super) struct WebSocketCounts {
    /// Handshakes that the server has accepted, and others.
    pub(super) opened: u64,
    pub(super) refused: u64,
    /// Those that the server has ended.
    pub(super) closed: u64,
    /// Messages to all that a connection got while measuring, and how long after their sending.
    pub(super) deliveries: u64,
    pub(super) delivery: LatencyHistogram,
}

impl WebSocketCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.opened += other.opened;
        self.refused += other.refused;
        self.closed += other.closed;
        self.deliveries += other.deliveries;
        self.delivery.add(&other.delivery);
    }
}

/// All counters of one thread while it measures.
#[derive(Debug)]
pub(super) struct ThreadCounts {
    pub(super) right: u64,
    /// Successful responses that arrived while measuring, to requests of the warm-up too.
    pub(super) in_window: u64,
    /// Successful responses to requests of the ramp-up and the warm-up.
    pub(super) before: u64,
    /// Successful responses to counted requests that arrived after the end.
    pub(super) late: u64,
    pub(super) sent: u64,
    pub(super) errors: Errors,
    statuses: Vec<u64>,
    pub(super) bytes_received: u64,
    /// Those of them that arrived before the end.
    pub(super) bytes_in_window: u64,
    pub(super) bytes_sent: u64,
    pub(super) opened: u64,
    /// Connections with requests that were opened, each counted once.
    pub(super) ready: u64,
    /// Connections that failed while no request was due on them.
    pub(super) unmade: u64,
    /// Connections that received more than they requested.
    pub(super) strays: u64,
    /// Open connections.
    pub(super) standing: u64,
    pub(super) held: u64,
    pub(super) held_most: u64,
    pub(super) lost: u64,
    /// Causes of failed idle connections.
    pub(super) held_errors: Errors,
    pub(super) websocket: WebSocketCounts,
    pub(super) service: Option<LatencyHistogram>,
    pub(super) connect: LatencyHistogram,
    pub(super) first_byte: LatencyHistogram,
    pub(super) steps: Vec<StepCounts>,
    pub(super) trace: Option<Trace>,
    /// When the last request ended, successfully or not; 0 before any.
    pub(super) last_end: u64,
    /// Intervals in which no request ended, in order.
    pub(super) standstills: Standstills,
    /// Connections that sent requests, or had to, those with any response, and those with one
    /// within the measured time.
    pub(super) requesting: u64,
    pub(super) served: u64,
    pub(super) served_in_window: u64,
    /// Connections with requests that the server holds, and their number when measuring ended.
    holding: u64,
    pub(super) held_to_end: Option<u64>,
    part: ThreadSecond,
    finished: Vec<ThreadSecond>,
}

impl ThreadCounts {
    pub(super) fn new(has_service: bool, steps: usize, trace: Option<Trace>) -> Self {
        Self {
            right: 0,
            in_window: 0,
            before: 0,
            late: 0,
            sent: 0,
            errors: Errors::default(),
            statuses: vec![0; 1000],
            bytes_received: 0,
            bytes_in_window: 0,
            bytes_sent: 0,
            opened: 0,
            ready: 0,
            unmade: 0,
            strays: 0,
            standing: 0,
            held: 0,
            held_most: 0,
            lost: 0,
            held_errors: Errors::default(),
            websocket: WebSocketCounts::default(),
            service: has_service.then(LatencyHistogram::default),
            connect: LatencyHistogram::default(),
            first_byte: LatencyHistogram::default(),
            steps: vec![StepCounts::default(); steps],
            trace,
            last_end: 0,
            standstills: Standstills::default(),
            requesting: 0,
            served: 0,
            served_in_window: 0,
            holding: 0,
            held_to_end: None,
            part: ThreadSecond::default(),
            finished: Vec::new(),
        }
    }

    /// Begins another second if it is time.
    ///
    /// - `elapsed`: nanoseconds since measuring began.
    #[inline]
    pub(super) fn turn_to(&mut self, elapsed: u64) {
        if elapsed / 1_000_000_000 != self.part.second {
            self.begin(elapsed / 1_000_000_000);
        }
    }

    #[cold]
    fn begin(&mut self, second: u64) {
        // Time does not go back; a moment from before the turn counts in the current second.
        if second > self.part.second {
            let next = ThreadSecond { second, ..ThreadSecond::default() };
            let mut done = std::mem::replace(&mut self.part, next);
            done.connections = self.standing;
            self.finished.push(done);
        }
    }

    /// Takes the seconds that are over.
    pub(super) fn take_finished(&mut self) -> Vec<ThreadSecond> {
        std::mem::take(&mut self.finished)
    }

    /// Takes the current second.
    pub(super) fn take_last(&mut self) -> ThreadSecond {
        let mut last = std::mem::take(&mut self.part);
        last.connections = self.standing;
        last
    }

    /// Notes an established connection.
    pub(super) fn note_open(&mut self, state: &mut OpenState) {
        let before = std::mem::replace(state, OpenState::Held);
        self.opened += 1;
        self.standing += 1;
        self.ready += u64::from(before == OpenState::Unopened);
        self.holding += u64::from(before != OpenState::Held);
    }

    /// Notes a connection that broke, or could not be opened.
    pub(super) fn note_lost(&mut self, state: &mut OpenState) {
        if *state == OpenState::Held {
            *state = OpenState::Lost;
            self.holding -= 1;
        }
    }

    /// Notes the connections that are held when measuring ends. Later calls change nothing.
    pub(super) fn note_end(&mut self) {
        self.held_to_end.get_or_insert(self.holding);
    }

    pub(super) fn responded(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Records a successful response with its latency by the model.
    pub(super) fn succeed(&mut self, latency: u64) {
        self.right += 1;
        self.part.right += 1;
        self.part.latency.record(latency);
    }

    /// Records the latency of requests without a response: the time that they have waited.
    pub(super) fn record_missing(&mut self, waited: u64, count: u64) {
        self.part.latency.record_times(waited, count);
    }

    pub(super) fn fail(&mut self, failure: FailureKind) {
        self.errors.count(failure);
        self.part.errors += 1;
    }

    pub(super) fn statuses(&self) -> BTreeMap<u16, u64> {
        let seen = (0..).zip(&self.statuses).filter(|(_, count)| **count > 0);
        seen.map(|(status, count)| (status, *count)).collect()
    }
}
