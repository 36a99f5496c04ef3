//! A bounded queue of content from Python to the engine, with high and low water marks.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use pyo3::pybacked::PyBackedBytes;

/// Bytes that may wait; above it a writer is to pause, until no more than `LOW` wait. A pause costs
/// a turn of the writer's loop, so there are to be few; and while it lasts, the engine still has
/// something to send.
const HIGH: usize = 256 << 10;
const LOW: usize = 128 << 10;

/// The end that Python writes to. Dropped before its [end](PipeWriter::end), it cuts the answer off, so
/// that nobody takes it for whole.
pub(crate) struct PipeWriter(Arc<PipeShared>);

/// The end that the engine reads.
pub(crate) struct PipeReader(Arc<PipeShared>);

/// Room in between, to wait for.
pub(crate) struct PipeSpace(Arc<PipeShared>);

/// The content has no end: whoever made it has failed.
#[derive(Debug)]
pub(crate) struct ContentCut;

#[derive(Default)]
struct PipeShared {
    state: Mutex<PipeState>,
    /// There is room again, or nobody to write for.
    change: Condvar,
}

#[derive(Default)]
struct PipeState {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    is_full: bool,
    end: Option<Result<(), ContentCut>>,
    is_lost: bool,
    reader: Option<Waker>,
    on_room: Vec<SpaceCallback>,
    /// How many threads wait for room. (To notify costs a call to the kernel, also if none does.)
    waiting: usize,
    on_lost: Option<SpaceCallback>,
}

type SpaceCallback = Box<dyn FnOnce() + Send>;

/// Both ends of a new one.
pub(crate) fn pipe() -> (PipeWriter, PipeReader) {
    let shared = Arc::new(PipeShared::default());
    (PipeWriter(Arc::clone(&shared)), PipeReader(shared))
}

impl PipeShared {
    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: Result<(), ContentCut>) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        // (Who has come to the end need not know of a loss.)
        let (reader, on_lost) = (state.reader.take(), state.on_lost.take());
        drop(state);
        drop(on_lost);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl PipeWriter {
    /// Puts a piece behind the others. Returns what there is to wait for before the next, if too
    /// much waits already, or the client has gone.
    pub(crate) fn push(&self, piece: Bytes) -> Option<PipeSpace> {
        let mut state = self.0.state();
        if !state.is_lost && !piece.is_empty() {
            state.bytes += piece.len();
            state.pieces.push_back(piece);
        }
        state.is_full |= state.bytes > HIGH;
        let (is_full, reader) = (state.is_full || state.is_lost, state.reader.take());
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        is_full.then(|| PipeSpace(Arc::clone(&self.0)))
    }

    /// Whether the client has gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.state().is_lost
    }

    /// The content is whole.
    pub(crate) fn end(&self) {
        self.0.end(Ok(()));
    }

    /// Has `call` called once the client has gone before the end: at once, if it has. The last one
    /// counts.
    pub(crate) fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state();
        if state.is_lost {
            drop(state);
            call();
        } else if state.end.is_none() {
            let before = state.on_lost.replace(Box::new(call));
            drop(state);
            drop(before);
        }
    }
}

impl PipeReader {
    /// As [`PipeWriter::on_lost`].
    pub(crate) fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let before = self.0.state().on_lost.replace(Box::new(call));
        drop(before);
    }
}

impl PipeSpace {
    /// Has `call` called once there is room, or the client has gone: at once, if that is so.
    pub(crate) fn call(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state();
        if state.is_full && !state.is_lost {
            state.on_room.push(Box::new(call));
        } else {
            drop(state);
            call();
        }
    }

    /// Holds the thread until there is room. Returns whether the client is there still.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.0.state();
        state.waiting += 1;
        let state = self.0.change.wait_while(state, |state| state.is_full && !state.is_lost);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        !state.is_lost
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.0.end(Err(ContentCut));
    }
}

impl Stream for PipeReader {
    type Item = Result<Bytes, ContentCut>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.0.state();
        let Some(piece) = state.pieces.pop_front() else {
            if let Some(end) = state.end.take() {
                return Poll::Ready(end.err().map(Err));
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        state.bytes -= piece.len();
        let has_room = state.is_full && state.bytes <= LOW;
        let on_room = if has_room { std::mem::take(&mut state.on_room) } else { Vec::new() };
        state.is_full &= !has_room;
        let has_waiting = state.waiting > 0;
        drop(state);
        if has_room && has_waiting {
            self.0.change.notify_all();
        }
        // (Nothing is locked while somebody else's code runs.)
        for call in on_room {
            call();
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_lost = true;
        let (on_room, on_lost) = (std::mem::take(&mut state.on_room), state.on_lost.take());
        let pieces = std::mem::take(&mut state.pieces);
        let has_waiting = state.waiting > 0;
        drop(state);
        if has_waiting {
            self.0.change.notify_all();
        }
        for call in on_room.into_iter().chain(on_lost) {
            call();
        }
        // (Some of them may be objects of Python's.)
        drop(pieces);
    }
}

impl fmt::Display for ContentCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content was given up before its end")
    }
}

impl std::error::Error for ContentCut {}

/// From here on, bytes are sent out of Python's own object; below, copying them costs less.
const SHARED_FROM: usize = 4_096;

/// Bytes of Python as the engine's.
pub(crate) fn owned(bytes: PyBackedBytes) -> Bytes {
    if bytes.len() < SHARED_FROM {
        Bytes::copy_from_slice(&bytes)
    } else {
        Bytes::from_owner(bytes)
    }
}
