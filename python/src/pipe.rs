//! Content that Python writes and the engine sends: a queue between the two, with marks.

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

/// The end that Python writes to. Dropped before its [end](Feed::end), it cuts the answer off, so
/// that nobody takes it for whole.
pub(crate) struct Feed(Arc<Shared>);

/// The end that the engine reads.
pub(crate) struct Content(Arc<Shared>);

/// Room in between, to wait for.
pub(crate) struct Room(Arc<Shared>);

/// The content has no end: whoever made it has failed.
#[derive(Debug)]
pub(crate) struct Cut;

#[derive(Default)]
struct Shared {
    inside: Mutex<Inside>,
    /// There is room again, or nobody to write for.
    change: Condvar,
}

#[derive(Default)]
struct Inside {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    is_full: bool,
    end: Option<Result<(), Cut>>,
    is_lost: bool,
    reader: Option<Waker>,
    on_room: Vec<Call>,
    /// How many threads wait for room. (To notify costs a call to the kernel, also if none does.)
    waiting: usize,
    on_lost: Option<Call>,
}

type Call = Box<dyn FnOnce() + Send>;

/// Both ends of a new one.
pub(crate) fn pipe() -> (Feed, Content) {
    let shared = Arc::new(Shared::default());
    (Feed(Arc::clone(&shared)), Content(shared))
}

impl Shared {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: Result<(), Cut>) {
        let mut inside = self.inside();
        inside.end.get_or_insert(end);
        // (Who has come to the end need not know of a loss.)
        let (reader, on_lost) = (inside.reader.take(), inside.on_lost.take());
        drop(inside);
        drop(on_lost);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl Feed {
    /// Puts a piece behind the others. Returns what there is to wait for before the next, if too
    /// much waits already, or the client has gone.
    pub(crate) fn push(&self, piece: Bytes) -> Option<Room> {
        let mut inside = self.0.inside();
        if !inside.is_lost && !piece.is_empty() {
            inside.bytes += piece.len();
            inside.pieces.push_back(piece);
        }
        inside.is_full |= inside.bytes > HIGH;
        let (is_full, reader) = (inside.is_full || inside.is_lost, inside.reader.take());
        drop(inside);
        reader.into_iter().for_each(Waker::wake);
        is_full.then(|| Room(Arc::clone(&self.0)))
    }

    /// Whether the client has gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.inside().is_lost
    }

    /// The content is whole.
    pub(crate) fn end(&self) {
        self.0.end(Ok(()));
    }

    /// Has `call` called once the client has gone before the end: at once, if it has. The last one
    /// counts.
    pub(crate) fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let mut inside = self.0.inside();
        if inside.is_lost {
            drop(inside);
            call();
        } else if inside.end.is_none() {
            let before = inside.on_lost.replace(Box::new(call));
            drop(inside);
            drop(before);
        }
    }
}

impl Content {
    /// As [`Feed::on_lost`].
    pub(crate) fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let before = self.0.inside().on_lost.replace(Box::new(call));
        drop(before);
    }
}

impl Room {
    /// Has `call` called once there is room, or the client has gone: at once, if that is so.
    pub(crate) fn call(&self, call: impl FnOnce() + Send + 'static) {
        let mut inside = self.0.inside();
        if inside.is_full && !inside.is_lost {
            inside.on_room.push(Box::new(call));
        } else {
            drop(inside);
            call();
        }
    }

    /// Holds the thread until there is room. Returns whether the client is there still.
    pub(crate) fn wait(&self) -> bool {
        let mut inside = self.0.inside();
        inside.waiting += 1;
        let inside = self.0.change.wait_while(inside, |inside| inside.is_full && !inside.is_lost);
        let mut inside = inside.unwrap_or_else(PoisonError::into_inner);
        inside.waiting -= 1;
        !inside.is_lost
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.end(Err(Cut));
    }
}

impl Stream for Content {
    type Item = Result<Bytes, Cut>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut inside = self.0.inside();
        let Some(piece) = inside.pieces.pop_front() else {
            if let Some(end) = inside.end.take() {
                return Poll::Ready(end.err().map(Err));
            }
            inside.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        inside.bytes -= piece.len();
        let has_room = inside.is_full && inside.bytes <= LOW;
        let on_room = if has_room { std::mem::take(&mut inside.on_room) } else { Vec::new() };
        inside.is_full &= !has_room;
        let has_waiting = inside.waiting > 0;
        drop(inside);
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

impl Drop for Content {
    fn drop(&mut self) {
        let mut inside = self.0.inside();
        inside.is_lost = true;
        let (on_room, on_lost) = (std::mem::take(&mut inside.on_room), inside.on_lost.take());
        let pieces = std::mem::take(&mut inside.pieces);
        let has_waiting = inside.waiting > 0;
        drop(inside);
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

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content was given up before its end")
    }
}

impl std::error::Error for Cut {}

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
