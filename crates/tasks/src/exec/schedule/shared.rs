//! `pool-shared` and `queue-shared`: the tasks of all workers, which any of them runs.

use std::sync::Arc;

use super::shared_slots::SharedSlots;
use super::{BoxTask, Claimed, RunQueue, Scheduler, ShareScheduler, TaskSnapshot, drop_all};
use crate::exec::waits::Waits;

/// All workers' tasks, and those that are ready.
pub(crate) struct SharedScheduler<Q> {
    slots: Arc<SharedSlots>,
    ready: Arc<Q>,
}

impl<Q> SharedScheduler<Q>
where
    for<'q> &'q Q: RunQueue,
{
    pub(super) fn new(slots: SharedSlots, ready: Q) -> Self {
        Self { slots: Arc::new(slots), ready: Arc::new(ready) }
    }

    /// Queues a slot if it is to be.
    fn enqueue(&self, slot: u32, is_to: bool) -> bool {
        if is_to {
            (&*self.ready).push(slot);
        }
        is_to
    }
}

impl<Q> Scheduler for SharedScheduler<Q>
where
    for<'q> &'q Q: RunQueue,
{
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let (slot, generation) = self.slots.insert(task)?;
        self.enqueue(slot, true);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        self.enqueue(slot, self.slots.ready(slot, Some(generation)))
    }

    fn ready_all(&self) {
        for slot in 0..self.slots.used() {
            self.enqueue(slot, self.slots.ready(slot, None));
        }
    }

    fn claim(&self) -> Option<Claimed> {
        Some(self.slots.claim((&*self.ready).pop()?))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.slots.ready(slot, Some(generation)).then(|| self.slots.claim(slot))
    }

    fn release(&self, slot: u32, task: Option<BoxTask>, waits: Waits, _spent: bool) {
        self.enqueue(slot, self.slots.release(slot, task, waits));
    }

    fn has_ready(&self) -> bool {
        !(&*self.ready).is_empty()
    }

    fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn look(&self, see: &mut dyn FnMut(TaskSnapshot)) {
        self.slots.look(see);
    }

    fn clear(&self) {
        self.ready_all();
        while let Some(claimed) = self.claim() {
            drop_all([claimed.task]);
            self.release(claimed.slot, None, Waits::UNSAID, false);
        }
    }
}

impl<Q: Send + Sync + 'static> ShareScheduler for SharedScheduler<Q>
where
    for<'q> &'q Q: RunQueue,
{
    fn share(&self) -> Box<dyn Scheduler> {
        Box::new(Self { slots: Arc::clone(&self.slots), ready: Arc::clone(&self.ready) })
    }
}
