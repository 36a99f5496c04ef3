//! Waking the watchdog, which sleeps while all workers do.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

/// The watchdog's thread as workers see it.
#[derive(Debug, Default)]
pub(crate) struct WatchdogWaker {
    thread: OnceLock<Thread>,
    is_parked: AtomicBool,
}

impl WatchdogWaker {
    /// The running thread is the watchdog.
    pub(crate) fn enter(&self) {
        // Who has entered already stays.
        let _ = self.thread.set(thread::current());
    }

    /// Announces that the watchdog sleeps until a worker has something to do.
    pub(crate) fn prepare_park(&self) {
        self.is_parked.store(true, Ordering::SeqCst);
    }

    /// Returns whether nothing has woken the watchdog since it announced that it sleeps.
    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::SeqCst)
    }

    /// A worker has come back from the kernel. Without a watchdog it is one load.
    ///
    /// Relaxed: a worker that misses an announcement sees it after its next sleep. For the one that
    /// never returns from this turn, the watchdog looks once more after it has announced its sleep.
    #[inline]
    pub(crate) fn note_work(&self) {
        if self.is_parked.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Wakes the watchdog, if there is one.
    #[cold]
    pub(crate) fn wake(&self) {
        self.is_parked.store(false, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
