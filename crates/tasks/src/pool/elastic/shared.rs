//! The policy for workers that share their tasks: one is added while none polls.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::autoscaler::{Observation, Policy};
use super::state::AutoscaleState;
use crate::exec::worker::worker_group::WorkerGroup;
use crate::exec::worker::workers_shared::WorkersShared;

/// The policy for workers of one group.
pub(super) struct SharedPolicy {
    group: Arc<WorkerGroup>,
    wake_target: u16,
    grow_after_ms: u64,
    /// Since when no worker polls, and how many rounds had been polled by then.
    unpolled: Option<(u64, u64)>,
}

impl SharedPolicy {
    pub(super) fn new(group: Arc<WorkerGroup>, wake_target: u16, grow_after_ms: u64) -> Self {
        Self { group, wake_target, grow_after_ms, unpolled: None }
    }
}

impl Policy for SharedPolicy {
    fn observe(&mut self, state: &AutoscaleState, now_ms: u64) -> Observation {
        let counts = state.elastic.counts();
        if state.elastic.floor() + counts.running + counts.starting >= state.elastic.ceiling() {
            // The report stays as it is, so none is made again until a worker has gone.
            self.unpolled = None;
            return Observation::default();
        }
        let is_busy = state.is_group_busy.swap(false, Ordering::SeqCst);
        let rounds = state.rounds.load(Ordering::SeqCst);
        let is_polled = self.group.roles.is_polled();
        if !is_busy && (is_polled || self.unpolled.is_none()) {
            self.unpolled = None;
            return Observation::default();
        }
        // A round that was polled meanwhile shows that the group is not held, though the role is
        // free at this moment: so the time counts only while the rounds stay the same.
        let same = self.unpolled.filter(|(_, before)| *before == rounds && !is_polled);
        let (since_ms, _) = same.unwrap_or((now_ms, rounds));
        let is_strained = now_ms >= since_ms + self.grow_after_ms;
        // The worker that is added may be held as well, so the time starts again.
        let since_ms = if is_strained { now_ms } else { since_ms };
        self.unpolled = Some((since_ms, rounds));
        let again_ms = Some(since_ms + self.grow_after_ms);
        Observation { is_strained, again_ms, sees_polled: false }
    }

    fn held(&mut self, state: &AutoscaleState, _: u64) -> Option<usize> {
        let workers = state.elastic.floor() + state.elastic.counts().running;
        Some(workers.saturating_sub(self.group.roles.idle()))
    }

    fn capacity(&self, shared: &WorkersShared, _: usize) -> usize {
        // All slots are allocated at the start. A worker that is added brings none.
        shared.connection_slots.per_worker_max()
    }

    fn wake_target(&self, _: &AutoscaleState, _: usize) -> io::Result<u16> {
        Ok(self.wake_target)
    }

    fn admission(&self, worker: usize) -> Box<dyn FnOnce() + Send> {
        let group = Arc::clone(&self.group);
        Box::new(move || group.roles.admit(worker))
    }

    fn retire(&self, state: &AutoscaleState) -> bool {
        let elastic = (state.elastic.floor()..state.elastic.ceiling()).rev();
        let running = elastic.filter(|worker| state.elastic.is_running(*worker));
        // One that sleeps can go at once. Else the last that was added, so numbers stay low.
        let roles = &self.group.roles;
        let Some(worker) = running.min_by_key(|worker| !roles.is_asleep(*worker)) else {
            return false;
        };
        state.elastic.retire(worker, || self.group.retire(worker))
    }

    /// Nothing of a worker's own is left behind when it leaves a group.
    fn call_last(&self, _: &AutoscaleState) {}
}
