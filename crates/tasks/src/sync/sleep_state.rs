//! Falling asleep and being woken, and answering a ping: flags between two threads.
//!
//! Both are the same pattern (Dekker): each side writes its own flag, passes a full fence, and
//! reads the other's. Acquire and release would not do: both reads could still come before both
//! writes.

use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// The sleep of a thread that must be woken for what was just left for it.
///
/// The sleeper sets the flag and then checks its queues a last time. A visitor queues something and
/// then checks the flag. At least one of the two sees the other, so no wake-up is lost.
#[derive(Debug, Default)]
pub(crate) struct SleepState {
    asleep: AtomicBool,
}

impl SleepState {
    /// Announces a sleep. The caller then checks its queues once more before it sleeps.
    pub(crate) fn prepare_sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // Keeps the check that follows behind the store.
        fence(Ordering::SeqCst);
    }

    /// Ends a sleep, or does not begin it.
    pub(crate) fn cancel_sleep(&self) {
        // Relaxed: a visitor that still reads `true` raises one wake-up too many, which is
        // harmless.
        self.asleep.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Returns whether the caller must wake the sleeper. Of many visitors, one does.
    pub(crate) fn notify(&self) -> bool {
        // Keeps the check behind what the caller has queued.
        fence(Ordering::SeqCst);
        // The load first: while the thread is awake, visitors only share its cache line. The swap
        // chooses one of those that found it asleep, since each wake-up is a system call.
        self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst)
    }
}

/// A request to a worker to come round, and its answer. It has two flags, so that a worker which
/// answers in time tells nothing.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    answered: AtomicBool,
    /// The asking thread wants to be told of the answer.
    is_late: AtomicBool,
}

impl Ping {
    /// Answers: the worker has come round. Returns whether the asking thread wants to be told.
    pub(crate) fn reply(&self) -> bool {
        self.answered.store(true, Ordering::SeqCst);
        // With the fence below: either this sees `is_late`, or the asking thread sees the answer.
        fence(Ordering::SeqCst);
        self.is_late.load(Ordering::SeqCst)
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::SeqCst)
    }

    /// Asks to be told of the answer. Returns whether there is none yet.
    pub(crate) fn await_reply(&self) -> bool {
        self.is_late.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        !self.is_answered()
    }
}
