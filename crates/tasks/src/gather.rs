//! What the tasks of a driven worker send in one turn leaves together.
//!
//! To send wakes whoever waits for it. A client on this machine that is faster than the tasks here
//! sleeps after each answer, and waking it anew takes up to 20 µs of the sender's time. So where
//! several tasks run in a turn, each waits with what it sends until the others have run, or for
//! [`HOLD_US`] and as long as the running task takes.

use std::cell::{Cell, RefCell};

use crate::crew::Phase;
use crate::here::Here;
use crate::task_id::TaskId;
use crate::worker::run;

/// Microseconds for which something is held back.
const HOLD_US: u64 = 500;
/// What was held for longer than this has met a slow task.
const SLOW_US: u64 = 1_000;
/// For so long nothing is held after that: the next one may be slow too.
const CAUTION_MS: u64 = 1_000;

/// Which tasks wait with what they send.
#[derive(Default)]
pub(crate) struct Gather {
    is_open: Cell<bool>,
    held: RefCell<Vec<TaskId>>,
    /// When the first of them was found here.
    since_us: Cell<Option<u64>>,
    closed_until_ms: Cell<u64>,
}

impl Here {
    /// Whether the running task is to wait with what it sends. If so, it is run again within this
    /// turn.
    #[inline]
    pub(crate) fn holds_back(&self) -> bool {
        let is_held = self.gather.is_open.get();
        if is_held {
            self.gather.held.borrow_mut().push(self.current());
        }
        is_held
    }

    /// A turn begins, in which so many tasks were woken.
    pub(crate) fn begin_gathering(&self, woken: usize) {
        let has_several = woken > 1 || self.schedule.has_ready();
        let is_cutting = self.phase() >= Phase::Cutting;
        self.gather.is_open.set(has_several && !is_cutting && self.may_gather());
    }

    fn may_gather(&self) -> bool {
        self.now_ms() >= self.gather.closed_until_ms.get()
    }

    /// A task has run: lets go of what was held for long enough.
    pub(crate) fn look_at_gathered(&self) {
        let gather = &self.gather;
        if !gather.is_open.get() || gather.held.borrow().is_empty() {
            return;
        }
        let now_us = self.reactor.borrow().clock().read_us();
        match gather.since_us.get() {
            None => gather.since_us.set(Some(now_us)),
            Some(since_us) if now_us - since_us < HOLD_US => {}
            Some(since_us) => {
                if now_us - since_us > SLOW_US {
                    gather.closed_until_ms.set(self.now_ms() + CAUTION_MS);
                }
                self.let_go();
                gather.is_open.set(self.may_gather());
            }
        }
    }

    /// Runs all that were held; nothing more is. (So a turn ends.)
    pub(crate) fn let_go(&self) {
        let gather = &self.gather;
        gather.is_open.set(false);
        gather.since_us.set(None);
        let mut held = gather.held.take();
        for task in held.drain(..) {
            if let Some(claimed) = self.schedule.claim_idle(task.slot(), task.generation()) {
                run(self, task, claimed.task);
            }
        }
        // Nobody has come meanwhile. Its memory is kept.
        gather.held.replace(held);
    }
}
