//! `pool` and `queue`: the tasks of one worker, which only that worker runs.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::slots::Slots;
use super::{BoxTask, Claimed, RunQueue, Scheduler, TaskSnapshot, drop_all};
use crate::exec::waits::Waits;

/// A worker's own tasks. Those that have used up their budget have a queue of their own.
pub(crate) struct PinnedScheduler<Q>(RefCell<PinnedTasks<Q>>);

struct PinnedTasks<Q> {
    slots: Slots,
    ready: Q,
    /// How many were ever queued, and how many of them taken.
    queued: u64,
    taken: u64,
    /// Those that have used up their budget, each with how many must have been taken before it
    /// goes on: otherwise the few in here would have more turns than the many in the queue.
    spent: VecDeque<(u32, u64)>,
}

impl<Q: RunQueue> PinnedTasks<Q> {
    #[inline]
    fn queue(&mut self, slot: u32) {
        self.ready.push(slot);
        self.queued += 1;
    }
}

impl<Q: RunQueue> PinnedScheduler<Q> {
    pub(super) fn new(slots: Slots, ready: Q) -> Self {
        Self(RefCell::new(PinnedTasks {
            slots,
            ready,
            queued: 0,
            taken: 0,
            spent: VecDeque::new(),
        }))
    }
}

impl<Q: RunQueue> Scheduler for PinnedScheduler<Q> {
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let mut inside = self.0.borrow_mut();
        let (slot, generation) = inside.slots.insert(task);
        inside.queue(slot);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        let mut inside = self.0.borrow_mut();
        let enqueue = inside.slots.ready(slot, Some(generation));
        if enqueue {
            inside.queue(slot);
        }
        enqueue
    }

    fn ready_all(&self) {
        let mut inside = self.0.borrow_mut();
        for slot in 0..inside.slots.count() {
            if inside.slots.ready(slot, None) {
                inside.queue(slot);
            }
        }
    }

    fn claim(&self) -> Option<Claimed> {
        let PinnedTasks { slots, ready, taken, .. } = &mut *self.0.borrow_mut();
        let slot = ready.pop()?;
        *taken += 1;
        Some(slots.claim(slot))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.0.borrow_mut().slots.claim_idle(slot, generation)
    }

    fn claim_spent(&self) -> Option<Claimed> {
        let PinnedTasks { slots, spent, taken, .. } = &mut *self.0.borrow_mut();
        let (slot, _) = spent.pop_front_if(|(_, behind)| *behind <= *taken)?;
        Some(slots.claim(slot))
    }

    fn release(&self, slot: u32, task: Option<BoxTask>, waits: Waits, is_spent: bool) {
        let mut inside = self.0.borrow_mut();
        let again = inside.slots.release(slot, task, waits);
        if again && is_spent {
            let behind = inside.queued;
            inside.spent.push_back((slot, behind));
        } else if again {
            inside.queue(slot);
        }
    }

    fn has_ready(&self) -> bool {
        let inside = self.0.borrow();
        !inside.ready.is_empty() || !inside.spent.is_empty()
    }

    fn has_queued(&self) -> bool {
        !self.0.borrow().ready.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().slots.is_empty()
    }

    fn look(&self, see: &mut dyn FnMut(TaskSnapshot)) {
        self.0.borrow().slots.look(see);
    }

    fn clear(&self) {
        let tasks = {
            let PinnedTasks { slots, ready, queued, taken, spent } = &mut *self.0.borrow_mut();
            while ready.pop().is_some() {}
            *taken = *queued;
            spent.clear();
            slots.take_all()
        };
        drop_all(tasks);
    }
}
