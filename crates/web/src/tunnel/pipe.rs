//! What a tunnel over a stream of HTTP/2 shares with its connection: bytes in both directions.
//!
//! The tunnel and the connection are two tasks, on one worker as a rule. The state is behind a
//! lock, which is held for a few instructions and never across a wait.

pub(super) mod protocol;

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use gustnado_config::UNCHARGED_BYTES;
use gustnado_tasks::{
    Charge, ConnectionError, Endpoint, MemoryKind, ProgressTimeout, Sleep, now, sleep,
};

/// Bytes of a tunnel in both directions, on their way between its function and its connection.
///
/// What comes is bounded by the stream's window, which widens as the tunnel takes bytes. What goes
/// is one piece at a time, and its sender waits until the connection has taken all of it.
pub struct StreamPipe {
    addresses: Option<Arc<(Endpoint, Endpoint)>>,
    /// So many bytes are taken before the connection is told.
    step: usize,
    /// The connection, and the stream's number there.
    connection: (Arc<dyn PipeConnection>, u32),
    state: Mutex<TunnelState>,
}

/// What a tunnel's stream belongs to.
pub trait PipeConnection: Send + Sync {
    /// Makes the connection look at a stream.
    fn wake(&self, stream: u32);
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct TunnelState {
    /// Received and not taken yet.
    received: Vec<u8>,
    /// Bytes that were received so far.
    came: u64,
    /// Their memory is charged, so the connection is told whenever they are taken.
    is_charged: bool,
    /// Taken since the connection was last told.
    taken: usize,
    /// The peer sends no more.
    is_finished: bool,
    /// Being sent.
    unsent: Bytes,
    /// Their memory, where they are many.
    charge: Option<Box<Charge>>,
    sending: SendingEnd,
    /// Why neither direction goes on, if so.
    loss: Option<PipeLoss>,
    is_loss_told: bool,
    /// The function that uses the tunnel has ended.
    close: Option<PipeClose>,
    /// The server drains.
    is_ending: bool,
    /// Wakes the function's task at that time.
    alarm: Option<(u64, Sleep)>,
    /// How slowly the peer may take bytes.
    write: ProgressTimeout,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// The task that runs the function.
    task: Option<Waker>,
}

/// How far the sending side is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendingEnd {
    Open,
    /// To be ended behind the bytes that are being sent.
    Wanted,
    Written,
}

/// Why a tunnel over a stream is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeLoss {
    /// The peer has reset the stream, or its connection is gone.
    Gone,
    /// The peer has taken nothing for too long.
    TimedOut,
    /// The server has ended.
    Ending,
    /// This side has cut it.
    Cut,
    /// The server has no memory for what the peer has sent.
    NoMemory,
}

/// How the function that uses a tunnel has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeClose {
    Returned,
    Panicked,
}

/// What the connection is to send next.
#[derive(Debug, PartialEq, Eq)]
pub enum PipeOutput {
    Bytes(Bytes),
    /// The end of this side's bytes; the other side may go on.
    Shut,
    /// The end of the stream.
    ///
    /// - `is_shut`: the end of this side's bytes was written before.
    Close {
        is_shut: bool,
    },
    /// The stream is to be reset: this side has cut it.
    Cut,
    /// The same, as the function that used it has panicked.
    Failed,
    Nothing,
}

impl StreamPipe {
    /// - `addresses`: of the peer and of this end, if the kernel knows them. All streams of a
    ///   connection share them.
    /// - `step`: how many bytes are taken before the connection is told; at most half a window.
    /// - `connection`: the stream's connection, and its number there.
    pub fn new(
        addresses: Option<Arc<(Endpoint, Endpoint)>>,
        step: usize,
        connection: (Arc<dyn PipeConnection>, u32),
        write: ProgressTimeout,
    ) -> Arc<Self> {
        let state = TunnelState {
            received: Vec::new(),
            came: 0,
            is_charged: false,
            taken: 0,
            is_finished: false,
            unsent: Bytes::new(),
            charge: None,
            sending: SendingEnd::Open,
            loss: None,
            is_loss_told: false,
            close: None,
            is_ending: false,
            alarm: None,
            write,
            reader: None,
            writer: None,
            task: None,
        };
        Arc::new(Self { addresses, step, connection, state: Mutex::new(state) })
    }

    fn wake_connection(&self) {
        self.connection.0.wake(self.connection.1);
    }

    fn state(&self) -> MutexGuard<'_, TunnelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses of the peer and of this end.
    pub(super) fn addresses(&self) -> io::Result<&(Endpoint, Endpoint)> {
        self.addresses.as_deref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// The tunnel's side.
impl StreamPipe {
    /// Takes received bytes; none at the peer's end.
    ///
    /// - `tells_end`: it fails when the server drains, instead of waiting.
    pub(super) fn poll_recv(
        &self,
        context: &Context<'_>,
        tells_end: bool,
    ) -> Poll<Result<Vec<u8>, PipeFailure>> {
        let mut state = self.state();
        if !state.received.is_empty() {
            let received = mem::take(&mut state.received);
            state.taken += received.len();
            let is_step = state.is_charged || state.taken >= self.step;
            drop(state);
            if is_step {
                self.wake_connection();
            }
            return Poll::Ready(Ok(received));
        }
        if let Some(failure) = state.failure() {
            return Poll::Ready(Err(failure));
        }
        if state.is_finished {
            return Poll::Ready(Ok(Vec::new()));
        }
        if tells_end && state.is_ending {
            return Poll::Ready(Err(PipeFailure::Lost(PipeLoss::Ending)));
        }
        keep(&mut state.reader, context);
        Poll::Pending
    }

    /// Waits for that time of the clock, in milliseconds, while nothing is received.
    pub(super) fn poll_time(&self, context: &Context<'_>, at_ms: u64) -> Poll<()> {
        let mut state = self.state();
        let alarm = &mut state.alarm;
        loop {
            let now_ms = now().mono_ms;
            if now_ms >= at_ms {
                return Poll::Ready(());
            }
            // One that comes too early is set again then: mostly the time moves on with each
            // receive.
            if alarm.as_ref().is_none_or(|(set_ms, _)| *set_ms > at_ms) {
                *alarm = Some((at_ms, sleep(Duration::from_millis(at_ms - now_ms))));
            }
            let Some((_, sleeping)) = alarm else { return Poll::Pending };
            ready!(Pin::new(sleeping).poll(&mut Context::from_waker(context.waker())));
            *alarm = None;
        }
    }

    /// Waits until the server drains, while nothing is received.
    pub(super) fn poll_ending(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_ending {
            return Poll::Ready(());
        }
        keep(&mut state.reader, context);
        Poll::Pending
    }

    /// Begins to send bytes. To be called only once those before have been taken.
    pub(super) fn start_send(&self, bytes: Bytes) {
        let mut state = self.state();
        debug_assert!(state.unsent.is_empty(), "one send at a time");
        if state.loss.is_some() || state.sending != SendingEnd::Open {
            return;
        }
        state.set_unsent(bytes);
        drop(state);
        self.wake_connection();
    }

    /// Waits until the connection has taken all bytes that are being sent.
    pub(super) fn poll_sent(&self, context: &Context<'_>) -> Poll<Result<(), PipeFailure>> {
        let mut state = self.state();
        if let Some(failure) = state.failure() {
            return Poll::Ready(Err(failure));
        }
        if state.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        keep(&mut state.writer, context);
        Poll::Pending
    }

    /// Returns whether this side may send.
    pub(super) fn is_open(&self) -> bool {
        let state = self.state();
        state.loss.is_none() && state.sending == SendingEnd::Open
    }

    /// Ends the sending side.
    pub(super) fn shut(&self) {
        let mut state = self.state();
        if state.sending == SendingEnd::Open {
            state.sending = SendingEnd::Wanted;
            drop(state);
            self.wake_connection();
        }
    }

    /// Sets how slowly the peer may take bytes.
    pub(super) fn set_write(&self, write: ProgressTimeout) {
        self.state().write = write;
    }

    /// Ends both directions: the stream is reset.
    pub(super) fn cut(&self) {
        self.lose(PipeLoss::Cut);
        self.wake_connection();
    }

    /// Waits until the tunnel is lost, for the task that runs its function.
    pub fn poll_lost(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.loss.is_some() {
            return Poll::Ready(());
        }
        keep(&mut state.task, context);
        Poll::Pending
    }

    /// Ends the tunnel: its function has ended.
    pub fn close(&self, close: PipeClose) {
        let mut state = self.state();
        state.close.get_or_insert(close);
        state.alarm = None;
        drop(state);
        self.wake_connection();
    }
}

/// The connection's side.
impl StreamPipe {
    /// Adds bytes that were received.
    pub fn put(&self, bytes: &[u8]) {
        let reader = {
            let mut state = self.state();
            if state.close.is_some() || state.loss.is_some() {
                // Nobody takes them.
                state.taken += bytes.len();
                return;
            }
            state.received.extend_from_slice(bytes);
            state.came += bytes.len() as u64;
            state.reader.take()
        };
        reader.inspect(Waker::wake_by_ref);
    }

    /// Notes that the peer sends no more.
    pub fn finish(&self) {
        let reader = {
            let mut state = self.state();
            state.is_finished = true;
            state.reader.take()
        };
        reader.inspect(Waker::wake_by_ref);
    }

    /// Notes that the tunnel is lost. The first loss counts.
    pub fn lose(&self, loss: PipeLoss) {
        let wakers = {
            let mut state = self.state();
            state.loss.get_or_insert(loss);
            if loss == PipeLoss::NoMemory {
                state.received = Vec::new();
            }
            [state.reader.take(), state.writer.take(), state.task.take()]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Notes that the server drains.
    pub fn tell_ending(&self) {
        let reader = {
            let mut state = self.state();
            state.is_ending = true;
            state.reader.take()
        };
        reader.inspect(Waker::wake_by_ref);
    }

    /// Returns how many bytes were taken since this was last asked: the peer may send as many more.
    pub fn take_taken(&self) -> usize {
        mem::take(&mut self.state().taken)
    }

    /// Returns how many bytes wait to be taken, and how many were received so far.
    pub fn held(&self) -> (usize, u64) {
        let state = self.state();
        (state.received.len(), state.came)
    }

    /// Sets whether the memory of received bytes is charged.
    pub fn set_charged(&self, is_charged: bool) {
        self.state().is_charged = is_charged;
    }

    /// Returns whether there is something to send.
    ///
    /// - `has_window`: bytes may be sent.
    pub fn has_output(&self, has_window: bool) -> bool {
        let state = self.state();
        match state.loss {
            Some(PipeLoss::Cut) => true,
            Some(_) => false,
            None if state.close == Some(PipeClose::Panicked) => true,
            None if !state.unsent.is_empty() => has_window,
            None => state.close.is_some() || state.sending == SendingEnd::Wanted,
        }
    }

    /// Returns whether bytes wait to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.state().unsent.is_empty()
    }

    /// Returns how slowly the peer may take bytes.
    pub fn write_timeout(&self) -> ProgressTimeout {
        self.state().write
    }

    /// Takes what is to be sent next, at most so many bytes.
    pub fn output(&self, bytes_max: usize) -> PipeOutput {
        let (piece, writer) = {
            let mut state = self.state();
            match (state.close, state.loss) {
                (Some(PipeClose::Panicked), _) => return PipeOutput::Failed,
                (_, Some(_)) => return PipeOutput::Cut,
                _ => {}
            }
            if state.unsent.is_empty() {
                return state.end_output();
            }
            let count = state.unsent.len().min(bytes_max);
            if count == 0 {
                return PipeOutput::Nothing;
            }
            let mut unsent = mem::take(&mut state.unsent);
            let piece = unsent.split_to(count);
            state.set_unsent(unsent);
            let writer = if state.unsent.is_empty() { state.writer.take() } else { None };
            (piece, writer)
        };
        writer.inspect(Waker::wake_by_ref);
        PipeOutput::Bytes(piece)
    }
}

impl TunnelState {
    fn set_unsent(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            self.charge = None;
        } else if self.charge.is_some() || bytes.len() > UNCHARGED_BYTES {
            let charge = self.charge.get_or_insert_with(|| Charge::new(MemoryKind::Sends).into());
            charge.set(bytes.len());
        }
        self.unsent = bytes;
    }

    /// Returns why nothing goes on, if so: the loss once, then that the tunnel is closed.
    fn failure(&mut self) -> Option<PipeFailure> {
        let loss = self.loss?;
        let was_told = mem::replace(&mut self.is_loss_told, true);
        Some(if was_told { PipeFailure::Closed } else { PipeFailure::Lost(loss) })
    }

    /// Returns what is to be sent behind all bytes.
    fn end_output(&mut self) -> PipeOutput {
        let is_shut = self.sending == SendingEnd::Written;
        if self.close.is_some() {
            return PipeOutput::Close { is_shut };
        }
        if self.sending == SendingEnd::Wanted {
            self.sending = SendingEnd::Written;
            return PipeOutput::Shut;
        }
        PipeOutput::Nothing
    }
}

/// Why an operation of a tunnel has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeFailure {
    Lost(PipeLoss),
    /// The loss was told before.
    Closed,
}

impl From<PipeFailure> for ConnectionError {
    fn from(failure: PipeFailure) -> Self {
        match failure {
            PipeFailure::Lost(PipeLoss::TimedOut) => Self::TimedOut,
            PipeFailure::Lost(PipeLoss::Ending) => Self::Ending,
            PipeFailure::Lost(PipeLoss::Gone) => {
                Self::Broken(io::ErrorKind::ConnectionReset.into())
            }
            PipeFailure::Lost(PipeLoss::NoMemory) => {
                Self::Broken(io::ErrorKind::OutOfMemory.into())
            }
            PipeFailure::Lost(PipeLoss::Cut) | PipeFailure::Closed => {
                Self::Broken(io::ErrorKind::NotConnected.into())
            }
        }
    }
}

fn keep(place: &mut Option<Waker>, context: &Context<'_>) {
    if !place.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
        *place = Some(context.waker().clone());
    }
}

impl fmt::Debug for StreamPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamPipe").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
