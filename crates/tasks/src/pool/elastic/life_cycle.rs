//! State of each elastic worker: absent, starting, running, draining, parked, ending.
//!
//! All states are under one lock: a worker that leaves and the autoscaler that calls it back decide
//! one after the other. No path of a request takes it.

use std::thread::{JoinHandle, Thread};

use crate::exec::worker::elastic::RetireAction;
use crate::sync::lock::Lock;

/// The state of an elastic worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Absent,
    /// Its thread starts.
    Starting,
    Running,
    /// It was retired, and serves what it has.
    Draining,
    /// It has nothing left, and waits until it is needed again.
    Parked,
    /// It has nothing left, and its thread ends.
    Ending,
}

struct ElasticWorker {
    life: Life,
    /// Kept for the next worker of this number.
    wake_target: Option<u16>,
    thread: Option<Thread>,
}

/// The elastic workers of one server.
pub(super) struct ElasticWorkers {
    /// Workers of the start. They always stay, so they have no state here.
    floor: usize,
    /// Whether threads of retired workers are parked for reuse.
    cache: bool,
    locked: Lock<Lives>,
}

struct Lives {
    workers: Vec<ElasticWorker>,
    threads: Vec<JoinHandle<()>>,
}

/// Elastic workers by their state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElasticCounts {
    pub(super) starting: usize,
    pub(super) running: usize,
    pub(super) draining: usize,
}

impl ElasticWorkers {
    pub(super) fn new(floor: usize, ceiling: usize, cache: bool) -> Self {
        let absent = |_| ElasticWorker { life: Life::Absent, wake_target: None, thread: None };
        let workers = (floor..ceiling).map(absent).collect();
        Self { floor, cache, locked: Lock::new(Lives { workers, threads: Vec::new() }) }
    }

    pub(super) fn floor(&self) -> usize {
        self.floor
    }

    pub(super) fn ceiling(&self) -> usize {
        self.floor + self.locked.lock().workers.len()
    }

    pub(super) fn counts(&self) -> ElasticCounts {
        let locked = self.locked.lock();
        let count = |life| locked.workers.iter().filter(|elastic| elastic.life == life).count();
        ElasticCounts {
            starting: count(Life::Starting),
            running: count(Life::Running),
            draining: count(Life::Draining),
        }
    }

    /// Returns whether this worker runs and has not been retired.
    pub(super) fn is_running(&self, worker: usize) -> bool {
        worker < self.floor || self.life(worker) == Some(Life::Running)
    }

    /// Returns whether this worker has something to do, or had a moment ago.
    pub(super) fn is_present(&self, worker: usize) -> bool {
        let life = self.life(worker);
        worker < self.floor || matches!(life, None | Some(Life::Running | Life::Draining))
    }

    pub(super) fn is_parked(&self, worker: usize) -> bool {
        self.life(worker) == Some(Life::Parked)
    }

    fn life(&self, worker: usize) -> Option<Life> {
        let at = worker.checked_sub(self.floor)?;
        self.locked.lock().workers.get(at).map(|elastic| elastic.life)
    }

    /// Brings back a worker that is still there: one that drains, or else one that is parked.
    /// Returns whether there was one.
    ///
    /// - `admit`: lets the worker with this number take part again.
    pub(super) fn recall(&self, admit: impl FnOnce(usize)) -> bool {
        let mut locked = self.locked.lock();
        // One that drains still has its tasks, and warm caches.
        let find = |life| locked.workers.iter().position(|elastic| elastic.life == life);
        let Some(at) = find(Life::Draining).or_else(|| find(Life::Parked)) else { return false };
        // Under the lock, so that the worker cannot leave in between.
        admit(self.floor + at);
        let elastic = &mut locked.workers[at];
        elastic.life = Life::Running;
        if let Some(thread) = &elastic.thread {
            thread.unpark();
        }
        true
    }

    /// Reserves an absent worker for a thread that is to be started. Returns the worker's number.
    pub(super) fn reserve(&self) -> Option<usize> {
        let mut locked = self.locked.lock();
        let at = locked.workers.iter().position(|elastic| elastic.life == Life::Absent)?;
        locked.workers[at].life = Life::Starting;
        Some(self.floor + at)
    }

    /// Keeps the handle of a thread that was started.
    pub(super) fn keep_thread(&self, worker: usize, handle: JoinHandle<()>) {
        let mut locked = self.locked.lock();
        // A server that grows and shrinks for days must not collect the handles of ended threads.
        locked.threads.retain(|handle| !handle.is_finished());
        let thread = handle.thread().clone();
        locked.threads.push(handle);
        if let Some(elastic) = locked.workers.get_mut(worker - self.floor) {
            elastic.thread = Some(thread);
        }
    }

    /// Returns the wake target of an elastic worker, entered when it is needed first.
    pub(super) fn wake_target(
        &self,
        worker: usize,
        enter: impl FnOnce() -> std::io::Result<u16>,
    ) -> std::io::Result<u16> {
        let elastic = &mut self.locked.lock().workers[worker - self.floor];
        if let Some(wake_target) = elastic.wake_target {
            return Ok(wake_target);
        }
        let wake_target = enter()?;
        elastic.wake_target = Some(wake_target);
        Ok(wake_target)
    }

    /// A worker's thread has started.
    pub(super) fn arrive(&self, worker: usize, admit: impl FnOnce()) {
        let elastic = &mut self.locked.lock().workers[worker - self.floor];
        debug_assert_eq!(elastic.life, Life::Starting, "a worker that starts was reserved");
        admit();
        elastic.life = Life::Running;
    }

    /// Retires a worker. Returns whether it ran.
    ///
    /// - `close`: keeps more from coming to it.
    pub(super) fn retire(&self, worker: usize, close: impl FnOnce()) -> bool {
        let elastic = &mut self.locked.lock().workers[worker - self.floor];
        if elastic.life != Life::Running {
            return false;
        }
        close();
        elastic.life = Life::Draining;
        true
    }

    /// A retired worker has nothing left to do.
    ///
    /// - `close`: keeps more from coming to it. Returns whether nothing has come meanwhile.
    pub(super) fn leave(&self, worker: usize, close: impl FnOnce() -> bool) -> RetireAction {
        let elastic = &mut self.locked.lock().workers[worker - self.floor];
        if elastic.life != Life::Draining || !close() {
            return RetireAction::Stay;
        }
        if self.cache {
            elastic.life = Life::Parked;
            return RetireAction::Park;
        }
        elastic.life = Life::Ending;
        RetireAction::End
    }

    /// A worker's thread has ended, or could not start.
    pub(super) fn vacate(&self, worker: usize) {
        let elastic = &mut self.locked.lock().workers[worker - self.floor];
        elastic.life = Life::Absent;
        elastic.thread = None;
    }

    /// Wakes the threads of parked workers, which then look whether the server ends.
    pub(super) fn unpark_all(&self) {
        for elastic in &self.locked.lock().workers {
            if let (Life::Parked, Some(thread)) = (elastic.life, &elastic.thread) {
                thread.unpark();
            }
        }
    }

    /// Hands out the threads and the wake targets, for their end.
    pub(super) fn take(&self) -> (Vec<JoinHandle<()>>, Vec<u16>) {
        let mut locked = self.locked.lock();
        let threads = std::mem::take(&mut locked.threads);
        let wake_targets =
            locked.workers.iter_mut().filter_map(|elastic| elastic.wake_target.take());
        (threads, wake_targets.collect())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two workers of the start, and two elastic ones, of which the first works.
    fn elastic(cache: bool) -> ElasticWorkers {
        let elastic = ElasticWorkers::new(2, 4, cache);
        assert_eq!(elastic.reserve(), Some(2));
        assert!(!elastic.is_running(2) && elastic.counts().starting == 1);
        elastic.arrive(2, || ());
        assert!(elastic.is_running(2) && !elastic.is_running(3) && elastic.is_running(1));
        elastic
    }

    #[test]
    fn a_dismissed_elasticis_brought_back_before_another_is_started() {
        let elastic = elastic(true);
        assert!(!elastic.recall(|_| panic!("none was retired")));
        assert!(elastic.retire(2, || ()));
        assert!(!elastic.retire(2, || panic!("it was retired")));
        assert!(elastic.recall(|worker| assert_eq!(worker, 2)));
        assert_eq!(elastic.leave(2, || panic!("it is needed")), RetireAction::Stay);
        assert!(elastic.retire(2, || ()));
        assert_eq!(elastic.leave(2, || false), RetireAction::Stay, "something came");
        assert_eq!(elastic.leave(2, || true), RetireAction::Park);
        assert!(elastic.is_parked(2) && !elastic.is_present(2));
        assert!(elastic.recall(|worker| assert_eq!(worker, 2)));
        assert!(elastic.is_running(2) && elastic.is_present(2));
    }

    #[test]
    fn a_worker_whose_thread_has_ended_is_started_again() {
        let elastic = elastic(false);
        assert!(elastic.retire(2, || ()));
        assert_eq!(elastic.leave(2, || true), RetireAction::End);
        assert_eq!(elastic.reserve(), Some(3), "the other thread has not ended yet");
        assert_eq!(elastic.reserve(), None);
        elastic.vacate(2);
        assert_eq!(elastic.reserve(), Some(2));
    }

    #[test]
    fn a_thread_that_only_accepts_is_always_present() {
        assert!(elastic(true).is_present(4));
    }
}
