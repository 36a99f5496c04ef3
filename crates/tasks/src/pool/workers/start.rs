//! Starting the threads of a server: those of the start, and those that come later.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use gustnado_reactor::{
    Backend, Clock, IoChoice, Lookout, Options, Reactor, ReactorSeed, descriptor_limit,
};

use super::listen::Sockets;
use crate::exec::autoscale::Autoscale;
use crate::exec::crew::{Crew, Phase, count};
use crate::exec::descriptors::INSTALLED_PART;
use crate::exec::group::{Group, WORKERS_MAX};
use crate::exec::here::Here;
use crate::exec::inbox::Inbox;
use crate::exec::pauses::Pauses;
use crate::exec::post::Post;
use crate::exec::schedule::SchedulerKind;
use crate::exec::station;
use crate::net::acceptor::{self, Acceptor};
use crate::net::listening::Entrance;
use crate::pool::driven::Driven;
use crate::pool::plan::{Capacity, Plan};
use crate::pool::seats::Seats;
use crate::pool::watch::{Hire, Pinned, Shared, Team, Times, Watch, Watcher, millis};
use crate::pool::worker::{run_guest, run_pinned, run_shared};
use crate::sync::places::Places;

/// What was started.
pub(super) struct Started {
    pub(super) crew: Arc<Crew>,
    pub(super) watch: Option<Arc<Watch>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) stations: Vec<u16>,
    pub(super) notes: Vec<String>,
}

impl Started {
    /// Ends it all again: something else could not be started.
    pub(super) fn end(self) {
        self.crew.advance(Phase::Stopping);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.stations.into_iter().for_each(station::leave);
    }
}

pub(super) fn choose_backend(plan: &Plan, notes: &mut Vec<String>) -> Backend {
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

/// What every thread of a server is started from.
#[derive(Clone)]
pub(super) struct Ground {
    pub(super) plan: Plan,
    pub(super) backend: Backend,
    pub(super) capacity: Capacity,
    pub(super) clock: Clock,
}

impl Ground {
    pub(super) fn start(&self, entrance: &Arc<Entrance>, sockets: Sockets) -> io::Result<Started> {
        if self.plan.scheduler.is_shared() {
            self.start_group(entrance, sockets)
        } else {
            self.start_pinned(entrance, sockets)
        }
    }

    fn start_pinned(&self, entrance: &Arc<Entrance>, sockets: Sockets) -> io::Result<Started> {
        Ok(self.start_unshared(entrance, sockets, false)?.0)
    }

    /// Starts workers that share nothing, the first of them on the running thread.
    pub(super) fn start_driven(
        &self,
        entrance: &Arc<Entrance>,
        sockets: Sockets,
    ) -> io::Result<(Started, Driven)> {
        let (started, driven) = self.start_unshared(entrance, sockets, true)?;
        Ok((started, driven.expect("it was asked for")))
    }

    fn start_unshared(
        &self,
        entrance: &Arc<Entrance>,
        mut sockets: Sockets,
        is_driven: bool,
    ) -> io::Result<(Started, Option<Driven>)> {
        let plan = &self.plan;
        let (floor, ceiling) = (plan.workers, plan.workers_max());
        let inboxes: Vec<_> = (0..ceiling).map(|_| Arc::new(Inbox::default())).collect();
        let posts = inboxes.iter().map(|inbox| Arc::clone(inbox) as Arc<dyn Post>).collect();
        let crew = self.new_crew(posts);
        for (worker, inbox) in inboxes.iter().enumerate().skip(floor) {
            crew.places.close(worker);
            inbox.arrivals().close();
        }
        let watch = self.set_watch(&crew, floor, ceiling)?;
        let mut start = Start::new(&crew);
        if plan.acceptor == Acceptor::Dedicated {
            let sockets = sockets.pop().unwrap_or_default();
            start.dedicated_acceptor(self, sockets, entrance)?;
        }
        let mut sockets = sockets.into_iter();
        let mut driven = None;
        if is_driven {
            let own = sockets.next().unwrap_or_default();
            driven = Some(self.open_driven(&inboxes[0], Arc::clone(&crew), own, entrance)?);
        }
        let threads = usize::from(is_driven)..floor;
        for (worker, inbox) in inboxes.iter().enumerate().take(threads.end).skip(threads.start) {
            let ground = self.clone();
            let inbox = Arc::clone(inbox);
            let station = start.station(Arc::clone(&inbox) as Arc<dyn Post>)?;
            let own = sockets.next().unwrap_or_default();
            let entrance = Arc::clone(entrance);
            start.thread(name(worker), move |crew| {
                let (here, note) = ground.open_pinned(&inbox, station, worker, crew)?;
                acceptor::start(&here, own, Some(worker), &entrance)?;
                Ok((note, move || run_pinned(&here, &inbox)))
            })?;
        }
        let started = start.wait()?;
        let Some((lookout, watch)) = watch else { return Ok((started, driven)) };
        let team = Pinned::new(inboxes.clone(), millis(plan.growth.grow_after));
        let (ground, crew) = (self.clone(), Arc::clone(&started.crew));
        let hire = {
            let watch = Arc::clone(&watch);
            move |worker: usize| ground.hire_pinned(&inboxes[worker], worker, &crew, &watch)
        };
        let started = self.start_watch(started, watch, lookout, Box::new(team), Box::new(hire))?;
        Ok((started, driven))
    }

    /// Makes the running thread the first worker, for as long as its caller wants.
    fn open_driven(
        &self,
        inbox: &Arc<Inbox>,
        crew: Arc<Crew>,
        sockets: Vec<Arc<OwnedFd>>,
        entrance: &Arc<Entrance>,
    ) -> io::Result<Driven> {
        let station = station::enter(Arc::clone(inbox) as Arc<dyn Post>)?;
        let (here, _) =
            self.open_pinned(inbox, station, 0, crew).inspect_err(|_| station::leave(station))?;
        Driven::start(here, Arc::clone(inbox), sockets, entrance)
    }

    /// Makes the running thread a worker that shares nothing. It needs the door to the kernel that
    /// it gets; a note says why that is another one than was wanted.
    fn open_pinned(
        &self,
        inbox: &Inbox,
        station: u16,
        worker: usize,
        crew: Arc<Crew>,
    ) -> io::Result<(std::rc::Rc<Here>, Option<String>)> {
        let io = if self.backend == Backend::Uring { IoChoice::Uring } else { IoChoice::Epoll };
        let (reactor, refused) = Reactor::new(&self.options(io, self.capacity))?;
        inbox.open(reactor.alert());
        let schedule = self.plan.scheduler.pinned(self.capacity.per_place);
        let here = Here::new(reactor, schedule, None, station, worker, crew);
        Ok((here, refused.map(|error| format!("worker {worker} uses epoll: {error}"))))
    }

    fn hire_pinned(
        &self,
        inbox: &Arc<Inbox>,
        worker: usize,
        crew: &Arc<Crew>,
        watch: &Arc<Watch>,
    ) -> io::Result<JoinHandle<()>> {
        let (ground, inbox) = (self.clone(), Arc::clone(inbox));
        let enter = || station::enter(Arc::clone(&inbox) as Arc<dyn Post>);
        let station = watch.seats.station(worker, enter)?;
        hire(worker, crew, watch, move |crew, watch| {
            let (here, _) = ground.open_pinned(&inbox, station, worker, Arc::clone(crew))?;
            let admit = {
                let (inbox, crew) = (Arc::clone(&inbox), Arc::clone(crew));
                move || {
                    inbox.arrivals().reopen();
                    crew.places.reopen(worker);
                }
            };
            let watch = Arc::clone(watch);
            Ok((admit, move || run_guest(&here, &inbox, &watch)))
        })
    }

    fn start_group(&self, entrance: &Arc<Entrance>, mut sockets: Sockets) -> io::Result<Started> {
        let plan = &self.plan;
        let floor = plan.workers.min(WORKERS_MAX);
        let ceiling = plan.workers_max().min(WORKERS_MAX);
        let schedule = plan.scheduler.shared(self.capacity.per_place);
        let options = self.options(IoChoice::Epoll, self.capacity);
        let (alert, mut seeds) = Reactor::shared(&options, ceiling)?;
        let guests = seeds.split_off(floor);
        let group = Arc::new(Group::new(schedule, alert, floor, ceiling - floor));
        let crew = self.new_crew(vec![Arc::clone(&group) as Arc<dyn Post>]);
        let watch = self.set_watch(&crew, floor, ceiling)?;
        let mut start = Start::new(&crew);
        let station = start.station(Arc::clone(&group) as Arc<dyn Post>)?;
        let mut sockets = sockets.pop().unwrap_or_default();
        if plan.acceptor == Acceptor::Dedicated {
            start.dedicated_acceptor(self, std::mem::take(&mut sockets), entrance)?;
        }
        for (worker, seed) in seeds.into_iter().enumerate() {
            let group = Arc::clone(&group);
            // Accepting is a task like others: whoever is free does it.
            let (own, entrance) = (std::mem::take(&mut sockets), Arc::clone(entrance));
            let watch = watch.as_ref().map(|(_, watch)| Arc::clone(watch));
            start.thread(name(worker), move |crew| {
                let here = open_shared(seed, &group, station, worker, crew);
                acceptor::start(&here, own, Some(0), &entrance)?;
                let run = if watch.is_some() { run_shared::<true> } else { run_shared::<false> };
                Ok((None, move || run(&here, &group, watch.as_deref())))
            })?;
        }
        let mut started = start.wait()?;
        if plan.workers.max(plan.workers_max()) > WORKERS_MAX {
            let note = format!("a shared scheduler runs at most {WORKERS_MAX} workers");
            started.notes.push(note);
        }
        let Some((lookout, watch)) = watch else { return Ok(started) };
        let team = Shared::new(Arc::clone(&group), millis(plan.growth.grow_after));
        let (crew, watching) = (Arc::clone(&started.crew), Arc::clone(&watch));
        let hire = move |worker: usize| {
            hire_shared(guests[worker - floor].clone(), &group, station, worker, &crew, &watching)
        };
        self.start_watch(started, watch, lookout, Box::new(team), Box::new(hire))
    }

    /// Has workers come and go, where the plan says so: from now on they can be told to a watch.
    fn set_watch(
        &self,
        crew: &Crew,
        floor: usize,
        ceiling: usize,
    ) -> io::Result<Option<(Lookout, Arc<Watch>)>> {
        if ceiling <= floor {
            return Ok(None);
        }
        let lookout = Lookout::new()?;
        let seats = Seats::new(floor, ceiling, self.plan.growth.cache_workers);
        let watch = Arc::new(Watch::new(seats, lookout.alert()));
        let first = crew.watch.set(Arc::clone(&watch) as Arc<dyn Autoscale>);
        debug_assert!(first.is_ok(), "one watch is set");
        Ok(Some((lookout, watch)))
    }

    /// Starts the thread that watches.
    fn start_watch(
        &self,
        mut started: Started,
        watch: Arc<Watch>,
        lookout: Lookout,
        team: Box<dyn Team>,
        hire: Box<Hire>,
    ) -> io::Result<Started> {
        let crew = Arc::clone(&started.crew);
        started.watch = Some(Arc::clone(&watch));
        let (floor, ceiling) = (watch.seats.floor(), watch.seats.ceiling());
        started.notes.push(format!("adds workers when all are busy, from {floor} up to {ceiling}"));
        let (clock, growth, times) =
            (self.clock.clone(), self.plan.growth.clone(), Times::default());
        let watcher = Watcher { crew, watch, lookout, clock, growth, team, hire, times };
        let thread = thread::Builder::new().name("gust-watch".to_owned());
        match thread.spawn(move || watcher.run()) {
            Ok(thread) => started.threads.push(thread),
            Err(error) => {
                started.end();
                return Err(error);
            }
        }
        Ok(started)
    }

    fn new_crew(&self, posts: Vec<Arc<dyn Post>>) -> Arc<Crew> {
        let Self { plan, capacity, .. } = self;
        let places = Places::new(posts.len(), capacity.total, capacity.per_place);
        let backlog = plan.backlog as usize;
        let pauses = Pauses::new(plan.spin_us, plan.slowness);
        let (placement, drain_accept) = (plan.placement, plan.drain_accept);
        Arc::new(Crew::new(posts, places, placement, backlog, drain_accept, pauses))
    }

    fn options(&self, io: IoChoice, capacity: Capacity) -> Options {
        let clock = self.clock.clone();
        let (direct_max, buffers) = (capacity.direct, self.plan.buffers);
        let installed_max = descriptor_limit() / INSTALLED_PART / self.plan.workers_max();
        Options { io, direct_max, buffers, installed_max, clock }
    }
}

fn name(worker: usize) -> String {
    format!("gust-{worker}")
}

/// Makes the running thread a worker of a group.
fn open_shared(
    seed: ReactorSeed,
    group: &Arc<Group>,
    station: u16,
    worker: usize,
    crew: Arc<Crew>,
) -> std::rc::Rc<Here> {
    let schedule = Box::new(Arc::clone(&group.schedule));
    let shared = Some(Arc::clone(group));
    Here::new(ReactorSeed::grow(seed), schedule, shared, station, worker, crew)
}

fn hire_shared(
    seed: ReactorSeed,
    group: &Arc<Group>,
    station: u16,
    worker: usize,
    crew: &Arc<Crew>,
    watch: &Arc<Watch>,
) -> io::Result<JoinHandle<()>> {
    let group = Arc::clone(group);
    hire(worker, crew, watch, move |crew, watch| {
        let here = open_shared(seed, &group, station, worker, Arc::clone(crew));
        let admit = {
            let group = Arc::clone(&group);
            move || group.roles().admit(worker)
        };
        let watch = Arc::clone(watch);
        Ok((admit, move || run_shared::<true>(&here, &group, Some(&watch))))
    })
}

/// Starts a worker's thread while others run: `prepare` on it makes what lets it take part, with
/// its seat locked, and what it then runs.
fn hire<A, R>(
    worker: usize,
    crew: &Arc<Crew>,
    watch: &Arc<Watch>,
    prepare: impl FnOnce(&Arc<Crew>, &Arc<Watch>) -> io::Result<(A, R)> + Send + 'static,
) -> io::Result<JoinHandle<()>>
where
    A: FnOnce(),
    R: FnOnce() -> io::Result<()>,
{
    let (crew, watch) = (Arc::clone(crew), Arc::clone(watch));
    thread::Builder::new().name(name(worker)).spawn(move || {
        let Ok((admit, run)) = prepare(&crew, &watch) else { return watch.tell_failed(worker) };
        watch.seats.arrive(worker, admit);
        count(&crew.counts.workers_grown);
        watch.tell();
        if let Err(error) = run() {
            panic!("worker {} cannot reach the kernel any more: {error}", name(worker));
        }
        watch.seats.vacate(worker);
        watch.tell();
    })
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
        let station = station::enter(post)?;
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
        ground: &Ground,
        sockets: Vec<Arc<OwnedFd>>,
        entrance: &Arc<Entrance>,
    ) -> io::Result<()> {
        let inbox = Arc::new(Inbox::default());
        let station = self.station(Arc::clone(&inbox) as Arc<dyn Post>)?;
        let first = self.crew.acceptor.set(Arc::clone(&inbox) as Arc<dyn Post>);
        debug_assert!(first.is_ok(), "one thread accepts");
        let nothing = Capacity { per_place: 0, total: 0, direct: 0 };
        let options = ground.options(IoChoice::Epoll, nothing);
        let (worker, entrance) = (ground.plan.workers_max(), Arc::clone(entrance));
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
        let mut notes = Vec::new();
        let mut failed = None;
        for outcome in reports {
            match outcome {
                Ok(said) if notes.is_empty() => notes.extend(said),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        let started = Started { crew, watch: None, threads, stations, notes };
        let Some(error) = failed else { return Ok(started) };
        started.end();
        Err(error)
    }
}
