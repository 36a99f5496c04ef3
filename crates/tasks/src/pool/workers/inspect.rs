//! Looking at running workers: what they do, and starting tasks on them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::Workers;
use crate::exec::dump;
use crate::exec::task::spawner::Spawner;
use crate::exec::worker::dump_request::Dump;
use crate::exec::worker::worker_metrics::Workload;
use crate::pool::watchdog::{HeldWorker, Watchdog};
use crate::sync::ledger::Ledger;

impl Workers {
    /// Returns what all tasks do. Blocks the calling thread until the workers have answered: in a
    /// task, [`crate::dump()`] is what to ask.
    ///
    /// - `within`: how long to wait for workers that are held by a task.
    pub fn dump(&self, within: Duration) -> Dump {
        dump::wait_for_dump(&self.shared, self.uptime_ms(), within)
    }

    /// Returns what each worker has had to do so far, by their numbers.
    pub fn workloads(&self) -> Vec<Workload> {
        let mut all: Vec<Workload> =
            self.shared.worker_metrics.lock().iter().map(|metrics| metrics.workload()).collect();
        all.sort_by_key(|workload| workload.worker);
        all
    }

    /// Tasks that live now: connections, acceptors, and what was spawned.
    pub fn tasks_live(&self) -> u64 {
        let elsewhere: u64 = self.shared.handles.iter().map(|handle| handle.tasks_taken()).sum();
        let (added, ended) = self.workloads().iter().fold((elsewhere, 0), |(added, ended), of| {
            (added + of.tasks_added, ended + of.tasks_ended)
        });
        added.saturating_sub(ended)
    }

    /// Returns the memory that connections hold, by kind.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    /// Watches the workers from a thread of its own: reports each that a task holds for `after` or
    /// longer, once a second, and once more when it is free again. While all workers sleep, that
    /// thread does too. A driven worker is not watched: its thread is its caller's.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn watch(
        &self,
        after: Duration,
        report: impl Fn(&HeldWorker) + Send + 'static,
    ) -> io::Result<()> {
        if self.is_driven && self.plan.workers_max() == 1 {
            return Ok(());
        }
        let (shared, clock) = (Arc::clone(&self.shared), self.clock.clone());
        let report = Box::new(report);
        let thread = Watchdog::new(shared, clock, self.is_driven, after, report).start()?;
        if let Some(running) = &mut *self.running.lock() {
            running.threads.push(thread);
        }
        Ok(())
    }

    /// Returns what starts tasks on these workers, from any thread.
    pub fn spawner(&self) -> Spawner {
        Spawner::of(&self.shared)
    }
}
