//! A connection as everybody else sees it: other threads, other connections, delayed calls.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use gustnado_tasks::{Endpoint, Lock};

use super::outbox::{Flow, WriteLimits};

/// A connection for use outside its callbacks, from any thread. Clones are handles of the same
/// connection. It does not keep the connection open, and after its end takes nothing more.
///
/// What is asked for here is done by the connection's own task, in the order it was asked for:
/// bytes first, then the rest.
#[derive(Clone)]
pub struct TransportHandle {
    shared: Arc<Shared>,
}

struct Shared {
    peer: Endpoint,
    inside: Lock<Inside>,
    /// Rung when there is room again, and at the end.
    room: Condvar,
}

struct Inside {
    /// Written here and not yet fetched by the task.
    bytes: Vec<u8>,
    orders: Orders,
    /// What the transport has pending besides.
    pending: usize,
    limits: WriteLimits,
    task: Waker,
    waiting: Vec<Waker>,
    /// Writers wait, from the high-water mark down to the low one.
    congested: bool,
    /// The connection has ended, or is about to: it takes no more bytes.
    closed: bool,
}

/// What a connection's task is asked to do: one bit each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orders(u8);

impl Orders {
    pub(super) const PAUSE: u8 = 1;
    pub(super) const RESUME: u8 = 1 << 1;
    pub(super) const SHUT: u8 = 1 << 2;
    pub(super) const LOSE: u8 = 1 << 3;
    pub(super) const ABORT: u8 = 1 << 4;

    pub(super) fn has(self, order: u8) -> bool {
        self.0 & order != 0
    }
}

impl TransportHandle {
    pub(super) fn new(peer: Endpoint, limits: WriteLimits, pending: usize, task: Waker) -> Self {
        let inside = Inside {
            bytes: Vec::new(),
            orders: Orders::default(),
            pending,
            limits,
            task,
            waiting: Vec::new(),
            congested: pending > limits.high_bytes,
            closed: false,
        };
        let shared = Shared { peer, inside: Lock::new(inside), room: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Where the peer is.
    pub fn peer(&self) -> &Endpoint {
        &self.shared.peer
    }

    /// Whether both are handles of the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether the connection takes no more bytes.
    pub fn is_closed(&self) -> bool {
        self.inside().closed
    }

    /// Writes bytes: all of them, or none. [`Flow::Wait`] means that they were taken, and that the
    /// next write should wait for [`TransportHandle::room`].
    ///
    /// # Errors
    /// [`WriteError::Full`]: the peer is slower than what is written to it. Try again later, leave
    /// these bytes out, or give the connection up. [`WriteError::Closed`].
    pub fn write(&self, bytes: &[u8]) -> Result<Flow, WriteError> {
        let mut inside = self.inside();
        if inside.closed {
            return Err(WriteError::Closed);
        }
        let pending_bytes = inside.pending();
        let limit_bytes = inside.limits.max_bytes;
        if bytes.len() > limit_bytes.saturating_sub(pending_bytes) {
            return Err(WriteError::Full { pending_bytes, limit_bytes });
        }
        let first = inside.bytes.is_empty();
        inside.bytes.extend_from_slice(bytes);
        inside.congested |= inside.pending() > inside.limits.high_bytes;
        let flow = if inside.congested { Flow::Wait } else { Flow::Go };
        if first {
            inside.task.wake_by_ref();
        }
        Ok(flow)
    }

    /// Waits, as a task, until there is room for more. Returns [`Flow::Go`], or [`Flow::Closed`].
    pub async fn room(&self) -> Flow {
        poll_fn(|context| {
            let mut inside = self.inside();
            if inside.closed || !inside.congested {
                return Poll::Ready(inside.flow());
            }
            if !inside.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
                inside.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Waits, holding the thread, until there is room for more, or `within` has passed, which is
    /// [`Flow::Wait`]. Not for callbacks.
    pub fn wait_for_room(&self, within: Duration) -> Flow {
        let began = Instant::now();
        let mut inside = self.inside();
        while inside.congested && !inside.closed && began.elapsed() < within {
            let rest = within.saturating_sub(began.elapsed());
            let woken = self.shared.room.wait_timeout(inside, rest);
            (inside, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        inside.flow()
    }

    /// Closes the connection in order, once everything pending has left.
    pub fn lose_connection(&self) {
        self.order(Orders::LOSE, 0);
    }

    /// Gives the connection up now, with what is pending.
    pub fn abort_connection(&self) {
        self.order(Orders::ABORT, 0);
    }

    /// Tells the peer, once everything pending has left, that nothing more will come.
    pub fn lose_write_connection(&self) {
        self.order(Orders::SHUT, 0);
    }

    /// Has the connection receive no more data until [`TransportHandle::resume_reading`].
    pub fn pause_reading(&self) {
        self.order(Orders::PAUSE, Orders::RESUME);
    }

    /// Has the connection receive data again.
    pub fn resume_reading(&self) {
        self.order(Orders::RESUME, Orders::PAUSE);
    }

    fn order(&self, order: u8, instead_of: u8) {
        let mut inside = self.inside();
        inside.orders.0 = inside.orders.0 & !instead_of | order;
        inside.task.wake_by_ref();
        if Orders(order).has(Orders::SHUT | Orders::LOSE | Orders::ABORT) {
            inside.closed = true;
            self.wake_writers(inside);
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.shared.inside.lock()
    }
}

/// What the connection's task does with it.
impl TransportHandle {
    /// Takes what was written and ordered since the last time.
    pub(super) fn take_orders(&self) -> Option<(Vec<u8>, Orders)> {
        let mut inside = self.inside();
        if inside.bytes.is_empty() && inside.orders == Orders::default() {
            return None;
        }
        let bytes = mem::take(&mut inside.bytes);
        inside.pending += bytes.len();
        Some((bytes, mem::take(&mut inside.orders)))
    }

    pub(super) fn set_limits(&self, limits: WriteLimits) {
        self.inside().limits = limits;
    }

    /// Says what the transport has pending, and whether it takes no more. Wakes writers if there is
    /// room again.
    pub(super) fn set_pending(&self, pending: usize, closed: bool) {
        let mut inside = self.inside();
        inside.pending = pending;
        inside.closed |= closed;
        if inside.congested && inside.pending() <= inside.limits.low_bytes {
            inside.congested = false;
            self.wake_writers(inside);
        }
    }

    /// The connection has ended.
    pub(super) fn close(&self) {
        let mut inside = self.inside();
        inside.closed = true;
        inside.bytes = Vec::new();
        self.wake_writers(inside);
    }

    fn wake_writers(&self, mut inside: MutexGuard<'_, Inside>) {
        let waiting = mem::take(&mut inside.waiting);
        drop(inside);
        waiting.into_iter().for_each(Waker::wake);
        self.shared.room.notify_all();
    }
}

impl Inside {
    fn pending(&self) -> usize {
        self.bytes.len() + self.pending
    }

    fn flow(&self) -> Flow {
        match (self.closed, self.congested) {
            (true, _) => Flow::Closed,
            (false, true) => Flow::Wait,
            (false, false) => Flow::Go,
        }
    }
}

impl fmt::Debug for TransportHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportHandle").field("peer", &self.shared.peer).finish_non_exhaustive()
    }
}

/// Why a handle did not take bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// They do not fit into what may be pending.
    Full {
        /// What is pending.
        pending_bytes: usize,
        /// What may be.
        limit_bytes: usize,
    },
    /// The connection has ended, or is about to.
    Closed,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { pending_bytes, limit_bytes } => {
                write!(f, "{pending_bytes} of {limit_bytes} bytes are pending already")
            }
            Self::Closed => f.write_str("the connection takes no more bytes"),
        }
    }
}

impl std::error::Error for WriteError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> TransportHandle {
        let limits = WriteLimits { high_bytes: 10, low_bytes: 4, max_bytes: 20 };
        TransportHandle::new(Endpoint::Unix("x".into()), limits, 0, Waker::noop().clone())
    }

    #[test]
    fn a_write_is_taken_whole_or_not_at_all() {
        let handle = handle();
        assert_eq!(handle.write(&[1; 10]), Ok(Flow::Go));
        assert_eq!(handle.write(&[2; 1]), Ok(Flow::Wait));
        let full = WriteError::Full { pending_bytes: 11, limit_bytes: 20 };
        assert_eq!(handle.write(&[3; 10]), Err(full));
        let (bytes, orders) = handle.take_orders().expect("bytes wait");
        assert_eq!((bytes.len(), orders), (11, Orders::default()));
        assert_eq!(handle.write(&[3; 10]), Err(full), "fetched is not sent");
        handle.set_pending(5, false);
        assert_eq!(handle.write(b""), Ok(Flow::Wait), "above the low mark");
        handle.set_pending(4, false);
        assert_eq!(handle.write(&[3; 2]), Ok(Flow::Go));
    }

    #[test]
    fn the_last_of_pause_and_resume_counts() {
        let handle = handle();
        handle.pause_reading();
        handle.resume_reading();
        let (_, orders) = handle.take_orders().expect("an order waits");
        assert!(orders.has(Orders::RESUME) && !orders.has(Orders::PAUSE));
        assert!(handle.take_orders().is_none());
    }

    #[test]
    fn a_closed_connection_takes_nothing_and_keeps_nobody_waiting() {
        let handle = handle();
        handle.write(&[0; 20]).expect("there is room");
        assert_eq!(handle.wait_for_room(Duration::ZERO), Flow::Wait);
        handle.close();
        assert_eq!(handle.wait_for_room(Duration::from_mins(1)), Flow::Closed);
        assert_eq!(handle.write(b"x"), Err(WriteError::Closed));
    }
}
