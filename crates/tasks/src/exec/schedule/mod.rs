//! The four schedulers: where tasks live, and which ready one runs next.
//!
//! | name | tasks live in | run by | in the order of | when full |
//! | --- | --- | --- | --- | --- |
//! | `pool` | a fixed array per worker | their worker | slots | the worker takes no more |
//! | `pool-shared` | one fixed array | the worker that claims them | slots | accepting pauses |
//! | `queue` | a growing table per worker | their worker | time | accepting pauses at the total |
//! | `queue-shared` | one growing table | a free worker | time | the same |
//!
//! A scheduler hands a ready task out ([`Scheduler::claim`]), the worker polls it and hands it back
//! ([`Scheduler::release`]). Nothing else knows where tasks are kept.
//!
//! So there are two types, [`PinnedScheduler`] and [`SharedScheduler`], and two run queues for
//! each: bits of slots, and lists.

mod bits;
mod pinned;
mod shared;
mod shared_slots;
mod slots;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;

use bits::Bits;
use pinned::PinnedScheduler;
use shared::SharedScheduler;
use shared_slots::SharedSlots;
use slots::Slots;

use crate::exec::contained::contained;
use crate::exec::waits::Waits;
use crate::sync::claim::TaskActivity;
use crate::sync::queue::TokenQueue;
use crate::sync::ready_bits::ReadyBits;

/// A task as schedulers keep it. Shared ones run it on any worker, so it must be `Send`.
pub type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Slots for tasks that are no connections (acceptors, what handlers spawn), beside the counted
/// ones.
pub(crate) const SPARE_SLOTS: usize = 64;

/// The scheduler that places and runs connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchedulerKind {
    /// A fixed slot array per worker: lowest latency, bounded memory.
    #[default]
    Pool,
    /// One fixed slot array for all workers: uneven load, bounded memory.
    PoolShared,
    /// A growing first-in first-out table per worker: unknown load.
    Queue,
    /// One growing table and one lock-free line for all workers: handlers that hold a thread.
    QueueShared,
}

impl SchedulerKind {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 4] = [Self::Pool, Self::PoolShared, Self::Queue, Self::QueueShared];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 4] = ["pool", "pool-shared", "queue", "queue-shared"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns whether any worker may run any task.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::PoolShared | Self::QueueShared)
    }

    /// The one that keeps tasks in the same way and does not share them.
    pub(crate) fn unshared(self) -> Self {
        match self {
            Self::Pool | Self::PoolShared => Self::Pool,
            Self::Queue | Self::QueueShared => Self::Queue,
        }
    }

    /// Returns the scheduler of one worker that does not share its tasks.
    ///
    /// - `connections`: how many it must hold.
    pub(crate) fn pinned(self, connections: usize) -> Box<dyn Scheduler> {
        let count = connections.saturating_add(SPARE_SLOTS);
        match self {
            // Others that come on top make it grow.
            Self::Pool | Self::PoolShared => {
                Box::new(PinnedScheduler::new(Slots::with_capacity(count), Bits::new(count)))
            }
            Self::Queue | Self::QueueShared => {
                Box::new(PinnedScheduler::new(Slots::default(), VecDeque::new()))
            }
        }
    }

    /// Returns the scheduler of all workers together.
    ///
    /// - `connections`: how many it must hold.
    pub(crate) fn shared(self, connections: usize) -> Box<dyn ShareScheduler> {
        let count = connections.saturating_add(SPARE_SLOTS);
        let slots = SharedSlots::new(count);
        match self {
            Self::Pool | Self::PoolShared => {
                slots.allocate();
                Box::new(SharedScheduler::new(slots, ReadyBits::new(count)))
            }
            Self::Queue | Self::QueueShared => {
                Box::new(SharedScheduler::new(slots, TokenQueue::new(count)))
            }
        }
    }
}

/// A ready task on loan to the worker that runs it.
pub(crate) struct Claimed {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) task: BoxTask,
}

/// A home for tasks, and their line.
pub(crate) trait Scheduler {
    /// Takes a task in, ready to run. Returns its slot and generation, or the task if none is free.
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask>;

    /// Makes a task ready. A task that is ready already, or gone, stays as it is. Returns whether
    /// it has just been queued.
    fn ready(&self, slot: u32, generation: u32) -> bool;

    /// Makes all tasks ready.
    fn ready_all(&self);

    /// Takes the next ready task out to run it.
    fn claim(&self) -> Option<Claimed>;

    /// Takes a task out to run it at once, past the queue, if it neither is queued nor runs. If it
    /// does, it becomes ready.
    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed>;

    /// Takes the next of those out that have used up what a task may do in one run. They stand in a
    /// line of their own, so that others, new connections above all, do not wait behind them. Each
    /// waits for those that were queued when it had its turn. Where workers share their tasks there
    /// is one run queue, and nothing here.
    fn claim_spent(&self) -> Option<Claimed> {
        None
    }

    /// Takes a task back after its poll: `Some` if it is not done, with what it `waits` for. One
    /// that became ready meanwhile is queued again.
    ///
    /// - `spent`: it has used up what a task may do in one run.
    fn release(&self, slot: u32, task: Option<BoxTask>, waits: Waits, spent: bool);

    /// Returns whether a task is queued, or has used up its budget and goes on.
    fn has_ready(&self) -> bool;

    /// Returns whether a task is queued.
    fn has_queued(&self) -> bool {
        self.has_ready()
    }

    /// Returns whether no task is kept here, or on loan.
    fn is_empty(&self) -> bool;

    /// Shows every task, in the order of their slots. It looks at each slot once and stops none,
    /// so tasks that other threads run meanwhile may be missing, or not be as they were.
    fn look(&self, see: &mut dyn FnMut(TaskSnapshot));

    /// Drops all tasks that do not run.
    fn clear(&self);
}

/// A scheduler of several workers.
pub(crate) trait ShareScheduler: Scheduler + Send + Sync {
    /// Returns the same scheduler, for one of its workers.
    fn share(&self) -> Box<dyn Scheduler>;
}

/// Slots whose tasks are ready, each at most once, and which of them is next. What several threads
/// use at once is one by reference, as with `io::Write`.
pub(crate) trait RunQueue {
    /// Queues a slot. There is room for every slot.
    fn push(&mut self, slot: u32);

    /// Takes the next one out.
    fn pop(&mut self) -> Option<u32>;

    /// Returns whether none is queued.
    fn is_empty(&self) -> bool;
}

/// First come, first served.
impl RunQueue for VecDeque<u32> {
    fn push(&mut self, slot: u32) {
        self.push_back(slot);
    }

    fn pop(&mut self) -> Option<u32> {
        self.pop_front()
    }

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

/// First come, first served.
impl RunQueue for &TokenQueue {
    fn push(&mut self, slot: u32) {
        let in_line = TokenQueue::push(self, u64::from(slot));
        debug_assert!(in_line.is_ok(), "the line has room for every slot");
    }

    fn pop(&mut self) -> Option<u32> {
        u32::try_from(TokenQueue::pop(self)?).ok()
    }

    fn is_empty(&self) -> bool {
        TokenQueue::is_empty(self)
    }
}

/// In the order of the slots, by whichever worker is free.
impl RunQueue for &ReadyBits {
    fn push(&mut self, slot: u32) {
        self.set(slot);
    }

    fn pop(&mut self) -> Option<u32> {
        self.claim()
    }

    fn is_empty(&self) -> bool {
        !self.any()
    }
}

/// A task as a look from outside finds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskSnapshot {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) doing: TaskActivity,
    /// What it said at the end of its last run; nothing before that.
    pub(crate) waits: Waits,
}

/// Drops tasks at the end. Their destructors are not ours: one that panics harms no other.
fn drop_all(tasks: impl IntoIterator<Item = BoxTask>) {
    for task in tasks {
        _ = contained(|| drop(task));
    }
}
