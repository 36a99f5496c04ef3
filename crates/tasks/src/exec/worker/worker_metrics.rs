//! Metrics of a worker that other threads may read at any time: the task that runs, since when, and
//! how much has come to it and gone.
//!
//! Only the worker writes, plain stores; a dump reads, where a worker does not answer because a
//! task holds it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::exec::waits::Waits;
use crate::exec::wakers::task_id::TaskId;

/// The metrics of a worker, off the others' cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerMetrics {
    /// The worker's number.
    pub(crate) worker: usize,
    /// The wake target whose tasks it runs.
    pub(crate) wake_target: u16,
    task: AtomicU64,
    since: AtomicU32,
    /// What the running task does, by a number of its own: see
    /// [`note_step`](crate::note_step).
    step: AtomicU32,
    /// The kernel's number of its thread; 0 before that runs.
    thread: AtomicU32,
    connections_added: AtomicU64,
    connections_removed: AtomicU64,
    tasks_added: AtomicU64,
    tasks_ended: AtomicU64,
}

/// Counters of one worker. They count from the start and only grow.
///
/// Where workers share their tasks, one may add what another one ends: then only the sums over all
/// workers say what is live.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// The worker's number; a thread that only accepts has the one behind the last.
    pub worker: usize,
    /// The kernel's number of its thread, as in `/proc/self/task`; 0 before it runs.
    pub thread: u32,
    /// Connections that it has taken in.
    pub connections_added: u64,
    /// Connections that have ended on it.
    pub connections_removed: u64,
    /// Tasks that it has taken in: connections, acceptors, and what was spawned.
    pub tasks_added: u64,
    /// Tasks that have ended on it.
    pub tasks_ended: u64,
}

impl WorkerMetrics {
    pub(crate) fn new(worker: usize, wake_target: u16) -> Self {
        let task = AtomicU64::new(TaskId::NONE.token());
        Self { worker, wake_target, task, ..Self::default() }
    }

    /// The worker's thread begins.
    pub(crate) fn enter(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        self.thread.store(thread, Ordering::Relaxed);
    }

    pub(crate) fn add_connection(&self) {
        add_one(&self.connections_added);
    }

    pub(crate) fn remove_connection(&self) {
        add_one(&self.connections_removed);
    }

    pub(crate) fn add_task(&self) {
        add_one(&self.tasks_added);
    }

    pub(crate) fn end_task(&self) {
        add_one(&self.tasks_ended);
    }

    /// Returns what has come to this worker and gone from it.
    pub(crate) fn workload(&self) -> Workload {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Workload {
            worker: self.worker,
            thread: self.thread.load(Ordering::Relaxed),
            connections_added: read(&self.connections_added),
            connections_removed: read(&self.connections_removed),
            tasks_added: read(&self.tasks_added),
            tasks_ended: read(&self.tasks_ended),
        }
    }

    /// Returns the task that is being polled.
    pub(crate) fn task(&self) -> TaskId {
        TaskId::of_token(self.task.load(Ordering::Relaxed))
    }

    pub(crate) fn set_task(&self, id: TaskId) {
        self.task.store(id.token(), Ordering::Relaxed);
    }

    /// Returns what the running task has said that it does; 0: nothing.
    pub(crate) fn step(&self) -> u32 {
        self.step.load(Ordering::Relaxed)
    }

    pub(crate) fn set_step(&self, step: u32) {
        self.step.store(step, Ordering::Relaxed);
    }

    /// Returns when the worker last looked at its clock: the task has run since then at most.
    pub(crate) fn since(&self) -> Waits {
        Waits::of_word(self.since.load(Ordering::Relaxed))
    }

    pub(crate) fn set_since(&self, since: Waits) {
        self.since.store(since.word(), Ordering::Relaxed);
    }
}

/// Only the worker writes, so this need not be a read-modify-write.
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
