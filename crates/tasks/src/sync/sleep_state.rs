//! Falling asleep and being woken, and answering a roll: flags between two threads.

use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// Whether someone sleeps and must be woken for what was just left for them.
///
/// The sleeper says so before it looks a last time; the visitor leaves something before it looks
/// whether anyone sleeps. One of the two sees the other.
#[derive(Debug)]
pub(crate) struct SleepState {
    asleep: AtomicBool,
}

impl Default for SleepState {
    fn default() -> Self {
        Self { asleep: AtomicBool::new(false) }
    }
}

impl SleepState {
    pub(crate) fn prepare_sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn cancel_sleep(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Returns whether the caller must wake the sleeper: one visitor does, for all.
    pub(crate) fn notify(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst)
    }
}

/// Whether a worker has come round since it was asked to.
#[derive(Debug)]
pub(crate) struct Ping {
    answered: AtomicBool,
    /// Somebody waits for the answer.
    is_late: AtomicBool,
}

impl Default for Ping {
    fn default() -> Self {
        let [answered, is_late] = [(); 2].map(|()| AtomicBool::new(false));
        Self { answered, is_late }
    }
}

impl Ping {
    /// The worker has come round. Returns whether somebody waits to hear it.
    pub(crate) fn answer(&self) -> bool {
        self.answered.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.is_late.load(Ordering::SeqCst)
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::SeqCst)
    }

    /// Has whoever answers say so. Returns whether nobody has answered yet.
    pub(crate) fn await_answer(&self) -> bool {
        self.is_late.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        !self.is_answered()
    }
}
