//! The loop of an elastic worker, and how one leaves.

use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::thread;

use crate::exec::executor::context::WorkerContext;
use crate::exec::executor::turn::{end, pass, pause};
use crate::exec::worker::elastic::{LoadEvent, RetireAction};
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::worker_group::WorkerGroup;
use crate::exec::worker::workers_shared::{Phase, count};

/// Runs an elastic worker with tasks of its own, until the server stops or it is not needed.
pub(crate) fn run_extra(ctx: &Rc<WorkerContext>, inbox: &Inbox) -> io::Result<()> {
    ctx.enter();
    let (elastic, arrivals) = (&ctx.shared.elastic, &inbox.arrivals);
    let is_idle = || ctx.shared.connection_slots.is_vacant(ctx.worker) && ctx.schedule.is_empty();
    let mut woken = Vec::new();
    while ctx.phase() != Phase::Stopping {
        // Asked before the worker would sleep: nothing wakes it once its last connection has gone.
        let may_go = || is_idle() && arrivals.is_empty() && !elastic.is_parked(ctx.worker);
        let main = || if may_go() { Poll::Ready(()) } else { Poll::Pending };
        if pass(ctx, inbox, &mut woken, main)?.is_pending() {
            pause(ctx, ctx.shared.throttle.pass_delay_us);
            continue;
        }
        // A slot is taken before its connection is sent, so the slots are looked at first: without
        // one taken, nothing can be on its way that the queue does not hold yet.
        match elastic.leave(ctx.worker, &mut || is_idle() && arrivals.close_if_empty()) {
            RetireAction::Stay => {}
            // One that is parked sleeps in the kernel like any other: nothing comes to it.
            RetireAction::Park => note_departure(ctx),
            RetireAction::End => {
                note_departure(ctx);
                break;
            }
        }
    }
    end(ctx);
    arrivals.close();
    Ok(())
}

/// Leaves a group whose workers share their tasks, for good or until the worker is needed again.
/// Returns whether for good.
pub(crate) fn leave_group(ctx: &WorkerContext, group: &WorkerGroup) -> bool {
    // A wake-up that this worker has taken may have been for work that others now have to do.
    group.pass_on();
    let elastic = &ctx.shared.elastic;
    let action = elastic.leave(ctx.worker, &mut || true);
    if action == RetireAction::Stay {
        return false;
    }
    if !group.roles.is_polled() {
        elastic.report(LoadEvent::GroupBusy);
    }
    note_departure(ctx);
    while elastic.is_parked(ctx.worker) && ctx.phase() != Phase::Stopping {
        thread::park();
    }
    action == RetireAction::End
}

fn note_departure(ctx: &WorkerContext) {
    count(&ctx.shared.counts.workers_shrunk);
    ctx.shared.elastic.report(LoadEvent::Changed);
}
