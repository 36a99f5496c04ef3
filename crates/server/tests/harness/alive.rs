//! Counts what is alive: handlers, streams, whatever holds one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts one more until it is dropped.
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
