//! Watching workers that share their tasks: does any of them poll?

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Finding, Team, Watch};
use crate::exec::crew::Crew;
use crate::exec::group::Group;

/// Workers of one group.
pub(crate) struct Shared {
    group: Arc<Group>,
    grow_after_ms: u64,
    /// Since when nobody polls, and how often it had been done before.
    unpolled: Option<(u64, u64)>,
}

impl Shared {
    pub(crate) fn new(group: Arc<Group>, grow_after_ms: u64) -> Self {
        Self { group, grow_after_ms, unpolled: None }
    }
}

impl Team for Shared {
    fn look(&mut self, _: &Crew, watch: &Watch, now_ms: u64) -> Finding {
        let census = watch.seats.census();
        if watch.seats.floor() + census.working + census.coming >= watch.seats.ceiling() {
            // What was heard stays so, and nobody says it again until a worker has gone.
            self.unpolled = None;
            return Finding::default();
        }
        let is_busy = watch.heard_busy.swap(false, Ordering::SeqCst);
        let rounds = watch.rounds.load(Ordering::SeqCst);
        let is_polled = self.group.roles().is_polled();
        if !is_busy && (is_polled || self.unpolled.is_none()) {
            self.unpolled = None;
            return Finding::default();
        }
        let same = self.unpolled.filter(|(_, before)| *before == rounds && !is_polled);
        let (since_ms, _) = same.unwrap_or((now_ms, rounds));
        let is_strained = now_ms >= since_ms + self.grow_after_ms;
        // Whoever comes now may be held as well, and then it begins anew.
        let since_ms = if is_strained { now_ms } else { since_ms };
        self.unpolled = Some((since_ms, rounds));
        let again_ms = Some(since_ms + self.grow_after_ms);
        Finding { is_strained, again_ms, sees_doors: false }
    }

    fn held(&mut self, watch: &Watch, _: u64) -> Option<usize> {
        let workers = watch.seats.floor() + watch.seats.census().working;
        Some(workers.saturating_sub(self.group.roles().idle()))
    }

    /// There are as many slots as there were at the start: whoever comes brings none.
    fn capacity(&self, crew: &Crew, _: usize) -> usize {
        crew.places.per_worker_max()
    }

    fn admit(&self, _: &Crew, worker: usize) {
        self.group.roles().admit(worker);
    }

    fn dismiss(&self, _: &Crew, watch: &Watch) -> bool {
        let guests = (watch.seats.floor()..watch.seats.ceiling()).rev();
        let working = guests.filter(|worker| watch.seats.works(*worker));
        // One that sleeps, if there is one; else the one that came last.
        let roles = self.group.roles();
        let Some(worker) = working.min_by_key(|worker| !roles.is_asleep(*worker)) else {
            return false;
        };
        watch.seats.dismiss(worker, || self.group.dismiss(worker))
    }

    fn call_last(&self, _: &Crew, _: &Watch) {}
}
