//! A worker: takes what others sent, runs what is ready, sleeps in the kernel.

use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use gustnado_reactor::{Token, Wait};

use crate::acceptor;
use crate::crew::{Phase, count};
use crate::group::Group;
use crate::here::{BUDGET, Here};
use crate::inbox::{Inbox, Letter};
use crate::schedule::{BoxTask, Claimed};
use crate::seats::Farewell;
use crate::task_id::TaskId;
use crate::watch::Watch;

/// Tasks run in a row before the worker looks at the kernel again.
const RUNS_MAX: u32 = 256;
/// What tasks from the run queue may do, in units of their [`BUDGET`], before the worker looks at
/// the kernel again. Tasks that the kernel wakes do not wait behind those that never sleep.
const UNITS_MAX: u32 = BUDGET;
/// The same where workers share their tasks, and all of them come from the run queue.
const SHARED_UNITS_MAX: u32 = 4 * BUDGET;
/// Letters opened in a row before tasks have their turn.
const LETTERS_MAX: u32 = 256;
/// Turns a worker spends on letting its last operations end, 10 ms each at most.
const LAST_TURNS: u32 = 100;
/// How long a paused worker sleeps at most before it looks whether the server stops.
const PAUSE_STEP: Duration = Duration::from_millis(10);

/// Runs a worker that shares nothing, until the server stops.
pub(crate) fn run_pinned(here: &Rc<Here>, inbox: &Inbox) -> std::io::Result<()> {
    here.enter();
    let mut woken = Vec::new();
    if here.crew.pauses.pass_delay_us > 0 {
        run_slowly(here, inbox, &mut woken)?;
    }
    while here.phase() != Phase::Stopping {
        // (Never ready: tasks are all that runs here.)
        _ = pass(here, inbox, &mut woken, || Poll::Pending)?;
    }
    end(here);
    inbox.arrivals().close();
    Ok(())
}

/// The same with a pause between two rounds. (A loop of its own, so that the other one has nothing
/// to ask.) The time that it waited for the kernel counts as a pause.
fn run_slowly(here: &Here, inbox: &Inbox, woken: &mut Vec<Token>) -> std::io::Result<()> {
    let read_us = || here.reactor.borrow().clock().read_us();
    let pass_delay_us = here.crew.pauses.pass_delay_us;
    let worked_us = Cell::new(0);
    while here.phase() != Phase::Stopping {
        _ = pass(here, inbox, woken, || {
            worked_us.set(read_us());
            Poll::Pending
        })?;
        let paused_us = read_us() - worked_us.get();
        pause(here, pass_delay_us.saturating_sub(paused_us));
    }
    Ok(())
}

/// Holds the running thread for so long, or until the server stops.
fn pause(here: &Here, pause_us: u64) {
    let mut left = Duration::from_micros(pause_us);
    if left.is_zero() {
        return;
    }
    while !left.is_zero() && here.phase() != Phase::Stopping {
        let step = left.min(PAUSE_STEP);
        thread::sleep(step);
        left -= step;
    }
    // Whatever runs next goes by the clock.
    here.reactor.borrow_mut().tick();
    here.note_time();
}

/// Runs a worker that shares nothing and was added to those of the start, until the server stops or
/// it is not needed any more.
pub(crate) fn run_guest(here: &Rc<Here>, inbox: &Inbox, watch: &Watch) -> std::io::Result<()> {
    here.enter();
    let (seats, arrivals) = (&watch.seats, inbox.arrivals());
    let is_idle = || here.crew.places.is_vacant(here.worker) && here.schedule.is_empty();
    let mut woken = Vec::new();
    while here.phase() != Phase::Stopping {
        // Before it would sleep it is to see that it may go.
        let may_go = || is_idle() && arrivals.is_empty() && !seats.is_parked(here.worker);
        let main = || if may_go() { Poll::Ready(()) } else { Poll::Pending };
        if pass(here, inbox, &mut woken, main)?.is_pending() {
            pause(here, here.crew.pauses.pass_delay_us);
            continue;
        }
        // One that is parked sleeps in the kernel like any other: nothing comes to it.
        match seats.leave(here.worker, || is_idle() && arrivals.close_if_empty()) {
            Farewell::Stay => {}
            Farewell::Park => note_departure(here, watch),
            Farewell::End => {
                note_departure(here, watch);
                break;
            }
        }
    }
    end(here);
    arrivals.close();
    Ok(())
}

/// A worker that was dismissed has gone.
fn note_departure(here: &Here, watch: &Watch) {
    count(&here.crew.counts.workers_shrunk);
    watch.tell();
}

/// One round of a worker that shares nothing: takes in what has come, runs what is ready, asks the
/// kernel, and sleeps there if nothing is left to do.
///
/// - `main`: looked at before each task and once after them. When it is ready, that ends the round.
pub(crate) fn pass(
    here: &Here,
    inbox: &Inbox,
    woken: &mut Vec<Token>,
    mut main: impl FnMut() -> Poll<()>,
) -> std::io::Result<Poll<()>> {
    take_in(here, inbox);
    run_woken(here, woken);
    let mut units = 0;
    for _ in 0..RUNS_MAX {
        if main().is_ready() {
            return Ok(Poll::Ready(()));
        }
        let Some(claimed) = here.schedule.claim() else { break };
        units += run(here, claimed.id(here), claimed.task);
        if units >= UNITS_MAX {
            break;
        }
    }
    run_spent(here);
    if main().is_ready() {
        return Ok(Poll::Ready(()));
    }
    let next_ms = here.expire();
    if !here.schedule.has_ready() && !spin(here, woken)? && inbox.lie_down() {
        // The wake-up that came with the last phase may have been taken in above.
        let result = turn(here, wait(here, next_ms), woken);
        inbox.get_up();
        result?;
    } else if woken.is_empty() {
        turn(here, Wait::Poll, woken)?;
    }
    Ok(Poll::Pending)
}

/// What the kernel has woken runs in the order of its events, without standing in line. Behind a
/// task that has used its whole budget, the others stand in line like that one.
#[inline]
fn run_woken(here: &Here, woken: &mut Vec<Token>) {
    let mut tokens = woken.drain(..);
    for token in tokens.by_ref() {
        let id = TaskId::of_token(token);
        if let Some(claimed) = here.schedule.claim_idle(id.slot(), id.generation())
            && run(here, id, claimed.task) >= BUDGET
        {
            break;
        }
    }
    for token in tokens {
        here.ready(TaskId::of_token(token));
    }
}

/// One of those that used up their budget runs in each round, however much else there is.
#[inline]
fn run_spent(here: &Here) -> bool {
    let claimed = here.schedule.claim_spent();
    claimed.is_some_and(|claimed| {
        run(here, claimed.id(here), claimed.task);
        true
    })
}

/// Runs what is woken and what stands in line. Returns whether there was anything.
pub(crate) fn run_all(here: &Here, woken: &mut Vec<Token>) -> bool {
    let mut has_run = !woken.is_empty();
    here.begin_gathering(woken.len());
    for token in woken.drain(..) {
        let id = TaskId::of_token(token);
        if let Some(claimed) = here.schedule.claim_idle(id.slot(), id.generation()) {
            run(here, id, claimed.task);
            here.look_at_gathered();
        }
    }
    let mut units = 0;
    for _ in 0..RUNS_MAX {
        let Some(claimed) = here.schedule.claim() else { break };
        has_run = true;
        units += run(here, claimed.id(here), claimed.task);
        here.look_at_gathered();
        if units >= UNITS_MAX {
            break;
        }
    }
    has_run |= run_spent(here);
    here.let_go();
    has_run
}

/// Takes in what other threads have sent.
pub(crate) fn take_in(here: &Here, inbox: &Inbox) {
    if inbox.take_wakes(|id| _ = here.ready(id)) {
        here.schedule.ready_all();
    }
    for _ in 0..LETTERS_MAX {
        match inbox.arrivals().take() {
            None => break,
            Some(letter) => open(here, letter, here.worker),
        }
    }
}

/// Does what a letter says.
fn open(here: &Here, letter: Letter, place: usize) {
    match letter {
        Letter::Arrival(arrival) => acceptor::welcome(here, arrival, place),
        // A worker that shares nothing has a slot for every task.
        Letter::Task(task) => drop(here.insert(task)),
        Letter::Roll(roll) => {
            if roll.answer() {
                here.crew.tell_watch();
            }
        }
        Letter::Question(look) => {
            look.answer(&here.crew, here.station, Some(here.worker), &*here.schedule);
        }
    }
}

/// Runs a worker of a group that shares its tasks, until the server stops or, of a group that
/// `GROWS`, it is not needed any more.
pub(crate) fn run_shared<const GROWS: bool>(
    here: &Rc<Here>,
    group: &Arc<Group>,
) -> std::io::Result<()> {
    group.join(here.worker);
    here.enter();
    let mut woken = Vec::new();
    let (mut runs, mut units) = (0, 0);
    // At first it is like one that has slept: it may be held before anybody has ever polled.
    let mut has_slept = true;
    while here.phase() != Phase::Stopping {
        if GROWS && group.roles().is_leaving(here.worker) && depart(here, group) {
            return Ok(());
        }
        while let Some(letter) = group.arrivals().take() {
            // All workers of a group share one place.
            open(here, letter, 0);
        }
        if runs < RUNS_MAX
            && units < SHARED_UNITS_MAX
            && let Some(claimed) = here.schedule.claim()
        {
            runs += 1;
            if mem::take(&mut has_slept) {
                group.pass_on();
                if GROWS && !group.roles().is_polled() {
                    with_watch(here, Watch::tell_busy);
                }
            }
            // Long may have passed since this thread last polled: others do that too.
            here.reactor.borrow_mut().tick();
            here.note_time();
            units += run(here, claimed.id(here), claimed.task);
            continue;
        }
        if runs > 0 && here.crew.pauses.pass_delay_us > 0 {
            pause(here, here.crew.pauses.pass_delay_us);
        }
        (runs, units) = (0, 0);
        if group.roles().take_poller() {
            let result = poll_for_group(here, group, &mut woken);
            if GROWS {
                with_watch(here, Watch::note_round);
            }
            group.roles().give_poller_up();
            // Before anything is run: from now on it may block this thread.
            let is_followed = group.rouse_sleeper();
            if GROWS && !is_followed {
                with_watch(here, Watch::tell_busy);
            }
            result?;
        } else if !group.has_work() {
            group.park(here.worker, || {
                let leaves = GROWS && group.roles().is_leaving(here.worker);
                leaves || here.phase() == Phase::Stopping
            });
            has_slept = true;
        }
    }
    // The others may wait for a poller that will not come.
    while group.rouse_sleeper() {}
    while group.arrivals().take().is_some() {}
    end(here);
    Ok(())
}

/// Leaves the group, for good or until it is needed again. Returns whether for good.
fn depart(here: &Here, group: &Group) -> bool {
    // It may have been woken for something that is now others' to do.
    group.pass_on();
    let Some(watch) = here.crew.watch.get() else { return false };
    let farewell = watch.seats.leave(here.worker, || true);
    if farewell == Farewell::Stay {
        return false;
    }
    if !group.roles().is_polled() {
        watch.tell_busy();
    }
    note_departure(here, watch);
    while watch.seats.is_parked(here.worker) && here.phase() != Phase::Stopping {
        thread::park();
    }
    farewell == Farewell::End
}

fn with_watch(here: &Here, act: impl FnOnce(&Watch)) {
    if let Some(watch) = here.crew.watch.get() {
        act(watch);
    }
}

/// One turn of the poller: collects events and timers, and puts their tasks in line.
fn poll_for_group(here: &Here, group: &Group, woken: &mut Vec<Token>) -> std::io::Result<()> {
    let next_ms = here.expire();
    if !group.has_work() && !spin(here, woken)? && group.lie_down(next_ms) {
        // Another poller may have taken the wake-up that came with the last phase.
        let result = turn(here, wait(here, next_ms), woken);
        group.get_up();
        result?;
    } else if woken.is_empty() {
        turn(here, Wait::Poll, woken)?;
    }
    for token in woken.drain(..) {
        here.ready(TaskId::of_token(token));
    }
    here.expire();
    Ok(())
}

/// How long a worker may sleep that has lain down: until its next timer, but not into the end. (Who
/// ends it says so first and wakes it then: either it is seen here, or the wake-up comes.)
fn wait(here: &Here, next_ms: Option<u64>) -> Wait {
    if here.phase() == Phase::Stopping {
        return Wait::Poll;
    }
    next_ms.map_or(Wait::Forever, Wait::Until)
}

/// Lets time pass before the worker sleeps, if it should: holds still, and polls for as long as the
/// spin time. Returns whether something came.
fn spin(here: &Here, woken: &mut Vec<Token>) -> std::io::Result<bool> {
    let pauses = &here.crew.pauses;
    if !pauses.before_sleep {
        return Ok(false);
    }
    if pauses.no_io_wait_us > 0 {
        pause(here, pauses.no_io_wait_us);
        turn(here, Wait::Poll, woken)?;
    }
    let spin_us = pauses.spin_us;
    let until_us = here.reactor.borrow().clock().read_us() + spin_us;
    while woken.is_empty() && here.reactor.borrow().clock().read_us() < until_us {
        turn(here, Wait::Poll, woken)?;
    }
    Ok(!woken.is_empty())
}

fn turn(here: &Here, wait: Wait, woken: &mut Vec<Token>) -> std::io::Result<()> {
    let result = here.reactor.borrow_mut().turn(wait, woken);
    here.note_time();
    result
}

impl Claimed {
    fn id(&self, here: &Here) -> TaskId {
        TaskId::new(here.station, self.slot, self.generation)
    }
}

/// Polls a task once. A panic ends the task, not the worker. Returns what the task has used of its
/// [`BUDGET`].
pub(crate) fn run(here: &Here, id: TaskId, mut task: BoxTask) -> u32 {
    here.begin(id);
    let waker = id.waker();
    let mut context = Context::from_waker(&waker);
    let left = match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut context))) {
        Ok(Poll::Pending) => Some(task),
        outcome => {
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(task)));
            if outcome.is_err() || dropped.is_err() {
                count(&here.crew.counts.panics);
            }
            here.desk().end_task();
            None
        }
    };
    let (waits, used) = here.end();
    here.schedule.settle(id.slot(), left, waits, used >= BUDGET);
    used
}

/// Drops all tasks, and gives the kernel time to end what was under way.
pub(crate) fn end(here: &Here) {
    here.schedule.clear();
    here.reactor.borrow_mut().unlisten_all();
    let mut woken = Vec::new();
    // (Under epoll nothing ever is, and a turn might take another worker's wake-up.)
    for _ in 0..LAST_TURNS {
        let unfinished = here.reactor.borrow().has_unfinished();
        let until_ms = here.reactor.borrow().clock().read_ms() + 10;
        if !unfinished || turn(here, Wait::Until(until_ms), &mut woken).is_err() {
            break;
        }
    }
}
