//! Graceful shutdown, blocking or in steps.

use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{DrainReport, Phase, Workers};

use super::Running;

/// Interval between two checks whether all connections have ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A drain in progress, for a thread that has other work meanwhile: see [`Running::begin_drain`].
#[derive(Debug)]
#[must_use = "it goes on only while `step` is called"]
pub struct Drain {
    began: Instant,
    deadline: Duration,
    /// Number of connections that were cut, and when.
    cut: Option<(usize, Instant)>,
    report: Option<DrainReport>,
}

impl Running {
    /// Ends the server in order, and returns when it has ended: accepts no more connections, closes
    /// idle ones at once and the others after their response, and cuts the rest at the `deadline`.
    ///
    /// A thread that drives a worker must not call this: its worker could not respond meanwhile,
    /// and all its connections would be cut. Use [`Running::begin_drain`] there.
    pub fn drain(&self, deadline: Duration) -> DrainReport {
        let mut drain = self.begin_drain(deadline);
        loop {
            if let Some(report) = drain.step(self) {
                return report;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Says that the server is to be started again at once after its end, or that another process
    /// takes its place: a drain then closes `WebSocket`s with 1012 in place of 1001, so that
    /// clients come back. Call it before the drain.
    pub fn announce_restart(&self) {
        self.shared.announce_restart();
    }

    /// Begins a [drain](Running::drain) without waiting. Continue to turn the worker, and call
    /// [`Drain::step`] after each turn, or every few milliseconds, until it returns a report.
    pub fn begin_drain(&self, deadline: Duration) -> Drain {
        self.current.drain();
        self.workers.advance(Phase::Draining);
        Drain { began: Instant::now(), deadline, cut: None, report: None }
    }
}

impl Drain {
    /// Advances the drain: cuts connections at the deadline, and stops the server once none is
    /// left. Returns the report once the server has ended.
    ///
    /// It waits only for other workers' threads, in its last step: at most a second, and only for
    /// handlers that hold them.
    pub fn step(&mut self, running: &Running) -> Option<DrainReport> {
        if self.report.is_some() {
            return self.report;
        }
        let (open, is_quiet) = (running.workers.connections_open(), running.workers.is_quiet());
        let (cut, is_over) = match self.cut {
            None if is_quiet => (0, true),
            None if self.began.elapsed() >= self.deadline => {
                self.cut = Some((open, Instant::now()));
                running.workers.advance(Phase::Cutting);
                return None;
            }
            None => return None,
            Some((cut, at)) => (cut, is_quiet || at.elapsed() >= Workers::STOP_WITHIN),
        };
        if !is_over {
            return None;
        }
        running.workers.advance(Phase::Cutting);
        running.end();
        self.report = Some(DrainReport { cut, took: self.began.elapsed() });
        self.report
    }
}
