//! Sends of the tasks that run in one turn of a driven worker, so that they leave together.
//!
//! A send wakes the peer that waits for it. A client on the same machine that is faster than the
//! tasks here sleeps after each response, and waking it takes up to 20 µs of the sender's time.
//! So where several tasks run in a turn, each defers its send until the others have run, or for
//! [`HOLD_US`] and as long as the running task takes.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;

use crate::exec::wakers::task_id::TaskId;

/// Microseconds for which a send is held back.
const HOLD_US: u64 = 500;
/// A send that was held for longer has met a slow task.
const SLOW_US: u64 = 1_000;
/// No send is held for so long after that: the next task may be slow too. One slow task is often
/// the kernel's doing, which ran something else meanwhile, so each in succession doubles the time.
const CAUTION_MS: RangeInclusive<u64> = 16..=1_024;

/// Tasks that have deferred their sends.
#[derive(Default)]
pub(crate) struct SendBatch {
    is_open: Cell<bool>,
    deferred: RefCell<Vec<TaskId>>,
    /// When the first of them was noticed.
    since_us: Cell<Option<u64>>,
    closed_until_ms: Cell<u64>,
    /// For how long it was closed the last time.
    caution_ms: Cell<u64>,
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
        let held_us = time_us - since_us;
        if held_us > SLOW_US {
            self.be_cautious(now_ms);
        }
        held_us >= HOLD_US
    }

    /// Keeps the batch closed for some time: for twice as long as the last time, where it has not
    /// been open for that long since.
    fn be_cautious(&self, now_ms: u64) {
        let last_ms = self.caution_ms.get();
        let is_soon = now_ms < self.closed_until_ms.get() + last_ms;
        let next_ms = if is_soon { last_ms * 2 } else { 0 };
        let next_ms = next_ms.clamp(*CAUTION_MS.start(), *CAUTION_MS.end());
        self.caution_ms.set(next_ms);
        self.closed_until_ms.set(now_ms + next_ms);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One send is deferred, and a task runs for so long after that it is held for `held_us`.
    fn hold(batch: &SendBatch, now_ms: u64, held_us: u64) -> bool {
        batch.open(now_ms);
        batch.defer(|| TaskId::new(0, 0, 0));
        assert!(!batch.is_due(now_ms, || 0), "the clock starts with the first");
        let is_due = batch.is_due(now_ms, || held_us);
        batch.recycle(batch.close());
        is_due
    }

    fn is_open(batch: &SendBatch, now_ms: u64) -> bool {
        batch.open(now_ms);
        let is_open = batch.is_open.get();
        batch.close();
        is_open
    }

    #[test]
    fn sends_are_held_for_half_a_millisecond() {
        let batch = SendBatch::default();
        assert!(!hold(&batch, 1, HOLD_US - 1));
        assert!(hold(&batch, 1, HOLD_US));
        assert!(is_open(&batch, 1));
    }

    #[test]
    fn a_slow_task_closes_it_and_each_in_succession_for_longer() {
        let batch = SendBatch::default();
        let mut now_ms = 100;
        for caution_ms in [16, 32, 64, 128, 256, 512, 1_024, 1_024] {
            hold(&batch, now_ms, SLOW_US + 1);
            assert!(!is_open(&batch, now_ms + caution_ms - 1), "{caution_ms}");
            now_ms += caution_ms;
            assert!(is_open(&batch, now_ms), "{caution_ms}");
        }
        // It has been open for as long as it was closed: that one was alone.
        now_ms += 1_024;
        hold(&batch, now_ms, SLOW_US + 1);
        assert!(is_open(&batch, now_ms + 16));
    }
}
