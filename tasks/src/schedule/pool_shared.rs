//! `pool-shared`: one fixed slot array; a ready slot is claimed by compare-and-set by whichever
//! worker is free.

use super::shared_slots::SharedSlots;
use super::{BoxTask, Claimed, SPARE_SLOTS, Schedule, Seen, drop_all};
use crate::ready_bits::ReadyBits;
use crate::waits::Waits;

/// All workers' slots, allocated at start, and one bit for each that is ready.
pub(crate) struct PoolShared {
    slots: SharedSlots,
    ready: ReadyBits,
}

impl PoolShared {
    /// - `connections`: how many tasks the array holds.
    pub(crate) fn new(connections: usize) -> Self {
        let limit = connections.saturating_add(SPARE_SLOTS);
        let slots = SharedSlots::new(limit);
        slots.allocate();
        Self { slots, ready: ReadyBits::new(limit) }
    }
}

impl Schedule for PoolShared {
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let (slot, generation) = self.slots.insert(task)?;
        self.ready.set(slot);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        let line_up = self.slots.ready(slot, Some(generation));
        if line_up {
            self.ready.set(slot);
        }
        line_up
    }

    fn ready_all(&self) {
        for slot in 0..self.slots.used() {
            if self.slots.ready(slot, None) {
                self.ready.set(slot);
            }
        }
    }

    fn claim(&self) -> Option<Claimed> {
        Some(self.slots.claim(self.ready.claim()?))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.slots.ready(slot, Some(generation)).then(|| self.slots.claim(slot))
    }

    fn settle(&self, slot: u32, task: Option<BoxTask>, waits: Waits, _spent: bool) -> bool {
        let again = self.slots.settle(slot, task, waits);
        if again {
            self.ready.set(slot);
        }
        again
    }

    fn has_ready(&self) -> bool {
        self.ready.any()
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
