//! Running a future on the current thread: for tests, examples, small clients.
//!
//! The thread becomes a worker of a server of its own, with one reactor, and stays one: the next
//! call finds all of that made. The future itself is no task, for it may borrow from its caller.
//! A task stands in for it in the run queue; when that is run, the future is polled.

use std::cell::{Cell, OnceCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use gustnado_reactor::{BufferAccount, Clock, IoChoice, Options, Reactor, descriptor_limit};

use crate::exec::error::WorkersStartError;
use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::executor::turn::pass;
use crate::exec::schedule::SchedulerKind;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::wakers::wake_target;
use crate::exec::worker::descriptors::INSTALLED_PART;
use crate::exec::worker::elastic::FixedWorkers;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::throttle::{Throttle, ThrottleState};
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::workers_shared::WorkersShared;
use crate::sync::connection_slots::{ConnectionSlots, Placement};

/// Runs a future to its end on the current thread, which is a worker meanwhile: tasks, timers and
/// sockets work as they do on any other. Tasks that have not ended by then are dropped.
///
/// The first call on a thread opens a reactor, which stays until the thread ends. A panic of the
/// future goes on in the caller.
///
/// # Errors
/// [`WorkersStartError::Nested`]: the thread runs tasks already. [`WorkersStartError::Thread`]: a
/// reactor cannot be had, or the kernel refuses to wait.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, WorkersStartError> {
    block_on_with(&BlockOnOptions::default(), future)
}

/// Options of the reactor of a thread that runs a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockOnOptions {
    /// Which backend. Where `io_uring` is asked for it is had, or the call fails; `Auto` is
    /// `io_uring` where the kernel lets us.
    pub io: IoChoice,
    /// Connections that `io_uring` keeps in the ring's own table (see
    /// [`crate::Connection::make_direct`]); cut to the limit on descriptors.
    pub direct_max: usize,
    /// Receive buffers of 4 KiB for `io_uring`: a power of two, 8 to 32,768.
    pub buffers: u16,
}

impl Default for BlockOnOptions {
    /// Over epoll.
    fn default() -> Self {
        Self { io: IoChoice::Epoll, direct_max: 0, buffers: 8 }
    }
}

/// [`block_on()`] with a reactor of one's choice. It is made by the first call on a thread; later
/// ones use that, whatever they say.
///
/// # Errors
/// As [`block_on()`]; also where `io_uring` was asked for and cannot be had.
pub fn block_on_with<F: Future>(
    lone: &BlockOnOptions,
    future: F,
) -> Result<F::Output, WorkersStartError> {
    let asked = lone;
    LONE.with(|lone| {
        let lone = match lone.get() {
            Some(lone) => lone,
            None if context::try_with(|_| ()).is_some() => return Err(WorkersStartError::Nested),
            None => {
                let started = LoneWorker::start(asked)?;
                lone.get_or_init(|| started)
            }
        };
        lone.run(future)
    })
}

/// Returns whether the running thread is in [`block_on`].
pub(crate) fn is_busy() -> bool {
    LONE.with(|lone| lone.get().is_some_and(|lone| lone.busy.get()))
}

thread_local! {
    static LONE: OnceCell<LoneWorker> = const { OnceCell::new() };
}

/// A thread that is the only worker of its server.
struct LoneWorker {
    ctx: Rc<WorkerContext>,
    inbox: Arc<Inbox>,
    wake_target: u16,
    busy: Cell<bool>,
}

impl LoneWorker {
    /// Makes the current thread a worker.
    fn start(lone: &BlockOnOptions) -> Result<Self, WorkersStartError> {
        let clock = Clock::start();
        let (direct_max, buffers) = (lone.direct_max, lone.buffers);
        let installed_max = descriptor_limit() / INSTALLED_PART;
        // Its ledger has no budgets.
        let account = BufferAccount::default();
        let options = Options { io: lone.io, direct_max, buffers, installed_max, clock, account };
        let (reactor, refused) = Reactor::new(&options).map_err(WorkersStartError::Thread)?;
        if let (IoChoice::Uring, Some(error)) = (lone.io, refused) {
            return Err(WorkersStartError::Thread(error));
        }
        let inbox = Arc::new(Inbox::default());
        inbox.open(reactor.waker());
        let handle = Arc::clone(&inbox) as Arc<dyn WorkerHandle>;
        let wake_target =
            wake_target::enter(Arc::clone(&inbox) as _).map_err(WorkersStartError::Thread)?;
        let connection_slots = ConnectionSlots::new(1, descriptor_limit(), descriptor_limit());
        let throttle = ThrottleState::new(0, Throttle::default());
        let never = Duration::ZERO;
        let shared = WorkersShared::new(
            vec![handle],
            Arc::new(FixedWorkers(1)),
            connection_slots,
            Placement::Spread,
            never,
            throttle,
        );
        let shared = Arc::new(shared.with_accounts(1));
        let schedule = SchedulerKind::Queue.pinned(0);
        let ctx = WorkerContext::new(reactor, schedule, None, wake_target, 0, shared);
        // The thread is its caller's, who may have another worker on it later.
        _ = ctx.borrow_thread();
        Ok(Self { ctx, inbox, wake_target, busy: Cell::new(false) })
    }

    fn run<F: Future>(&self, future: F) -> Result<F::Output, WorkersStartError> {
        if !context::is_at(&self.ctx) || self.busy.replace(true) {
            return Err(WorkersStartError::Nested);
        }
        let _end = RunningGuard(self);
        let ctx = &*self.ctx;
        // The last call may have been long ago.
        ctx.reactor.borrow_mut().tick();
        ctx.note_time();
        let stand_in = ctx
            .insert(Box::pin(poll_fn(|_| {
                context::with(|ctx| ctx.main_woken.set(true));
                Poll::Pending
            })))
            .map_err(|_| WorkersStartError::Thread(io::Error::other("no task slot is left")))?;
        let mut future = pin!(future);
        let mut woken = Vec::new();
        let mut output = None;
        loop {
            let main = || {
                if !ctx.main_woken.replace(false) {
                    return Poll::Pending;
                }
                let polled = poll_as(ctx, stand_in, |context| future.as_mut().poll(context));
                polled.map(|done| output = Some(done))
            };
            if pass(ctx, &self.inbox, &mut woken, main)
                .map_err(WorkersStartError::Thread)?
                .is_ready()
            {
                return Ok(output.expect("a future that is ready has an output"));
            }
        }
    }
}

/// Polls in the name of a task.
fn poll_as<T>(
    ctx: &WorkerContext,
    id: TaskId,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    ctx.begin(id);
    let polled = poll(&mut Context::from_waker(&id.waker()));
    _ = ctx.end();
    polled
}

impl Drop for LoneWorker {
    fn drop(&mut self) {
        self.inbox.arrivals.close();
        wake_target::leave(self.wake_target);
    }
}

/// The end of a call, also where the future has panicked.
struct RunningGuard<'a>(&'a LoneWorker);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        let ctx = &self.0.ctx;
        _ = ctx.end();
        ctx.schedule.clear();
        ctx.main_woken.set(false);
        self.0.busy.set(false);
    }
}
