//! Workers that come and go while a server runs, as the rest of the crate sees them.
//!
//! [`Elastic`] is all that the executor, the listeners and the loops of workers know of them. The
//! rest is in one folder, `pool/elastic`. A server with a fixed number of workers has
//! [`FixedWorkers`], whose methods do nothing, and no code on a path that a request takes asks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::exec::worker::arrival::IncomingHandler;

/// The number of workers of a server, and what may change it.
pub(crate) trait Elastic: Send + Sync {
    /// Returns how many workers always stay: those of the start.
    fn floor(&self) -> usize;

    /// Returns how many workers there are. A retired one counts until it has served what it has.
    fn workers(&self) -> usize;

    /// Returns whether this worker has something to do, or had a moment ago.
    fn is_present(&self, worker: usize) -> bool;

    /// Takes note of what may call for another worker, or for one less.
    fn report(&self, event: LoadEvent);

    /// Polls a listening socket for a backlog, for as long as its acceptor keeps what is returned.
    /// Once it is dropped the acceptor reports [`LoadEvent::Changed`].
    fn poll_listener(&self, listener: PolledListener) -> io::Result<Option<Arc<PolledListener>>>;

    /// Decides what a retired worker does that has nothing left.
    ///
    /// - `close`: keeps more from coming to it. Returns whether nothing has come meanwhile.
    fn leave(&self, worker: usize, close: &mut dyn FnMut() -> bool) -> RetireAction;

    /// Returns whether this worker waits until it is needed again.
    fn is_parked(&self, worker: usize) -> bool;

    /// Hands out the threads and the wake targets of elastic workers, to be ended.
    fn take_threads(&self) -> (Vec<JoinHandle<()>>, Vec<u16>);
}

/// An event that is reported to the autoscaler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadEvent {
    /// A worker answered late, or left; or a listener closed.
    Changed,
    /// An acceptor waits because all slots are taken.
    SlotsFull,
    /// A connection was put into a worker's queue, where it stays if that worker is held.
    HandedOver,
    /// The poller of a group has come round. Only the poller reports it.
    GroupPolled,
    /// No worker of a group polls, and none sleeps that could.
    GroupBusy,
    /// The server has gone on to its next phase.
    PhaseChanged,
}

/// The action of a retired worker that has nothing left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetireAction {
    /// It goes on: it is needed again, or something has come.
    Stay,
    /// It waits until it is needed again.
    Park,
    /// Its thread ends.
    End,
}

/// A listening socket that is polled for a backlog while its acceptor accepts.
pub(crate) struct PolledListener {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) incoming: Arc<dyn IncomingHandler>,
    /// The worker that accepts; `None`: a dedicated thread.
    pub(crate) worker: Option<usize>,
}

impl AsFd for PolledListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Workers whose number stays the same.
pub(crate) struct FixedWorkers(pub(crate) usize);

impl Elastic for FixedWorkers {
    fn floor(&self) -> usize {
        self.0
    }

    fn workers(&self) -> usize {
        self.0
    }

    fn is_present(&self, _: usize) -> bool {
        true
    }

    fn report(&self, _: LoadEvent) {}

    fn poll_listener(&self, _: PolledListener) -> io::Result<Option<Arc<PolledListener>>> {
        Ok(None)
    }

    fn leave(&self, _: usize, _: &mut dyn FnMut() -> bool) -> RetireAction {
        RetireAction::Stay
    }

    fn is_parked(&self, _: usize) -> bool {
        false
    }

    fn take_threads(&self) -> (Vec<JoinHandle<()>>, Vec<u16>) {
        (Vec::new(), Vec::new())
    }
}
