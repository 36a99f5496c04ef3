//! Listeners: what the acceptors of one share, and ending one while workers run.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use gustnado_reactor::Endpoint;

use crate::exec::schedule::BoxTask;
use crate::net::closing::Closing;
use crate::net::connection::Connection;
use crate::sync::lock::Lock;

/// Makes the task that serves a new connection.
pub type Serve = dyn Fn(Connection) -> BoxTask + Send + Sync;

/// A listener as its acceptors share it. It lasts for as long as one of them has something left to
/// serve; then `serve` is dropped with it.
pub(crate) struct ListenerShared {
    pub(crate) serve: Box<Serve>,
    /// Connections are wanted as ordinary descriptors, also where the reactor has a table.
    pub(crate) descriptors: bool,
    /// Connections that may wait in each of its sockets.
    pub(crate) backlog: usize,
    close_flag: Arc<CloseFlag>,
}

impl ListenerShared {
    /// - `sockets`: of the endpoint, in the order they were opened in: ours alone, or others' too.
    pub(crate) fn new(
        serve: Box<Serve>,
        (descriptors, backlog): (bool, u32),
        endpoint: &Endpoint,
        sockets: &[Arc<OwnedFd>],
    ) -> Arc<Self> {
        let close_flag = Arc::new(CloseFlag {
            closed: AtomicBool::new(false),
            shared: AtomicBool::new(matches!(endpoint, Endpoint::Inherited(_))),
            acceptors: Lock::default(),
            closing: Closing::of(sockets),
        });
        Arc::new(Self { serve, descriptors, backlog: backlog as usize, close_flag })
    }

    /// Returns what its acceptors share while it closes.
    pub(crate) fn closing(&self) -> &Closing {
        &self.close_flag.closing
    }

    /// Returns whether others hold its sockets too, so that their queues outlive us.
    pub(crate) fn is_shared(&self) -> bool {
        self.close_flag.shared.load(Ordering::SeqCst)
    }

    /// Returns whether connections are still accepted.
    pub(crate) fn is_open(&self) -> bool {
        !self.close_flag.closed.load(Ordering::SeqCst)
    }

    /// Registers an acceptor's task to be woken when the listener ends.
    pub(crate) fn join(&self, acceptor: &Waker) {
        self.close_flag.acceptors.lock().push(acceptor.clone());
    }
}

/// The flag that ends a listener.
struct CloseFlag {
    closed: AtomicBool,
    shared: AtomicBool,
    acceptors: Lock<Vec<Waker>>,
    closing: Closing,
}

/// A listener that was opened while the workers ran. Dropping it changes nothing: it listens until
/// it is stopped, or the workers are.
pub struct ListenerHandle {
    endpoint: Endpoint,
    refused: Vec<String>,
    close_flag: Arc<CloseFlag>,
}

impl ListenerHandle {
    pub(crate) fn new(
        endpoint: Endpoint,
        refused: Vec<String>,
        listener_shared: &ListenerShared,
    ) -> Self {
        Self { endpoint, refused, close_flag: Arc::clone(&listener_shared.close_flag) }
    }

    /// Returns the endpoint in fact bound.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns what of the plan's socket options the kernel would not grant, in words.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Returns whether it has not been stopped.
    pub fn is_open(&self) -> bool {
        !self.close_flag.closed.load(Ordering::SeqCst)
    }

    /// Takes an inherited socket over: no other process will accept from it once this listener is
    /// stopped, so its queue has to be served before.
    pub fn take_over(&self) {
        self.close_flag.shared.store(false, Ordering::SeqCst);
    }

    /// Stops listening. What the kernel had accepted by then is served, unless others listen on the
    /// same socket (see [`Endpoint::Inherited`]), who will do that. Connections that are open stay
    /// so. A Unix endpoint's file is removed.
    pub fn stop(&self) {
        if self.close_flag.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(path) = self.endpoint.socket_file() {
            // If another process has removed it, it is gone as well.
            let _ = std::fs::remove_file(path);
        }
        let acceptors = std::mem::take(&mut *self.close_flag.acceptors.lock());
        acceptors.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for ListenerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
