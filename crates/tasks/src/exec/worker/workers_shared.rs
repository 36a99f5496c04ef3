//! State that all workers of one server share: how to reach each, the connection slots,
//! and the phase that the server is in.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gustnado_reactor::{BufferAccount, MemoryAccount, descriptor_limit};

use crate::exec::error::SpawnError;
use crate::exec::schedule::BoxTask;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::cuts::{CutDuring, Cuts};
use crate::exec::worker::descriptors::scarce_from;
use crate::exec::worker::dump_request::TaskNames;
use crate::exec::worker::elastic::{Elastic, LoadEvent};
use crate::exec::worker::evictions::EvictionRequests;
use crate::exec::worker::throttle::ThrottleState;
use crate::exec::worker::watchdog_waker::WatchdogWaker;
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::worker_metrics::WorkerMetrics;
use crate::sync::connection_slots::{ConnectionSlots, Placement};
use crate::sync::ledger::Ledger;
use crate::sync::lock::Lock;
use crate::sync::shared_load::SharedLoad;

/// The phase of a server. It only goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Connections are accepted and served.
    Serving,
    /// Accepting ends, soon; idle ones close; the rest finish what they have begun.
    Draining,
    /// The time for that is over: all connections end where they are.
    Cutting,
    /// Workers end.
    Stopping,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Serving, Self::Draining, Self::Cutting, Self::Stopping];
}

/// Added to the word of the phase for each worker that is to ask idle connections to give way, and
/// for each connection that is to be cut: an operation that has to wait checks for all with one
/// load.
const DISTURBANCE: u32 = 1 << 8;
/// Connections that are closed where descriptors have run out: files need some too.
const EVICTED_FOR_DESCRIPTORS: u32 = 16;

/// State that the workers of one server share.
pub(crate) struct WorkersShared {
    /// The [`Phase`], and on top how many workers ask connections to give way, and how
    /// many connections are to be cut ([`DISTURBANCE`]).
    phase: AtomicU32,
    /// One per entry of [`ConnectionSlots`]: each worker, or the group of all.
    pub(crate) handles: Vec<Arc<dyn WorkerHandle>>,
    /// The accepting thread, if there is one: it has no connections, but must hear of each phase.
    pub(crate) acceptor: OnceLock<Arc<dyn WorkerHandle>>,
    /// How many workers there are, and what may change that.
    pub(crate) elastic: Arc<dyn Elastic>,
    pub(crate) connection_slots: ConnectionSlots,
    /// Connections that are to give way, by the index of the handle.
    pub(crate) evictions: EvictionRequests,
    cuts: Cuts,
    pub(crate) watchdog: WatchdogWaker,
    /// What other processes have that accept from the same sockets.
    pub(crate) shared_load: OnceLock<SharedLoad>,
    pub(crate) placement: Placement,
    /// Numbers of descriptors from here on are kept for files: the kernel gives the lowest that is
    /// free, so a connection that gets one of these is the last for now.
    pub(crate) scarce_from: usize,
    /// For how long accepting goes on at most in a drain.
    pub(crate) drain_accept_ms: u64,
    pub(crate) throttle: ThrottleState,
    pub(crate) counts: Counts,
    /// Acceptors that may still bring connections.
    pub(crate) acceptors: AtomicUsize,
    /// One per worker that has started.
    pub(crate) worker_metrics: Lock<Vec<Arc<WorkerMetrics>>>,
    /// The memory that is held, by kind.
    pub(crate) ledger: Arc<Ledger>,
    /// Names of tasks that have one.
    pub(crate) names: Arc<TaskNames>,
    /// The worker that the next task from elsewhere goes to.
    next_handle: AtomicUsize,
}

/// Counters of connections and tasks since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Accepts that failed for want of descriptors or memory; accepting paused for a moment.
    pub accept_exhausted: AtomicU64,
    /// Accepts that failed otherwise: the peer had gone, or the system refuses them all, and
    /// accepting paused for a moment.
    pub accept_failed: AtomicU64,
    /// Times that accepting paused because all slots were taken.
    pub accept_paused: AtomicU64,
    /// Idle connections closed to make room for others.
    pub evicted: AtomicU64,
    /// Workers added since the start, those included that came back.
    pub workers_grown: AtomicU64,
    /// Workers that have gone again.
    pub workers_shrunk: AtomicU64,
    /// Workers that were needed and could not be started; after a second it is tried again.
    pub workers_failed: AtomicU64,
    /// Tasks that panicked. The panic is contained: the task is dropped, the worker lives.
    pub panics: AtomicU64,
}

/// Adds one to a count.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl WorkersShared {
    pub(crate) fn new(
        handles: Vec<Arc<dyn WorkerHandle>>,
        elastic: Arc<dyn Elastic>,
        connection_slots: ConnectionSlots,
        placement: Placement,
        drain_accept: Duration,
        throttle: ThrottleState,
    ) -> Self {
        let (phase, counts) = (AtomicU32::new(Phase::Serving as u32), Counts::default());
        let evictions = EvictionRequests::new(handles.len());
        Self {
            phase,
            handles,
            acceptor: OnceLock::new(),
            elastic,
            connection_slots,
            evictions,
            cuts: Cuts::default(),
            watchdog: WatchdogWaker::default(),
            shared_load: OnceLock::new(),
            placement,
            scarce_from: scarce_from(descriptor_limit()),
            drain_accept_ms: u64::try_from(drain_accept.as_millis()).unwrap_or(u64::MAX >> 1),
            throttle,
            counts,
            acceptors: AtomicUsize::new(0),
            worker_metrics: Lock::default(),
            ledger: Arc::new(Ledger::new(0)),
            names: Arc::default(),
            next_handle: AtomicUsize::new(0),
        }
    }

    /// Returns it with an account in the ledger for each of so many workers.
    #[must_use]
    pub(crate) fn with_accounts(self, workers: usize) -> Self {
        Self { ledger: Arc::new(Ledger::new(workers)), ..self }
    }

    /// Returns the account of the workers' receive buffers.
    pub(crate) fn buffer_account(&self) -> BufferAccount {
        BufferAccount::new(Arc::clone(&self.ledger) as Arc<dyn MemoryAccount>)
    }

    /// Tells other processes how many connections are open here, where there are such processes.
    pub(crate) fn publish_load(&self) {
        if let Some(load) = self.shared_load.get() {
            load.publish(self.connection_slots.open());
        }
    }

    /// Returns whether other processes should accept first, which have fewer connections.
    pub(crate) fn is_over_share(&self) -> bool {
        self.shared_load.get().is_some_and(|load| load.is_over_share(self.connection_slots.open()))
    }

    /// Returns the metrics of a worker that starts now: a new one, or that of whoever had its
    /// number before.
    pub(crate) fn add_metrics(&self, worker: usize, wake_target: u16) -> Arc<WorkerMetrics> {
        let mut worker_metrics = self.worker_metrics.lock();
        let left = worker_metrics
            .iter()
            .find(|metrics| (metrics.worker, metrics.wake_target) == (worker, wake_target));
        if let Some(left) = left {
            return Arc::clone(left);
        }
        let metrics = Arc::new(WorkerMetrics::new(worker, wake_target));
        worker_metrics.push(Arc::clone(&metrics));
        metrics
    }

    /// Hands a task to the next worker that has room for it.
    pub(crate) fn place_task(&self, mut task: BoxTask) -> Result<(), SpawnError> {
        if self.phase() == Phase::Stopping {
            return Err(SpawnError::Stopped);
        }
        let first = self.next_handle.fetch_add(1, Ordering::Relaxed);
        let count = self.handles.len();
        // A retired worker refuses. Its tasks are spread evenly over those that always stay.
        let stay = self.elastic.floor().min(count);
        let others = (0..count).map(|ahead| (first % stay + ahead) % count);
        let mut refused = SpawnError::Stopped;
        for handle in std::iter::once(first % count).chain(others) {
            match self.handles[handle].take_task(task) {
                Ok(()) => return Ok(()),
                Err((back, SpawnError::Full)) => (task, refused) = (back, SpawnError::Full),
                Err((back, _)) => task = back,
            }
        }
        Err(refused)
    }

    pub(crate) fn phase(&self) -> Phase {
        let phase = usize::try_from(self.phase.load(Ordering::SeqCst) % DISTURBANCE);
        phase.ok().and_then(|phase| Phase::ALL.get(phase)).copied().unwrap_or(Phase::Stopping)
    }

    /// Returns whether the server neither ends nor asks connections to give way.
    #[inline]
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == Phase::Serving as u32
    }

    /// Asks idle connections to give way, those of the workers that have most first.
    pub(crate) fn request_evictions(&self, count: u32) {
        let open_on = |place: &usize| self.connection_slots.open_on(*place);
        let mut places: Vec<_> = (0..self.handles.len()).filter(|it| open_on(it) > 0).collect();
        places.sort_by_key(|place| Reverse(open_on(place)));
        places.truncate(count as usize);
        let each = count.div_ceil(u32::try_from(places.len().max(1)).unwrap_or(count));
        for place in places {
            if self.evictions.add(place, each) {
                self.phase.fetch_add(DISTURBANCE, Ordering::SeqCst);
                if !self.handles[place].evict() {
                    self.evictions.take(place);
                    self.end_eviction();
                }
            }
        }
    }

    /// Asks idle connections to give way, because descriptors have run out.
    pub(crate) fn request_descriptors(&self) {
        if self.phase() == Phase::Serving {
            self.request_evictions(EVICTED_FOR_DESCRIPTORS);
        }
    }

    /// Takes note that a worker has asked its connections.
    pub(crate) fn end_eviction(&self) {
        self.phase.fetch_sub(DISTURBANCE, Ordering::SeqCst);
    }

    /// Orders that a connection is cut once it waits.
    pub(crate) fn add_cut(&self, task: TaskId, during: CutDuring) {
        self.cuts.add(task, during);
        self.phase.fetch_add(DISTURBANCE, Ordering::SeqCst);
    }

    /// Takes such an order out. Returns whether there was one.
    pub(crate) fn take_cut(&self, task: TaskId, during: CutDuring) -> bool {
        let is_taken = self.cuts.take(task, during);
        if is_taken {
            self.phase.fetch_sub(DISTURBANCE, Ordering::SeqCst);
        }
        is_taken
    }

    /// Goes forward to `phase`, and wakes all workers.
    pub(crate) fn advance(&self, phase: Phase) {
        let forward = |now: u32| {
            let own = now % DISTURBANCE;
            Some(now - own + own.max(phase as u32))
        };
        // It cannot fail: the closure always gives a value.
        let _ = self.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forward);
        self.connection_slots.wake_waiting();
        self.elastic.report(LoadEvent::PhaseChanged);
        self.watchdog.wake();
        for handle in self.handles.iter().chain(self.acceptor.get()) {
            handle.wake_all();
        }
    }
}
