//! `queue-shared`: one growing table and one lock-free first-in first-out line for all workers.

use super::shared_slots::SharedSlots;
use super::{BoxTask, Claimed, SPARE_SLOTS, Schedule, Seen, drop_all};
use crate::queue::TokenQueue;
use crate::waits::Waits;

/// All workers' tasks and their line. A task is in line at most once, so the line never fills up.
pub(crate) struct QueueShared {
    slots: SharedSlots,
    line: TokenQueue,
}

impl QueueShared {
    /// - `connections`: how many tasks there may ever be at once.
    pub(crate) fn new(connections: usize) -> Self {
        let limit = connections.saturating_add(SPARE_SLOTS);
        Self { slots: SharedSlots::new(limit), line: TokenQueue::new(limit) }
    }

    fn line_up(&self, slot: u32) {
        let in_line = self.line.push(u64::from(slot));
        debug_assert!(in_line.is_ok(), "the line has room for every slot");
    }
}

impl Schedule for QueueShared {
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let (slot, generation) = self.slots.insert(task)?;
        self.line_up(slot);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        let line_up = self.slots.ready(slot, Some(generation));
        if line_up {
            self.line_up(slot);
        }
        line_up
    }

    fn ready_all(&self) {
        for slot in 0..self.slots.used() {
            if self.slots.ready(slot, None) {
                self.line_up(slot);
            }
        }
    }

    fn claim(&self) -> Option<Claimed> {
        let slot = u32::try_from(self.line.pop()?).ok()?;
        Some(self.slots.claim(slot))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.slots.ready(slot, Some(generation)).then(|| self.slots.claim(slot))
    }

    fn settle(&self, slot: u32, task: Option<BoxTask>, waits: Waits, _spent: bool) -> bool {
        let again = self.slots.settle(slot, task, waits);
        if again {
            self.line_up(slot);
        }
        again
    }

    fn has_ready(&self) -> bool {
        !self.line.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn look(&self, see: &mut dyn FnMut(Seen)) {
        self.slots.look(see);
    }

    fn clear(&self) {
        self.ready_all();
        while let Some(claimed) = self.claim() {
            drop_all([claimed.task]);
            self.settle(claimed.slot, None, Waits::UNSAID, false);
        }
    }
}
