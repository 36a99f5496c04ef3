//! Counters of an engine.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gustnado_tasks::contained;

/// Counters of an engine since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineStats {
    /// Connections open now, accepted and outgoing.
    pub connections_open: usize,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections made, accepted and outgoing: those that got a protocol.
    pub made: u64,
    /// Connections closed because their factory built no protocol.
    pub refused: u64,
    /// Callbacks that panicked, of protocols, factories and delayed calls.
    pub panics: u64,
}

/// The counters of one engine.
#[derive(Debug, Default)]
pub(super) struct EngineCounters {
    pub(super) open: AtomicUsize,
    pub(super) accepted: AtomicU64,
    pub(super) made: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) panics: AtomicU64,
}

impl EngineCounters {
    pub(super) fn stats(&self) -> EngineStats {
        EngineStats {
            connections_open: self.open(),
            accepted: self.accepted.load(Ordering::Relaxed),
            made: self.made.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            panics: self.panics.load(Ordering::Relaxed),
        }
    }

    /// Connections open now, or on their way.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Calls code of the program. A panic in it is counted, and is `None`.
    pub(super) fn contain<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        let called = contained(call);
        if called.is_none() {
            count(&self.panics);
        }
        called
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
