//! The context of the running thread: a worker with its reactor, its tasks and its timers.

mod thread_context;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use gustnado_reactor::{Reactor, TimerKey, Token, Wheel};

use crate::exec::executor::send_batch::SendBatch;
use crate::exec::schedule::{BoxTask, Scheduler};
use crate::exec::waits::{Waits, WaitsOn};
use crate::exec::wakers::foreign::{self, ForeignWakers};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::evictions::EvictionAnswer;
use crate::exec::worker::worker_group::WorkerGroup;
use crate::exec::worker::worker_metrics::WorkerMetrics;
use crate::exec::worker::workers_shared::{Phase, WorkersShared};
use thread_context::{CONTEXT, ThreadContext};

/// What a task may do in one run without having had to wait, in units: a value from a mailbox is
/// one. Once it is used up the task goes to the end of the run queue, and the kernel is asked for
/// events before the task runs again.
pub(crate) const BUDGET: u32 = 256;
/// Units of an operation on a socket: some microseconds.
const OPERATION_UNITS: u32 = 4;
/// Bytes of a body or of a file that are one unit more.
const UNIT_BYTES: usize = 1 << 10;

/// One worker, as its own thread sees it.
pub(crate) struct WorkerContext {
    pub(crate) reactor: RefCell<Reactor>,
    pub(crate) schedule: Box<dyn Scheduler>,
    timers: Timers,
    /// The metrics that other threads read, with the task that is being polled.
    metrics: Arc<WorkerMetrics>,
    /// The wait that this task has noted.
    said: Cell<Waits>,
    /// The rest of its [`BUDGET`].
    left: Cell<u32>,
    /// How often the kernel was asked for events.
    turns: Cell<u64>,
    /// The future of `block_on`, which is no task, was woken.
    pub(crate) main_woken: Cell<bool>,
    /// The caller's loop sleeps elsewhere, and has to be woken when a task becomes ready.
    pub(crate) wakes_caller: Cell<bool>,
    /// What the running task says to the question whether it gives way.
    pub(crate) eviction_answer: Cell<EvictionAnswer>,
    /// What goes on in the slot of a task once that is done.
    pub(crate) successor: Cell<Option<(TaskId, BoxTask)>>,
    /// The tasks that have deferred their sends.
    pub(crate) send_batch: SendBatch,
    /// The target of wake-ups of this worker's tasks.
    pub(crate) wake_target: u16,
    /// This worker's number, from 0; also its index in all tables kept per worker.
    pub(crate) worker: usize,
    pub(crate) shared: Arc<WorkersShared>,
}

/// Timers of this worker, or of the group that shares its tasks.
pub(crate) enum Timers {
    Own(Box<OwnTimers>),
    Shared(Arc<WorkerGroup>),
}

#[derive(Default)]
pub(crate) struct OwnTimers {
    wheel: RefCell<Wheel>,
    foreign: RefCell<ForeignWakers>,
}

impl WorkerContext {
    pub(crate) fn new(
        reactor: Reactor,
        schedule: Box<dyn Scheduler>,
        group: Option<Arc<WorkerGroup>>,
        wake_target: u16,
        worker: usize,
        shared: Arc<WorkersShared>,
    ) -> Rc<Self> {
        if let Some(group) = &group {
            group.set_wake_target(wake_target);
        }
        let timers = group.map_or_else(|| Timers::Own(Box::default()), Timers::Shared);
        Rc::new(Self {
            reactor: RefCell::new(reactor),
            schedule,
            timers,
            metrics: shared.add_metrics(worker, wake_target),
            said: Cell::new(Waits::UNSAID),
            left: Cell::new(BUDGET),
            turns: Cell::new(0),
            main_woken: Cell::new(false),
            wakes_caller: Cell::new(false),
            eviction_answer: Cell::default(),
            successor: Cell::default(),
            send_batch: SendBatch::default(),
            wake_target,
            worker,
            shared,
        })
    }

    /// Makes this the running thread's worker, for good.
    pub(crate) fn enter(self: &Rc<Self>) {
        self.note_time();
        self.metrics.enter();
        let entered = CONTEXT.with(|context| context.own.set(Rc::clone(self)));
        debug_assert!(entered.is_ok(), "a thread becomes a worker once");
    }

    /// Makes this the running thread's worker until [`WorkerContext::give_back`]; the thread is
    /// the caller's. Returns what it was before.
    pub(crate) fn borrow_thread(self: &Rc<Self>) -> Option<Rc<Self>> {
        self.note_time();
        self.metrics.enter();
        CONTEXT.with(|context| context.borrowed.replace(Some(Rc::clone(self))))
    }

    /// Makes the running thread what it was before.
    pub(crate) fn give_back(before: Option<Rc<Self>>) {
        // While the thread ends, its thread-locals may be gone.
        let borrowed = CONTEXT.try_with(|context| context.borrowed.replace(before));
        drop(borrowed);
    }

    /// Returns the running task, as the reactor names it.
    pub(crate) fn token(&self) -> Token {
        self.current().token()
    }

    /// Returns the running task.
    pub(crate) fn current(&self) -> TaskId {
        self.metrics.task()
    }

    /// A task begins its run.
    pub(crate) fn begin(&self, id: TaskId) {
        self.metrics.set_task(id);
        self.metrics.set_step(0);
        self.said.set(Waits::UNSAID);
        self.left.set(BUDGET);
    }

    /// Returns the running task has ended its run. Returns what it has said that it waits for, and
    /// how many units it has used.
    pub(crate) fn end(&self) -> (Waits, u32) {
        self.metrics.set_task(TaskId::NONE);
        (self.said.get().and(self.metrics.since()), BUDGET - self.left.get())
    }

    /// Returns whether the running task may do one more operation on a socket, which is counted. If
    /// not, it is in the run queue again.
    #[inline]
    pub(crate) fn may_operate(&self) -> bool {
        let left = self.left.get();
        if left < OPERATION_UNITS {
            self.yield_running();
            return false;
        }
        self.left.set(left - OPERATION_UNITS);
        true
    }

    /// Returns whether the running task defers what it sends. If so, it is run again within this
    /// turn.
    #[inline]
    pub(crate) fn defer_send(&self) -> bool {
        self.send_batch.defer(|| self.current())
    }

    #[cold]
    #[inline(never)]
    fn yield_running(&self) {
        self.left.set(0);
        self.ready(self.current());
    }

    /// The running task has received so many bytes of a body, or sent so many of a file.
    pub(crate) fn charge_bytes(&self, bytes: usize) {
        self.charge(u32::try_from(bytes / UNIT_BYTES).unwrap_or(BUDGET));
    }

    pub(crate) fn charge(&self, units: u32) {
        self.left.set(self.left.get().saturating_sub(units));
    }

    /// Notes what the running task waits for, should it wait now.
    pub(crate) fn waits_on(&self, on: WaitsOn) {
        self.said.set(self.said.get().on(on));
    }

    /// Returns where this worker counts what comes and goes.
    pub(crate) fn metrics(&self) -> &WorkerMetrics {
        &self.metrics
    }

    /// The worker has looked at its clock.
    pub(crate) fn note_time(&self) {
        self.turns.set(self.turns.get() + 1);
        self.metrics.set_since(Waits::since(self.now_ms()));
    }

    /// Returns the number of this worker's turn.
    pub(crate) fn turn_number(&self) -> u64 {
        self.turns.get()
    }

    /// Milliseconds of the workers' clock, as of this worker's last turn.
    pub(crate) fn now_ms(&self) -> u64 {
        self.reactor.borrow().clock().now_ms()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.shared.phase()
    }

    /// Asks the reactor between two turns. Whom it wakes meanwhile is queued.
    pub(crate) fn ask_reactor<T>(&self, ask: impl FnOnce(&mut Reactor, &mut Vec<Token>) -> T) -> T {
        let mut woken = Vec::new();
        let reply = ask(&mut self.reactor.borrow_mut(), &mut woken);
        for token in woken {
            self.ready(TaskId::of_token(token));
        }
        reply
    }

    /// Keeps a task and queues it.
    pub(crate) fn insert(&self, task: BoxTask) -> Result<TaskId, BoxTask> {
        let (slot, generation) = self.schedule.insert(task)?;
        self.metrics.add_task();
        if let Timers::Shared(group) = &self.timers {
            // The running task may hold this thread for long.
            group.wake_worker();
        }
        Ok(TaskId::new(self.wake_target, slot, generation))
    }

    /// Arms a timer that wakes `waiter` at `at_ms`: a task of this wake target, or a waker kept
    /// here.
    pub(crate) fn arm(&self, at_ms: u64, waiter: TaskId) -> TimerKey {
        match &self.timers {
            Timers::Own(timers) => timers.wheel.borrow_mut().arm(at_ms, waiter.token()),
            Timers::Shared(group) => group.arm(at_ms, waiter.token()),
        }
    }

    /// Returns the timers that expire first after `after_ms`, in the order of their deadlines.
    pub(crate) fn first_timers(&self, after_ms: u64, count_max: usize) -> Vec<(u64, Token)> {
        match &self.timers {
            Timers::Own(timers) => timers.wheel.borrow().first(after_ms, count_max),
            Timers::Shared(group) => group.first_timers(after_ms, count_max),
        }
    }

    /// Returns some of all timers, evenly spread, in no order.
    pub(crate) fn spread_timers(&self, count_max: usize) -> Vec<(u64, Token)> {
        match &self.timers {
            Timers::Own(timers) => timers.wheel.borrow().spread(count_max),
            Timers::Shared(group) => group.spread_timers(count_max),
        }
    }

    pub(crate) fn disarm(&self, key: TimerKey) {
        match &self.timers {
            Timers::Own(timers) => timers.wheel.borrow_mut().cancel(key),
            Timers::Shared(group) => group.disarm(key),
        };
    }

    /// Returns whether the waker kept here under this number is as good as `waker`.
    pub(crate) fn is_kept(&self, kept: TaskId, waker: &Waker) -> bool {
        match &self.timers {
            Timers::Own(timers) => timers.foreign.borrow().is_kept(kept, waker),
            Timers::Shared(group) => group.foreign().is_kept(kept, waker),
        }
    }

    /// Keeps a waker that is no task's number. Returns the number that its timer is to carry.
    pub(crate) fn keep(&self, waker: Waker) -> TaskId {
        match &self.timers {
            Timers::Own(timers) => timers.foreign.borrow_mut().keep(self.wake_target, waker),
            Timers::Shared(group) => group.foreign().keep(self.wake_target, waker),
        }
    }

    /// Lets go of what [`WorkerContext::keep`] has kept, if it has.
    pub(crate) fn forget(&self, waiter: TaskId) {
        if waiter.is_foreign() {
            let kept = match &self.timers {
                Timers::Own(timers) => timers.foreign.borrow_mut().take(waiter),
                Timers::Shared(group) => group.foreign().take(waiter),
            };
            drop(kept);
        }
    }

    /// Makes ready what is due, and says when to look again.
    pub(crate) fn expire(&self) -> Option<u64> {
        let now_ms = self.now_ms();
        match &self.timers {
            Timers::Own(timers) => {
                let take = |id| timers.foreign.borrow_mut().take(id);
                foreign::expire(timers.wheel.borrow_mut(), now_ms, take, |id| self.ready(id))
            }
            Timers::Shared(group) => group.expire(now_ms),
        }
    }

    /// Queues a task. Returns whether it has just been queued.
    pub(crate) fn ready(&self, id: TaskId) -> bool {
        self.schedule.ready(id.slot(), id.generation())
    }
}

/// Returns whether the running thread is one of ours.
pub(crate) fn is_own_thread() -> bool {
    CONTEXT.with(|context| context.own.get().is_some())
}

/// Returns whether this is the worker that the running thread is lent to.
pub(crate) fn is_at(worker: &WorkerContext) -> bool {
    let borrowed = CONTEXT.try_with(ThreadContext::borrowed).ok().flatten();
    borrowed.is_some_and(|ctx| std::ptr::eq(Rc::as_ptr(&ctx), worker))
}

/// Runs `f` with the running thread's worker; `None` on any other thread.
pub(crate) fn try_with<T>(f: impl FnOnce(&WorkerContext) -> T) -> Option<T> {
    // Here and below, `f` is called in one place: so the compiler puts it there, whatever else is
    // in the program.
    CONTEXT
        .try_with(|context| {
            let borrowed;
            let ctx = if let Some(own) = context.own.get() {
                own
            } else {
                borrowed = context.borrowed()?;
                &borrowed
            };
            Some(f(ctx))
        })
        .ok()
        .flatten()
}

/// Runs `f` with the running thread's worker.
///
/// # Panics
/// On a thread that is no worker: the operations of this crate need a task.
pub(crate) fn with<T>(f: impl FnOnce(&WorkerContext) -> T) -> T {
    CONTEXT.with(|context| {
        let borrowed;
        let ctx = if let Some(own) = context.own.get() {
            own
        } else {
            let expected = "sockets, timers and spawning belong into a worker's tasks";
            borrowed = context.borrowed().expect(expected);
            &borrowed
        };
        f(ctx)
    })
}

/// Notes what the running task waits for, should it wait now. A future outside any task notes
/// nothing.
pub(crate) fn waits_on(on: WaitsOn) {
    try_with(|ctx| ctx.waits_on(on));
}

/// Takes one unit off what the running task may do without having had to wait. Returns whether
/// there was one left: if not, it is to let others run.
pub(crate) fn spend() -> bool {
    let left = try_with(|ctx| {
        let left = ctx.left.get();
        ctx.charge(1);
        left
    });
    left != Some(0)
}

/// Counts work of the running task against what it may do in one run. A task that never waits is
/// made to once that is used up, at its next operation on a socket or a mailbox, so that the
/// worker's other tasks have their turn.
///
/// - `units`: of some microsecond; a run has 256 of them.
pub fn charge(units: u32) {
    try_with(|ctx| ctx.charge(units));
}

/// Counts a step of the running task that may have held the thread for long, at a unit for each
/// microsecond. What is left is enough for the one operation that the step was made for.
pub fn charge_step(took: Duration) {
    let units = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    try_with(|ctx| {
        let left = ctx.left.get();
        ctx.left.set(left.saturating_sub(units).max(left.min(OPERATION_UNITS)));
    });
}

/// Makes a task ready if it is one of the running thread's own. Returns whether that was done.
pub(crate) fn wake_local(id: TaskId) -> bool {
    let woken = CONTEXT.try_with(|context| match context.own.get() {
        Some(ctx) => wake_own(ctx, id),
        None => wake_borrowed(context, id),
    });
    woken.unwrap_or(false)
}

fn wake_own(ctx: &WorkerContext, id: TaskId) -> bool {
    let own = ctx.wake_target == id.wake_target() && matches!(ctx.timers, Timers::Own(_));
    if own {
        ctx.ready(id);
    }
    own
}

/// Like [`wake_local`] on a thread of the caller's, whose own loop may have to be woken.
#[cold]
fn wake_borrowed(context: &ThreadContext, id: TaskId) -> bool {
    let Some(ctx) = context.borrowed() else { return false };
    let own = wake_own(&ctx, id);
    if own && ctx.wakes_caller.take() {
        ctx.reactor.borrow().waker().wake();
    }
    own
}

/// A deadline of the running task: it is woken when that comes, once, and looks at the clock
/// itself.
///
/// Moving a deadline a little later costs nothing: the timer that is armed fires early, and is
/// armed again.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) at_ms: u64,
    armed_ms: u64,
    key: TimerKey,
}

impl Alarm {
    const NEVER: u64 = u64::MAX;

    pub(crate) const fn unset() -> Self {
        Self { at_ms: Self::NEVER, armed_ms: Self::NEVER, key: TimerKey::NONE }
    }

    /// Returns whether the deadline has come; if not, sees to it that the task is woken then.
    #[inline]
    pub(crate) fn poll_at(&mut self, now_ms: u64, ctx: &WorkerContext) -> Poll<()> {
        if now_ms >= self.at_ms {
            return Poll::Ready(());
        }
        // Armed for a time that is over, it has fired; armed for a later one, it would be late;
        // armed for a much earlier one, it would wake a task that has nothing to do yet.
        let wait_ms = self.armed_ms.saturating_sub(now_ms);
        if self.at_ms < self.armed_ms || wait_ms <= (self.at_ms - now_ms) / 4 {
            self.rearm(ctx);
        }
        Poll::Pending
    }

    /// Returns the deadline. If the timer is early, it is moved there: others may be idle for
    /// longer.
    #[cold]
    pub(crate) fn move_timer(&mut self, ctx: &WorkerContext) -> u64 {
        if self.armed_ms != self.at_ms {
            self.rearm(ctx);
        }
        self.at_ms
    }

    #[cold]
    fn rearm(&mut self, ctx: &WorkerContext) {
        self.disarm(ctx);
        if self.at_ms < Self::NEVER {
            self.key = ctx.arm(self.at_ms, ctx.current());
            self.armed_ms = self.at_ms;
        }
    }

    pub(crate) fn disarm(&mut self, ctx: &WorkerContext) {
        if self.key != TimerKey::NONE {
            ctx.disarm(self.key);
            self.key = TimerKey::NONE;
            self.armed_ms = Self::NEVER;
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.key != TimerKey::NONE {
            try_with(|ctx| ctx.disarm(self.key));
        }
    }
}
