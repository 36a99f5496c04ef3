//! A worker's thread: turn after turn until the server stops, or the worker is not needed any more.

use std::cell::Cell;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use gustnado_reactor::{Token, Wait};

use crate::exec::executor::context::{BUDGET, WorkerContext};
use crate::exec::executor::turn::{RUNS_MAX, end, open, pass, pause, run, spin, turn, wait};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::worker_group::Group;
use crate::exec::worker::workers_shared::{Phase, count};
use crate::pool::autoscaler::AutoscaleState;
use crate::pool::elastic::RetireAction;

/// What tasks may do, in units of their [`BUDGET`], before a worker that shares them looks at the
/// kernel again: all of them come from the run queue.
const SHARED_UNITS_MAX: u32 = 4 * BUDGET;

/// Runs a worker that shares nothing, until the server stops.
pub(crate) fn run_pinned(ctx: &Rc<WorkerContext>, inbox: &Inbox) -> std::io::Result<()> {
    ctx.enter();
    let mut woken = Vec::new();
    if ctx.shared.pauses.pass_delay_us > 0 {
        run_slowly(ctx, inbox, &mut woken)?;
    }
    while ctx.phase() != Phase::Stopping {
        // (Never ready: tasks are all that runs here.)
        _ = pass(ctx, inbox, &mut woken, || Poll::Pending)?;
    }
    end(ctx);
    inbox.arrivals().close();
    Ok(())
}

/// The same with a pause between two rounds. (A loop of its own, so that the other one has nothing
/// to ask.) The time that it waited for the kernel counts as a pause.
fn run_slowly(ctx: &WorkerContext, inbox: &Inbox, woken: &mut Vec<Token>) -> std::io::Result<()> {
    let read_us = || ctx.reactor.borrow().clock().read_us();
    let pass_delay_us = ctx.shared.pauses.pass_delay_us;
    let worked_us = Cell::new(0);
    while ctx.phase() != Phase::Stopping {
        _ = pass(ctx, inbox, woken, || {
            worked_us.set(read_us());
            Poll::Pending
        })?;
        let paused_us = read_us() - worked_us.get();
        pause(ctx, pass_delay_us.saturating_sub(paused_us));
    }
    Ok(())
}

/// Runs a worker that shares nothing and was added to those of the start, until the server stops or
/// it is not needed any more.
pub(crate) fn run_guest(
    ctx: &Rc<WorkerContext>,
    inbox: &Inbox,
    autoscale: &AutoscaleState,
) -> std::io::Result<()> {
    ctx.enter();
    let (elastic, arrivals) = (&autoscale.elastic, inbox.arrivals());
    let is_idle = || ctx.shared.connection_slots.is_vacant(ctx.worker) && ctx.schedule.is_empty();
    let mut woken = Vec::new();
    while ctx.phase() != Phase::Stopping {
        // Before it would sleep it is to see that it may go.
        let may_go = || is_idle() && arrivals.is_empty() && !elastic.is_parked(ctx.worker);
        let main = || if may_go() { Poll::Ready(()) } else { Poll::Pending };
        if pass(ctx, inbox, &mut woken, main)?.is_pending() {
            pause(ctx, ctx.shared.pauses.pass_delay_us);
            continue;
        }
        // One that is parked sleeps in the kernel like any other: nothing comes to it.
        match elastic.leave(ctx.worker, || is_idle() && arrivals.close_if_empty()) {
            RetireAction::Stay => {}
            RetireAction::Park => note_departure(ctx, autoscale),
            RetireAction::End => {
                note_departure(ctx, autoscale);
                break;
            }
        }
    }
    end(ctx);
    arrivals.close();
    Ok(())
}

/// A worker that was retired has gone.
fn note_departure(ctx: &WorkerContext, autoscale: &AutoscaleState) {
    count(&ctx.shared.counts.workers_shrunk);
    autoscale.tell();
}

/// Runs a worker of a group that shares its tasks, until the server stops or, of a group that
/// `GROWS`, it is not needed any more.
///
/// - `autoscale`: what it then tells.
pub(crate) fn run_shared<const GROWS: bool>(
    ctx: &Rc<WorkerContext>,
    group: &Arc<Group>,
    autoscale: Option<&AutoscaleState>,
) -> std::io::Result<()> {
    group.join(ctx.worker);
    ctx.enter();
    let mut woken = Vec::new();
    let (mut runs, mut units) = (0, 0);
    // At first it is like one that has slept: it may be held before anybody has ever polled.
    let mut has_slept = true;
    while ctx.phase() != Phase::Stopping {
        if GROWS && group.roles().is_leaving(ctx.worker) && depart(ctx, group, autoscale) {
            return Ok(());
        }
        while let Some(letter) = group.arrivals().take() {
            // All workers of a group share one place.
            open(ctx, letter, 0);
        }
        if runs < RUNS_MAX
            && units < SHARED_UNITS_MAX
            && let Some(claimed) = ctx.schedule.claim()
        {
            runs += 1;
            if mem::take(&mut has_slept) {
                group.pass_on();
                if GROWS && !group.roles().is_polled() {
                    with_watch(autoscale, AutoscaleState::tell_busy);
                }
            }
            // Long may have passed since this thread last polled: others do that too.
            ctx.reactor.borrow_mut().tick();
            ctx.note_time();
            units += run(ctx, claimed.id(ctx), claimed.task);
            continue;
        }
        if runs > 0 && ctx.shared.pauses.pass_delay_us > 0 {
            pause(ctx, ctx.shared.pauses.pass_delay_us);
        }
        (runs, units) = (0, 0);
        if group.roles().take_poller() {
            let result = poll_for_group(ctx, group, &mut woken);
            if GROWS {
                with_watch(autoscale, AutoscaleState::note_round);
            }
            group.roles().give_poller_up();
            // Before anything is run: from now on it may block this thread.
            let is_followed = group.rouse_sleeper();
            if GROWS && !is_followed {
                with_watch(autoscale, AutoscaleState::tell_busy);
            }
            result?;
        } else if !group.has_work() {
            group.park(ctx.worker, || {
                let leaves = GROWS && group.roles().is_leaving(ctx.worker);
                leaves || ctx.phase() == Phase::Stopping
            });
            has_slept = true;
        }
    }
    // The others may wait for a poller that will not come.
    while group.rouse_sleeper() {}
    while group.arrivals().take().is_some() {}
    end(ctx);
    Ok(())
}

/// Leaves the group, for good or until it is needed again. Returns whether for good.
fn depart(ctx: &WorkerContext, group: &Group, autoscale: Option<&AutoscaleState>) -> bool {
    // It may have been woken for something that is now others' to do.
    group.pass_on();
    let Some(autoscale) = autoscale else { return false };
    let farewell = autoscale.elastic.leave(ctx.worker, || true);
    if farewell == RetireAction::Stay {
        return false;
    }
    if !group.roles().is_polled() {
        autoscale.tell_busy();
    }
    note_departure(ctx, autoscale);
    while autoscale.elastic.is_parked(ctx.worker) && ctx.phase() != Phase::Stopping {
        thread::park();
    }
    farewell == RetireAction::End
}

fn with_watch(autoscale: Option<&AutoscaleState>, act: impl FnOnce(&AutoscaleState)) {
    if let Some(autoscale) = autoscale {
        act(autoscale);
    }
}

/// One turn of the poller: collects events and timers, and queues their tasks.
fn poll_for_group(
    ctx: &WorkerContext,
    group: &Group,
    woken: &mut Vec<Token>,
) -> std::io::Result<()> {
    let next_ms = ctx.expire();
    if !group.has_work() && !spin(ctx, woken)? && group.prepare_sleep(next_ms) {
        // Another poller may have taken the wake-up that came with the last phase.
        let result = turn(ctx, wait(ctx, next_ms), woken);
        group.cancel_sleep();
        result?;
    } else if woken.is_empty() {
        turn(ctx, Wait::Poll, woken)?;
    }
    for token in woken.drain(..) {
        ctx.ready(TaskId::of_token(token));
    }
    ctx.expire();
    Ok(())
}
