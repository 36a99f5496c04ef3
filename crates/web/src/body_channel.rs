//! State shared by a connection and the handler of its request while both run.
//!
//! The handler may run in the connection's own task, in another one, or on a thread that is not a
//! worker. So the state is behind a lock, which is held for a few instructions and never across a
//! wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use gustnado_http::body::BodyError as Broken;
use gustnado_http::status::Status;
use gustnado_tasks::SocketAddrs;
use thiserror::Error;

/// Channel between a connection and the reader of a request's body.
#[derive(Default)]
pub struct BodyChannel(Mutex<ChannelState>);

#[derive(Default)]
struct ChannelState {
    /// Whether the state was accessed since the last reset; if not, the reset costs one comparison.
    is_used: bool,
    /// Received and not taken yet.
    next: Option<Bytes>,
    /// How the body ended, once it has.
    end: Option<Result<(), BodyError>>,
    received: u64,
    /// The reader waits for bytes.
    is_wanted: bool,
    /// The reader was dropped.
    is_given_up: bool,
    reader: Option<Waker>,
    /// Waker of the connection while it does not run: a reader that needs bytes wakes it.
    connection: Option<Waker>,
    /// Interim responses to be sent, as serialized bytes.
    interim: Vec<u8>,
    /// The connection's peer and local address, after the first request for them.
    addrs: Option<Box<SocketAddrs>>,
    /// The callback that reports the progress of the body.
    progress: Option<Progress>,
}

pub type Progress = Box<dyn FnMut(u64, Option<u64>) + Send>;

/// Action that the connection is to take for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyDemand {
    /// Nothing now.
    Nothing,
    /// Get bytes of the body.
    Bytes,
    /// The reader was dropped; the rest of the body is discarded.
    GivenUp,
}

impl BodyChannel {
    /// Resets the channel for the next request.
    #[inline]
    pub fn reset(&mut self) {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.is_used {
            *state = ChannelState::default();
        }
    }

    fn state(&self) -> MutexGuard<'_, ChannelState> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_used = true;
        state
    }

    pub fn received(&self) -> u64 {
        self.state().received
    }

    /// Returns the number of bytes that the reader has taken.
    #[cfg(feature = "tower")]
    pub fn taken(&self) -> u64 {
        let state = self.state();
        state.received - state.next.as_ref().map_or(0, |next| next.len() as u64)
    }

    /// Returns whether the reader will receive nothing more, not even an error.
    #[cfg(feature = "tower")]
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.next.is_none() && state.end == Some(Ok(()))
    }

    /// Takes received bytes on behalf of the reader, or requests more.
    pub fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let mut state = self.state();
        if let Some(bytes) = state.next.take() {
            return Poll::Ready(Some(Ok(bytes)));
        }
        match state.end {
            Some(Ok(())) => return Poll::Ready(None),
            Some(Err(error)) => {
                state.end = Some(Ok(()));
                return Poll::Ready(Some(Err(error)));
            }
            None => {}
        }
        state.is_wanted = true;
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(context.waker())) {
            state.reader = Some(context.waker().clone());
        }
        let connection = state.connection.take();
        drop(state);
        wake(connection);
        Poll::Pending
    }

    pub fn give_up(&self) {
        let connection = {
            let mut state = self.state();
            (state.is_given_up, state.next) = (true, None);
            state.connection.take()
        };
        wake(connection);
    }

    pub fn set_progress(&self, report: Progress) {
        self.state().progress = Some(report);
    }

    /// Reports the progress of the body to the callback, if there is one.
    pub fn report_progress(&self, total: Option<u64>) {
        let (report, received) = {
            let mut state = self.state();
            (state.progress.take(), state.received)
        };
        // The lock is released while the callback runs, because it may use the channel itself.
        if let Some(mut report) = report {
            report(received, total);
            self.state().progress = Some(report);
        }
    }

    /// Reads the peer and local address, which are looked up once per request.
    pub fn with_addrs<T>(
        &self,
        look_up: impl FnOnce() -> Option<SocketAddrs>,
        read: impl FnOnce(&SocketAddrs) -> T,
    ) -> Option<T> {
        let mut state = self.state();
        if state.addrs.is_none() {
            (state.addrs, state.is_used) = (Some(Box::new(look_up()?)), true);
        }
        state.addrs.as_deref().map(read)
    }

    /// Sends an interim response (RFC 9110 §15.2) as soon as the connection's task runs.
    pub fn send_interim(&self, interim: &[u8]) {
        let connection = {
            let mut state = self.state();
            state.interim.extend_from_slice(interim);
            state.connection.take()
        };
        wake(connection);
    }

    /// Returns the connection's next action. If there is none, the connection is woken on a change.
    pub fn poll_demand(&self, context: &Context<'_>) -> BodyDemand {
        let mut state = self.state();
        if state.end.is_none() {
            if state.is_given_up {
                return BodyDemand::GivenUp;
            }
            if state.is_wanted && state.next.is_none() {
                return BodyDemand::Bytes;
            }
        }
        state.connection = Some(context.waker().clone());
        BodyDemand::Nothing
    }

    pub fn is_given_up(&self) -> bool {
        self.state().is_given_up
    }

    pub fn take_interim(&self) -> Vec<u8> {
        std::mem::take(&mut self.state().interim)
    }

    /// Passes received bytes to the reader. Called only after [`BodyDemand::Bytes`].
    pub fn put(&self, bytes: Bytes) {
        let reader = {
            let mut state = self.state();
            state.received += bytes.len() as u64;
            debug_assert!(state.next.is_none(), "one piece at a time");
            if !state.is_given_up {
                state.next = Some(bytes);
            }
            state.is_wanted = false;
            state.reader.take()
        };
        wake(reader);
    }

    /// Ends the body, with its error if it failed. The first end counts.
    pub fn end(&self, how: Result<(), BodyError>) {
        let reader = {
            let mut state = self.state();
            if state.end.is_none() {
                state.end = Some(how);
            }
            state.reader.take()
        };
        wake(reader);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Error that ended a body early.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// The body is larger than the limit.
    #[error("the body is larger than the limit; raise the limit, or send less")]
    TooLarge,
    /// The body is malformed (RFC 9112 §6, §7.1).
    #[error("the body is malformed (RFC 9112)")]
    Malformed,
    /// The client stopped sending, or sends too slowly.
    #[error("the body arrived too slowly")]
    TooSlow,
    /// The client is gone, or the response is complete.
    #[error("the client closed the connection, or the response is complete")]
    Gone,
    /// The charset of the body is not supported.
    #[error("the charset of the body is not supported; send UTF-8")]
    UnknownCharset,
    /// The body is not text in its charset.
    #[error("the body is not text in its charset")]
    NotText,
    /// The body has not been read: a task handler reads it with `Request::body_mut`.
    #[error("the body has not been read; a task handler reads it with body_mut() or into_body()")]
    Unread,
}

impl BodyError {
    /// Returns the status of the response to it.
    pub fn status(self) -> Status {
        match self {
            Self::TooLarge => Status::CONTENT_TOO_LARGE,
            Self::TooSlow => Status::REQUEST_TIMEOUT,
            Self::UnknownCharset => Status::UNSUPPORTED_MEDIA_TYPE,
            Self::Malformed | Self::Gone | Self::NotText => Status::BAD_REQUEST,
            Self::Unread => Status::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns whether some of the body may be unread: the connection cannot be reused then.
    #[doc(hidden)]
    pub fn ends_connection(self) -> bool {
        !matches!(self, Self::UnknownCharset | Self::NotText | Self::Unread)
    }

    #[doc(hidden)]
    pub fn of(error: Broken) -> Self {
        if error.status() == Status::CONTENT_TOO_LARGE { Self::TooLarge } else { Self::Malformed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn rung(bell: &Bell) -> usize {
        bell.0.swap(0, Ordering::Relaxed)
    }

    #[test]
    fn each_side_wakes_the_other_and_nothing_is_taken_twice() {
        let (reader, connection) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
        let (reading, serving) = (reader.clone().into(), connection.clone().into());
        let (mut reading, serving) = (Context::from_waker(&reading), Context::from_waker(&serving));
        let channel = BodyChannel::default();
        assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
        assert!(channel.poll_take(&mut reading).is_pending());
        assert_eq!((rung(&connection), rung(&reader)), (1, 0));
        assert_eq!(channel.poll_demand(&serving), BodyDemand::Bytes);
        channel.put(Bytes::from_static(b"one"));
        assert_eq!(rung(&reader), 1);
        assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
        let Poll::Ready(Some(Ok(bytes))) = channel.poll_take(&mut reading) else {
            panic!("the bytes are there");
        };
        assert_eq!((&*bytes, channel.received()), (b"one".as_slice(), 3));
        assert!(channel.poll_take(&mut reading).is_pending());
        channel.end(Err(BodyError::TooSlow));
        assert_eq!(rung(&reader), 1);
        assert_eq!(channel.poll_take(&mut reading), Poll::Ready(Some(Err(BodyError::TooSlow))));
        assert_eq!(channel.poll_take(&mut reading), Poll::Ready(None));
    }

    #[test]
    fn a_reader_that_goes_is_noticed() {
        let connection = Arc::new(Bell::default());
        let serving = connection.clone().into();
        let serving = Context::from_waker(&serving);
        let channel = BodyChannel::default();
        assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
        channel.give_up();
        assert_eq!(rung(&connection), 1);
        assert_eq!(channel.poll_demand(&serving), BodyDemand::GivenUp);
        channel.end(Err(BodyError::Gone));
        assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
    }
}
