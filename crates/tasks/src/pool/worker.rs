//! A worker's thread: turn after turn until the server stops, or the worker is not needed any more.

use std::cell::Cell;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use gustnado_reactor::{Token, Wait};

use crate::exec::crew::{Phase, count};
use crate::exec::group::Group;
use crate::exec::here::{BUDGET, Here};
use crate::exec::inbox::Inbox;
use crate::exec::task_id::TaskId;
use crate::exec::turn::{RUNS_MAX, end, open, pass, pause, run, spin, turn, wait};
use crate::pool::seats::Farewell;
use crate::pool::watch::Watch;

/// What tasks may do, in units of their [`BUDGET`], before a worker that shares them looks at the
/// kernel again: all of them come from the run queue.
const SHARED_UNITS_MAX: u32 = 4 * BUDGET;

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

/// Runs a worker of a group that shares its tasks, until the server stops or, of a group that
/// `GROWS`, it is not needed any more.
///
/// - `watch`: what it then tells.
pub(crate) fn run_shared<const GROWS: bool>(
    here: &Rc<Here>,
    group: &Arc<Group>,
    watch: Option<&Watch>,
) -> std::io::Result<()> {
    group.join(here.worker);
    here.enter();
    let mut woken = Vec::new();
    let (mut runs, mut units) = (0, 0);
    // At first it is like one that has slept: it may be held before anybody has ever polled.
    let mut has_slept = true;
    while here.phase() != Phase::Stopping {
        if GROWS && group.roles().is_leaving(here.worker) && depart(here, group, watch) {
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
                    with_watch(watch, Watch::tell_busy);
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
                with_watch(watch, Watch::note_round);
            }
            group.roles().give_poller_up();
            // Before anything is run: from now on it may block this thread.
            let is_followed = group.rouse_sleeper();
            if GROWS && !is_followed {
                with_watch(watch, Watch::tell_busy);
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
fn depart(here: &Here, group: &Group, watch: Option<&Watch>) -> bool {
    // It may have been woken for something that is now others' to do.
    group.pass_on();
    let Some(watch) = watch else { return false };
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

fn with_watch(watch: Option<&Watch>, act: impl FnOnce(&Watch)) {
    if let Some(watch) = watch {
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
