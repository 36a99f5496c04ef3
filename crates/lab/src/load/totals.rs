//! The counters of all threads of a run, added up.

use std::collections::BTreeMap;

use super::counts::{LatencyHistogram, StepCounts, WebSocketCounts};
use super::standstill::{self, Standstill};
use super::thread::{ConnectPhase, ThreadResult};
use super::trace;
use crate::outcome::Errors;

/// The counters of all threads.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) right: u64,
    pub(super) in_window: u64,
    pub(super) before: u64,
    pub(super) late: u64,
    /// Counted requests that have ended, successfully or not.
    pub(super) done: u64,
    pub(super) sent: u64,
    pub(super) errors: Errors,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) bytes_received: u64,
    pub(super) bytes_in_window: u64,
    pub(super) bytes_sent: u64,
    pub(super) opened: u64,
    pub(super) ready: u64,
    pub(super) unmade: u64,
    pub(super) strays: u64,
    pub(super) held: u64,
    pub(super) lost: u64,
    pub(super) websocket: WebSocketCounts,
    pub(super) service: Option<LatencyHistogram>,
    pub(super) connect: LatencyHistogram,
    pub(super) first_byte: LatencyHistogram,
    pub(super) steps: Vec<StepCounts>,
    pub(super) entries: Vec<trace::TraceEntry>,
    pub(super) cut: u64,
    pub(super) unsent: u64,
    pub(super) unanswered: u64,
    pub(super) opening: ConnectPhase,
    pub(super) last_end: u64,
    /// Intervals in which nothing ended on any thread; `None` before the first thread.
    pub(super) standstills: Option<Vec<Standstill>>,
    pub(super) requesting: u64,
    pub(super) served: u64,
    pub(super) served_in_window: u64,
    pub(super) held_to_end: u64,
    pub(super) ended: u64,
    pub(super) gave_up: bool,
}

impl Totals {
    /// Adds a thread's result.
    pub(super) fn with(mut self, result: ThreadResult) -> Self {
        let counts = result.counts;
        self.right += counts.right;
        self.in_window += counts.in_window;
        self.before += counts.before;
        self.late += counts.late;
        self.done += counts.right + counts.errors.total();
        self.sent += counts.sent;
        self.errors.add(&counts.errors);
        self.errors.add(&counts.held_errors);
        for (status, count) in counts.statuses() {
            *self.statuses.entry(status).or_default() += count;
        }
        self.bytes_received += counts.bytes_received;
        self.bytes_in_window += counts.bytes_in_window;
        self.bytes_sent += counts.bytes_sent;
        self.opened += counts.opened;
        self.ready += counts.ready;
        self.unmade += counts.unmade;
        self.strays += counts.strays;
        self.held += counts.held_most;
        self.lost += counts.lost;
        self.websocket.add(&counts.websocket);
        if let Some(service) = &counts.service {
            self.service.get_or_insert_default().add(service);
        }
        self.connect.add(&counts.connect);
        self.first_byte.add(&counts.first_byte);
        self.steps.resize_with(counts.steps.len().max(self.steps.len()), StepCounts::default);
        for (step, more) in self.steps.iter_mut().zip(&counts.steps) {
            step.right += more.right;
            step.in_time += more.in_time;
            step.errors += more.errors;
            step.latency.add(&more.latency);
        }
        if let Some(trace) = counts.trace {
            self.entries.extend(trace.entries);
            self.cut += trace.cut;
        }
        self.unsent += result.unsent;
        self.unanswered += result.unanswered;
        self.opening.took = self.opening.took.max(result.opening.took);
        self.opening.missing += result.opening.missing;
        self.last_end = self.last_end.max(counts.last_end);
        if result.asks {
            self.standstills = Some(match self.standstills {
                None => counts.standstills.noted,
                Some(known) => standstill::common(&known, &counts.standstills.noted),
            });
        }
        self.requesting += counts.requesting;
        self.served += counts.served;
        self.served_in_window += counts.served_in_window;
        self.held_to_end += counts.held_to_end.unwrap_or(0);
        self.ended = self.ended.max(result.end);
        self.gave_up |= result.gave_up;
        self
    }
}
