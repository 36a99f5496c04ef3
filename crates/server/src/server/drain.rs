//! Ending a server in order, in steps or at a stretch.

use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{DrainReport, Phase, Workers};

use super::Running;

/// How often it is looked whether all connections have ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A server that ends in order, as a thread sees it that has other things to do meanwhile: see
/// [`Running::begin_drain`].
#[derive(Debug)]
#[must_use = "it is over when `step` says so"]
pub struct Drain {
    began: Instant,
    deadline: Duration,
    /// How many connections were cut, and when, once that was done.
    cut: Option<(usize, Instant)>,
    report: Option<DrainReport>,
}

impl Running {
    /// Ends the server in order, and returns when it has ended: accepts no more, closes idle
    /// connections at once and the others after their answer, cuts what is left at the `deadline`.
    ///
    /// A thread that drives a worker must not call it: nothing would be answered meanwhile, and all
    /// connections of that worker would be cut. It has [`Running::begin_drain`].
    pub fn drain(&self, deadline: Duration) -> DrainReport {
        let mut drain = self.begin_drain(deadline);
        loop {
            if let Some(report) = drain.step(self) {
                return report;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Begins what [`Running::drain`] does, and does not wait. Go on turning, and take a
    /// [step](Drain::step) after each turn, or every few milliseconds, until it is over.
    pub fn begin_drain(&self, deadline: Duration) -> Drain {
        self.current.drain();
        self.workers.advance(Phase::Draining);
        Drain { began: Instant::now(), deadline, cut: None, report: None }
    }
}

impl Drain {
    /// Looks how far it is, and does what is to be done then: at the deadline connections are cut,
    /// and when none is left the server ends. Returns how it has ended, once it has.
    ///
    /// It waits for nothing but other workers' threads, in its last step: a second at most, and
    /// only for handlers that hold them.
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
