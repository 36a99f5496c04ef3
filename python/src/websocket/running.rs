//! How many calls of an application, or of handlers of `WebSocket`s, have a task that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The count of a server.
#[derive(Clone, Default)]
pub(crate) struct RunningCalls(Arc<AtomicUsize>);

/// One that counts until it is dropped.
pub(crate) struct RunningCall(RunningCalls);

impl RunningCalls {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self) -> RunningCall {
        self.0.fetch_add(1, Ordering::Relaxed);
        RunningCall(self.clone())
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
