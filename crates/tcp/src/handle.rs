//! A connection for use from outside: other threads, other connections, delayed calls.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use gustnado_tasks::{Endpoint, Lock};

use super::outbox::{WriteFlow, WriteLimits};

/// A connection for use outside its callbacks, from any thread. Clones are handles of the same
/// connection. It does not keep the connection open, and after its end takes nothing more.
///
/// The connection's own task carries out the calls, in their order: bytes first, then the rest.
#[derive(Clone)]
pub struct TransportHandle {
    shared: Arc<HandleShared>,
}

struct HandleShared {
    peer: Endpoint,
    state: Lock<HandleState>,
    /// Rung when there is room again, and at the end.
    room: Condvar,
}

struct HandleState {
    /// Written here and not yet fetched by the task.
    bytes: Vec<u8>,
    requests: HandleRequests,
    /// Bytes that the transport itself has pending.
    pending: usize,
    limits: WriteLimits,
    task: Waker,
    waiting: Vec<Waker>,
    /// Writers wait, from the high-water mark down to the low one.
    congested: bool,
    /// The connection has ended, or is about to: it takes no more bytes.
    closed: bool,
}

/// Requests to a connection's task: one bit each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct HandleRequests(u8);

impl HandleRequests {
    pub(super) const PAUSE: u8 = 1;
    pub(super) const RESUME: u8 = 1 << 1;
    pub(super) const SHUT: u8 = 1 << 2;
    pub(super) const LOSE: u8 = 1 << 3;
    pub(super) const ABORT: u8 = 1 << 4;

    pub(super) fn has(self, request: u8) -> bool {
        self.0 & request != 0
    }
}

impl TransportHandle {
    pub(super) fn new(peer: Endpoint, limits: WriteLimits, pending: usize, task: Waker) -> Self {
        let state = HandleState {
            bytes: Vec::new(),
            requests: HandleRequests::default(),
            pending,
            limits,
            task,
            waiting: Vec::new(),
            congested: pending > limits.high_bytes,
            closed: false,
        };
        let shared = HandleShared { peer, state: Lock::new(state), room: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns where the peer is.
    pub fn peer(&self) -> &Endpoint {
        &self.shared.peer
    }

    /// Returns whether both are handles of the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns whether the connection takes no more bytes.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }

    /// Writes bytes: all of them, or none. [`WriteFlow::Wait`] means that they were taken, and that
    /// the next write should wait for [`TransportHandle::room`].
    ///
    /// # Errors
    /// [`WriteError::Full`]: the peer is slower than what is written to it. Try again later, leave
    /// these bytes out, or give the connection up. [`WriteError::Closed`].
    pub fn write(&self, bytes: &[u8]) -> Result<WriteFlow, WriteError> {
        let mut state = self.shared.state.lock();
        if state.closed {
            return Err(WriteError::Closed);
        }
        let pending_bytes = state.pending();
        let limit_bytes = state.limits.max_bytes;
        if bytes.len() > limit_bytes.saturating_sub(pending_bytes) {
            return Err(WriteError::Full { pending_bytes, limit_bytes });
        }
        let first = state.bytes.is_empty();
        state.bytes.extend_from_slice(bytes);
        state.congested |= state.pending() > state.limits.high_bytes;
        let flow = state.flow();
        if first {
            state.task.wake_by_ref();
        }
        Ok(flow)
    }

    /// Waits in a task until there is room for more. Returns [`WriteFlow::Go`], or
    /// [`WriteFlow::Closed`].
    pub async fn room(&self) -> WriteFlow {
        poll_fn(|context| {
            let mut state = self.shared.state.lock();
            if state.closed || !state.congested {
                return Poll::Ready(state.flow());
            }
            if !state.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
                state.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Blocks the thread until there is room for more, or `within` has passed, which is
    /// [`WriteFlow::Wait`]. Not for callbacks.
    pub fn wait_for_room(&self, within: Duration) -> WriteFlow {
        let began = Instant::now();
        let mut state = self.shared.state.lock();
        while state.congested && !state.closed && began.elapsed() < within {
            let rest = within.saturating_sub(began.elapsed());
            let woken = self.shared.room.wait_timeout(state, rest);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.flow()
    }

    /// Closes the connection in order, once everything pending has left.
    pub fn lose_connection(&self) {
        self.request(HandleRequests::LOSE, 0);
    }

    /// Gives the connection up now, with what is pending.
    pub fn abort_connection(&self) {
        self.request(HandleRequests::ABORT, 0);
    }

    /// Sends the peer an end of stream, once everything pending has left.
    pub fn lose_write_connection(&self) {
        self.request(HandleRequests::SHUT, 0);
    }

    /// Makes the connection receive no more data until [`TransportHandle::resume_reading`].
    pub fn pause_reading(&self) {
        self.request(HandleRequests::PAUSE, HandleRequests::RESUME);
    }

    /// Makes the connection receive data again.
    pub fn resume_reading(&self) {
        self.request(HandleRequests::RESUME, HandleRequests::PAUSE);
    }

    fn request(&self, request: u8, instead_of: u8) {
        let mut state = self.shared.state.lock();
        state.requests.0 = state.requests.0 & !instead_of | request;
        state.task.wake_by_ref();
        if HandleRequests(request)
            .has(HandleRequests::SHUT | HandleRequests::LOSE | HandleRequests::ABORT)
        {
            state.closed = true;
            self.wake_writers(state);
        }
    }
}

/// What the connection's task does with it.
impl TransportHandle {
    /// Takes what was written and ordered since the last time.
    pub(super) fn take_requests(&self) -> Option<(Vec<u8>, HandleRequests)> {
        let mut state = self.shared.state.lock();
        if state.bytes.is_empty() && state.requests == HandleRequests::default() {
            return None;
        }
        let bytes = mem::take(&mut state.bytes);
        state.pending += bytes.len();
        Some((bytes, mem::take(&mut state.requests)))
    }

    pub(super) fn set_limits(&self, limits: WriteLimits) {
        self.shared.state.lock().limits = limits;
    }

    /// Notes what the transport has pending, and whether it takes no more. Wakes writers if there
    /// is room again.
    pub(super) fn set_pending(&self, pending: usize, closed: bool) {
        let mut state = self.shared.state.lock();
        state.pending = pending;
        state.closed |= closed;
        if state.congested && state.pending() <= state.limits.low_bytes {
            state.congested = false;
            self.wake_writers(state);
        }
    }

    /// The connection has ended.
    pub(super) fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.bytes = Vec::new();
        self.wake_writers(state);
    }

    fn wake_writers(&self, mut state: MutexGuard<'_, HandleState>) {
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        self.shared.room.notify_all();
    }
}

impl HandleState {
    fn pending(&self) -> usize {
        self.bytes.len() + self.pending
    }

    fn flow(&self) -> WriteFlow {
        WriteFlow::of(self.closed, self.congested)
    }
}

impl fmt::Debug for TransportHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportHandle").field("peer", &self.shared.peer).finish_non_exhaustive()
    }
}

/// The error of a handle that did not take bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// They do not fit into what may be pending.
    Full {
        /// Bytes that are pending.
        pending_bytes: usize,
        /// Limit of the bytes that may be pending.
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
        assert_eq!(handle.write(&[1; 10]), Ok(WriteFlow::Go));
        assert_eq!(handle.write(&[2; 1]), Ok(WriteFlow::Wait));
        let full = WriteError::Full { pending_bytes: 11, limit_bytes: 20 };
        assert_eq!(handle.write(&[3; 10]), Err(full));
        let (bytes, requests) = handle.take_requests().expect("bytes wait");
        assert_eq!((bytes.len(), requests), (11, HandleRequests::default()));
        assert_eq!(handle.write(&[3; 10]), Err(full), "fetched is not sent");
        handle.set_pending(5, false);
        assert_eq!(handle.write(b""), Ok(WriteFlow::Wait), "above the low mark");
        handle.set_pending(4, false);
        assert_eq!(handle.write(&[3; 2]), Ok(WriteFlow::Go));
    }

    #[test]
    fn the_last_of_pause_and_resume_counts() {
        let handle = handle();
        handle.pause_reading();
        handle.resume_reading();
        let (_, requests) = handle.take_requests().expect("an order waits");
        assert!(requests.has(HandleRequests::RESUME) && !requests.has(HandleRequests::PAUSE));
        assert!(handle.take_requests().is_none());
    }

    #[test]
    fn a_closed_connection_takes_nothing_and_keeps_nobody_waiting() {
        let handle = handle();
        handle.write(&[0; 20]).expect("there is room");
        assert_eq!(handle.wait_for_room(Duration::ZERO), WriteFlow::Wait);
        handle.close();
        assert_eq!(handle.wait_for_room(Duration::from_mins(1)), WriteFlow::Closed);
        assert_eq!(handle.write(b"x"), Err(WriteError::Closed));
    }
}
