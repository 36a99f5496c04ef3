//! The time series of a run by seconds, merged from those of its threads as they arrive.
#![expect(clippy::cast_precision_loss, reason = "what a run counts stays far below 2^53")]

use std::collections::BTreeMap;
use std::time::Duration;

use super::counts::{LatencyHistogram, ThreadSecond};
use super::shared::LoadShared;
use super::{LoadPhase, LoadProgress};
use crate::outcome::{OutcomeSecond, is_told};

/// Seconds by which a thread may lag before they are closed without it.
const OPEN_SECONDS_MAX: usize = 5;

/// The seconds so far, and their sum.
#[derive(Debug, Default)]
pub(super) struct TimeSeries {
    /// Seconds to which a thread may still add.
    open: BTreeMap<u64, ThreadSecond>,
    closed: Vec<OutcomeSecond>,
    pub(super) latency: LatencyHistogram,
}

impl TimeSeries {
    /// Collects what the threads have published.
    pub(super) fn collect(&mut self, shared: &LoadShared) {
        for thread in 0..shared.published.len() {
            for part in shared.show(thread, |shown| std::mem::take(&mut shown.parts)) {
                self.latency.add(&part.latency);
                let second = self.open.entry(part.second).or_default();
                second.second = part.second;
                second.right += part.right;
                second.errors += part.errors;
                second.connections += part.connections;
                second.latency.add(&part.latency);
            }
        }
        while self.open.len() > OPEN_SECONDS_MAX {
            self.close_first(None);
        }
    }

    fn close_first(&mut self, ends: Option<(f64, f64)>) {
        if let Some((_, part)) = self.open.pop_first() {
            self.closed.push(second(&part, ends));
        }
    }

    /// Returns all seconds. The last measured one ends with the run; those behind it hold what
    /// arrived after the end.
    ///
    /// - `ended_s`: the end of measuring; `last_s`: that of the last request.
    pub(super) fn finish(
        mut self,
        ended_s: f64,
        last_s: f64,
    ) -> (LatencyHistogram, Vec<OutcomeSecond>) {
        while !self.open.is_empty() {
            self.close_first(Some((ended_s, last_s)));
        }
        // Threads with nothing left to wait for do not publish their connections again.
        let measured = self.closed.iter().filter(|second| second.at_s <= ended_s);
        let connections = measured.map(|second| second.connections).next_back();
        for after in self.closed.iter_mut().filter(|second| second.at_s > ended_s) {
            after.connections = connections.unwrap_or(after.connections);
        }
        // An empty moment after the last second is left out.
        while self.closed.last().is_some_and(|last| last.requests == 0 && last.errors == 0)
            && self.closed.len() > 1
        {
            let last = &self.closed[self.closed.len() - 2];
            if last.at_s < ended_s - 1e-3 {
                break;
            }
            self.closed.pop();
        }
        (self.latency, self.closed)
    }

    /// Returns the progress of the run.
    pub(super) fn progress(&self, shared: &LoadShared, since_start: Duration) -> LoadProgress {
        let mut progress = LoadProgress {
            elapsed: since_start,
            of: shared.plan.end.after,
            asked: shared.plan.end.requests,
            ..LoadProgress::default()
        };
        let (mut measuring, mut ending) = (false, true);
        for thread in 0..shared.published.len() {
            shared.show(thread, |shown| {
                progress.requests += shown.right;
                progress.errors += shown.errors;
                progress.connections += shown.standing;
                measuring |= shown.measuring;
                ending &= shown.ending;
            });
        }
        if let Some(times) = shared.times() {
            progress.phase = match (measuring, ending) {
                (_, true) => LoadPhase::Ending,
                (true, _) => LoadPhase::Measuring,
                _ => LoadPhase::Warming,
            };
            if times.until < u64::MAX {
                progress.of = Some(Duration::from_nanos(times.until.saturating_sub(times.from)));
            }
            if measuring {
                let elapsed = shared.now().saturating_sub(times.from);
                progress.elapsed = Duration::from_nanos(elapsed);
            }
        }
        if let Some(last) = self.last_whole() {
            progress.requests_per_s = last.requests as f64;
            (progress.p50_us, progress.p99_us) = (last.p50_us, last.p99_us);
        }
        progress
    }

    /// The last second to which every thread has added.
    fn last_whole(&self) -> Option<OutcomeSecond> {
        let open = self.open.values().next_back().map(|part| second(part, None));
        open.or_else(|| self.closed.last().cloned())
    }
}

/// - `ends`: the end of measuring, and that of the last request.
fn second(part: &ThreadSecond, ends: Option<(f64, f64)>) -> OutcomeSecond {
    let histogram = &part.latency.0;
    let at = |percentile: f64| {
        let us = histogram.value_at_percentile(percentile) as f64;
        if is_told(histogram.len(), percentile) { us } else { 0.0 }
    };
    let (began, latency) = (part.second as f64, (part.second + 1) as f64);
    let end = |(ended_s, last_s): (f64, f64)| if began < ended_s { ended_s } else { last_s };
    OutcomeSecond {
        at_s: ends.map_or(latency, |ends| latency.min(end(ends))),
        requests: part.right,
        errors: part.errors,
        connections: part.connections,
        p50_us: at(50.0),
        p99_us: at(99.0),
        max_us: histogram.max() as f64,
    }
}
