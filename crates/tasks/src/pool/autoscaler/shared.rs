//! Watching workers that share their tasks: does any of them poll?

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{AutoscaleState, Observation, Policy};
use crate::exec::worker::worker_group::Group;
use crate::exec::worker::workers_shared::WorkersShared;

/// Workers of one group.
pub(crate) struct Shared {
    group: Arc<Group>,
    grow_after_ms: u64,
    /// Since when no worker polls, and how often it had been done before.
    unpolled: Option<(u64, u64)>,
}

impl Shared {
    pub(crate) fn new(group: Arc<Group>, grow_after_ms: u64) -> Self {
        Self { group, grow_after_ms, unpolled: None }
    }
}

impl Policy for Shared {
    fn look(&mut self, _: &WorkersShared, autoscale: &AutoscaleState, now_ms: u64) -> Observation {
        let census = autoscale.elastic.census();
        if autoscale.elastic.floor() + census.working + census.coming >= autoscale.elastic.ceiling()
        {
            // What was heard stays so, and nobody says it again until a worker has gone.
            self.unpolled = None;
            return Observation::default();
        }
        let is_busy = autoscale.heard_busy.swap(false, Ordering::SeqCst);
        let rounds = autoscale.rounds.load(Ordering::SeqCst);
        let is_polled = self.group.roles().is_polled();
        if !is_busy && (is_polled || self.unpolled.is_none()) {
            self.unpolled = None;
            return Observation::default();
        }
        let same = self.unpolled.filter(|(_, before)| *before == rounds && !is_polled);
        let (since_ms, _) = same.unwrap_or((now_ms, rounds));
        let is_strained = now_ms >= since_ms + self.grow_after_ms;
        // Whoever comes now may be held as well, and then it begins anew.
        let since_ms = if is_strained { now_ms } else { since_ms };
        self.unpolled = Some((since_ms, rounds));
        let again_ms = Some(since_ms + self.grow_after_ms);
        Observation { is_strained, again_ms, sees_polled: false }
    }

    fn held(&mut self, autoscale: &AutoscaleState, _: u64) -> Option<usize> {
        let workers = autoscale.elastic.floor() + autoscale.elastic.census().working;
        Some(workers.saturating_sub(self.group.roles().idle()))
    }

    /// There are as many slots as there were at the start: whoever comes brings none.
    fn capacity(&self, shared: &WorkersShared, _: usize) -> usize {
        shared.connection_slots.per_worker_max()
    }

    fn admit(&self, _: &WorkersShared, worker: usize) {
        self.group.roles().admit(worker);
    }

    fn retire(&self, _: &WorkersShared, autoscale: &AutoscaleState) -> bool {
        let guests = (autoscale.elastic.floor()..autoscale.elastic.ceiling()).rev();
        let working = guests.filter(|worker| autoscale.elastic.works(*worker));
        // One that sleeps, if there is one; else the one that came last.
        let roles = self.group.roles();
        let Some(worker) = working.min_by_key(|worker| !roles.is_asleep(*worker)) else {
            return false;
        };
        autoscale.elastic.retire(worker, || self.group.retire(worker))
    }

    fn call_last(&self, _: &WorkersShared, _: &AutoscaleState) {}
}
