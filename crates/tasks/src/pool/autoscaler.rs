//! The autoscaler: one thread that adds workers where all are held or full, and retires them
//! when they are not needed. It is there only where workers may be added.
//!
//! It sleeps in the kernel until it is told something, or a connection waits at a listening
//! socket; a timer is armed only while something is being timed. What workers do for it is in
//! places that are cold anyway: an acceptor that pauses tells it, and a worker that polls for
//! others tells it when no worker is left to poll after it.

mod pinned;
mod shared;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gustnado_reactor::{Alert, Clock, ListenerPoll, prepare_to_share};

use crate::exec::worker::arrival::PolledListener;
use crate::exec::worker::elastic::Autoscale;
use crate::exec::worker::workers_shared::{Phase, WorkersShared, count};
use crate::pool::elastic::ElasticWorkers;
use crate::pool::growth::{Growth, Load};

pub(crate) use pinned::Pinned;
pub(crate) use shared::Shared;

/// How long it rests after a worker could not be started.
const FAILED_REST_MS: u64 = 1_000;
/// When retired workers are asked once more to look whether anything is left. (A connection may
/// have been on its way to one and turned back.)
const LAST_CALL_MS: u64 = 100;

/// What the autoscaler and the workers have in common.
pub(crate) struct AutoscaleState {
    pub(crate) elastic: ElasticWorkers,
    alert: Alert,
    /// The alert was raised and not yet heard.
    told: AtomicBool,
    /// It wants to hear that all places are taken.
    hears_full: AtomicBool,
    /// It wants to hear that a connection was handed to a worker.
    hears_arrivals: AtomicBool,
    /// A connection waits, or may.
    came: AtomicBool,
    /// It has heard that no worker is left to poll.
    heard_busy: AtomicBool,
    /// Times that a group's poller has come round. Written by the poller alone.
    rounds: AtomicU64,
    /// A worker's thread could not start.
    failed: AtomicBool,
    polled_listeners: Mutex<Vec<Weak<PolledListener>>>,
}

impl AutoscaleState {
    pub(crate) fn new(elastic: ElasticWorkers, alert: Alert) -> Self {
        Self {
            elastic,
            alert,
            told: AtomicBool::new(false),
            hears_full: AtomicBool::new(true),
            hears_arrivals: AtomicBool::new(true),
            came: AtomicBool::new(false),
            heard_busy: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            polled_listeners: Mutex::default(),
        }
    }

    /// Has it look.
    pub(crate) fn tell(&self) {
        if !self.told.swap(true, Ordering::SeqCst) {
            self.alert.raise();
        }
    }

    /// The poller of a group has come round. Only to be called while it has that role.
    pub(crate) fn note_round(&self) {
        self.rounds.store(self.rounds.load(Ordering::Relaxed).wrapping_add(1), Ordering::SeqCst);
    }

    /// Of a group, no worker polls and no worker sleeps.
    pub(crate) fn tell_busy(&self) {
        if !self.heard_busy.load(Ordering::Relaxed) && !self.heard_busy.swap(true, Ordering::SeqCst)
        {
            self.tell();
        }
    }

    /// A worker's thread could not start, and it is absent again.
    pub(crate) fn tell_failed(&self, worker: usize) {
        self.elastic.vacate(worker);
        self.failed.store(true, Ordering::SeqCst);
        self.tell();
    }

    fn polled_listeners(&self) -> Vec<Arc<PolledListener>> {
        let polled_listeners = self.polled_listeners.lock().unwrap_or_else(PoisonError::into_inner);
        polled_listeners.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Autoscale for AutoscaleState {
    fn floor(&self) -> usize {
        self.elastic.floor()
    }

    fn is_present(&self, worker: usize) -> bool {
        self.elastic.is_present(worker)
    }

    fn tell(&self) {
        Self::tell(self);
    }

    fn tell_full(&self) {
        if self.hears_full.load(Ordering::SeqCst) {
            self.tell();
        }
    }

    fn tell_arrival(&self) {
        if self.hears_arrivals.load(Ordering::SeqCst) {
            self.hears_arrivals.store(false, Ordering::SeqCst);
            self.came.store(true, Ordering::SeqCst);
            self.tell();
        }
    }

    fn tell_phase(&self) {
        self.tell();
        self.elastic.rouse_parked();
    }

    fn open_polled(&self, polled: &Arc<PolledListener>) -> io::Result<()> {
        prepare_to_share(&polled.socket)?;
        let mut polled_listeners =
            self.polled_listeners.lock().unwrap_or_else(PoisonError::into_inner);
        polled_listeners.retain(|polled| polled.strong_count() > 0);
        polled_listeners.push(Arc::downgrade(polled));
        drop(polled_listeners);
        self.tell();
        Ok(())
    }
}

/// What one look at the workers has shown.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// A worker is to be added.
    is_strained: bool,
    /// When to look again, if nothing happens before.
    again_ms: Option<u64>,
    /// Whether a connection that comes to wait is to be noticed.
    sees_polled: bool,
}

/// What differs between workers with tasks of their own and those that share them.
pub(crate) trait Policy: Send {
    /// Looks whether the workers can do their work, and helps where that is possible.
    fn look(
        &mut self,
        shared: &WorkersShared,
        autoscale: &AutoscaleState,
        now_ms: u64,
    ) -> Observation;

    /// How many workers do not come round; `None`: ask again when the time to grow has passed.
    fn held(&mut self, autoscale: &AutoscaleState, now_ms: u64) -> Option<usize>;

    /// Connections that the present workers have room for.
    fn capacity(&self, shared: &WorkersShared, workers: usize) -> usize;

    /// Lets a worker take part, with its state locked.
    fn admit(&self, shared: &WorkersShared, worker: usize);

    /// Dismisses the worker that can be spared best. Returns whether there was one.
    fn retire(&self, shared: &WorkersShared, autoscale: &AutoscaleState) -> bool;

    /// Has workers that were retired look whether anything is left.
    fn call_last(&self, shared: &WorkersShared, autoscale: &AutoscaleState);
}

/// Starts the thread of the worker with this number.
pub(crate) type SpawnWorker = dyn Fn(usize) -> io::Result<JoinHandle<()>> + Send;

/// The thread's own part.
pub(crate) struct Autoscaler {
    pub(crate) shared: Arc<WorkersShared>,
    pub(crate) autoscale: Arc<AutoscaleState>,
    pub(crate) listener_poll: ListenerPoll,
    pub(crate) clock: Clock,
    pub(crate) growth: Growth,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) spawn_worker: Box<SpawnWorker>,
    pub(crate) times: Times,
}

/// What is being timed: when it is due, in milliseconds of the clock.
#[derive(Debug, Default)]
pub(crate) struct Times {
    shrink: Option<u64>,
    last_call: Option<u64>,
    retry: Option<u64>,
}

impl Autoscaler {
    /// Watches until the server drains.
    pub(crate) fn run(mut self) {
        while self.shared.phase() == Phase::Serving {
            let now_ms = self.clock.read_ms();
            self.note_failure(now_ms);
            let look = self.policy.look(&self.shared, &self.autoscale, now_ms);
            if look.is_strained {
                self.grow(now_ms);
            }
            self.shrink(now_ms);
            let Times { shrink, last_call, retry } = self.times;
            let next_ms = [look.again_ms, shrink, last_call, retry];
            self.sleep(next_ms.into_iter().flatten().min(), look.sees_polled);
        }
    }

    fn sleep(&self, until_ms: Option<u64>, sees_polled: bool) {
        let polled_listeners =
            if sees_polled { self.autoscale.polled_listeners() } else { Vec::new() };
        let left_ms = until_ms.map(|until| until.saturating_sub(self.clock.read_ms()));
        let timeout = left_ms.map(Duration::from_millis);
        match self.listener_poll.wait(&polled_listeners, timeout) {
            Ok(came) => _ = self.autoscale.came.fetch_or(came, Ordering::SeqCst),
            // The kernel is out of memory; and it must not be asked without end.
            Err(_) => thread::sleep(Duration::from_millis(LAST_CALL_MS)),
        }
        self.autoscale.told.store(false, Ordering::SeqCst);
    }

    fn note_failure(&mut self, now_ms: u64) {
        if self.autoscale.failed.swap(false, Ordering::SeqCst) {
            self.fail(now_ms);
        }
        if self.times.retry.is_some_and(|at| at <= now_ms) {
            self.times.retry = None;
        }
    }

    fn fail(&mut self, now_ms: u64) {
        count(&self.shared.counts.workers_failed);
        self.times.retry = Some(now_ms + FAILED_REST_MS);
    }

    /// Adds a worker, if one may be added and none is coming.
    fn grow(&mut self, now_ms: u64) {
        let Self { shared, autoscale, policy, .. } = self;
        if autoscale.elastic.census().coming > 0 || self.times.retry.is_some() {
            return;
        }
        if autoscale.elastic.recall(|worker| policy.admit(shared, worker)) {
            count(&shared.counts.workers_grown);
            // It may be what the next look needs.
            autoscale.tell();
        } else if let Some(worker) = autoscale.elastic.reserve() {
            if let Ok(thread) = (self.spawn_worker)(worker) {
                autoscale.elastic.keep_thread(worker, thread);
            } else {
                autoscale.elastic.vacate(worker);
                return self.fail(now_ms);
            }
        } else {
            return;
        }
        // Whoever was needed a moment ago is not retired at once.
        self.times.shrink = None;
    }

    /// Dismisses workers, if it is time to and there are too many.
    fn shrink(&mut self, now_ms: u64) {
        let Self { shared, autoscale, policy, times, growth, .. } = self;
        if times.last_call.is_some_and(|at| at <= now_ms) {
            times.last_call = None;
            policy.call_last(shared, autoscale);
        }
        let census = autoscale.elastic.census();
        if census.working == 0 || growth.shrink_period.is_zero() {
            times.shrink = None;
            return;
        }
        let period_ms = millis(growth.shrink_period);
        if *times.shrink.get_or_insert(now_ms.saturating_add(period_ms)) > now_ms {
            return;
        }
        let Some(held) = policy.held(autoscale, now_ms) else {
            times.shrink = Some(now_ms + millis(growth.grow_after));
            return;
        };
        let floor = autoscale.elastic.floor();
        let workers = floor + census.working;
        let (open, capacity) = (shared.connection_slots.open(), policy.capacity(shared, workers));
        let surplus = Load { floor, workers, open, capacity, held }.surplus();
        for _ in 0..surplus.min(census.working) {
            if policy.retire(shared, autoscale) {
                times.last_call = Some(now_ms + LAST_CALL_MS);
            }
        }
        times.shrink = Some(now_ms.saturating_add(period_ms));
    }
}

/// At least one.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}
