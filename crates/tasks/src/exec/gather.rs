//! What the tasks of a driven worker send in one turn leaves together.
//!
//! To send wakes whoever waits for it. A client on this machine that is faster than the tasks here
//! sleeps after each answer, and waking it anew takes up to 20 µs of the sender's time. So where
//! several tasks run in a turn, each waits with what it sends until the others have run, or for
//! [`HOLD_US`] and as long as the running task takes.

use gustnado_reactor::Token;

use crate::exec::context::WorkerContext;
use crate::exec::task_id::TaskId;
use crate::exec::turn::{RUNS_MAX, UNITS_MAX, run, run_spent};
use crate::exec::workers_shared::Phase;

/// Microseconds for which something is held back.
const HOLD_US: u64 = 500;
/// What was held for longer than this has met a slow task.
const SLOW_US: u64 = 1_000;
/// For so long nothing is held after that: the next one may be slow too.
const CAUTION_MS: u64 = 1_000;

/// Runs what is woken and what is queued. Returns whether there was anything.
pub(crate) fn run_all(ctx: &WorkerContext, woken: &mut Vec<Token>) -> bool {
    let mut has_run = !woken.is_empty();
    ctx.begin_gathering(woken.len());
    for token in woken.drain(..) {
        let id = TaskId::of_token(token);
        if let Some(claimed) = ctx.schedule.claim_idle(id.slot(), id.generation()) {
            run(ctx, id, claimed.task);
            ctx.look_at_gathered();
        }
    }
    let mut units = 0;
    for _ in 0..RUNS_MAX {
        let Some(claimed) = ctx.schedule.claim() else { break };
        has_run = true;
        units += run(ctx, claimed.id(ctx), claimed.task);
        ctx.look_at_gathered();
        if units >= UNITS_MAX {
            break;
        }
    }
    has_run |= run_spent(ctx);
    ctx.flush();
    has_run
}

impl WorkerContext {
    /// A turn begins, in which so many tasks were woken.
    fn begin_gathering(&self, woken: usize) {
        let has_several = woken > 1 || self.schedule.has_ready();
        let is_cutting = self.phase() >= Phase::Cutting;
        self.send_batch.is_open.set(has_several && !is_cutting && self.may_gather());
    }

    fn may_gather(&self) -> bool {
        self.now_ms() >= self.send_batch.closed_until_ms.get()
    }

    /// A task has run: lets go of what was held for long enough.
    fn look_at_gathered(&self) {
        let batch = &self.send_batch;
        if !batch.is_open.get() || batch.held.borrow().is_empty() {
            return;
        }
        let now_us = self.reactor.borrow().clock().read_us();
        match batch.since_us.get() {
            None => batch.since_us.set(Some(now_us)),
            Some(since_us) if now_us - since_us < HOLD_US => {}
            Some(since_us) => {
                if now_us - since_us > SLOW_US {
                    batch.closed_until_ms.set(self.now_ms() + CAUTION_MS);
                }
                self.flush();
                batch.is_open.set(self.may_gather());
            }
        }
    }

    /// Runs all that were held; nothing more is. (So a turn ends.)
    fn flush(&self) {
        let batch = &self.send_batch;
        batch.is_open.set(false);
        batch.since_us.set(None);
        let mut held = batch.held.take();
        for task in held.drain(..) {
            if let Some(claimed) = self.schedule.claim_idle(task.slot(), task.generation()) {
                run(self, task, claimed.task);
            }
        }
        // Nobody has come meanwhile. Its memory is kept.
        batch.held.replace(held);
    }
}
