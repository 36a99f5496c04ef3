//! A pipe in memory between a tunnel, in its connection's task, and what hyper hands over, in a
//! task of tokio's.

use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};

/// So many bytes wait in each direction before their sender waits.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// The end of a head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Bytes on their way between a tunnel and hyper's end.
pub(super) struct UpgradePipe(Mutex<UpgradeState>);

#[derive(Default)]
struct UpgradeState {
    phase: PipePhase,
    /// For hyper's end.
    incoming: BytesMut,
    /// Nothing more is incoming.
    is_finished: bool,
    /// Of hyper's end.
    outgoing: BytesMut,
    sending: HyperEnd,
    /// The task of the tunnel waits until more may be incoming.
    wants_room: bool,
    carrier: Option<Waker>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// How far a pipe has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PipePhase {
    /// hyper has its request, and must not respond.
    #[default]
    Asked,
    /// The tunnel is there. hyper writes the head of its response, which is not sent.
    Open,
    /// Bytes are carried.
    Carrying,
    /// The tunnel is over.
    Lost,
}

/// How far hyper's end is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HyperEnd {
    #[default]
    Open,
    /// Its sending side is to be shut behind what is outgoing.
    ShutWanted,
    Shut,
    /// It is dropped.
    Dropped,
}

/// What the tunnel is to do next.
pub(super) enum UpgradeOutput {
    Bytes(Bytes),
    /// The sending side ends.
    Shut,
    /// Both end.
    End,
    Nothing,
}

/// The tunnel's side.
impl UpgradePipe {
    /// - `incoming`: what hyper reads first.
    pub(super) fn new(incoming: &[u8]) -> Arc<Self> {
        let state = UpgradeState { incoming: incoming.into(), ..UpgradeState::default() };
        Arc::new(Self(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, UpgradeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the tunnel is there.
    pub(super) fn open(&self) {
        self.state().phase = PipePhase::Open;
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().phase != PipePhase::Asked
    }

    /// Notes which task carries the bytes.
    pub(super) fn wait(&self, context: &Context<'_>) {
        keep(&mut self.state().carrier, context);
    }

    /// Takes what is to be sent next.
    pub(super) fn output(&self) -> UpgradeOutput {
        let mut state = self.state();
        if state.phase == PipePhase::Carrying && !state.outgoing.is_empty() {
            let bytes = mem::take(&mut state.outgoing).freeze();
            let writer = state.writer.take();
            drop(state);
            wake(writer);
            return UpgradeOutput::Bytes(bytes);
        }
        match state.sending {
            HyperEnd::Dropped => UpgradeOutput::End,
            HyperEnd::ShutWanted => {
                state.sending = HyperEnd::Shut;
                UpgradeOutput::Shut
            }
            HyperEnd::Open | HyperEnd::Shut => UpgradeOutput::Nothing,
        }
    }

    /// Returns whether more may be incoming. If not, the task is woken when it may.
    pub(super) fn wants_input(&self) -> bool {
        let mut state = self.state();
        state.wants_room = state.incoming.len() >= WAITING_BYTES_MAX;
        !state.wants_room && !state.is_finished
    }

    /// Adds bytes that were received.
    pub(super) fn put(&self, bytes: &[u8]) {
        let mut state = self.state();
        if state.sending != HyperEnd::Dropped {
            state.incoming.extend_from_slice(bytes);
        }
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Notes that nothing more is received.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.is_finished = true;
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Notes that the tunnel is over.
    pub(super) fn lose(&self) {
        let mut state = self.state();
        state.phase = PipePhase::Lost;
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().for_each(wake);
    }
}

/// hyper's end.
pub(super) struct PipeEnd(Arc<UpgradePipe>);

impl PipeEnd {
    pub(super) fn new(pipe: Arc<UpgradePipe>) -> Self {
        Self(pipe)
    }
}

impl Read for PipeEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.state();
        if !state.incoming.is_empty() {
            let len = state.incoming.len().min(into.remaining());
            into.put_slice(&state.incoming[..len]);
            state.incoming.advance(len);
            if state.incoming.is_empty() {
                // One that waits holds no buffer.
                state.incoming = BytesMut::new();
            }
            let is_room_wanted = state.wants_room && state.incoming.len() < WAITING_BYTES_MAX;
            let carrier = if is_room_wanted { state.carrier.take() } else { None };
            drop(state);
            wake(carrier);
            return Poll::Ready(Ok(()));
        }
        if state.phase == PipePhase::Lost {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if state.is_finished {
            return Poll::Ready(Ok(()));
        }
        keep(&mut state.reader, context);
        Poll::Pending
    }
}

impl Write for PipeEnd {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.state();
        if state.phase == PipePhase::Lost || state.sending != HyperEnd::Open {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let len = bytes.len().min(WAITING_BYTES_MAX.saturating_sub(state.outgoing.len()));
        if len == 0 && !bytes.is_empty() {
            keep(&mut state.writer, context);
            return Poll::Pending;
        }
        // While bytes wait, their task knows.
        let is_carried = state.phase == PipePhase::Carrying;
        let is_told = is_carried && !state.outgoing.is_empty();
        state.outgoing.extend_from_slice(&bytes[..len]);
        if !is_carried {
            state.drop_head();
        }
        let carrier = if is_told { None } else { state.carrier.take() };
        drop(state);
        wake(carrier);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // As with a socket: what was written leaves by itself.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.state();
        if state.sending == HyperEnd::Open {
            state.sending = HyperEnd::ShutWanted;
            let carrier = state.carrier.take();
            drop(state);
            wake(carrier);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.sending = HyperEnd::Dropped;
        let carrier = state.carrier.take();
        drop(state);
        wake(carrier);
    }
}

impl UpgradeState {
    /// Drops the head of hyper's response, once all of it is there.
    fn drop_head(&mut self) {
        let end = self.outgoing.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END);
        if let Some(end) = end {
            self.outgoing.advance(end + HEAD_END.len());
            self.phase = PipePhase::Carrying;
        }
    }
}

fn keep(place: &mut Option<Waker>, context: &Context<'_>) {
    if !place.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
        *place = Some(context.waker().clone());
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
