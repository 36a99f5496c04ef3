//! Looking at running workers: what they do, and starting tasks on them.

use std::time::Duration;

use super::Workers;
use crate::exec::dump;
use crate::exec::task::spawner::Spawner;
use crate::exec::worker::dump_request::Dump;
use crate::exec::worker::worker_metrics::Workload;

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

    /// Returns what starts tasks on these workers, from any thread.
    pub fn spawner(&self) -> Spawner {
        Spawner::of(&self.shared)
    }
}
