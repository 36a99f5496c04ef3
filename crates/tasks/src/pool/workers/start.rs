//! Starting the threads of a server: those of the start, and those that come later.

use std::io;
use std::sync::Arc;

use gustnado_reactor::{
    BackendKind, BufferAccount, Clock, IoChoice, Options, Reactor, ReactorSeed, descriptor_limit,
};

use super::threads::{StartedWorkers, ThreadStarter};
use crate::exec::executor::context::WorkerContext;
use crate::exec::schedule::SchedulerKind;
use crate::exec::wakers::wake_target;
use crate::exec::worker::descriptors::INSTALLED_PART;
use crate::exec::worker::elastic::Elastic;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::throttle::ThrottleState;
use crate::exec::worker::worker_group::{WORKERS_MAX, WorkerGroup};
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::workers_shared::WorkersShared;
use crate::net::acceptor::Acceptor;
use crate::pool::driven::Driven;
use crate::pool::elastic::{ElasticSetup, RunWorker};
use crate::pool::plan::{Capacity, WorkerPlan};
use crate::pool::thread_name;
use crate::pool::worker::{run_pinned, run_shared};
use crate::sync::connection_slots::ConnectionSlots;

pub(super) fn choose_backend(plan: &WorkerPlan, notes: &mut Vec<String>) -> BackendKind {
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

/// The factory of all threads of a server.
#[derive(Clone)]
pub(super) struct WorkerFactory {
    pub(super) plan: WorkerPlan,
    pub(super) backend: BackendKind,
    pub(super) capacity: Capacity,
    pub(super) clock: Clock,
}

impl WorkerFactory {
    pub(super) fn start(&self) -> io::Result<StartedWorkers> {
        if self.plan.scheduler.is_shared() {
            self.start_group()
        } else {
            Ok(self.start_unshared(false)?.0)
        }
    }

    /// Starts workers that share nothing, the first of them on the running thread.
    pub(super) fn start_driven(&self) -> io::Result<(StartedWorkers, Driven)> {
        let (started, driven) = self.start_unshared(true)?;
        Ok((started, driven.expect("it was asked for")))
    }

    fn start_unshared(&self, is_driven: bool) -> io::Result<(StartedWorkers, Option<Driven>)> {
        let plan = &self.plan;
        let (floor, ceiling) = (plan.workers, plan.workers_max());
        let inboxes: Vec<_> = (0..ceiling).map(|_| Arc::new(Inbox::default())).collect();
        let handles =
            inboxes.iter().map(|inbox| Arc::clone(inbox) as Arc<dyn WorkerHandle>).collect();
        let elastic = ElasticSetup::new(&plan.growth, floor, ceiling, false)?;
        let shared = self.new_shared(handles, elastic.handle());
        for (worker, inbox) in inboxes.iter().enumerate().skip(floor) {
            shared.connection_slots.close(worker);
            inbox.arrivals.close();
        }
        let mut start = ThreadStarter::new(&shared);
        if plan.acceptor == Acceptor::Dedicated {
            self.start_acceptor(&mut start)?;
        }
        let open = || self.open_driven(&inboxes[0], Arc::clone(&shared));
        let driven = is_driven.then(open).transpose()?;
        let threads = inboxes.iter().enumerate().take(floor).skip(usize::from(is_driven));
        for (worker, inbox) in threads {
            let (factory, inbox) = (self.clone(), Arc::clone(inbox));
            let wake_target = start.wake_target(Arc::clone(&inbox) as Arc<dyn WorkerHandle>)?;
            start.thread(thread_name(worker), move |shared| {
                let (ctx, note) = factory.open_pinned(&inbox, wake_target, worker, shared)?;
                Ok((note, move || run_pinned(&ctx, &inbox)))
            })?;
        }
        let started = start.wait()?;
        let (factory, context_shared) = (self.clone(), Arc::clone(&shared));
        let own_inboxes = inboxes.clone();
        let open = move |worker: usize, wake_target| {
            let shared = Arc::clone(&context_shared);
            let opened = factory.open_pinned(&own_inboxes[worker], wake_target, worker, shared)?;
            Ok(opened.0)
        };
        let watched = elastic.watch_pinned(&shared, &self.clock, inboxes, open);
        Ok((started.watched(watched)?, driven))
    }

    /// Makes the running thread the first worker, for as long as its caller wants.
    fn open_driven(&self, inbox: &Arc<Inbox>, shared: Arc<WorkersShared>) -> io::Result<Driven> {
        let wake_target = wake_target::enter(Arc::clone(inbox) as Arc<dyn WorkerHandle>)?;
        let (ctx, _) = self
            .open_pinned(inbox, wake_target, 0, shared)
            .inspect_err(|_| wake_target::leave(wake_target))?;
        Ok(Driven::start(ctx, Arc::clone(inbox)))
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
        let (reactor, refused) =
            Reactor::new(&self.options(io, self.capacity, shared.buffer_account()))?;
        inbox.open(reactor.waker());
        let schedule = self.plan.scheduler.pinned(self.capacity.per_place);
        let ctx = WorkerContext::new(reactor, schedule, None, wake_target, worker, shared);
        Ok((ctx, refused.map(|error| format!("worker {worker} uses epoll: {error}"))))
    }

    fn start_group(&self) -> io::Result<StartedWorkers> {
        let plan = &self.plan;
        let floor = plan.workers.min(WORKERS_MAX);
        let ceiling = plan.workers_max().min(WORKERS_MAX);
        let schedule = plan.scheduler.shared(self.capacity.per_place);
        let options = self.options(IoChoice::Epoll, self.capacity, BufferAccount::default());
        let (waker, mut seeds) = Reactor::shared(&options, ceiling)?;
        let extra = seeds.split_off(floor);
        let group = Arc::new(WorkerGroup::new(schedule, waker, floor, ceiling - floor));
        let elastic = ElasticSetup::new(&plan.growth, floor, ceiling, true)?;
        let handle = Arc::clone(&group) as Arc<dyn WorkerHandle>;
        let shared = self.new_shared(vec![handle], elastic.handle());
        let run = if elastic.is_elastic() { run_shared::<true> } else { run_shared::<false> };
        let mut start = ThreadStarter::new(&shared);
        let wake_target = start.wake_target(Arc::clone(&group) as Arc<dyn WorkerHandle>)?;
        if plan.acceptor == Acceptor::Dedicated {
            self.start_acceptor(&mut start)?;
        }
        for (worker, seed) in seeds.into_iter().enumerate() {
            let group = Arc::clone(&group);
            start.thread(thread_name(worker), move |shared| {
                let ctx = open_shared(seed, &group, wake_target, worker, shared);
                Ok((None, move || run(&ctx, &group)))
            })?;
        }
        let mut started = start.wait()?;
        if plan.workers.max(plan.workers_max()) > WORKERS_MAX {
            let note = format!("a shared scheduler runs at most {WORKERS_MAX} workers");
            started.notes.push(note);
        }
        let (own_group, context_shared) = (Arc::clone(&group), Arc::clone(&shared));
        let open = move |worker: usize, wake_target| {
            let (seed, shared) = (extra[worker - floor].clone(), Arc::clone(&context_shared));
            let ctx = open_shared(seed, &own_group, wake_target, worker, shared);
            let group = Arc::clone(&own_group);
            Ok(Box::new(move || run_shared::<true>(&ctx, &group)) as RunWorker)
        };
        let watched = elastic.watch_group(&shared, &self.clock, group, wake_target, Arc::new(open));
        started.watched(watched)
    }

    fn new_shared(
        &self,
        handles: Vec<Arc<dyn WorkerHandle>>,
        elastic: Arc<dyn Elastic>,
    ) -> Arc<WorkersShared> {
        let Self { plan, capacity, .. } = self;
        let connection_slots =
            ConnectionSlots::new(handles.len(), capacity.total, capacity.per_place);
        let throttle = ThrottleState::new(plan.spin_us, plan.throttle);
        let (placement, drain_accept) = (plan.placement, plan.drain_accept);
        let shared = WorkersShared::new(
            handles,
            elastic,
            connection_slots,
            placement,
            drain_accept,
            throttle,
        );
        // One more for a thread that only accepts.
        Arc::new(shared.with_accounts(plan.workers_max() + 1))
    }

    /// One thread that accepts for all workers.
    fn start_acceptor(&self, start: &mut ThreadStarter) -> io::Result<()> {
        let inbox = Arc::new(Inbox::default());
        let wake_target = start.wake_target(Arc::clone(&inbox) as Arc<dyn WorkerHandle>)?;
        let first = start.shared.acceptor.set(Arc::clone(&inbox) as Arc<dyn WorkerHandle>);
        debug_assert!(first.is_ok(), "one thread accepts");
        let nothing = Capacity { per_place: 0, total: 0, direct: 0 };
        let options = self.options(IoChoice::Epoll, nothing, start.shared.buffer_account());
        let worker = self.plan.workers_max();
        start.thread("gust-accept".to_owned(), move |shared| {
            let (reactor, _) = Reactor::new(&options)?;
            inbox.open(reactor.waker());
            let schedule = SchedulerKind::Queue.pinned(0);
            let ctx = WorkerContext::new(reactor, schedule, None, wake_target, worker, shared);
            Ok((None, move || run_pinned(&ctx, &inbox)))
        })
    }

    fn options(&self, io: IoChoice, capacity: Capacity, account: BufferAccount) -> Options {
        let clock = self.clock.clone();
        let (direct_max, buffers) = (capacity.direct, self.plan.buffers);
        let installed_max = descriptor_limit() / INSTALLED_PART / self.plan.workers_max();
        Options { io, direct_max, buffers, installed_max, clock, account }
    }
}

/// Makes the running thread a worker of a group.
fn open_shared(
    seed: ReactorSeed,
    group: &Arc<WorkerGroup>,
    wake_target: u16,
    worker: usize,
    shared: Arc<WorkersShared>,
) -> std::rc::Rc<WorkerContext> {
    let (schedule, group) = (group.schedule.share(), Some(Arc::clone(group)));
    let reactor = seed.grow(shared.buffer_account());
    WorkerContext::new(reactor, schedule, group, wake_target, worker, shared)
}
