//! What all threads of a run have counted, in one.

use std::collections::BTreeMap;

use super::standstill::{self, Standstill};
use super::tally::{LatencyHistogram, StepCounts};
use super::thread::{ConnectPhase, ThreadResult};
use super::trace;
use crate::outcome::Errors;

/// All counts of all threads.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) right: u64,
    pub(super) in_window: u64,
    /// Requests that were counted and have ended, well or not.
    pub(super) done: u64,
    pub(super) sent: u64,
    pub(super) errors: Errors,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) bytes_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) opened: u64,
    pub(super) unmade: u64,
    pub(super) strays: u64,
    pub(super) held: u64,
    pub(super) lost: u64,
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
    /// Times in which nothing ended on any thread; none before the first thread.
    pub(super) stills: Option<Vec<Standstill>>,
    pub(super) asking: u64,
    pub(super) served: u64,
    pub(super) ended: u64,
    pub(super) gave_up: bool,
}

impl Totals {
    /// Adds what a thread has brought home.
    pub(super) fn with(mut self, haul: ThreadResult) -> Self {
        let tally = haul.tally;
        self.right += tally.right;
        self.in_window += tally.in_window;
        self.done += tally.right + tally.errors.total();
        self.sent += tally.sent;
        self.errors.add(&tally.errors);
        self.errors.add(&tally.held_errors);
        for (status, count) in tally.statuses() {
            *self.statuses.entry(status).or_default() += count;
        }
        self.bytes_received += tally.bytes_received;
        self.bytes_sent += tally.bytes_sent;
        self.opened += tally.opened;
        self.unmade += tally.unmade;
        self.strays += tally.strays;
        self.held += tally.held_most;
        self.lost += tally.lost;
        if let Some(service) = &tally.service {
            self.service.get_or_insert_default().add(service);
        }
        self.connect.add(&tally.connect);
        self.first_byte.add(&tally.first_byte);
        self.steps.resize_with(tally.steps.len().max(self.steps.len()), StepCounts::default);
        for (step, more) in self.steps.iter_mut().zip(&tally.steps) {
            step.right += more.right;
            step.in_time += more.in_time;
            step.errors += more.errors;
            step.latency.add(&more.latency);
        }
        if let Some(trace) = tally.trace {
            self.entries.extend(trace.entries);
            self.cut += trace.cut;
        }
        self.unsent += haul.unsent;
        self.unanswered += haul.unanswered;
        self.opening.took = self.opening.took.max(haul.opening.took);
        self.opening.missing += haul.opening.missing;
        self.last_end = self.last_end.max(tally.last_end);
        if haul.asks {
            self.stills = Some(match self.stills {
                None => tally.stills.noted,
                Some(known) => standstill::common(&known, &tally.stills.noted),
            });
        }
        self.asking += tally.asking;
        self.served += tally.served;
        self.ended = self.ended.max(haul.ended);
        self.gave_up |= haul.gave_up;
        self
    }
}
