//! Sends of the tasks that run in one turn of a driven worker, so that they leave together.
//!
//! A send wakes the peer that waits for it. A client on the same machine that is faster than the
//! tasks here sleeps after each response, and waking it takes up to 20 µs of the sender's time.
//! So where several tasks run in a turn, each defers its send until the others have run, or for
//! [`HOLD_US`] and as long as the running task takes.

use std::cell::{Cell, RefCell};

use crate::exec::wakers::task_id::TaskId;

/// Microseconds for which a send is held back.
const HOLD_US: u64 = 500;
/// A send that was held for longer has met a slow task.
const SLOW_US: u64 = 1_000;
/// No send is held for so long after that: the next task may be slow too.
const CAUTION_MS: u64 = 1_000;

/// Tasks that have deferred their sends.
#[derive(Default)]
pub(crate) struct SendBatch {
    is_open: Cell<bool>,
    deferred: RefCell<Vec<TaskId>>,
    /// When the first of them was noticed.
    since_us: Cell<Option<u64>>,
    closed_until_ms: Cell<u64>,
}

impl SendBatch {
    /// Opens the batch, unless a task was slow a moment ago.
    pub(crate) fn open(&self, now_ms: u64) {
        self.is_open.set(now_ms >= self.closed_until_ms.get());
    }

    /// Defers the send of this task, if the batch is open. Returns whether it is.
    #[inline]
    pub(crate) fn defer(&self, task: impl FnOnce() -> TaskId) -> bool {
        let is_open = self.is_open.get();
        if is_open {
            let (task, mut deferred) = (task(), self.deferred.borrow_mut());
            // One that asks again in the same run is still run once.
            if deferred.last() != Some(&task) {
                deferred.push(task);
            }
        }
        is_open
    }

    /// Returns whether the batch has to be flushed now that a task has run.
    pub(crate) fn is_due(&self, now_ms: u64, read_clock_us: impl FnOnce() -> u64) -> bool {
        if !self.is_open.get() || self.deferred.borrow().is_empty() {
            return false;
        }
        let time_us = read_clock_us();
        let Some(since_us) = self.since_us.get() else {
            self.since_us.set(Some(time_us));
            return false;
        };
        if time_us - since_us > SLOW_US {
            self.closed_until_ms.set(now_ms + CAUTION_MS);
        }
        time_us - since_us >= HOLD_US
    }

    /// Closes the batch and takes its tasks. Their memory comes back by [`SendBatch::recycle`].
    pub(crate) fn close(&self) -> Vec<TaskId> {
        self.is_open.set(false);
        self.since_us.set(None);
        self.deferred.take()
    }

    /// Keeps the memory of a list whose tasks have run.
    pub(crate) fn recycle(&self, mut emptied: Vec<TaskId>) {
        emptied.clear();
        // The batch is closed while its tasks run, so none has been added.
        self.deferred.replace(emptied);
    }
}
