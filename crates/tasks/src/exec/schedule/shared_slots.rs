//! Slots for tasks that any worker may run. Each scheduler has its own run queue of the ready ones.

use std::sync::PoisonError;

use gustnado_reactor::LazyTable;

use super::{BoxTask, Claimed, TaskSnapshot};
use crate::exec::waits::Waits;
use crate::sync::atomic::{AtomicU32, Mutex, Ordering, yield_now};
use crate::sync::claim::Claim;
use crate::sync::queue::TokenQueue;

/// A slot. Its lock is never contended: only the thread that holds the claim takes it. It is there
/// because safe code cannot show that to the compiler, and costs one uncontended exchange.
#[derive(Default)]
struct SharedSlot {
    claim: Claim,
    /// Written by the worker that runs the task; read by dumps, which may be late.
    waits: AtomicU32,
    task: Mutex<Option<BoxTask>>,
}

/// Slots and the free ones among them.
pub(super) struct SharedSlots {
    slots: LazyTable<SharedSlot>,
    limit: u32,
    /// Slots from here on were never used.
    fresh: AtomicU32,
    free: TokenQueue,
}

impl SharedSlots {
    /// Slots for `limit` tasks, whose memory is allocated when first needed.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            slots: LazyTable::new(limit),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            fresh: AtomicU32::new(0),
            free: TokenQueue::new(limit),
        }
    }

    /// Allocates all slots now.
    pub(super) fn allocate(&self) {
        for index in 0..self.limit {
            self.slot(index);
        }
    }

    /// Takes a task in as ready: the caller queues it.
    pub(super) fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let Some(index) = self.take_free() else { return Err(task) };
        let slot = self.slot(index);
        slot.waits.store(Waits::UNSAID.word(), Ordering::Relaxed);
        keep(slot, Some(task));
        Ok((index, slot.claim.open()))
    }

    fn take_free(&self) -> Option<u32> {
        loop {
            if let Some(index) = self.free.pop() {
                return u32::try_from(index).ok();
            }
            if let Some(index) = self.take_fresh() {
                return Some(index);
            }
            if self.free.is_empty() {
                return None;
            }
            // Not empty, and yet nothing to take: a thread is between its two steps of a push, and
            // may have lost its processor there.
            yield_now();
        }
    }

    /// Takes a slot that was never used. Only after the free ones, so that few blocks of the table
    /// are ever allocated.
    fn take_fresh(&self) -> Option<u32> {
        let next = |fresh| (fresh < self.limit).then_some(fresh + 1);
        self.fresh.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    /// Makes a task ready. Returns whether the caller is to queue it.
    pub(super) fn ready(&self, index: u32, generation: Option<u32>) -> bool {
        index < self.limit && self.slot(index).claim.ready(generation)
    }

    /// Hands out a task that was taken from the run queue.
    pub(super) fn claim(&self, index: u32) -> Claimed {
        let slot = self.slot(index);
        let generation = slot.claim.run();
        let task = slot.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let task = task.expect("a queued task is in its slot");
        Claimed { slot: index, generation, task }
    }

    /// Takes a task back. Returns whether the caller is to queue it.
    pub(super) fn release(&self, index: u32, task: Option<BoxTask>, waits: Waits) -> bool {
        let slot = self.slot(index);
        if task.is_some() {
            slot.waits.store(waits.word(), Ordering::Relaxed);
            // Back before the claim ends: the next worker may take it at once.
            keep(slot, task);
            return slot.claim.rest();
        }
        // A new generation before the slot can be taken again, so that wakers of the old task do
        // not reach the next one.
        slot.claim.close();
        let returned = self.free.push(u64::from(index));
        debug_assert!(returned.is_ok(), "the queue has room for every slot");
        false
    }

    /// Slots that were ever used.
    pub(super) fn used(&self) -> u32 {
        self.fresh.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        let mut empty = true;
        self.look(&mut |_| empty = false);
        empty
    }

    pub(super) fn look(&self, see: &mut dyn FnMut(TaskSnapshot)) {
        for index in 0..self.used().min(self.limit) {
            let slot = self.slot(index);
            if let Some((generation, doing)) = slot.claim.look() {
                let waits = Waits::of_word(slot.waits.load(Ordering::Relaxed));
                see(TaskSnapshot { slot: index, generation, doing, waits });
            }
        }
    }

    fn slot(&self, index: u32) -> &SharedSlot {
        self.slots.get(index as usize).expect("indices are below the limit")
    }
}

fn keep(slot: &SharedSlot, task: Option<BoxTask>) {
    *slot.task.lock().unwrap_or_else(PoisonError::into_inner) = task;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_takes_32_bytes() {
        assert_eq!(size_of::<SharedSlot>(), 32);
    }
}
