//! A worker's thread: turn after turn until the server stops, or the worker is not needed any more.

use std::cell::Cell;
use std::mem;
use std::rc::Rc;
use std::task::Poll;

use gustnado_reactor::{Token, Wait};

use crate::exec::executor::context::{BUDGET, WorkerContext};
use crate::exec::executor::turn::{RUNS_MAX, end, open, pass, pause, run, spin, turn, wait};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::elastic::LoadEvent;
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::worker_group::WorkerGroup;
use crate::exec::worker::workers_shared::Phase;
use crate::pool::elastic::leave_group;

/// What tasks may do, in units of their [`BUDGET`], before a worker that shares them looks at the
/// kernel again: all of them come from the run queue.
const SHARED_UNITS_MAX: u32 = 4 * BUDGET;

/// Runs a worker that shares nothing, until the server stops.
pub(crate) fn run_pinned(ctx: &Rc<WorkerContext>, inbox: &Inbox) -> std::io::Result<()> {
    ctx.enter();
    let mut woken = Vec::new();
    if ctx.shared.throttle.pass_delay_us > 0 {
        run_slowly(ctx, inbox, &mut woken)?;
    }
    while ctx.phase() != Phase::Stopping {
        _ = pass(ctx, inbox, &mut woken, || Poll::Pending)?;
    }
    end(ctx);
    inbox.arrivals.close();
    Ok(())
}

/// Like [`run_pinned`], with a pause between two rounds. The wait for the kernel counts as one. A
/// loop of its own, so that the usual one does not check for pauses.
fn run_slowly(ctx: &WorkerContext, inbox: &Inbox, woken: &mut Vec<Token>) -> std::io::Result<()> {
    let read_us = || ctx.reactor.borrow().clock().read_us();
    let pass_delay_us = ctx.shared.throttle.pass_delay_us;
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

/// Runs a worker of a group that shares its tasks, until the server stops or, of a group that
/// elastic workers, it is not needed any more.
///
/// A group of fixed size runs a copy of this loop in which no elastic branch is left.
pub(crate) fn run_shared<const IS_ELASTIC: bool>(
    ctx: &Rc<WorkerContext>,
    group: &WorkerGroup,
) -> std::io::Result<()> {
    group.join(ctx.worker);
    ctx.enter();
    let mut woken = Vec::new();
    let (mut runs, mut units) = (0, 0);
    // A first task may hold this worker before any has polled, as one after a sleep may.
    let mut has_slept = true;
    while ctx.phase() != Phase::Stopping {
        if IS_ELASTIC && group.roles.is_leaving(ctx.worker) && leave_group(ctx, group) {
            return Ok(());
        }
        while let Some(message) = group.arrivals.take() {
            // All workers of a group share one entry in the tables.
            open(ctx, message, 0);
        }
        if runs < RUNS_MAX
            && units < SHARED_UNITS_MAX
            && let Some(claimed) = ctx.schedule.claim()
        {
            runs += 1;
            if mem::take(&mut has_slept) {
                group.pass_on();
                if IS_ELASTIC && !group.roles.is_polled() {
                    ctx.shared.elastic.report(LoadEvent::GroupBusy);
                }
            }
            // Others poll too, so it may be long since this thread read the clock.
            ctx.reactor.borrow_mut().tick();
            ctx.note_time();
            units += run(ctx, claimed.id(ctx), claimed.task);
            continue;
        }
        if runs > 0 && ctx.shared.throttle.pass_delay_us > 0 {
            pause(ctx, ctx.shared.throttle.pass_delay_us);
        }
        (runs, units) = (0, 0);
        if group.roles.take_poller() {
            let result = poll_for_group(ctx, group, &mut woken);
            if IS_ELASTIC {
                ctx.shared.elastic.report(LoadEvent::GroupPolled);
            }
            group.roles.give_poller_up();
            // Before a task runs: it may block this thread, and then no event would be seen.
            let is_followed = group.wake_sleeper();
            if IS_ELASTIC && !is_followed {
                ctx.shared.elastic.report(LoadEvent::GroupBusy);
            }
            result?;
        } else if !group.has_work() {
            group.park(ctx.worker, || {
                let leaves = IS_ELASTIC && group.roles.is_leaving(ctx.worker);
                leaves || ctx.phase() == Phase::Stopping
            });
            has_slept = true;
        }
    }
    // Sleepers would wait for a poller that does not come any more.
    while group.wake_sleeper() {}
    while group.arrivals.take().is_some() {}
    end(ctx);
    Ok(())
}

/// One turn of the poller: collects events and timers, and queues their tasks.
fn poll_for_group(
    ctx: &WorkerContext,
    group: &WorkerGroup,
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
