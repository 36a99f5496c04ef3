//! The policy for workers with tasks of their own: one is added while all slots are taken, or a
//! connection waits and every worker is held by a task.
//!
//! Whether a worker is held shows only when it is asked to answer, which costs it a wake-up. So it
//! is asked only while a connection waits, and reports its answer itself if that comes late.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gustnado_reactor::{has_pending, take_connection};

use super::autoscaler::{Observation, Policy};
use super::state::AutoscaleState;
use crate::exec::wakers::wake_target;
use crate::exec::worker::arrival::{Arrival, IncomingHandler};
use crate::exec::worker::elastic::PolledListener;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::workers_shared::{WorkersShared, count};
use crate::sync::sleep_state::Ping;

/// The longest time between two looks at a backlog that cannot be helped.
const REST_MS_MAX: u64 = 1_000;
/// Connections taken over from one listener at a time.
const BURST_MAX: usize = 64;

/// The policy for workers with tasks of their own.
pub(super) struct PinnedPolicy {
    shared: Arc<WorkersShared>,
    inboxes: Vec<Arc<Inbox>>,
    /// By worker: what it was asked and has not answered yet, and since when.
    pings: Vec<Option<(Arc<Ping>, u64)>>,
    grow_after_ms: u64,
    /// Since when all slots are taken.
    full_since_ms: Option<u64>,
    /// How long to rest while a connection waits although a worker is free. It doubles.
    rest_ms: u64,
    /// All workers were asked, and are counted as held when they have not answered in time.
    has_asked: bool,
}

impl PinnedPolicy {
    /// - `inboxes`: of all workers that there may ever be.
    pub(super) fn new(
        shared: Arc<WorkersShared>,
        inboxes: Vec<Arc<Inbox>>,
        grow_after_ms: u64,
    ) -> Self {
        let pings = inboxes.iter().map(|_| None).collect();
        let (full_since_ms, rest_ms, has_asked) = (None, grow_after_ms, false);
        Self { shared, inboxes, pings, grow_after_ms, full_since_ms, rest_ms, has_asked }
    }

    fn running(&self, state: &AutoscaleState) -> Vec<usize> {
        (0..self.inboxes.len()).filter(|worker| state.elastic.is_running(*worker)).collect()
    }

    /// Asks workers to answer, except those that have not answered the last time.
    fn ping(&mut self, running: &[usize], now_ms: u64) {
        for &worker in running {
            let asked = &mut self.pings[worker];
            if asked.as_ref().is_none_or(|(ping, _)| ping.is_answered()) {
                *asked = self.inboxes[worker].ping().map(|ping| (ping, now_ms));
            }
        }
    }

    /// Returns whether a worker has not answered for as long as it takes to grow. If so, it reports
    /// its answer when that comes.
    fn is_held(&self, worker: usize, now_ms: u64) -> bool {
        self.pings[worker].as_ref().is_some_and(|(ping, asked_ms)| {
            now_ms >= asked_ms + self.grow_after_ms && ping.await_reply()
        })
    }

    /// Returns whether a connection waits: in a backlog, or in the queue of a worker.
    fn has_pending(&self, running: &[usize], polled_listeners: &[Arc<PolledListener>]) -> bool {
        polled_listeners.iter().any(|polled| has_pending(&polled.socket))
            || running.iter().any(|&worker| self.inboxes[worker].arrivals.has_connection())
    }

    /// Hands connections that wait at held workers to free ones.
    fn relieve(&self, held: &[usize], free: &[usize], polled_listeners: &[Arc<PolledListener>]) {
        let shared = &self.shared;
        for &worker in held {
            let arrivals = &self.inboxes[worker].arrivals;
            if !arrivals.has_connection() {
                continue;
            }
            for (connection, incoming) in arrivals.take_connections() {
                // Without room elsewhere it goes back to the worker whose slot it has.
                let taken =
                    choose(shared, free).inspect(|_| shared.connection_slots.release(worker));
                self.hand_over(taken.unwrap_or(worker), connection, incoming);
            }
        }
        let is_held = |polled: &&Arc<PolledListener>| {
            polled.worker.is_some_and(|worker| held.contains(&worker))
        };
        for polled in polled_listeners.iter().filter(is_held) {
            for _ in 0..BURST_MAX {
                if !has_pending(&polled.socket) {
                    break;
                }
                let Some(worker) = choose(shared, free) else { return };
                match take_connection(&polled.socket) {
                    Ok(Some(connection)) => {
                        count(&shared.counts.accepted);
                        self.hand_over(worker, connection, Arc::clone(&polled.incoming));
                    }
                    other => {
                        shared.connection_slots.release(worker);
                        if other.is_err() {
                            count(&shared.counts.accept_failed);
                        }
                        break;
                    }
                }
            }
        }
    }

    fn hand_over(&self, worker: usize, connection: OwnedFd, incoming: Arc<dyn IncomingHandler>) {
        self.inboxes[worker].arrive(Arrival::Connection(connection, incoming));
    }

    /// Returns when all slots will have been taken for long enough to grow, or that they have.
    fn time_full(&mut self, now_ms: u64) -> (Option<u64>, bool) {
        if !self.shared.connection_slots.is_short_of_workers() {
            self.full_since_ms = None;
            return (None, false);
        }
        let due_ms = *self.full_since_ms.get_or_insert(now_ms) + self.grow_after_ms;
        if now_ms < due_ms {
            return (Some(due_ms), false);
        }
        // The next worker is added only if this one has been full for as long again.
        self.full_since_ms = None;
        (None, true)
    }
}

/// Takes a slot of the free worker with the fewest connections.
fn choose(shared: &WorkersShared, free: &[usize]) -> Option<usize> {
    let mut free: Vec<usize> = free.to_vec();
    free.sort_by_key(|&worker| shared.connection_slots.open_on(worker));
    free.into_iter().find(|&worker| shared.connection_slots.take(worker))
}

impl Policy for PinnedPolicy {
    fn observe(&mut self, state: &AutoscaleState, now_ms: u64) -> Observation {
        let counts = state.elastic.counts();
        let can_grow =
            state.elastic.floor() + counts.running + counts.starting < state.elastic.ceiling();
        // Set before the slots are looked at: an acceptor that finds them taken after that reports.
        state.hears_full.store(can_grow, Ordering::SeqCst);
        let (full_due_ms, is_full) = if can_grow { self.time_full(now_ms) } else { (None, false) };
        if full_due_ms.is_some() {
            // They are being timed, so each further report would be one more useless wake-up.
            state.hears_full.store(false, Ordering::SeqCst);
        }

        let (running, polled_listeners) = (self.running(state), state.polled_listeners());
        // The same order: ask to hear, then look. One of the two sees each connection.
        let has_arrival = state.has_arrival.swap(false, Ordering::SeqCst);
        state.hears_arrivals.store(true, Ordering::SeqCst);
        if !self.has_pending(&running, &polled_listeners) {
            self.rest_ms = self.grow_after_ms;
            // A connection that was taken out of a backlog may be on its way to a held worker. And
            // while many come, a look every now and then is enough.
            let soon_ms = has_arrival.then_some(now_ms + self.grow_after_ms);
            let again_ms = [soon_ms, full_due_ms].into_iter().flatten().min();
            return Observation { is_strained: is_full, again_ms, sees_polled: !has_arrival };
        }
        state.hears_arrivals.store(false, Ordering::SeqCst);
        self.ping(&running, now_ms);
        let (held, free): (Vec<_>, Vec<_>) =
            running.iter().partition(|&&worker| self.is_held(worker, now_ms));
        if free.is_empty() {
            // The first that is free again reports it, so there is nothing to poll for.
            return Observation {
                is_strained: can_grow,
                again_ms: full_due_ms,
                sees_polled: false,
            };
        }
        if !held.is_empty() {
            self.relieve(&held, &free, &polled_listeners);
        }
        state.hears_arrivals.store(true, Ordering::SeqCst);
        if !self.has_pending(&running, &polled_listeners) {
            self.rest_ms = self.grow_after_ms;
            return Observation { is_strained: is_full, again_ms: full_due_ms, sees_polled: true };
        }
        // A free worker has not come to it yet, or has no slot. The kernel would report the backlog
        // at once again, so this rests, longer each time.
        state.hears_arrivals.store(false, Ordering::SeqCst);
        let rest_ms = now_ms + self.rest_ms;
        self.rest_ms = (self.rest_ms * 2).min(REST_MS_MAX).max(self.grow_after_ms);
        let again_ms = Some(full_due_ms.map_or(rest_ms, |due| due.min(rest_ms)));
        Observation { is_strained: is_full, again_ms, sees_polled: false }
    }

    fn held(&mut self, state: &AutoscaleState, now_ms: u64) -> Option<usize> {
        let running = self.running(state);
        self.has_asked = !self.has_asked;
        if self.has_asked {
            self.ping(&running, now_ms);
            return None;
        }
        Some(running.into_iter().filter(|&worker| self.is_held(worker, now_ms)).count())
    }

    fn capacity(&self, shared: &WorkersShared, workers: usize) -> usize {
        shared.connection_slots.per_worker_max().saturating_mul(workers)
    }

    fn wake_target(&self, state: &AutoscaleState, worker: usize) -> io::Result<u16> {
        let inbox = Arc::clone(&self.inboxes[worker]) as Arc<dyn WorkerHandle>;
        state.elastic.wake_target(worker, || wake_target::enter(inbox))
    }

    fn admission(&self, worker: usize) -> Box<dyn FnOnce() + Send> {
        let (inbox, shared) = (Arc::clone(&self.inboxes[worker]), Arc::clone(&self.shared));
        Box::new(move || {
            // The queue first: a slot that can be taken promises that its connection is let in.
            inbox.arrivals.reopen();
            shared.connection_slots.reopen(worker);
        })
    }

    fn retire(&self, state: &AutoscaleState) -> bool {
        let connection_slots = &self.shared.connection_slots;
        let floor = state.elastic.floor();
        let elastic = self.running(state).into_iter().filter(|worker| *worker >= floor);
        // The one with the fewest connections is done first; of several, the last that was added.
        let emptiest = elastic.rev().min_by_key(|worker| connection_slots.open_on(*worker));
        let Some(worker) = emptiest else { return false };
        let is_retired = state.elastic.retire(worker, || connection_slots.close(worker));
        if is_retired {
            // It may have nothing to do already, and sleep.
            self.inboxes[worker].wake_all();
        }
        is_retired
    }

    fn call_last(&self, state: &AutoscaleState) {
        let is_vacant = |worker: &usize| self.shared.connection_slots.is_vacant(*worker);
        for worker in (state.elastic.floor()..self.inboxes.len()).filter(is_vacant) {
            if state.elastic.is_present(worker) {
                self.inboxes[worker].wake_all();
            }
        }
    }
}
