//! Starting the threads of a server: those of the start, and those that come later.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gustnado_reactor::{
    BackendKind, Clock, IoChoice, ListenerPoll, Options, Reactor, ReactorSeed, descriptor_limit,
};

use super::listen::Sockets;
use super::threads::{Start, Started};
use crate::exec::executor::context::WorkerContext;
use crate::exec::schedule::SchedulerKind;
use crate::exec::wakers::wake_target;
use crate::exec::worker::descriptors::INSTALLED_PART;
use crate::exec::worker::elastic::Autoscale;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::throttle::Pauses;
use crate::exec::worker::worker_group::{Group, WORKERS_MAX};
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::workers_shared::{WorkersShared, count};
use crate::net::acceptor::{self, Acceptor};
use crate::net::listening::ListenerShared;
use crate::pool::autoscaler::{
    AutoscaleState, Autoscaler, Pinned, Policy, Shared, SpawnWorker, Times, millis,
};
use crate::pool::driven::Driven;
use crate::pool::elastic::ElasticWorkers;
use crate::pool::plan::{Capacity, Plan};
use crate::pool::worker::{run_guest, run_pinned, run_shared};
use crate::sync::connection_slots::ConnectionSlots;

pub(super) fn choose_backend(plan: &Plan, notes: &mut Vec<String>) -> BackendKind {
    if plan.io == IoChoice::Epoll {
        return BackendKind::Epoll;
    }
    if plan.scheduler.is_shared() {
        if plan.io == IoChoice::Uring {
            notes.push(
                "shared schedulers use epoll: only the thread that owns a ring may take its \
                 completions"
                    .to_owned(),
            );
        }
        return BackendKind::Epoll;
    }
    match gustnado_reactor::probe_uring() {
        Ok(()) => BackendKind::Uring,
        Err(error) => {
            notes.push(format!("io_uring cannot be used here ({error}); using epoll"));
            BackendKind::Epoll
        }
    }
}

/// What every thread of a server is started from.
#[derive(Clone)]
pub(super) struct WorkerFactory {
    pub(super) plan: Plan,
    pub(super) backend: BackendKind,
    pub(super) capacity: Capacity,
    pub(super) clock: Clock,
}

impl WorkerFactory {
    pub(super) fn start(
        &self,
        listener_shared: &Arc<ListenerShared>,
        sockets: Sockets,
    ) -> io::Result<Started> {
        if self.plan.scheduler.is_shared() {
            self.start_group(listener_shared, sockets)
        } else {
            self.start_pinned(listener_shared, sockets)
        }
    }

    fn start_pinned(
        &self,
        listener_shared: &Arc<ListenerShared>,
        sockets: Sockets,
    ) -> io::Result<Started> {
        Ok(self.start_unshared(listener_shared, sockets, false)?.0)
    }

    /// Starts workers that share nothing, the first of them on the running thread.
    pub(super) fn start_driven(
        &self,
        listener_shared: &Arc<ListenerShared>,
        sockets: Sockets,
    ) -> io::Result<(Started, Driven)> {
        let (started, driven) = self.start_unshared(listener_shared, sockets, true)?;
        Ok((started, driven.expect("it was asked for")))
    }

    fn start_unshared(
        &self,
        listener_shared: &Arc<ListenerShared>,
        mut sockets: Sockets,
        is_driven: bool,
    ) -> io::Result<(Started, Option<Driven>)> {
        let plan = &self.plan;
        let (floor, ceiling) = (plan.workers, plan.workers_max());
        let inboxes: Vec<_> = (0..ceiling).map(|_| Arc::new(Inbox::default())).collect();
        let handles =
            inboxes.iter().map(|inbox| Arc::clone(inbox) as Arc<dyn WorkerHandle>).collect();
        let shared = self.new_shared(handles);
        for (worker, inbox) in inboxes.iter().enumerate().skip(floor) {
            shared.connection_slots.close(worker);
            inbox.arrivals().close();
        }
        let autoscale = self.set_autoscaler(&shared, floor, ceiling)?;
        let mut start = Start::new(&shared);
        if plan.acceptor == Acceptor::Dedicated {
            let sockets = sockets.pop().unwrap_or_default();
            self.start_acceptor(&mut start, sockets, listener_shared)?;
        }
        let mut sockets = sockets.into_iter();
        let mut driven = None;
        if is_driven {
            let own = sockets.next().unwrap_or_default();
            driven =
                Some(self.open_driven(&inboxes[0], Arc::clone(&shared), own, listener_shared)?);
        }
        let threads = usize::from(is_driven)..floor;
        for (worker, inbox) in inboxes.iter().enumerate().take(threads.end).skip(threads.start) {
            let factory = self.clone();
            let inbox = Arc::clone(inbox);
            let wake_target = start.wake_target(Arc::clone(&inbox) as Arc<dyn WorkerHandle>)?;
            let own = sockets.next().unwrap_or_default();
            let listener_shared = Arc::clone(listener_shared);
            start.thread(name(worker), move |shared| {
                let (ctx, note) = factory.open_pinned(&inbox, wake_target, worker, shared)?;
                acceptor::start(&ctx, own, Some(worker), &listener_shared)?;
                Ok((note, move || run_pinned(&ctx, &inbox)))
            })?;
        }
        let started = start.wait()?;
        let Some((listener_poll, autoscale)) = autoscale else { return Ok((started, driven)) };
        let policy = Pinned::new(inboxes.clone(), millis(plan.growth.grow_after));
        let (factory, shared) = (self.clone(), Arc::clone(&started.shared));
        let spawn_worker = {
            let autoscale = Arc::clone(&autoscale);
            move |worker: usize| factory.spawn_pinned(&inboxes[worker], worker, &shared, &autoscale)
        };
        let started = self.start_autoscaler(
            started,
            autoscale,
            listener_poll,
            Box::new(policy),
            Box::new(spawn_worker),
        )?;
        Ok((started, driven))
    }

    /// Makes the running thread the first worker, for as long as its caller wants.
    fn open_driven(
        &self,
        inbox: &Arc<Inbox>,
        shared: Arc<WorkersShared>,
        sockets: Vec<Arc<OwnedFd>>,
        listener_shared: &Arc<ListenerShared>,
    ) -> io::Result<Driven> {
        let wake_target = wake_target::enter(Arc::clone(inbox) as Arc<dyn WorkerHandle>)?;
        let (ctx, _) = self
            .open_pinned(inbox, wake_target, 0, shared)
            .inspect_err(|_| wake_target::leave(wake_target))?;
        Driven::start(ctx, Arc::clone(inbox), sockets, listener_shared)
    }

    /// Makes the running thread a worker that shares nothing. It needs the reactor that
    /// it gets; a note says why that is another one than was wanted.
    fn open_pinned(
        &self,
        inbox: &Inbox,
        wake_target: u16,
        worker: usize,
        shared: Arc<WorkersShared>,
    ) -> io::Result<(std::rc::Rc<WorkerContext>, Option<String>)> {
        let io = if self.backend == BackendKind::Uring { IoChoice::Uring } else { IoChoice::Epoll };
        let (reactor, refused) = Reactor::new(&self.options(io, self.capacity))?;
        inbox.open(reactor.alert());
        let schedule = self.plan.scheduler.pinned(self.capacity.per_place);
        let ctx = WorkerContext::new(reactor, schedule, None, wake_target, worker, shared);
        Ok((ctx, refused.map(|error| format!("worker {worker} uses epoll: {error}"))))
    }

    fn spawn_pinned(
        &self,
        inbox: &Arc<Inbox>,
        worker: usize,
        shared: &Arc<WorkersShared>,
        autoscale: &Arc<AutoscaleState>,
    ) -> io::Result<JoinHandle<()>> {
        let (factory, inbox) = (self.clone(), Arc::clone(inbox));
        let enter = || wake_target::enter(Arc::clone(&inbox) as Arc<dyn WorkerHandle>);
        let wake_target = autoscale.elastic.wake_target(worker, enter)?;
        spawn_worker(worker, shared, autoscale, move |shared, autoscale| {
            let (ctx, _) = factory.open_pinned(&inbox, wake_target, worker, Arc::clone(shared))?;
            let admit = {
                let (inbox, shared) = (Arc::clone(&inbox), Arc::clone(shared));
                move || {
                    inbox.arrivals().reopen();
                    shared.connection_slots.reopen(worker);
                }
            };
            let autoscale = Arc::clone(autoscale);
            Ok((admit, move || run_guest(&ctx, &inbox, &autoscale)))
        })
    }

    fn start_group(
        &self,
        listener_shared: &Arc<ListenerShared>,
        mut sockets: Sockets,
    ) -> io::Result<Started> {
        let plan = &self.plan;
        let floor = plan.workers.min(WORKERS_MAX);
        let ceiling = plan.workers_max().min(WORKERS_MAX);
        let schedule = plan.scheduler.shared(self.capacity.per_place);
        let options = self.options(IoChoice::Epoll, self.capacity);
        let (alert, mut seeds) = Reactor::shared(&options, ceiling)?;
        let guests = seeds.split_off(floor);
        let group = Arc::new(Group::new(schedule, alert, floor, ceiling - floor));
        let shared = self.new_shared(vec![Arc::clone(&group) as Arc<dyn WorkerHandle>]);
        let autoscale = self.set_autoscaler(&shared, floor, ceiling)?;
        let mut start = Start::new(&shared);
        let wake_target = start.wake_target(Arc::clone(&group) as Arc<dyn WorkerHandle>)?;
        let mut sockets = sockets.pop().unwrap_or_default();
        if plan.acceptor == Acceptor::Dedicated {
            self.start_acceptor(&mut start, std::mem::take(&mut sockets), listener_shared)?;
        }
        for (worker, seed) in seeds.into_iter().enumerate() {
            let group = Arc::clone(&group);
            // Accepting is a task like others: whoever is free does it.
            let (own, listener_shared) =
                (std::mem::take(&mut sockets), Arc::clone(listener_shared));
            let autoscale = autoscale.as_ref().map(|(_, autoscale)| Arc::clone(autoscale));
            start.thread(name(worker), move |shared| {
                let ctx = open_shared(seed, &group, wake_target, worker, shared);
                acceptor::start(&ctx, own, Some(0), &listener_shared)?;
                let run =
                    if autoscale.is_some() { run_shared::<true> } else { run_shared::<false> };
                Ok((None, move || run(&ctx, &group, autoscale.as_deref())))
            })?;
        }
        let mut started = start.wait()?;
        if plan.workers.max(plan.workers_max()) > WORKERS_MAX {
            let note = format!("a shared scheduler runs at most {WORKERS_MAX} workers");
            started.notes.push(note);
        }
        let Some((listener_poll, autoscale)) = autoscale else { return Ok(started) };
        let policy = Shared::new(Arc::clone(&group), millis(plan.growth.grow_after));
        let (shared, watching) = (Arc::clone(&started.shared), Arc::clone(&autoscale));
        let spawn_worker = move |worker: usize| {
            spawn_shared(
                guests[worker - floor].clone(),
                &group,
                wake_target,
                worker,
                &shared,
                &watching,
            )
        };
        self.start_autoscaler(
            started,
            autoscale,
            listener_poll,
            Box::new(policy),
            Box::new(spawn_worker),
        )
    }

    /// Has workers come and go, where the plan says so: from now on they can be told to an
    /// autoscaler.
    fn set_autoscaler(
        &self,
        shared: &WorkersShared,
        floor: usize,
        ceiling: usize,
    ) -> io::Result<Option<(ListenerPoll, Arc<AutoscaleState>)>> {
        if ceiling <= floor {
            return Ok(None);
        }
        let listener_poll = ListenerPoll::new()?;
        let elastic = ElasticWorkers::new(floor, ceiling, self.plan.growth.cache_workers);
        let autoscale = Arc::new(AutoscaleState::new(elastic, listener_poll.alert()));
        let first = shared.autoscale.set(Arc::clone(&autoscale) as Arc<dyn Autoscale>);
        debug_assert!(first.is_ok(), "one watch is set");
        Ok(Some((listener_poll, autoscale)))
    }

    /// Starts the thread that watches.
    fn start_autoscaler(
        &self,
        mut started: Started,
        autoscale: Arc<AutoscaleState>,
        listener_poll: ListenerPoll,
        policy: Box<dyn Policy>,
        spawn_worker: Box<SpawnWorker>,
    ) -> io::Result<Started> {
        let shared = Arc::clone(&started.shared);
        started.autoscale = Some(Arc::clone(&autoscale));
        let (floor, ceiling) = (autoscale.elastic.floor(), autoscale.elastic.ceiling());
        started.notes.push(format!("adds workers when all are busy, from {floor} up to {ceiling}"));
        let (clock, growth, times) =
            (self.clock.clone(), self.plan.growth.clone(), Times::default());
        let watcher = Autoscaler {
            shared,
            autoscale,
            listener_poll,
            clock,
            growth,
            policy,
            spawn_worker,
            times,
        };
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

    fn new_shared(&self, handles: Vec<Arc<dyn WorkerHandle>>) -> Arc<WorkersShared> {
        let Self { plan, capacity, .. } = self;
        let connection_slots =
            ConnectionSlots::new(handles.len(), capacity.total, capacity.per_place);
        let backlog = plan.backlog as usize;
        let pauses = Pauses::new(plan.spin_us, plan.throttle);
        let (placement, drain_accept) = (plan.placement, plan.drain_accept);
        Arc::new(WorkersShared::new(
            handles,
            connection_slots,
            placement,
            backlog,
            drain_accept,
            pauses,
        ))
    }

    /// One thread that accepts for all workers.
    fn start_acceptor(
        &self,
        start: &mut Start,
        sockets: Vec<Arc<OwnedFd>>,
        listener_shared: &Arc<ListenerShared>,
    ) -> io::Result<()> {
        let inbox = Arc::new(Inbox::default());
        let wake_target = start.wake_target(Arc::clone(&inbox) as Arc<dyn WorkerHandle>)?;
        let first = start.shared.acceptor.set(Arc::clone(&inbox) as Arc<dyn WorkerHandle>);
        debug_assert!(first.is_ok(), "one thread accepts");
        let nothing = Capacity { per_place: 0, total: 0, direct: 0 };
        let options = self.options(IoChoice::Epoll, nothing);
        let (worker, listener_shared) = (self.plan.workers_max(), Arc::clone(listener_shared));
        start.thread("gust-accept".to_owned(), move |shared| {
            let (reactor, _) = Reactor::new(&options)?;
            inbox.open(reactor.alert());
            let schedule = SchedulerKind::Queue.pinned(0);
            let ctx = WorkerContext::new(reactor, schedule, None, wake_target, worker, shared);
            acceptor::start(&ctx, sockets, None, &listener_shared)?;
            Ok((None, move || run_pinned(&ctx, &inbox)))
        })
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
    wake_target: u16,
    worker: usize,
    shared: Arc<WorkersShared>,
) -> std::rc::Rc<WorkerContext> {
    let schedule = Box::new(Arc::clone(&group.schedule));
    let group = Some(Arc::clone(group));
    WorkerContext::new(ReactorSeed::grow(seed), schedule, group, wake_target, worker, shared)
}

fn spawn_shared(
    seed: ReactorSeed,
    group: &Arc<Group>,
    wake_target: u16,
    worker: usize,
    shared: &Arc<WorkersShared>,
    autoscale: &Arc<AutoscaleState>,
) -> io::Result<JoinHandle<()>> {
    let group = Arc::clone(group);
    spawn_worker(worker, shared, autoscale, move |shared, autoscale| {
        let ctx = open_shared(seed, &group, wake_target, worker, Arc::clone(shared));
        let admit = {
            let group = Arc::clone(&group);
            move || group.roles().admit(worker)
        };
        let autoscale = Arc::clone(autoscale);
        Ok((admit, move || run_shared::<true>(&ctx, &group, Some(&autoscale))))
    })
}

/// Starts a worker's thread while others run: `prepare` on it makes what lets it take part, with
/// its state locked, and what it then runs.
fn spawn_worker<A, R>(
    worker: usize,
    shared: &Arc<WorkersShared>,
    autoscale: &Arc<AutoscaleState>,
    prepare: impl FnOnce(&Arc<WorkersShared>, &Arc<AutoscaleState>) -> io::Result<(A, R)>
    + Send
    + 'static,
) -> io::Result<JoinHandle<()>>
where
    A: FnOnce(),
    R: FnOnce() -> io::Result<()>,
{
    let (shared, autoscale) = (Arc::clone(shared), Arc::clone(autoscale));
    thread::Builder::new().name(name(worker)).spawn(move || {
        let Ok((admit, run)) = prepare(&shared, &autoscale) else {
            return autoscale.tell_failed(worker);
        };
        autoscale.elastic.arrive(worker, admit);
        count(&shared.counts.workers_grown);
        autoscale.tell();
        if let Err(error) = run() {
            panic!("worker {} cannot reach the kernel any more: {error}", name(worker));
        }
        autoscale.elastic.vacate(worker);
        autoscale.tell();
    })
}
