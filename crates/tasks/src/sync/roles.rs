//! The roles in a group of workers: which one polls, which sleep, which leave.
//!
//! One bit for each worker, so that one load shows all sleepers and one exchange takes one of them.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Which worker polls and which sleep.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    polled: AtomicBool,
    /// One bit per worker.
    asleep: AtomicU64,
    /// One bit per worker that is to leave.
    leaving: AtomicU64,
}

impl Roles {
    /// Takes the poller's role if no worker has it.
    pub(crate) fn take_poller(&self) -> bool {
        // The load first: while one polls, idle workers only share the cache line.
        !self.polled.load(Ordering::Relaxed) && !self.polled.swap(true, Ordering::SeqCst)
    }

    /// Gives the poller's role up. The caller then wakes a sleeper, who may take it.
    pub(crate) fn give_poller_up(&self) {
        // Ordered before the caller's look for sleepers. A worker that goes to sleep because the
        // role is taken sets its bit before it checks the role: it sees the role free, or its bit
        // is seen.
        self.polled.swap(false, Ordering::SeqCst);
    }

    pub(crate) fn is_polled(&self) -> bool {
        self.polled.load(Ordering::SeqCst)
    }

    /// Announces a sleep, as in [`crate::sync::sleep_state::SleepState`]: the worker looks for work
    /// once more before it sleeps.
    pub(crate) fn fall_asleep(&self, worker: usize) {
        self.asleep.fetch_or(1 << worker, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn wake_up(&self, worker: usize) {
        self.asleep.fetch_and(!(1 << worker), Ordering::SeqCst);
    }

    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        self.asleep.load(Ordering::SeqCst) & 1 << worker != 0
    }

    /// Makes a worker leave. It is no sleeper from here on, so it takes no wake-up with it that is
    /// meant for the others.
    pub(crate) fn retire(&self, worker: usize) {
        self.leaving.fetch_or(1 << worker, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.wake_up(worker);
    }

    /// A worker takes part, for the first time or again.
    pub(crate) fn admit(&self, worker: usize) {
        self.leaving.fetch_and(!(1 << worker), Ordering::SeqCst);
    }

    pub(crate) fn is_leaving(&self, worker: usize) -> bool {
        self.leaving.load(Ordering::SeqCst) & 1 << worker != 0
    }

    /// Workers that sleep, or poll for the others.
    pub(crate) fn idle(&self) -> usize {
        let asleep = self.asleep.load(Ordering::SeqCst).count_ones() as usize;
        asleep + usize::from(self.is_polled())
    }

    /// Takes one sleeper; the caller unparks it. Its bit is cleared here, so that two wake-ups
    /// never go to the same worker while another one sleeps.
    pub(crate) fn pick_sleeper(&self) -> Option<usize> {
        fence(Ordering::SeqCst);
        let without_lowest = |asleep: u64| (asleep != 0).then(|| asleep & (asleep - 1));
        let before = self.asleep.fetch_update(Ordering::SeqCst, Ordering::SeqCst, without_lowest);
        usize::try_from(before.ok()?.trailing_zeros()).ok()
    }
}
