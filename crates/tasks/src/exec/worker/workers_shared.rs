//! State that all workers of one server share: how to reach each, the connection slots,
//! and the phase that the server is in.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::exec::error::SpawnError;
use crate::exec::schedule::BoxTask;
use crate::exec::worker::dump_request::TaskNames;
use crate::exec::worker::elastic::{Elastic, LoadEvent};
use crate::exec::worker::throttle::ThrottleState;
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::worker_metrics::WorkerMetrics;
use crate::sync::connection_slots::{ConnectionSlots, Placement};
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

/// State that the workers of one server share.
pub(crate) struct WorkersShared {
    phase: AtomicU8,
    /// One per entry of [`ConnectionSlots`]: each worker, or the group of all.
    pub(crate) handles: Vec<Arc<dyn WorkerHandle>>,
    /// The accepting thread, if there is one: it has no connections, but must hear of each phase.
    pub(crate) acceptor: OnceLock<Arc<dyn WorkerHandle>>,
    /// How many workers there are, and what may change that.
    pub(crate) elastic: Arc<dyn Elastic>,
    pub(crate) connection_slots: ConnectionSlots,
    /// What other processes have that accept from the same sockets.
    pub(crate) shared_load: OnceLock<SharedLoad>,
    pub(crate) placement: Placement,
    pub(crate) backlog: usize,
    /// For how long accepting goes on at most in a drain.
    pub(crate) drain_accept_ms: u64,
    pub(crate) throttle: ThrottleState,
    pub(crate) counts: Counts,
    /// Acceptors that may still bring connections.
    pub(crate) acceptors: AtomicUsize,
    /// One per worker that has started.
    pub(crate) worker_metrics: Lock<Vec<Arc<WorkerMetrics>>>,
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
        backlog: usize,
        drain_accept: Duration,
        throttle: ThrottleState,
    ) -> Self {
        let (phase, counts) = (AtomicU8::new(Phase::Serving as u8), Counts::default());
        Self {
            phase,
            handles,
            acceptor: OnceLock::new(),
            elastic,
            connection_slots,
            shared_load: OnceLock::new(),
            placement,
            backlog,
            drain_accept_ms: u64::try_from(drain_accept.as_millis()).unwrap_or(u64::MAX >> 1),
            throttle,
            counts,
            acceptors: AtomicUsize::new(0),
            worker_metrics: Lock::default(),
            names: Arc::default(),
            next_handle: AtomicUsize::new(0),
        }
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
        let phase = self.phase.load(Ordering::SeqCst);
        Phase::ALL.get(usize::from(phase)).copied().unwrap_or(Phase::Stopping)
    }

    /// Goes forward to `phase`, and wakes all workers.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        self.connection_slots.wake_waiting();
        self.elastic.report(LoadEvent::PhaseChanged);
        for handle in self.handles.iter().chain(self.acceptor.get()) {
            handle.wake_all();
        }
    }
}
