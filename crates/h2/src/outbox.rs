//! Between the task of a handler and its connection: a response, then the pieces of its content.
//!
//! Both are on one worker as a rule, but need not be: the state is behind a lock, which is held for
//! a few instructions and never across a wait.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use gustnado_http::h2::StreamId;
use gustnado_web::response::{Response, Trailers};
use gustnado_web::spool::{SpoolFailure, SpooledBody};
use gustnado_web::tunnel::PipeConnection;

/// How much of a stream's content waits for its turn; its maker waits beyond that.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// The same where sends hold too much.
const SHORT_BYTES_MAX: usize = 8 << 10;

/// How much waits of all streams of a connection: beyond that, each has one piece.
const ROOM_BYTES_MAX: usize = 256 << 10;

/// The streams of a connection that something has come for.
#[derive(Default)]
pub(super) struct Mailroom {
    mail: Mutex<Mail>,
    /// What waits of all streams.
    bytes: AtomicUsize,
    /// Sends hold too much.
    is_short: AtomicBool,
}

#[derive(Default)]
struct Mail {
    streams: Vec<StreamId>,
    connection: Option<Waker>,
}

// Both numbers stand for themselves: a maker that sees an old one waits a little earlier or later.
impl Mailroom {
    /// Returns how much content of all streams waits for its turn.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Says whether sends hold too much: then less waits.
    pub(super) fn set_short(&self, is_short: bool) {
        self.is_short.store(is_short, Ordering::Relaxed);
    }

    fn bytes_max(&self) -> usize {
        if self.is_short.load(Ordering::Relaxed) { SHORT_BYTES_MAX } else { ROOM_BYTES_MAX }
    }

    /// Returns the streams that something has come for. Before it is asked again, the connection is
    /// woken.
    ///
    /// - `streams`: memory, which is empty.
    pub(super) fn collect(&self, streams: Vec<StreamId>, context: &Context<'_>) -> Vec<StreamId> {
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        if !mail.connection.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            mail.connection = Some(context.waker().clone());
        }
        if mail.streams.is_empty() { streams } else { mem::replace(&mut mail.streams, streams) }
    }

    fn note(&self, id: StreamId) {
        let waker = {
            let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
            if !mail.streams.contains(&id) {
                mail.streams.push(id);
            }
            // Cloned: a connection that is woken twice before it runs is woken once.
            mail.connection.clone()
        };
        waker.inspect(Waker::wake_by_ref);
    }
}

/// What a task has for one stream. As a waker it has the connection look at that stream.
pub(super) struct StreamOutbox {
    id: StreamId,
    room: Arc<Mailroom>,
    /// The task has run.
    had_turn: AtomicBool,
    inside: Mutex<OutboxState>,
}

#[derive(Default)]
struct OutboxState {
    response: Option<Delivered>,
    pieces: VecDeque<Bytes>,
    bytes: usize,
    end: Option<StreamEnd>,
    /// The task, while it waits for room.
    maker: Option<Waker>,
}

/// What a handler, or the disk, has come to.
pub(super) enum Delivered {
    Whole(Box<Response>),
    /// The content follows in pieces.
    Streamed(Box<Response>),
    /// It has panicked.
    Panicked,
    /// The disk is done with a body, or with what is sent next of a file.
    OfDisk(Box<DiskOutcome>),
}

/// What has come of the disk's work for a stream.
pub(super) enum DiskOutcome {
    /// What was in memory of it was written, or not; `None`: it is lost.
    Written(Option<(SpooledBody, Result<(), SpoolFailure>)>),
    /// All of it can be read; `None`: it is lost.
    Whole(Option<Bytes>),
    /// A file was read into memory up to there; `None`: it was not, in time.
    Read(Option<u64>),
}

/// How streamed content has ended.
pub(super) enum StreamEnd {
    Whole(Option<Trailers>),
    Failed,
}

impl StreamOutbox {
    pub(super) fn new(id: StreamId, room: Arc<Mailroom>) -> Arc<Self> {
        Arc::new(Self { id, room, had_turn: AtomicBool::new(false), inside: Mutex::default() })
    }

    /// Notes that the task has run, to where it waits or ends.
    pub(super) fn note_turn(&self) {
        // Relaxed: a connection that sees it late waits a little longer.
        self.had_turn.store(true, Ordering::Relaxed);
    }

    pub(super) fn had_turn(&self) -> bool {
        self.had_turn.load(Ordering::Relaxed)
    }

    fn inside(&self) -> MutexGuard<'_, OutboxState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers what the handler has come to.
    pub(super) fn deliver(&self, delivered: Delivered) {
        self.inside().response = Some(delivered);
        self.room.note(self.id);
    }

    /// Takes what the handler has come to.
    pub(super) fn take_response(&self) -> Option<Delivered> {
        self.inside().response.take()
    }

    /// Returns whether the handler has come to something that was not taken yet.
    pub(super) fn has_response(&self) -> bool {
        self.inside().response.is_some()
    }

    /// Waits until there is room for a piece.
    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut inside = self.inside();
        let has_room =
            inside.bytes < WAITING_BYTES_MAX && self.room.bytes() < self.room.bytes_max();
        // With nothing of its own, it would wait for other streams.
        if has_room || inside.bytes == 0 {
            return Poll::Ready(());
        }
        inside.maker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Adds a piece of content, of at least one byte.
    pub(super) fn push(&self, piece: Bytes) {
        let is_first = {
            let mut inside = self.inside();
            inside.bytes += piece.len();
            self.room.bytes.fetch_add(piece.len(), Ordering::Relaxed);
            inside.pieces.push_back(piece);
            inside.pieces.len() == 1
        };
        if is_first {
            self.room.note(self.id);
        }
    }

    /// Ends the content.
    pub(super) fn end(&self, end: StreamEnd) {
        self.inside().end = Some(end);
        self.room.note(self.id);
    }

    /// Takes up to so many bytes of content.
    pub(super) fn take(&self, bytes_max: usize) -> Option<Bytes> {
        let (piece, maker) = {
            let mut inside = self.inside();
            let first = inside.pieces.front_mut()?;
            let piece =
                if first.len() <= bytes_max { mem::take(first) } else { first.split_to(bytes_max) };
            if first.is_empty() {
                inside.pieces.pop_front();
            }
            inside.bytes -= piece.len();
            self.room.bytes.fetch_sub(piece.len(), Ordering::Relaxed);
            let is_full = self.room.bytes() > self.room.bytes_max() / 2;
            let has_room = inside.bytes == 0 || inside.bytes < WAITING_BYTES_MAX / 2 && !is_full;
            (piece, if has_room { inside.maker.take() } else { None })
        };
        maker.inspect(Waker::wake_by_ref);
        Some(piece)
    }

    /// Returns whether there is something to take.
    pub(super) fn has_pieces(&self) -> bool {
        !self.inside().pieces.is_empty()
    }

    /// Takes the end of the content, once all pieces are taken.
    pub(super) fn take_end(&self) -> Option<StreamEnd> {
        let mut inside = self.inside();
        if inside.pieces.is_empty() { inside.end.take() } else { None }
    }

    /// Returns whether the content has ended, and all pieces are taken.
    pub(super) fn has_ended(&self) -> bool {
        let inside = self.inside();
        inside.pieces.is_empty() && inside.end.is_some()
    }
}

impl Drop for StreamOutbox {
    fn drop(&mut self) {
        let left = self.inside().bytes;
        self.room.bytes.fetch_sub(left, Ordering::Relaxed);
    }
}

impl PipeConnection for Mailroom {
    fn wake(&self, stream: u32) {
        self.note(stream);
    }
}

impl Wake for StreamOutbox {
    fn wake(self: Arc<Self>) {
        self.room.note(self.id);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.room.note(self.id);
    }
}
