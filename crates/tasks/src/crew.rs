//! What all workers of one server have in common: how to reach each, the places for connections,
//! and the phase that the server is in.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::bucket::{Rate, SharedBucket};
use crate::desk::Desk;
use crate::dump::Look;
use crate::listening::Arrival;
use crate::net::Link;
use crate::places::{Placement, Places};
use crate::schedule::BoxTask;
use crate::shared_load::SharedLoad;
use crate::station::Station;
use crate::task::SpawnError;
use crate::task_id::TaskId;
use crate::watch::Watch;
use crate::workers::Slowness;

/// How far a server is from its end. It only ever goes forward.
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

/// Makes the task that serves a new connection.
pub type Serve = dyn Fn(Link) -> BoxTask + Send + Sync;

/// A post that connections and listeners can be handed to, and wake-ups sent to.
pub(crate) trait Post: Station {
    /// Hands something over.
    fn arrive(&self, arrival: Arrival);

    /// Hands a task over, to be run here. The error gives it back.
    fn take_task(&self, task: BoxTask) -> Result<(), (BoxTask, SpawnError)>;

    /// How many tasks were taken in past all workers, by the thread that brought them.
    fn tasks_taken(&self) -> u64;

    /// Has all tasks that live here written down, at once or soon. Returns whether there is
    /// somebody to do it.
    fn answer(&self, look: &Arc<Look>, crew: &Crew) -> bool;

    /// Makes all tasks ready, so that they see the phase has changed.
    fn wake_all(&self);
}

/// What the workers of one server share.
pub(crate) struct Crew {
    phase: AtomicU8,
    /// One per place of [`Places`]: each worker, or the group of all.
    pub(crate) posts: Vec<Arc<dyn Post>>,
    /// The accepting thread, if there is one: it has no place, but must hear of each phase.
    pub(crate) acceptor: OnceLock<Arc<dyn Post>>,
    /// What adds and dismisses workers, where that may be.
    pub(crate) watch: OnceLock<Arc<Watch>>,
    pub(crate) places: Places,
    /// What other processes have that accept from the same sockets.
    pub(crate) shared_load: OnceLock<SharedLoad>,
    pub(crate) placement: Placement,
    pub(crate) backlog: usize,
    /// For how long accepting goes on at most in a drain.
    pub(crate) drain_accept_ms: u64,
    pub(crate) pauses: Pauses,
    pub(crate) counts: Counts,
    /// Acceptors that may still bring connections.
    pub(crate) acceptors: AtomicUsize,
    /// One per worker that has started.
    desks: Mutex<Vec<Arc<Desk>>>,
    /// Names of tasks that have one.
    names: Mutex<Names>,
    /// The post that the next task from elsewhere goes to.
    next_post: AtomicUsize,
}

/// What tasks are called, by their numbers.
pub(crate) type Names = HashMap<TaskId, Cow<'static, str>>;

/// When workers and acceptors do nothing though they could, or look for work though there is none.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// There is something to do before a worker sleeps: one of the next two is not zero.
    pub(crate) before_sleep: bool,
    pub(crate) spin_us: u64,
    pub(crate) no_io_wait_us: u64,
    pub(crate) pass_delay_us: u64,
    /// How many connections one request to the kernel may bring in.
    pub(crate) accept_room_max: usize,
    pub(crate) accept_delay_ms: u64,
    /// What all acceptors together may accept.
    pub(crate) accepts: Option<(Rate, SharedBucket)>,
}

impl Pauses {
    pub(crate) fn new(spin_us: u64, slowness: Slowness) -> Self {
        // Who accepts at a pace must not let the kernel go ahead.
        let is_paced = slowness.accepts_per_second > 0 || slowness.accept_delay_ms > 0;
        Self {
            before_sleep: spin_us > 0 || slowness.no_io_wait_us > 0,
            spin_us,
            no_io_wait_us: slowness.no_io_wait_us,
            pass_delay_us: slowness.pass_delay_us,
            accept_room_max: if is_paced { 1 } else { usize::MAX },
            accept_delay_ms: slowness.accept_delay_ms,
            accepts: Rate::steady(slowness.accepts_per_second, 1)
                .map(|rate| (rate, SharedBucket::default())),
        }
    }

    /// Whether acceptors wait between two connections.
    pub(crate) fn has_paced_accepts(&self) -> bool {
        self.accept_room_max == 1
    }

    /// How long an acceptor rests after a connection. (So each may be one ahead of the pace, and no
    /// accepted connection waits.)
    pub(crate) fn rest_after_accept_ms(&self, now_ms: u64) -> u64 {
        let due_ms =
            self.accepts.as_ref().map_or(0, |(rate, bucket)| bucket.take(*rate, now_ms, 1));
        due_ms.saturating_sub(now_ms).max(self.accept_delay_ms)
    }
}

/// What happened to connections and tasks since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Accepts that failed for want of descriptors or memory; accepting paused for a moment.
    pub accept_exhausted: AtomicU64,
    /// Accepts that failed otherwise: the peer had gone, or the system refuses them all, and
    /// accepting paused for a moment.
    pub accept_failed: AtomicU64,
    /// Times that accepting paused because all places were taken.
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

impl Crew {
    pub(crate) fn new(
        posts: Vec<Arc<dyn Post>>,
        places: Places,
        placement: Placement,
        backlog: usize,
        drain_accept: Duration,
        pauses: Pauses,
    ) -> Self {
        let (phase, counts) = (AtomicU8::new(Phase::Serving as u8), Counts::default());
        Self {
            phase,
            posts,
            acceptor: OnceLock::new(),
            watch: OnceLock::new(),
            places,
            shared_load: OnceLock::new(),
            placement,
            backlog,
            drain_accept_ms: u64::try_from(drain_accept.as_millis()).unwrap_or(u64::MAX >> 1),
            pauses,
            counts,
            acceptors: AtomicUsize::new(0),
            desks: Mutex::default(),
            names: Mutex::default(),
            next_post: AtomicUsize::new(0),
        }
    }

    /// Tells other processes how many connections are open here, where there are such processes.
    pub(crate) fn publish_load(&self) {
        if let Some(load) = self.shared_load.get() {
            load.publish(self.places.open());
        }
    }

    /// Whether other processes should accept first, which have fewer connections.
    pub(crate) fn is_over_share(&self) -> bool {
        self.shared_load.get().is_some_and(|load| load.is_over_share(self.places.open()))
    }

    /// The desk of a worker that starts now: a new one, or that of whoever had its number before.
    pub(crate) fn add_desk(&self, worker: usize, station: u16) -> Arc<Desk> {
        let mut desks = self.desks();
        let left = desks.iter().find(|desk| (desk.worker, desk.station) == (worker, station));
        if let Some(left) = left {
            return Arc::clone(left);
        }
        let desk = Arc::new(Desk::new(worker, station));
        desks.push(Arc::clone(&desk));
        desk
    }

    /// Whether the worker with this number has not gone.
    pub(crate) fn is_present(&self, worker: usize) -> bool {
        self.watch.get().is_none_or(|watch| watch.seats.is_present(worker))
    }

    /// Has the watch look whether workers are to be added, if there is one.
    pub(crate) fn tell_watch(&self) {
        if let Some(watch) = self.watch.get() {
            watch.tell();
        }
    }

    pub(crate) fn desks(&self) -> MutexGuard<'_, Vec<Arc<Desk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a task to the next worker that has room for it.
    pub(crate) fn place_task(&self, mut task: BoxTask) -> Result<(), SpawnError> {
        if self.phase() == Phase::Stopping {
            return Err(SpawnError::Stopped);
        }
        let first = self.next_post.fetch_add(1, Ordering::Relaxed);
        let count = self.posts.len();
        // Where the turn comes to one that has gone, it goes on evenly among those that stay.
        let stay = self.watch.get().map_or(count, |watch| watch.seats.floor().min(count));
        let others = (0..count).map(|ahead| (first % stay + ahead) % count);
        let mut refused = SpawnError::Stopped;
        for post in std::iter::once(first % count).chain(others) {
            match self.posts[post].take_task(task) {
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

    /// Goes forward to `phase`, and tells everybody.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        self.places.wake_waiting();
        if let Some(watch) = self.watch.get() {
            watch.tell();
            watch.seats.rouse_parked();
        }
        for post in self.posts.iter().chain(self.acceptor.get()) {
            post.wake_all();
        }
    }
}
