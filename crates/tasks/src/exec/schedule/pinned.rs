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
    spent: VecDeque<u32>,
}

impl<Q: RunQueue> PinnedScheduler<Q> {
    pub(super) fn new(slots: Slots, ready: Q) -> Self {
        Self(RefCell::new(PinnedTasks { slots, ready, spent: VecDeque::new() }))
    }
}

impl<Q: RunQueue> Scheduler for PinnedScheduler<Q> {
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let PinnedTasks { slots, ready, .. } = &mut *self.0.borrow_mut();
        let (slot, generation) = slots.insert(task);
        ready.push(slot);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        let PinnedTasks { slots, ready, .. } = &mut *self.0.borrow_mut();
        let enqueue = slots.ready(slot, Some(generation));
        if enqueue {
            ready.push(slot);
        }
        enqueue
    }

    fn ready_all(&self) {
        let PinnedTasks { slots, ready, .. } = &mut *self.0.borrow_mut();
        for slot in 0..slots.count() {
            if slots.ready(slot, None) {
                ready.push(slot);
            }
        }
    }

    fn claim(&self) -> Option<Claimed> {
        let PinnedTasks { slots, ready, .. } = &mut *self.0.borrow_mut();
        Some(slots.claim(ready.pop()?))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.0.borrow_mut().slots.claim_idle(slot, generation)
    }

    fn claim_spent(&self) -> Option<Claimed> {
        let PinnedTasks { slots, spent, .. } = &mut *self.0.borrow_mut();
        Some(slots.claim(spent.pop_front()?))
    }

    fn queue_spent(&self) {
        let PinnedTasks { ready, spent, .. } = &mut *self.0.borrow_mut();
        if let Some(slot) = spent.pop_front() {
            ready.push(slot);
        }
    }

    fn release(&self, slot: u32, task: Option<BoxTask>, waits: Waits, is_spent: bool) {
        let PinnedTasks { slots, ready, spent } = &mut *self.0.borrow_mut();
        let again = slots.release(slot, task, waits);
        if again && is_spent {
            spent.push_back(slot);
        } else if again {
            ready.push(slot);
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
            let PinnedTasks { slots, ready, spent } = &mut *self.0.borrow_mut();
            while ready.pop().is_some() {}
            spent.clear();
            slots.take_all()
        };
        drop_all(tasks);
    }
}
