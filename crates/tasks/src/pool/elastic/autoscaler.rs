//! The autoscaler: one thread that adds workers while all are held or full, and retires idle ones.
//!
//! It sleeps in the kernel until a worker reports something, or a connection waits at a listening
//! socket. A timer is armed only while something is being timed, so an idle server never wakes it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gustnado_reactor::{Clock, poll_listeners};

use super::OpenWorker;
use super::growth::{Growth, Utilization};
use super::state::AutoscaleState;
use crate::exec::worker::workers_shared::{Phase, WorkersShared, count};
use crate::pool::thread_name;

/// How long no worker is started after one could not be.
const FAILED_REST_MS: u64 = 1_000;
/// When retired workers look once more whether anything is left: a connection may have been on its
/// way to one, and have turned back without waking it.
const LAST_CALL_MS: u64 = 100;

/// The rules of one kind of workers: those with tasks of their own, or those that share them.
pub(super) trait Policy: Send {
    /// Observes whether the workers keep up, and helps where that is possible.
    fn observe(&mut self, state: &AutoscaleState, now_ms: u64) -> Observation;

    /// Counts the workers that a task holds; `None`: they were asked, and answer by the time to
    /// grow.
    fn held(&mut self, state: &AutoscaleState, now_ms: u64) -> Option<usize>;

    /// Returns how many connections so many workers have room for.
    fn capacity(&self, shared: &WorkersShared, workers: usize) -> usize;

    /// Returns the wake target of an elastic worker.
    fn wake_target(&self, state: &AutoscaleState, worker: usize) -> io::Result<u16>;

    /// Makes what lets a worker take part. It is called with the worker's state locked.
    fn admission(&self, worker: usize) -> Box<dyn FnOnce() + Send>;

    /// Retires the worker that can be spared best. Returns whether there was one.
    fn retire(&self, state: &AutoscaleState) -> bool;

    /// Wakes retired workers, which then look whether anything is left.
    fn call_last(&self, state: &AutoscaleState);
}

/// The result of one look at the workers.
#[derive(Debug, Default)]
pub(super) struct Observation {
    /// A worker is to be added.
    pub(super) is_strained: bool,
    /// When to look again, if nothing happens before.
    pub(super) again_ms: Option<u64>,
    /// Whether a connection that comes to wait at a listener ends the autoscaler's sleep.
    pub(super) sees_polled: bool,
}

/// When something that is being timed is due, in milliseconds of the clock.
#[derive(Debug, Default)]
pub(super) struct Timings {
    shrink: Option<u64>,
    last_call: Option<u64>,
    retry: Option<u64>,
}

/// The state of the autoscaler's own thread.
pub(super) struct Autoscaler {
    pub(super) shared: Arc<WorkersShared>,
    pub(super) state: Arc<AutoscaleState>,
    pub(super) clock: Clock,
    pub(super) growth: Growth,
    pub(super) policy: Box<dyn Policy>,
    pub(super) open: Arc<OpenWorker>,
    pub(super) timings: Timings,
}

impl Autoscaler {
    /// Watches until the server drains.
    pub(super) fn run(mut self) {
        while self.shared.phase() == Phase::Serving {
            let now_ms = self.clock.read_ms();
            self.note_failure(now_ms);
            let observed = self.policy.observe(&self.state, now_ms);
            if observed.is_strained {
                self.grow(now_ms);
            }
            self.shrink(now_ms);
            let Timings { shrink, last_call, retry } = self.timings;
            let next_ms = [observed.again_ms, shrink, last_call, retry];
            self.sleep(next_ms.into_iter().flatten().min(), observed.sees_polled);
        }
    }

    fn sleep(&self, until_ms: Option<u64>, sees_polled: bool) {
        let polled_listeners = if sees_polled { self.state.polled_listeners() } else { Vec::new() };
        let left_ms = until_ms.map(|until| until.saturating_sub(self.clock.read_ms()));
        let timeout = left_ms.map(Duration::from_millis);
        match poll_listeners(&self.state.waker, &polled_listeners, timeout) {
            Ok(came) => _ = self.state.has_arrival.fetch_or(came, Ordering::SeqCst),
            // The kernel is out of memory. Without a rest this would become a busy loop.
            Err(_) => thread::sleep(Duration::from_millis(LAST_CALL_MS)),
        }
        // Cleared before the next look: what is reported from here on raises the alert again.
        self.state.is_told.store(false, Ordering::SeqCst);
    }

    fn note_failure(&mut self, now_ms: u64) {
        if self.state.has_failed.swap(false, Ordering::SeqCst) {
            self.fail(now_ms);
        }
        if self.timings.retry.is_some_and(|at| at <= now_ms) {
            self.timings.retry = None;
        }
    }

    fn fail(&mut self, now_ms: u64) {
        count(&self.shared.counts.workers_failed);
        self.timings.retry = Some(now_ms + FAILED_REST_MS);
    }

    /// Adds a worker, unless one is starting or could not start a moment ago.
    fn grow(&mut self, now_ms: u64) {
        let Self { shared, state, policy, .. } = self;
        // One at a time: the next look shows whether this one was enough.
        if state.elastic.counts().starting > 0 || self.timings.retry.is_some() {
            return;
        }
        if state.elastic.recall(|worker| policy.admission(worker)()) {
            count(&shared.counts.workers_grown);
            // No thread starts that would report it.
            state.tell();
        } else if let Some(worker) = state.elastic.reserve() {
            if let Ok(thread) = self.spawn(worker) {
                self.state.elastic.keep_thread(worker, thread);
            } else {
                self.state.elastic.vacate(worker);
                return self.fail(now_ms);
            }
        } else {
            return;
        }
        // A worker that was needed a moment ago is not retired at once.
        self.timings.shrink = None;
    }

    /// Starts the thread of a worker that was reserved.
    fn spawn(&self, worker: usize) -> io::Result<JoinHandle<()>> {
        let wake_target = self.policy.wake_target(&self.state, worker)?;
        let admit = self.policy.admission(worker);
        let (shared, state) = (Arc::clone(&self.shared), Arc::clone(&self.state));
        let open = Arc::clone(&self.open);
        thread::Builder::new().name(thread_name(worker)).spawn(move || {
            let Ok(run) = open(worker, wake_target) else { return state.tell_failed(worker) };
            state.elastic.arrive(worker, admit);
            count(&shared.counts.workers_grown);
            state.tell();
            if let Err(error) = run() {
                let name = thread_name(worker);
                panic!("worker {name} cannot reach the kernel any more: {error}");
            }
            state.elastic.vacate(worker);
            state.tell();
        })
    }

    /// Retires workers, if it is time to and there are too many.
    fn shrink(&mut self, now_ms: u64) {
        let Self { shared, state, policy, timings, growth, .. } = self;
        if timings.last_call.is_some_and(|at| at <= now_ms) {
            timings.last_call = None;
            policy.call_last(state);
        }
        let counts = state.elastic.counts();
        let period_ms = growth.shrink_period_ms().filter(|_| counts.running > 0);
        let Some(period_ms) = period_ms else {
            timings.shrink = None;
            return;
        };
        if *timings.shrink.get_or_insert(now_ms.saturating_add(period_ms)) > now_ms {
            return;
        }
        let Some(held) = policy.held(state, now_ms) else {
            timings.shrink = Some(now_ms + growth.grow_after_ms());
            return;
        };
        let floor = state.elastic.floor();
        let workers = floor + counts.running;
        let (open, capacity) = (shared.connection_slots.open(), policy.capacity(shared, workers));
        let surplus = Utilization { floor, workers, open, capacity, held }.surplus();
        for _ in 0..surplus.min(counts.running) {
            if policy.retire(state) {
                timings.last_call = Some(now_ms + LAST_CALL_MS);
            }
        }
        timings.shrink = Some(now_ms.saturating_add(period_ms));
    }
}
