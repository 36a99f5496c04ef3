//! Connections and listeners on their way to another thread.

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A connection or a listener on its way to a worker, or to the accepting thread.
pub(crate) enum Arrival {
    /// An accepted connection, whose slot is taken.
    Connection(OwnedFd, Arc<dyn IncomingHandler>),
    /// A socket to accept from. Its connections may `stay` where they are accepted.
    Listener { socket: Arc<OwnedFd>, incoming: Arc<dyn IncomingHandler>, stay: bool },
}

impl Arrival {
    /// Takes it in, on the worker that it came to.
    ///
    /// - `place`: the index of this worker.
    pub(crate) fn take_in(self, place: usize) {
        match self {
            Self::Connection(connection, incoming) => incoming.serve(connection, place),
            Self::Listener { socket, incoming, stay } => {
                incoming.accept_from(socket, stay.then_some(place));
            }
        }
    }
}

/// A listener as its connections are handed on. Both are called on the worker that is to do it.
pub(crate) trait IncomingHandler: Send + Sync {
    /// Serves an accepted connection.
    ///
    /// - `place`: the worker whose slot it has.
    fn serve(&self, connection: OwnedFd, place: usize);

    /// Accepts from one more socket of the listener.
    ///
    /// - `place`: the running worker, if connections may stay here.
    fn accept_from(self: Arc<Self>, socket: Arc<OwnedFd>, place: Option<usize>);
}
