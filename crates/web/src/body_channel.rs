//! State shared by a connection and the handler of its request while both run.
//!
//! The handler may run in the connection's own task, in another one, or on a thread that is not a
//! worker. So the state is behind a lock, which is held for a few instructions and never across a
//! wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use gustnado_http::body::BodyDecodeError;
use gustnado_http::fields::Fields;
use gustnado_http::status::Status;
use gustnado_tasks::SocketAddrs;
use thiserror::Error;

use crate::spool::Spool;
use crate::trailers::RequestTrailers;

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
    /// The trailer fields, which came behind the body.
    trailers: Option<RequestTrailers>,
    received: u64,
    /// Of these, bytes that a reader which collects does not hold in memory any more.
    released: u64,
    /// Where the reader is to put what it holds.
    spill: Option<Arc<Spool>>,
    /// It was told to, and has not done so yet.
    is_spilling: bool,
    /// The reader waits for bytes.
    is_wanted: bool,
    mode: ReaderMode,
    reader: Option<Waker>,
    /// Waker of the connection while it does not run: a reader that needs bytes wakes it.
    connection: Option<Waker>,
    /// Interim responses to be sent.
    interim: Vec<(Status, Fields)>,
    /// The connection's peer and local address, after the first request for them.
    addrs: Option<Box<SocketAddrs>>,
    /// The callback that reports the progress of the body.
    progress: Option<Progress>,
}

/// What becomes of the bytes that are received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReaderMode {
    /// The reader uses them as they come.
    #[default]
    Streams,
    /// The reader keeps what it takes.
    Collects,
    /// It keeps a part of it.
    Sifts,
    /// It does so, and can put what it holds to the disk.
    Spools,
    /// The reader was dropped.
    Gone,
}

pub type Progress = Box<dyn FnMut(u64, Option<u64>) + Send>;

/// What a reader that collects holds of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBytes {
    /// Bytes in memory.
    pub bytes: usize,
    /// It can put them to the disk.
    pub can_spill: bool,
    /// It will not hold the whole body.
    pub is_part: bool,
}

/// What the reader of a body that is collected gets.
#[derive(Debug)]
pub enum Collected {
    /// The next bytes.
    Bytes(Bytes),
    /// The order to put what it holds to the disk.
    Spill(Arc<Spool>),
}

/// Action that the connection is to take for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyDemand {
    /// Nothing now.
    Nothing,
    /// Get bytes of the body.
    Bytes,
    /// Get nothing now: the reader puts what it holds to the disk.
    Spilling,
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
        state.is_taken() && state.trailers.is_none()
    }

    /// Takes the trailer fields, once all of the body was taken.
    #[cfg(feature = "tower")]
    pub fn take_trailers(&self) -> Option<RequestTrailers> {
        let mut state = self.state();
        if state.is_taken() { state.trailers.take() } else { None }
    }

    /// Returns the trailer fields, once all of the body was taken.
    pub fn trailers(&self) -> Option<RequestTrailers> {
        let state = self.state();
        state.trailers.clone().filter(|_| state.is_taken())
    }

    /// Keeps the trailer fields, for a reader that comes to the end of the body.
    pub fn set_trailers(&self, trailers: RequestTrailers) {
        self.state().trailers = Some(trailers);
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

    /// Takes received bytes, or an order of the connection, on behalf of a reader that collects, or
    /// requests more bytes.
    pub fn poll_collect(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Collected, BodyError>>> {
        let spill = self.state().spill.take();
        match spill {
            Some(spool) => Poll::Ready(Some(Ok(Collected::Spill(spool)))),
            None => self.poll_take(context).map_ok(Collected::Bytes),
        }
    }

    /// Orders the reader to put what it holds to the disk. Returns whether it will.
    pub fn order_spill(&self, spool: &Arc<Spool>) -> bool {
        let reader = {
            let mut state = self.state();
            if state.mode != ReaderMode::Spools {
                return false;
            }
            (state.spill, state.is_spilling) = (Some(Arc::clone(spool)), true);
            // It asks again once it has done so.
            state.is_wanted = false;
            state.reader.take()
        };
        wake(reader);
        true
    }

    /// Returns whether the reader puts what it holds to the disk, and has not done so yet.
    pub fn is_spilling(&self) -> bool {
        self.state().is_spilling
    }

    /// Notes how many of the received bytes the reader does not hold in memory any more.
    pub fn set_released(&self, bytes: u64) {
        let mut state = self.state();
        (state.released, state.is_spilling) = (bytes, false);
    }

    /// Returns what a reader that collects holds; `None` for one that does not collect.
    pub fn held(&self) -> Option<HeldBytes> {
        let state = self.state();
        let bytes = usize::try_from(state.received.saturating_sub(state.released));
        let held = HeldBytes {
            bytes: bytes.unwrap_or(usize::MAX),
            can_spill: state.mode == ReaderMode::Spools,
            is_part: state.mode == ReaderMode::Sifts,
        };
        let collects = !matches!(state.mode, ReaderMode::Streams | ReaderMode::Gone);
        collects.then_some(held)
    }

    pub fn give_up(&self) {
        let connection = {
            let mut state = self.state();
            (state.mode, state.next, state.spill) = (ReaderMode::Gone, None, None);
            state.is_spilling = false;
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
    pub fn send_interim(&self, status: Status, fields: Fields) {
        let connection = {
            let mut state = self.state();
            state.interim.push((status, fields));
            state.connection.take()
        };
        wake(connection);
    }

    /// Returns the connection's next action. If there is none, the connection is woken on a change.
    pub fn poll_demand(&self, context: &Context<'_>) -> BodyDemand {
        let mut state = self.state();
        if state.end.is_none() {
            if state.mode == ReaderMode::Gone {
                return BodyDemand::GivenUp;
            }
            if state.is_wanted && state.next.is_none() {
                return BodyDemand::Bytes;
            }
        }
        state.connection = Some(context.waker().clone());
        if state.is_spilling { BodyDemand::Spilling } else { BodyDemand::Nothing }
    }

    pub fn is_given_up(&self) -> bool {
        self.state().mode == ReaderMode::Gone
    }

    /// Notes whether the reader keeps what it takes: then the memory is charged to the body.
    pub fn set_collected(&self, is_collected: bool) {
        self.set_mode(if is_collected { ReaderMode::Collects } else { ReaderMode::Streams });
    }

    /// Notes that the reader keeps what it takes, and can put it to the disk.
    pub fn set_spooled(&self) {
        self.set_mode(ReaderMode::Spools);
    }

    /// Notes that the reader keeps a part of what it takes, as it reports.
    pub fn set_sifted(&self) {
        self.set_mode(ReaderMode::Sifts);
    }

    fn set_mode(&self, mode: ReaderMode) {
        let mut state = self.state();
        if state.mode != ReaderMode::Gone {
            (state.mode, state.is_spilling) = (mode, false);
        }
    }

    /// Takes the interim responses that are to be sent. The connection is woken for the next.
    pub fn poll_interim(&self, context: &Context<'_>) -> Vec<(Status, Fields)> {
        let mut state = self.state();
        state.connection = Some(context.waker().clone());
        std::mem::take(&mut state.interim)
    }

    pub fn take_interim(&self) -> Vec<(Status, Fields)> {
        std::mem::take(&mut self.state().interim)
    }

    /// Passes received bytes to the reader. Called only after [`BodyDemand::Bytes`].
    pub fn put(&self, bytes: Bytes) {
        let reader = {
            let mut state = self.state();
            state.received += bytes.len() as u64;
            debug_assert!(state.next.is_none(), "one piece at a time");
            if state.mode != ReaderMode::Gone {
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

impl ChannelState {
    /// Returns whether all of the body has come, and was taken.
    fn is_taken(&self) -> bool {
        self.next.is_none() && self.end == Some(Ok(()))
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
    /// The server has no memory left for the body.
    #[error("the server has no memory left for the body; try again later")]
    NoMemory,
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
            Self::NoMemory => Status::SERVICE_UNAVAILABLE,
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
    pub fn of(error: BodyDecodeError) -> Self {
        if error.status() == Status::CONTENT_TOO_LARGE { Self::TooLarge } else { Self::Malformed }
    }
}

#[cfg(test)]
mod tests;
