//! Slots for one worker's tasks: plain memory, one thread. The line of the ready ones is each
//! scheduler's own.

use super::{BoxTask, Claimed};
use crate::wake::GENERATION_MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Idle,
    Ready,
    Running,
    /// Became ready while it ran.
    RunningReady,
}

struct Slot {
    task: Option<BoxTask>,
    generation: u32,
    state: State,
}

/// Slots and the free ones among them; the one freed last is used first, for its memory is warm.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// Allocates for `count` tasks; more make it grow.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { slots: Vec::with_capacity(count), free: Vec::with_capacity(count) }
    }

    /// Takes a task in as ready: the caller puts it in line.
    pub(super) fn insert(&mut self, task: BoxTask) -> (u32, u32) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { task: None, generation: 0, state: State::Free });
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 tasks fit in memory")
        });
        let slot = &mut self.slots[index as usize];
        slot.task = Some(task);
        slot.state = State::Ready;
        (index, slot.generation)
    }

    /// Makes a task ready. Returns whether the caller is to put it in line.
    pub(super) fn ready(&mut self, index: u32, generation: Option<u32>) -> bool {
        let Some(slot) = self.slots.get_mut(index as usize) else { return false };
        if generation.is_some_and(|generation| generation != slot.generation) {
            return false;
        }
        match slot.state {
            State::Idle => {
                slot.state = State::Ready;
                true
            }
            State::Running => {
                slot.state = State::RunningReady;
                false
            }
            State::Free | State::Ready | State::RunningReady => false,
        }
    }

    /// Hands out a task that was taken from the line.
    pub(super) fn claim(&mut self, index: u32) -> Claimed {
        let slot = &mut self.slots[index as usize];
        slot.state = State::Running;
        let task = slot.task.take().expect("what is in line is not running");
        Claimed { slot: index, generation: slot.generation, task }
    }

    /// Hands out a task that waits for something; one that is in line or runs becomes ready.
    pub(super) fn claim_idle(&mut self, index: u32, generation: u32) -> Option<Claimed> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != generation {
            return None;
        }
        match slot.state {
            State::Idle => {
                slot.state = State::Running;
                let task = slot.task.take()?;
                Some(Claimed { slot: index, generation, task })
            }
            State::Running => {
                slot.state = State::RunningReady;
                None
            }
            State::Free | State::Ready | State::RunningReady => None,
        }
    }

    /// Takes a task back. Returns whether the caller is to put it in line.
    #[inline]
    pub(super) fn settle(&mut self, index: u32, task: Option<BoxTask>) -> bool {
        if task.is_none() {
            self.release(index);
            return false;
        }
        let slot = &mut self.slots[index as usize];
        let empty = std::mem::replace(&mut slot.task, task);
        // Known to be so: forgetting it spares the look into it that dropping would take.
        std::mem::forget(empty);
        let again = slot.state == State::RunningReady;
        slot.state = if again { State::Ready } else { State::Idle };
        again
    }

    fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1) & GENERATION_MAX;
        self.free.push(index);
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("fewer than 2^32 tasks fit in memory")
    }

    /// Takes all tasks out. Dropping them is the caller's, for their drops may wake others here.
    pub(super) fn take_all(&mut self) -> Vec<BoxTask> {
        let mut tasks = Vec::new();
        for index in 0..self.count() {
            if let Some(task) = self.slots[index as usize].task.take() {
                self.release(index);
                tasks.push(task);
            }
        }
        tasks
    }
}
