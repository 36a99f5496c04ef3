//! The autoscaler, as workers and acceptors see it.

use std::io;
use std::sync::Arc;

use crate::exec::worker::arrival::PolledListener;

/// What adds and retires workers. Where none may be added, there is none.
pub(crate) trait Autoscale: Send + Sync {
    /// Workers that always stay.
    fn floor(&self) -> usize;

    /// Whether the worker with this number has something to do, or had it a moment ago.
    fn is_present(&self, worker: usize) -> bool;

    /// Has it look.
    fn tell(&self);

    /// All places are taken.
    fn tell_full(&self);

    /// A connection was put into a worker's queue of messages, where it may lie if that worker is
    /// held.
    fn tell_arrival(&self);

    /// The server goes on to its next phase.
    fn tell_phase(&self);

    /// An acceptor begins. It keeps the listener for as long as it accepts, and then tells the
    /// autoscaler, which may hold the socket for a moment.
    fn open_polled(&self, polled: &Arc<PolledListener>) -> io::Result<()>;
}
