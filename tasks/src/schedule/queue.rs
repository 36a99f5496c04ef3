//! `queue`: a growing table per worker; ready tasks run first come, first served.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::slots::Slots;
use super::{BoxTask, Claimed, Schedule, Seen, drop_all};
use crate::waits::Waits;

/// A worker's own tasks, however many, and the line of those that are ready.
#[derive(Default)]
pub(crate) struct Queue(RefCell<Inside>);

#[derive(Default)]
struct Inside {
    slots: Slots,
    line: VecDeque<u32>,
    spent: VecDeque<u32>,
}

impl Schedule for Queue {
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let Inside { slots, line, .. } = &mut *self.0.borrow_mut();
        let (slot, generation) = slots.insert(task);
        line.push_back(slot);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        let Inside { slots, line, .. } = &mut *self.0.borrow_mut();
        let line_up = slots.ready(slot, Some(generation));
        if line_up {
            line.push_back(slot);
        }
        line_up
    }

    fn ready_all(&self) {
        let Inside { slots, line, .. } = &mut *self.0.borrow_mut();
        for slot in 0..slots.count() {
            if slots.ready(slot, None) {
                line.push_back(slot);
            }
        }
    }

    fn claim(&self) -> Option<Claimed> {
        let Inside { slots, line, .. } = &mut *self.0.borrow_mut();
        Some(slots.claim(line.pop_front()?))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.0.borrow_mut().slots.claim_idle(slot, generation)
    }

    fn claim_spent(&self) -> Option<Claimed> {
        let Inside { slots, spent, .. } = &mut *self.0.borrow_mut();
        Some(slots.claim(spent.pop_front()?))
    }

    fn settle(&self, slot: u32, task: Option<BoxTask>, waits: Waits, is_spent: bool) -> bool {
        let Inside { slots, line, spent } = &mut *self.0.borrow_mut();
        let again = slots.settle(slot, task, waits);
        if again {
            if is_spent { spent } else { line }.push_back(slot);
        }
        again
    }

    fn has_ready(&self) -> bool {
        let inside = self.0.borrow();
        !inside.line.is_empty() || !inside.spent.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().slots.is_empty()
    }

    fn look(&self, see: &mut dyn FnMut(Seen)) {
        self.0.borrow().slots.look(see);
    }

    fn clear(&self) {
        let tasks = {
            let Inside { slots, line, spent } = &mut *self.0.borrow_mut();
            line.clear();
            spent.clear();
            slots.take_all()
        };
        drop_all(tasks);
    }
}
