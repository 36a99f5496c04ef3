//! How many `WebSocket`s have a handler, or an application's task, that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The count of a server.
#[derive(Clone, Default)]
pub(crate) struct RunningSockets(Arc<AtomicUsize>);

/// One that counts until it is dropped.
pub(crate) struct RunningSocket(RunningSockets);

impl RunningSockets {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self) -> RunningSocket {
        self.0.fetch_add(1, Ordering::Relaxed);
        RunningSocket(self.clone())
    }
}

impl Drop for RunningSocket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
