//! Slots for one worker's tasks: plain memory, one thread. The run queue of the ready ones is each
//! scheduler's own.

use super::{BoxTask, Claimed, TaskSnapshot};
use crate::exec::waits::Waits;
use crate::sync::claim::{GENERATION_MAX, TaskActivity};

// What a slot's task does: the upper byte of its mark.
const FREE: u32 = 0;
const IDLE: u32 = 1 << 24;
const READY: u32 = 2 << 24;
const RUNNING: u32 = 3 << 24;
/// Became ready while it ran.
const RUNNING_READY: u32 = 4 << 24;
const STATE: u32 = 0xff << 24;

const _: () = assert!(GENERATION_MAX & STATE == 0);

struct TaskSlot {
    task: Option<BoxTask>,
    waits: Waits,
    /// What the task does, and the slot's generation: one comparison for both.
    mark: u32,
}

impl TaskSlot {
    fn generation(&self) -> u32 {
        self.mark & !STATE
    }

    fn set_state(&mut self, state: u32) {
        self.mark = self.generation() | state;
    }
}

/// Slots and the free ones among them; the one freed last is used first, for its memory is warm.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<TaskSlot>,
    free: Vec<u32>,
}

impl Slots {
    /// Allocates for `count` tasks; more make it grow.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { slots: Vec::with_capacity(count), free: Vec::with_capacity(count) }
    }

    /// Takes a task in as ready: the caller queues it.
    pub(super) fn insert(&mut self, task: BoxTask) -> (u32, u32) {
        let index = self.free.pop().unwrap_or_else(|| {
            let waits = Waits::UNSAID;
            self.slots.push(TaskSlot { task: None, waits, mark: FREE });
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 tasks fit in memory")
        });
        let slot = &mut self.slots[index as usize];
        slot.task = Some(task);
        slot.waits = Waits::UNSAID;
        slot.set_state(READY);
        (index, slot.generation())
    }

    /// Makes a task ready. Returns whether the caller is to queue it.
    pub(super) fn ready(&mut self, index: u32, generation: Option<u32>) -> bool {
        let Some(slot) = self.slots.get_mut(index as usize) else { return false };
        if generation.is_some_and(|generation| generation != slot.generation()) {
            return false;
        }
        match slot.mark & STATE {
            IDLE => {
                slot.set_state(READY);
                true
            }
            RUNNING => {
                slot.set_state(RUNNING_READY);
                false
            }
            _ => false,
        }
    }

    /// Hands out a task that was taken from the run queue.
    pub(super) fn claim(&mut self, index: u32) -> Claimed {
        let slot = &mut self.slots[index as usize];
        slot.set_state(RUNNING);
        let task = slot.task.take().expect("what is in line is not running");
        Claimed { slot: index, generation: slot.generation(), task }
    }

    /// Hands out a task that waits for something; one that is queued or runs becomes ready.
    pub(super) fn claim_idle(&mut self, index: u32, generation: u32) -> Option<Claimed> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.mark == IDLE | generation {
            slot.mark = RUNNING | generation;
            let task = slot.task.take()?;
            return Some(Claimed { slot: index, generation, task });
        }
        if slot.mark == RUNNING | generation {
            slot.mark = RUNNING_READY | generation;
        }
        None
    }

    /// Takes a task back. Returns whether the caller is to queue it.
    #[expect(clippy::inline_always, reason = "it saves 30 instructions of each request")]
    #[inline(always)]
    pub(super) fn release(&mut self, index: u32, task: Option<BoxTask>, waits: Waits) -> bool {
        if task.is_none() {
            self.free_slot(index);
            return false;
        }
        let slot = &mut self.slots[index as usize];
        let empty = std::mem::replace(&mut slot.task, task);
        // Known to be so: forgetting it spares the look into it that dropping would take.
        std::mem::forget(empty);
        slot.waits = waits;
        let again = slot.mark & STATE == RUNNING_READY;
        slot.set_state(if again { READY } else { IDLE });
        again
    }

    fn free_slot(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.mark = FREE | (slot.generation().wrapping_add(1) & GENERATION_MAX);
        self.free.push(index);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    pub(super) fn look(&self, see: &mut dyn FnMut(TaskSnapshot)) {
        for (slot, index) in self.slots.iter().zip(0..) {
            let doing = match slot.mark & STATE {
                FREE => continue,
                IDLE => TaskActivity::Waits,
                READY => TaskActivity::Queued,
                _ => TaskActivity::Runs,
            };
            let (generation, waits) = (slot.generation(), slot.waits);
            see(TaskSnapshot { slot: index, generation, doing, waits });
        }
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("fewer than 2^32 tasks fit in memory")
    }

    /// Takes all tasks out. Dropping them is the caller's, for their drops may wake others here.
    pub(super) fn take_all(&mut self) -> Vec<BoxTask> {
        let mut tasks = Vec::new();
        for index in 0..self.count() {
            if let Some(task) = self.slots[index as usize].task.take() {
                self.free_slot(index);
                tasks.push(task);
            }
        }
        tasks
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// It is a part of an idle connection's memory.
    #[test]
    fn a_slot_takes_24_bytes() {
        assert_eq!(size_of::<TaskSlot>(), 24);
    }
}
