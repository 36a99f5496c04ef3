//! A bounded queue of content from Python to the engine, with high and low water marks.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use pyo3::pybacked::PyBackedBytes;

/// High and low water marks: a writer pauses above `HIGH` queued bytes, until no more than `LOW`
/// are left. A pause costs a turn of the writer's loop, so it should be rare, and meanwhile the
/// engine still has something to send.
const HIGH: usize = 256 << 10;
const LOW: usize = 128 << 10;

/// The end for Python. Dropped before [`end`](PipeWriter::end), it cuts the response off, so that
/// it does not pass for complete.
pub(crate) struct PipeWriter(Arc<PipeShared>);

/// The end for the engine.
pub(crate) struct PipeReader(Arc<PipeShared>);

/// Waits for space in the queue.
pub(crate) struct PipeSpace(Arc<PipeShared>);

/// The content was cut off: its producer has failed.
#[derive(Debug)]
pub(crate) struct ContentCut;

#[derive(Default)]
struct PipeShared {
    state: Mutex<PipeState>,
    /// Notified when there is space, or the reader is gone.
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
    /// Threads that wait for space. (A notification costs a system call even without any.)
    waiting: usize,
    on_lost: Option<SpaceCallback>,
}

type SpaceCallback = Box<dyn FnOnce() + Send>;

/// Returns both ends of a new pipe.
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
        // A reader that has reached the end needs no notice of a disconnect.
        let (reader, on_lost) = (state.reader.take(), state.on_lost.take());
        drop(state);
        drop(on_lost);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl PipeWriter {
    /// Appends a piece. Returns what to wait for before the next one, if the queue is full or the
    /// client has disconnected.
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

    /// Returns whether the client has disconnected.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.state().is_lost
    }

    /// Ends the content.
    pub(crate) fn end(&self) {
        self.0.end(Ok(()));
    }

    /// Calls `call` once the client disconnects before the end, or at once if it has. It replaces
    /// an earlier one.
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
    /// Does the same as [`PipeWriter::on_lost`].
    pub(crate) fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let before = self.0.state().on_lost.replace(Box::new(call));
        drop(before);
    }
}

impl PipeSpace {
    /// Calls `call` once there is space or the client has disconnected, which may be at once.
    pub(crate) fn call(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state();
        if state.is_full && !state.is_lost {
            state.on_room.push(Box::new(call));
        } else {
            drop(state);
            call();
        }
    }

    /// Blocks the thread until there is space. Returns whether the client is still connected.
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
        // Nothing is locked while foreign code runs.
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
        // Some of them may be Python objects.
        drop(pieces);
    }
}

impl fmt::Display for ContentCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content was given up before its end")
    }
}

impl std::error::Error for ContentCut {}

/// Minimum length for sharing the memory of a Python object; copying less is cheaper.
const SHARED_FROM: usize = 4_096;

/// Converts Python bytes.
pub(crate) fn owned(bytes: PyBackedBytes) -> Bytes {
    if bytes.len() < SHARED_FROM {
        Bytes::copy_from_slice(&bytes)
    } else {
        Bytes::from_owner(bytes)
    }
}
