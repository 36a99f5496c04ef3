//! Starting and ending the workers of one server.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gustnado_reactor::{
    Backend, Clock, Endpoint, IoChoice, Options, Reactor, ReactorSeed, descriptor_limit,
};

use crate::acceptor::{self, Acceptor};
use crate::crew::{Counts, Crew, Phase, Post, Serve};
use crate::group::{Group, WORKERS_MAX};
use crate::here::Here;
use crate::inbox::Inbox;
use crate::listening::{self, Entrance};
use crate::places::{Placement, Places};
use crate::schedule::SchedulerKind;
use crate::wake;
use crate::worker::{run_pinned, run_shared};

/// Descriptors that are left for files, listeners and the rest of the process.
const RESERVED_DESCRIPTORS: usize = 128;

/// How many workers, how they poll, and how connections come to them.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads; at least 1.
    pub workers: usize,
    /// Which backend to try.
    pub io: IoChoice,
    /// Which scheduler places and runs connections.
    pub scheduler: SchedulerKind,
    /// Connections per worker; 0: as many as the backend can hold. The queues have no such limit.
    pub slots: usize,
    /// Connections in total; 0: as many as the backend can hold.
    pub connections_max: usize,
    /// To which worker a connection goes.
    pub placement: Placement,
    /// Who accepts.
    pub acceptor: Acceptor,
    /// Connections that may wait to be accepted, per listening socket.
    pub backlog: u32,
    /// Whether a TCP connection is accepted only once its first bytes are here, or a second has
    /// passed.
    pub defer_accept: bool,
    /// Microseconds a worker goes on looking for work before it sleeps.
    pub spin_us: u64,
    /// Receive buffers of 4 KiB per worker under `io_uring`; a power of two.
    pub buffers: u16,
}

/// What a plan comes to on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Connections per worker (for the shared schedulers: of all workers together).
    pub per_place: usize,
    /// Connections in total.
    pub total: usize,
    /// Entries of each worker's descriptor table under `io_uring`.
    pub direct: usize,
}

impl Plan {
    /// How many connections this plan can hold with a backend, given the descriptor limit.
    pub fn capacity(&self, backend: Backend) -> Capacity {
        let limit = descriptor_limit();
        let ordinary = limit.saturating_sub(RESERVED_DESCRIPTORS).max(1);
        // Multishot accepting may take a whole backlog at once: leave room for that in the table.
        let margin = (self.backlog as usize).min(limit / 20);
        let (fits_place, fits_total) = match backend {
            Backend::Uring => (limit - margin, self.workers.saturating_mul(limit - margin)),
            Backend::Epoll => (ordinary, ordinary),
        };
        let total = if self.connections_max == 0 { fits_total } else { self.connections_max };
        let slots = match self.scheduler {
            SchedulerKind::Pool if self.slots > 0 => self.slots,
            SchedulerKind::PoolShared if self.slots > 0 => self.slots.saturating_mul(self.workers),
            _ => fits_place,
        };
        let per_place = slots.min(total).max(1);
        let direct = per_place.saturating_add(margin).min(limit);
        Capacity { per_place, total: total.max(1), direct }
    }
}

/// Running workers.
pub struct Workers {
    pub(crate) crew: Arc<Crew>,
    pub(crate) plan: Plan,
    /// Until it has been ended.
    running: Mutex<Option<Running>>,
    addresses: Vec<Endpoint>,
    notes: Vec<String>,
    backend: Backend,
    capacity: Capacity,
    clock: Clock,
}

impl Workers {
    /// Binds the endpoints, starts the workers, and returns once all of them accept.
    ///
    /// - `serve`: makes the task that serves a connection; called on the worker that will run it.
    ///
    /// # Errors
    /// An endpoint cannot be bound ([`StartError::Bind`]), or a thread or its reactor not be had.
    pub fn start(
        plan: &Plan,
        endpoints: &[Endpoint],
        serve: Box<Serve>,
    ) -> Result<Self, StartError> {
        let mut notes = Vec::new();
        let backend = choose_backend(plan, &mut notes);
        let capacity = plan.capacity(backend);
        let clock = Clock::start();
        let (addresses, sockets) = bind_all(plan, endpoints)?;
        let entrance = Entrance::new(serve, false);
        let started = if plan.scheduler.is_shared() {
            start_group(plan, capacity, &clock, &entrance, sockets)
        } else {
            start_pinned(plan, backend, capacity, &clock, &entrance, sockets)
        };
        let Started { crew, threads, stations, note } = started.map_err(StartError::Thread)?;
        notes.extend(note);
        let running = Mutex::new(Some(Running { threads, stations }));
        let plan = plan.clone();
        Ok(Self { crew, plan, running, addresses, notes, backend, capacity, clock })
    }

    /// The endpoints in fact bound.
    pub fn addresses(&self) -> &[Endpoint] {
        &self.addresses
    }

    /// What a user should know about the start: why a wish was not granted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The backend at work.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// How many connections fit.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Connections open now.
    pub fn connections_open(&self) -> usize {
        self.crew.places.open()
    }

    /// Connections open now on each worker (one number for the shared schedulers).
    pub fn connections_by_place(&self) -> Vec<usize> {
        (0..self.crew.posts.len()).map(|place| self.crew.places.open_on(place)).collect()
    }

    /// What happened to connections and tasks since the start.
    pub fn counts(&self) -> &Counts {
        &self.crew.counts
    }

    /// Milliseconds since the start.
    pub fn uptime_ms(&self) -> u64 {
        self.clock.read_ms()
    }

    /// The phase that the workers are in.
    pub fn phase(&self) -> Phase {
        self.crew.phase()
    }

    /// Goes forward to a later phase. Never back.
    pub fn advance(&self, phase: Phase) {
        self.crew.advance(phase);
    }

    /// Ends all workers and waits for them, but not longer than `within`: a handler that never
    /// returns keeps its thread until the process ends. Removes the socket files of Unix endpoints.
    pub fn stop(&self, within: Duration) {
        self.crew.advance(Phase::Stopping);
        // Taken out, so that it is done once: what is given up here may be another server's next.
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { threads, stations }) = running else { return };
        let began = Instant::now();
        for thread in threads {
            while !thread.is_finished() && began.elapsed() < within {
                thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A worker that panicked has said so; the rest of the end goes on.
                let _ = thread.join();
            }
        }
        stations.into_iter().for_each(wake::leave);
        for address in &self.addresses {
            if let Endpoint::Unix(path) = address {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(1));
    }
}

/// What is to be ended.
struct Running {
    threads: Vec<JoinHandle<()>>,
    stations: Vec<u16>,
}

/// Why workers did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An endpoint could not be bound.
    Bind(Endpoint, io::Error),
    /// A thread or its reactor could not be had.
    Thread(io::Error),
    /// The current thread runs tasks already: await the future in one of them.
    Nested,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(endpoint, error) => write!(f, "cannot listen on {endpoint}: {error}"),
            Self::Thread(error) => write!(f, "cannot start a worker: {error}"),
            Self::Nested => f.write_str("this thread runs tasks already: await the future in one"),
        }
    }
}

impl std::error::Error for StartError {}

struct Started {
    crew: Arc<Crew>,
    threads: Vec<JoinHandle<()>>,
    stations: Vec<u16>,
    note: Option<String>,
}

/// Listening sockets: for each acceptor, one per endpoint.
type Sockets = Vec<Vec<OwnedFd>>;

fn choose_backend(plan: &Plan, notes: &mut Vec<String>) -> Backend {
    if plan.io == IoChoice::Epoll {
        return Backend::Epoll;
    }
    if plan.scheduler.is_shared() {
        if plan.io == IoChoice::Uring {
            notes.push(
                "shared schedulers use epoll: only the thread that owns a ring may take its \
                 completions"
                    .to_owned(),
            );
        }
        return Backend::Epoll;
    }
    match gustnado_reactor::probe_uring() {
        Ok(()) => Backend::Uring,
        Err(error) => {
            notes.push(format!("io_uring cannot be used here ({error}); using epoll"));
            Backend::Epoll
        }
    }
}

fn bind_all(plan: &Plan, endpoints: &[Endpoint]) -> Result<(Vec<Endpoint>, Sockets), StartError> {
    let mut addresses = Vec::new();
    let mut by_acceptor: Sockets = Vec::new();
    for endpoint in endpoints {
        let failed = |error| StartError::Bind(endpoint.clone(), error);
        let (sockets, address) = listening::open(plan, endpoint).map_err(failed)?;
        by_acceptor.resize_with(sockets.len(), Vec::new);
        for (own, socket) in by_acceptor.iter_mut().zip(sockets) {
            own.push(socket);
        }
        addresses.push(address);
    }
    Ok((addresses, by_acceptor))
}

fn start_pinned(
    plan: &Plan,
    backend: Backend,
    capacity: Capacity,
    clock: &Clock,
    entrance: &Arc<Entrance>,
    mut sockets: Sockets,
) -> io::Result<Started> {
    let inboxes: Vec<_> = (0..plan.workers).map(|_| Arc::new(Inbox::default())).collect();
    let posts = inboxes.iter().map(|inbox| Arc::clone(inbox) as Arc<dyn Post>).collect();
    let crew = new_crew(plan, capacity, posts);
    let mut start = Start::new(&crew);
    if plan.acceptor == Acceptor::Dedicated {
        let sockets = sockets.pop().unwrap_or_default();
        start.dedicated_acceptor(plan, clock, sockets, entrance)?;
    }
    let mut sockets = sockets.into_iter();
    let io = if backend == Backend::Uring { IoChoice::Uring } else { IoChoice::Epoll };
    for (worker, inbox) in inboxes.into_iter().enumerate() {
        let options = options(plan, io, capacity, clock);
        let station = start.station(Arc::clone(&inbox) as Arc<dyn Post>)?;
        let own = sockets.next().unwrap_or_default();
        let (scheduler, entrance) = (plan.scheduler, Arc::clone(entrance));
        start.thread(format!("gust-{worker}"), move |crew| {
            let (reactor, refused) = Reactor::new(&options)?;
            inbox.open(reactor.alert());
            let schedule = scheduler.pinned(capacity.per_place);
            let here = Here::new(reactor, schedule, None, station, worker, crew);
            acceptor::start(&here, own, Some(worker), &entrance)?;
            let note = refused.map(|error| format!("worker {worker} uses epoll: {error}"));
            Ok((note, move || run_pinned(&here, &inbox)))
        })?;
    }
    start.wait()
}

fn start_group(
    plan: &Plan,
    capacity: Capacity,
    clock: &Clock,
    entrance: &Arc<Entrance>,
    mut sockets: Sockets,
) -> io::Result<Started> {
    let workers = plan.workers.min(WORKERS_MAX);
    let schedule = plan.scheduler.shared(capacity.per_place);
    let options = options(plan, IoChoice::Epoll, capacity, clock);
    let (alert, seeds) = Reactor::shared(&options, workers)?;
    let group = Arc::new(Group::new(schedule, alert, workers));
    let crew = new_crew(plan, capacity, vec![Arc::clone(&group) as Arc<dyn Post>]);
    let mut start = Start::new(&crew);
    let station = start.station(Arc::clone(&group) as Arc<dyn Post>)?;
    let mut sockets = sockets.pop().unwrap_or_default();
    if plan.acceptor == Acceptor::Dedicated {
        start.dedicated_acceptor(plan, clock, std::mem::take(&mut sockets), entrance)?;
    }
    for (worker, seed) in seeds.into_iter().enumerate() {
        let group = Arc::clone(&group);
        // Accepting is a task like others: whoever is free does it.
        let (own, entrance) = (std::mem::take(&mut sockets), Arc::clone(entrance));
        start.thread(format!("gust-{worker}"), move |crew| {
            let schedule = Box::new(Arc::clone(&group.schedule));
            let shared = Some(Arc::clone(&group));
            let here = Here::new(ReactorSeed::grow(seed), schedule, shared, station, worker, crew);
            acceptor::start(&here, own, Some(0), &entrance)?;
            Ok((None, move || run_shared(&here, &group)))
        })?;
    }
    let mut started = start.wait()?;
    if plan.workers > WORKERS_MAX {
        started.note = Some(format!("a shared scheduler runs at most {WORKERS_MAX} workers"));
    }
    Ok(started)
}

fn new_crew(plan: &Plan, capacity: Capacity, posts: Vec<Arc<dyn Post>>) -> Arc<Crew> {
    let places = Places::new(posts.len(), capacity.total, capacity.per_place);
    let backlog = plan.backlog as usize;
    Arc::new(Crew::new(posts, places, plan.placement, backlog, plan.spin_us))
}

fn options(plan: &Plan, io: IoChoice, capacity: Capacity, clock: &Clock) -> Options {
    Options { io, direct_max: capacity.direct, buffers: plan.buffers, clock: clock.clone() }
}

/// Threads that have been started and have not all reported yet.
struct Start {
    crew: Arc<Crew>,
    threads: Vec<JoinHandle<()>>,
    stations: Vec<u16>,
    report: mpsc::Sender<io::Result<Option<String>>>,
    reports: mpsc::Receiver<io::Result<Option<String>>>,
}

impl Start {
    fn new(crew: &Arc<Crew>) -> Self {
        let (report, reports) = mpsc::channel();
        let crew = Arc::clone(crew);
        Self { crew, threads: Vec::new(), stations: Vec::new(), report, reports }
    }

    fn station(&mut self, post: Arc<dyn Post>) -> io::Result<u16> {
        let station = wake::enter(post)?;
        self.stations.push(station);
        Ok(station)
    }

    /// Starts a thread: `prepare` on it makes what it then runs, and a note for the user.
    fn thread<R>(
        &mut self,
        name: String,
        prepare: impl FnOnce(Arc<Crew>) -> io::Result<(Option<String>, R)> + Send + 'static,
    ) -> io::Result<()>
    where
        R: FnOnce() -> io::Result<()>,
    {
        let (crew, report) = (Arc::clone(&self.crew), self.report.clone());
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            let run = match prepare(crew) {
                Ok((note, run)) => {
                    // Nobody listens any more if another thread could not start.
                    let _ = report.send(Ok(note));
                    run
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                    return;
                }
            };
            drop(report);
            if let Err(error) = run() {
                panic!("worker {name} cannot reach the kernel any more: {error}");
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// One thread that accepts for all workers.
    fn dedicated_acceptor(
        &mut self,
        plan: &Plan,
        clock: &Clock,
        sockets: Vec<OwnedFd>,
        entrance: &Arc<Entrance>,
    ) -> io::Result<()> {
        let inbox = Arc::new(Inbox::default());
        let station = self.station(Arc::clone(&inbox) as Arc<dyn Post>)?;
        let first = self.crew.acceptor.set(Arc::clone(&inbox) as Arc<dyn Post>);
        debug_assert!(first.is_ok(), "one thread accepts");
        let nothing = Capacity { per_place: 0, total: 0, direct: 0 };
        let options = options(plan, IoChoice::Epoll, nothing, clock);
        let (worker, entrance) = (plan.workers, Arc::clone(entrance));
        self.thread("gust-accept".to_owned(), move |crew| {
            let (reactor, _) = Reactor::new(&options)?;
            inbox.open(reactor.alert());
            let schedule = SchedulerKind::Queue.pinned(0);
            let here = Here::new(reactor, schedule, None, station, worker, crew);
            acceptor::start(&here, sockets, None, &entrance)?;
            Ok((None, move || run_pinned(&here, &inbox)))
        })
    }

    /// Waits until every thread has started, or ends those that have.
    fn wait(self) -> io::Result<Started> {
        let Self { crew, threads, stations, report, reports } = self;
        drop(report);
        let mut note = None;
        let mut failed = None;
        for outcome in reports {
            match outcome {
                Ok(said) => note = note.or(said),
                Err(error) => failed = Some(error),
            }
        }
        let Some(error) = failed else { return Ok(Started { crew, threads, stations, note }) };
        crew.advance(Phase::Stopping);
        for thread in threads {
            let _ = thread.join();
        }
        stations.into_iter().for_each(wake::leave);
        Err(error)
    }
}
