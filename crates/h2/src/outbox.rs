//! Between the task of a handler and its connection: a response, then the pieces of its content.
//!
//! Both are on one worker as a rule, but need not be: the state is behind a lock, which is held for
//! a few instructions and never across a wait.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use gustnado_http::h2::StreamId;
use gustnado_web::response::{Response, Trailers};

/// How much of a stream's content waits for its turn; its maker waits beyond that.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// The streams of a connection that something has come for.
#[derive(Default)]
pub(super) struct Mailroom(Mutex<Mail>);

#[derive(Default)]
struct Mail {
    streams: Vec<StreamId>,
    connection: Option<Waker>,
}

impl Mailroom {
    /// Returns the streams that something has come for. Before it is asked again, the connection is
    /// woken.
    ///
    /// - `streams`: memory, which is empty.
    pub(super) fn collect(&self, streams: Vec<StreamId>, context: &Context<'_>) -> Vec<StreamId> {
        let mut mail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !mail.connection.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            mail.connection = Some(context.waker().clone());
        }
        if mail.streams.is_empty() { streams } else { mem::replace(&mut mail.streams, streams) }
    }

    fn note(&self, id: StreamId) {
        let waker = {
            let mut mail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

/// What a handler has come to.
pub(super) enum Delivered {
    Whole(Box<Response>),
    /// The content follows in pieces.
    Streamed(Box<Response>),
    /// It has panicked.
    Panicked,
}

/// How streamed content has ended.
pub(super) enum StreamEnd {
    Whole(Option<Trailers>),
    Failed,
}

impl StreamOutbox {
    pub(super) fn new(id: StreamId, room: Arc<Mailroom>) -> Arc<Self> {
        Arc::new(Self { id, room, inside: Mutex::default() })
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
        if inside.bytes < WAITING_BYTES_MAX {
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
            let has_room = inside.bytes < WAITING_BYTES_MAX / 2;
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

impl Wake for StreamOutbox {
    fn wake(self: Arc<Self>) {
        self.room.note(self.id);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.room.note(self.id);
    }
}
