//! Watching workers that share nothing: are all places taken, and does a connection wait at a
//! worker that does not come round?

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gustnado_reactor::{has_pending, take_connection};

use super::{AutoscaleState, Observation, Policy};
use crate::exec::worker::arrival::{Arrival, Incoming, PolledListener};
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::workers_shared::{WorkersShared, count};
use crate::sync::sleep_state::Ping;

/// The longest time between two looks at a line that cannot be helped.
const REST_MS_MAX: u64 = 1_000;
/// Connections taken over from one line at a time.
const BURST_MAX: usize = 64;

/// Workers with tasks of their own.
pub(crate) struct Pinned {
    inboxes: Vec<Arc<Inbox>>,
    /// Who was asked to come round and has not said so, and since when.
    rolls: Vec<Option<(Arc<Ping>, u64)>>,
    grow_after_ms: u64,
    /// Since when all places are taken.
    full_since_ms: Option<u64>,
    rest_ms: u64,
    /// All were asked to come round before some are retired.
    has_called: bool,
}

impl Pinned {
    /// - `inboxes`: of all workers that there may ever be.
    pub(crate) fn new(inboxes: Vec<Arc<Inbox>>, grow_after_ms: u64) -> Self {
        let rolls = inboxes.iter().map(|_| None).collect();
        let (full_since_ms, rest_ms, has_called) = (None, grow_after_ms, false);
        Self { inboxes, rolls, grow_after_ms, full_since_ms, rest_ms, has_called }
    }

    /// Workers that are there and were not retired.
    fn working(&self, autoscale: &AutoscaleState) -> Vec<usize> {
        (0..self.inboxes.len()).filter(|worker| autoscale.elastic.works(*worker)).collect()
    }

    fn ping(&mut self, working: &[usize], now_ms: u64) {
        for &worker in working {
            let roll = &mut self.rolls[worker];
            if roll.as_ref().is_none_or(|(roll, _)| roll.is_answered()) {
                *roll = self.inboxes[worker].ping().map(|roll| (roll, now_ms));
            }
        }
    }

    /// Whether a worker has not come round for as long as it takes to grow. It tells the
    /// autoscaler when it does.
    fn is_held(&self, worker: usize, now_ms: u64) -> bool {
        self.rolls[worker].as_ref().is_some_and(|(roll, asked_ms)| {
            now_ms >= asked_ms + self.grow_after_ms && roll.await_answer()
        })
    }

    /// Whether a connection waits for a worker, and at which.
    fn has_pending(&self, working: &[usize], polled_listeners: &[Arc<PolledListener>]) -> bool {
        polled_listeners.iter().any(|polled| has_pending(&polled.socket))
            || working.iter().any(|&worker| self.inboxes[worker].arrivals().has_connection())
    }

    /// Hands connections that wait at held workers to those that come round.
    fn relieve(
        &self,
        shared: &WorkersShared,
        held: &[usize],
        free: &[usize],
        polled_listeners: &[Arc<PolledListener>],
    ) {
        for &worker in held {
            let arrivals = self.inboxes[worker].arrivals();
            if !arrivals.has_connection() {
                continue;
            }
            for (connection, incoming) in arrivals.take_connections() {
                // Without room elsewhere it goes back to where its place is.
                let place =
                    choose(shared, free).inspect(|_| shared.connection_slots.release(worker));
                self.hand_over(place.unwrap_or(worker), connection, incoming);
            }
        }
        let theirs = |polled: &&Arc<PolledListener>| {
            polled.worker.is_some_and(|worker| held.contains(&worker))
        };
        for polled in polled_listeners.iter().filter(theirs) {
            for _ in 0..BURST_MAX {
                if !has_pending(&polled.socket) {
                    break;
                }
                let Some(place) = choose(shared, free) else { return };
                match take_connection(&polled.socket) {
                    Ok(Some(connection)) => {
                        count(&shared.counts.accepted);
                        self.hand_over(place, connection, Arc::clone(&polled.incoming));
                    }
                    other => {
                        shared.connection_slots.release(place);
                        if other.is_err() {
                            count(&shared.counts.accept_failed);
                        }
                        break;
                    }
                }
            }
        }
    }

    fn hand_over(&self, worker: usize, connection: OwnedFd, incoming: Arc<dyn Incoming>) {
        self.inboxes[worker].arrive(Arrival::Connection(connection, incoming));
    }

    /// When the time to grow for want of places will have passed; and whether it has.
    fn time_full(&mut self, shared: &WorkersShared, now_ms: u64) -> (Option<u64>, bool) {
        if !shared.connection_slots.is_short_of_workers() {
            self.full_since_ms = None;
            return (None, false);
        }
        let due_ms = *self.full_since_ms.get_or_insert(now_ms) + self.grow_after_ms;
        if now_ms < due_ms {
            return (Some(due_ms), false);
        }
        // For the next one it begins anew.
        self.full_since_ms = None;
        (None, true)
    }
}

/// Takes a place on the worker with the fewest connections.
fn choose(shared: &WorkersShared, free: &[usize]) -> Option<usize> {
    let mut free: Vec<usize> = free.to_vec();
    free.sort_by_key(|&worker| shared.connection_slots.open_on(worker));
    free.into_iter().find(|&worker| shared.connection_slots.take(worker))
}

impl Policy for Pinned {
    fn look(
        &mut self,
        shared: &WorkersShared,
        autoscale: &AutoscaleState,
        now_ms: u64,
    ) -> Observation {
        let census = autoscale.elastic.census();
        let can_grow = autoscale.elastic.floor() + census.working + census.coming
            < autoscale.elastic.ceiling();
        autoscale.hears_full.store(can_grow, Ordering::SeqCst);
        let (full_due_ms, is_full) =
            if can_grow { self.time_full(shared, now_ms) } else { (None, false) };
        if full_due_ms.is_some() {
            autoscale.hears_full.store(false, Ordering::SeqCst);
        }

        let (working, polled_listeners) = (self.working(autoscale), autoscale.polled_listeners());
        let came = autoscale.came.swap(false, Ordering::SeqCst);
        autoscale.hears_arrivals.store(true, Ordering::SeqCst);
        if !self.has_pending(&working, &polled_listeners) {
            self.rest_ms = self.grow_after_ms;
            // Whoever was taken out of a line may be on the way to a worker that is held. And where
            // many come, it is enough to look now and then.
            let soon_ms = came.then_some(now_ms + self.grow_after_ms);
            let again_ms = [soon_ms, full_due_ms].into_iter().flatten().min();
            return Observation { is_strained: is_full, again_ms, sees_polled: !came };
        }
        autoscale.hears_arrivals.store(false, Ordering::SeqCst);
        self.ping(&working, now_ms);
        let (held, free): (Vec<_>, Vec<_>) =
            working.iter().partition(|&&worker| self.is_held(worker, now_ms));
        if free.is_empty() {
            // Until one of them comes round, which it tells, there is nothing else to do.
            return Observation {
                is_strained: can_grow,
                again_ms: full_due_ms,
                sees_polled: false,
            };
        }
        if !held.is_empty() {
            self.relieve(shared, &held, &free, &polled_listeners);
        }
        autoscale.hears_arrivals.store(true, Ordering::SeqCst);
        if !self.has_pending(&working, &polled_listeners) {
            self.rest_ms = self.grow_after_ms;
            return Observation { is_strained: is_full, again_ms: full_due_ms, sees_polled: true };
        }
        autoscale.hears_arrivals.store(false, Ordering::SeqCst);
        let rest_ms = now_ms + self.rest_ms;
        self.rest_ms = (self.rest_ms * 2).min(REST_MS_MAX).max(self.grow_after_ms);
        let again_ms = Some(full_due_ms.map_or(rest_ms, |due| due.min(rest_ms)));
        Observation { is_strained: is_full, again_ms, sees_polled: false }
    }

    fn held(&mut self, autoscale: &AutoscaleState, now_ms: u64) -> Option<usize> {
        let working = self.working(autoscale);
        self.has_called = !self.has_called;
        if self.has_called {
            self.ping(&working, now_ms);
            return None;
        }
        Some(working.into_iter().filter(|&worker| self.is_held(worker, now_ms)).count())
    }

    fn capacity(&self, shared: &WorkersShared, workers: usize) -> usize {
        shared.connection_slots.per_worker_max().saturating_mul(workers)
    }

    fn admit(&self, shared: &WorkersShared, worker: usize) {
        self.inboxes[worker].arrivals().reopen();
        shared.connection_slots.reopen(worker);
    }

    fn retire(&self, shared: &WorkersShared, autoscale: &AutoscaleState) -> bool {
        let floor = autoscale.elastic.floor();
        let extra = self.working(autoscale).into_iter().filter(|worker| *worker >= floor);
        // The emptiest; of several, the one that came last.
        let emptiest = extra.rev().min_by_key(|worker| shared.connection_slots.open_on(*worker));
        let Some(worker) = emptiest else { return false };
        let retired = autoscale.elastic.retire(worker, || shared.connection_slots.close(worker));
        if retired {
            self.inboxes[worker].wake_all();
        }
        retired
    }

    fn call_last(&self, shared: &WorkersShared, autoscale: &AutoscaleState) {
        let vacant = |worker: &usize| shared.connection_slots.is_vacant(*worker);
        for worker in (autoscale.elastic.floor()..self.inboxes.len()).filter(vacant) {
            if autoscale.elastic.is_present(worker) {
                self.inboxes[worker].wake_all();
            }
        }
    }
}
