//! Waking a reactor from another thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Ends the [`crate::Reactor::turn`] that a reactor sleeps in, from any thread. Cheap to clone.
///
/// It is an eventfd that is never read: each write is an edge, and an edge is all that is needed.
#[derive(Debug, Clone)]
pub struct ReactorWaker {
    eventfd: Arc<OwnedFd>,
}

impl ReactorWaker {
    /// Makes a waker of no reactor, for a thread that sleeps in [`crate::poll_listeners`].
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> std::io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { eventfd: Arc::new(eventfd) })
    }

    /// Wakes the reactor. One system call; never blocks.
    pub fn wake(&self) {
        if rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes()).is_err() {
            // The counter is full after 2^64 - 2 writes: empty it, and the next write is an edge.
            self.reset();
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    /// Empties the counter, for who looks at it and not at its edges.
    pub(crate) fn reset(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.eventfd, &mut count);
    }
}

impl AsFd for ReactorWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
