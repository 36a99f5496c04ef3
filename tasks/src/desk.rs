//! What other threads may know of a worker at any time: which task it runs, and since which turn.
//!
//! Only the worker writes, plain stores; a dump reads, where a worker does not answer because a
//! task holds it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::waits::Waits;
use crate::wake::TaskId;

/// A worker's desk, off the others' cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Desk {
    /// The worker's number.
    pub(crate) worker: usize,
    /// The station whose tasks it runs.
    pub(crate) station: u16,
    task: AtomicU64,
    since: AtomicU32,
}

impl Desk {
    pub(crate) fn new(worker: usize, station: u16) -> Self {
        let task = AtomicU64::new(TaskId::NOBODY.token());
        Self { worker, station, task, since: AtomicU32::new(0) }
    }

    /// The task that is being polled.
    pub(crate) fn task(&self) -> TaskId {
        TaskId::of_token(self.task.load(Ordering::Relaxed))
    }

    pub(crate) fn set_task(&self, id: TaskId) {
        self.task.store(id.token(), Ordering::Relaxed);
    }

    /// When the worker last looked at its clock: the task has run since then at most.
    pub(crate) fn since(&self) -> Waits {
        Waits::of_word(self.since.load(Ordering::Relaxed))
    }

    pub(crate) fn set_since(&self, since: Waits) {
        self.since.store(since.word(), Ordering::Relaxed);
    }
}
