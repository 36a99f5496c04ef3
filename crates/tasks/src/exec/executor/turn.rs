//! One turn of a worker: takes what others sent, runs what is ready, sleeps in the kernel.

use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use gustnado_reactor::{Token, Wait};

use crate::exec::contained::contained;
use crate::exec::executor::context::{BUDGET, WorkerContext};
use crate::exec::executor::eviction::evict;
use crate::exec::schedule::{BoxTask, Claimed};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::elastic::LoadEvent;
use crate::exec::worker::evictions::{EvictionAnswer, EvictionQuestion};
use crate::exec::worker::inbox::{Inbox, WorkerMessage};
use crate::exec::worker::workers_shared::{Phase, count};

/// Tasks run in a row before the worker looks at the kernel again.
pub(crate) const RUNS_MAX: u32 = 256;
/// What tasks from the run queue may do, in units of their [`BUDGET`], before the worker looks at
/// the kernel again. Tasks that the kernel wakes do not wait behind those that never sleep.
const UNITS_MAX: u32 = BUDGET;
/// Messages handled in a row before tasks have their turn.
const MESSAGES_MAX: u32 = 256;
/// Turns a worker spends on letting its last operations end, 10 ms each at most.
const LAST_TURNS: u32 = 100;
/// How long a paused worker sleeps at most before it looks whether the server stops.
const PAUSE_STEP: Duration = Duration::from_millis(10);

/// One round of a worker that shares nothing: takes in what has come, runs what is ready, asks the
/// kernel, and sleeps there if nothing is left to do.
///
/// - `main`: looked at before each task and once after them. When it is ready, that ends the round.
pub(crate) fn pass(
    ctx: &WorkerContext,
    inbox: &Inbox,
    woken: &mut Vec<Token>,
    mut main: impl FnMut() -> Poll<()>,
) -> std::io::Result<Poll<()>> {
    take_in(ctx, inbox);
    run_woken(ctx, woken);
    let mut units = 0;
    for _ in 0..RUNS_MAX {
        if main().is_ready() {
            return Ok(Poll::Ready(()));
        }
        let Some(claimed) = ctx.schedule.claim() else { break };
        units += run(ctx, claimed.id(ctx), claimed.task);
        if units >= UNITS_MAX {
            break;
        }
    }
    run_spent(ctx);
    if main().is_ready() {
        return Ok(Poll::Ready(()));
    }
    let next_ms = ctx.expire();
    // The sleep is announced last: from then on a wake-up costs another thread a system call.
    if !ctx.schedule.has_ready() && !spin(ctx, woken)? && inbox.prepare_sleep() {
        // The wake-up that came with the last phase may have been taken in above.
        let result = turn(ctx, wait(ctx, next_ms), woken);
        inbox.cancel_sleep();
        result?;
    } else if woken.is_empty() {
        // Asked although tasks are ready: those that never wait must not shut the events out.
        turn(ctx, Wait::Poll, woken)?;
    }
    Ok(Poll::Pending)
}

/// Runs what the kernel has woken in the order of its events, without queueing it. Behind a
/// task that has used its whole budget, the others are queued like that one; so are all behind
/// those that wait in the queue since the last round.
#[inline]
fn run_woken(ctx: &WorkerContext, woken: &mut Vec<Token>) {
    let mut tokens = woken.drain(..);
    if !ctx.schedule.has_queued() {
        for token in tokens.by_ref() {
            let id = TaskId::of_token(token);
            if let Some(claimed) = ctx.schedule.claim_idle(id.slot(), id.generation())
                && run(ctx, id, claimed.task) >= BUDGET
            {
                break;
            }
        }
    }
    for token in tokens {
        ctx.ready(TaskId::of_token(token));
    }
}

/// One of those that used up their budget runs in each round, however much else comes meanwhile.
#[inline]
fn run_spent(ctx: &WorkerContext) -> bool {
    let claimed = ctx.schedule.claim_spent();
    claimed.is_some_and(|claimed| {
        run(ctx, claimed.id(ctx), claimed.task);
        true
    })
}

/// Runs what is woken and what is queued in a turn of a driven worker, and then what has deferred
/// its send. Returns whether there was anything.
pub(crate) fn run_all(ctx: &WorkerContext, woken: &mut Vec<Token>) -> bool {
    let mut has_run = !woken.is_empty();
    let has_several = woken.len() > 1 || ctx.schedule.has_ready();
    // Once connections are cut, a task must not wait for others to run.
    if has_several && ctx.phase() < Phase::Cutting {
        ctx.send_batch.open(ctx.now_ms());
    }
    for token in woken.drain(..) {
        let id = TaskId::of_token(token);
        if let Some(claimed) = ctx.schedule.claim_idle(id.slot(), id.generation()) {
            run(ctx, id, claimed.task);
            flush_if_due(ctx);
        }
    }
    let mut units = 0;
    for _ in 0..RUNS_MAX {
        let Some(claimed) = ctx.schedule.claim() else { break };
        has_run = true;
        units += run(ctx, claimed.id(ctx), claimed.task);
        flush_if_due(ctx);
        if units >= UNITS_MAX {
            break;
        }
    }
    has_run |= run_spent(ctx);
    flush(ctx);
    has_run
}

/// Flushes the send batch where its tasks have waited for long enough, and opens the next one.
fn flush_if_due(ctx: &WorkerContext) {
    let read_us = || ctx.reactor.borrow().clock().read_us();
    if ctx.send_batch.is_due(ctx.now_ms(), read_us) {
        flush(ctx);
        ctx.send_batch.open(ctx.now_ms());
    }
}

/// Runs the tasks that have deferred their sends. They send, since the batch is closed.
fn flush(ctx: &WorkerContext) {
    let deferred = ctx.send_batch.close();
    for task in &deferred {
        if let Some(claimed) = ctx.schedule.claim_idle(task.slot(), task.generation()) {
            run(ctx, *task, claimed.task);
        }
    }
    ctx.send_batch.recycle(deferred);
}

/// Takes in what other threads have sent.
pub(crate) fn take_in(ctx: &WorkerContext, inbox: &Inbox) {
    if inbox.take_wakes(|id| _ = ctx.ready(id)) {
        ctx.schedule.ready_all();
    }
    for _ in 0..MESSAGES_MAX {
        match inbox.arrivals.take() {
            None => break,
            Some(message) => open(ctx, message, ctx.worker),
        }
    }
}

/// Does what a message asks for.
pub(crate) fn open(ctx: &WorkerContext, message: WorkerMessage, place: usize) {
    match message {
        WorkerMessage::Arrival(arrival) => arrival.take_in(place),
        // A worker that shares nothing has a slot for every task.
        WorkerMessage::Task(task) => drop(ctx.insert(task)),
        WorkerMessage::Evict => {
            evict(ctx, place, |id, question| ask_to_give_way(ctx, id, question));
        }
        WorkerMessage::Ping(ping) => {
            if ping.reply() {
                ctx.shared.elastic.report(LoadEvent::Changed);
            }
        }
        WorkerMessage::Dump(look) => {
            look.reply(ctx.wake_target, Some(ctx.worker), &*ctx.schedule);
        }
    }
}

/// Runs a task that waits, and returns what it answers. One that runs elsewhere, or is queued, is
/// not idle.
fn ask_to_give_way(ctx: &WorkerContext, id: TaskId, question: EvictionQuestion) -> EvictionAnswer {
    if id.is_foreign() {
        return EvictionAnswer::None;
    }
    let Some(claimed) = ctx.schedule.claim_idle(id.slot(), id.generation()) else {
        return EvictionAnswer::None;
    };
    ctx.eviction_answer.set(EvictionAnswer::Asked(question));
    run(ctx, id, claimed.task);
    ctx.eviction_answer.take()
}

/// Holds the running thread for so long, or until the server stops.
pub(crate) fn pause(ctx: &WorkerContext, pause_us: u64) {
    let mut left = Duration::from_micros(pause_us);
    if left.is_zero() {
        return;
    }
    while !left.is_zero() && ctx.phase() != Phase::Stopping {
        let step = left.min(PAUSE_STEP);
        thread::sleep(step);
        left -= step;
    }
    // Whatever runs next goes by the clock.
    ctx.reactor.borrow_mut().tick();
    ctx.note_time();
}

/// Returns how long a worker may sleep that has lain down: until its next timer, but not into the
/// end. Who ends it says so first and wakes it then: either it is seen here, or the wake-up comes.
pub(crate) fn wait(ctx: &WorkerContext, next_ms: Option<u64>) -> Wait {
    if ctx.phase() == Phase::Stopping {
        return Wait::Poll;
    }
    next_ms.map_or(Wait::Forever, Wait::Until)
}

/// Lets time pass before the worker sleeps, if it should: holds still, and polls for as long as the
/// spin time. Returns whether something came.
pub(crate) fn spin(ctx: &WorkerContext, woken: &mut Vec<Token>) -> std::io::Result<bool> {
    let throttle = &ctx.shared.throttle;
    if !throttle.before_sleep {
        return Ok(false);
    }
    if throttle.no_io_wait_us > 0 {
        pause(ctx, throttle.no_io_wait_us);
        turn(ctx, Wait::Poll, woken)?;
    }
    let spin_us = throttle.spin_us;
    let until_us = ctx.reactor.borrow().clock().read_us() + spin_us;
    while woken.is_empty() && ctx.reactor.borrow().clock().read_us() < until_us {
        turn(ctx, Wait::Poll, woken)?;
    }
    Ok(!woken.is_empty())
}

pub(crate) fn turn(ctx: &WorkerContext, wait: Wait, woken: &mut Vec<Token>) -> std::io::Result<()> {
    let result = ctx.reactor.borrow_mut().turn(wait, woken);
    ctx.note_time();
    ctx.shared.watchdog.note_work();
    result
}

impl Claimed {
    pub(crate) fn id(&self, ctx: &WorkerContext) -> TaskId {
        TaskId::new(ctx.wake_target, self.slot, self.generation)
    }
}

/// Polls a task once. A panic ends the task, not the worker. Returns what the task has used of its
/// [`BUDGET`].
pub(crate) fn run(ctx: &WorkerContext, id: TaskId, mut task: BoxTask) -> u32 {
    ctx.begin(id);
    let waker = id.waker();
    let mut context = Context::from_waker(&waker);
    let left = match contained(|| task.as_mut().poll(&mut context)) {
        Some(Poll::Pending) => Some(task),
        outcome => end_task(ctx, id, task, outcome.is_some()),
    };
    let (waits, used) = ctx.end();
    ctx.schedule.release(id.slot(), left, waits, used >= BUDGET);
    used
}

/// Drops a task that is done. Returns the one that goes on in its slot, if it has named one: that
/// is queued.
///
/// - `is_well`: it has not panicked.
#[cold]
#[inline(never)] // Most runs end with a wait.
fn end_task(ctx: &WorkerContext, id: TaskId, task: BoxTask, is_well: bool) -> Option<BoxTask> {
    let is_well = contained(|| drop(task)).is_some() && is_well;
    let successor = ctx.successor.take().filter(|(of, _)| *of == id);
    if is_well && let Some((_, successor)) = successor {
        ctx.ready(id);
        return Some(successor);
    }
    if contained(|| drop(successor)).is_none() || !is_well {
        count(&ctx.shared.counts.panics);
    }
    ctx.metrics().end_task();
    None
}

/// Drops all tasks, and gives the kernel time to end what was under way.
pub(crate) fn end(ctx: &WorkerContext) {
    ctx.schedule.clear();
    ctx.reactor.borrow_mut().unlisten_all();
    let mut woken = Vec::new();
    // Under epoll nothing ever is, and a turn might take another worker's wake-up.
    for _ in 0..LAST_TURNS {
        let unfinished = ctx.reactor.borrow().has_unfinished();
        let until_ms = ctx.reactor.borrow().clock().read_ms() + 10;
        if !unfinished || turn(ctx, Wait::Until(until_ms), &mut woken).is_err() {
            break;
        }
    }
}
