//! Content of a response.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::status::Status;

use gustnado_files::{CachedFile, Segment};

/// The content of a response.
pub enum Content {
    Nothing,
    Bytes(Bytes),
    /// A file by its path, opened once the request is known.
    Path(PathBuf),
    /// All of a file of a folder.
    File(Arc<CachedFile>),
    /// Parts of files and the bytes between them, in order, `length` bytes in all.
    Segments {
        segments: VecDeque<Segment>,
        length: u64,
    },
    Stream(Streamed),
    /// Content that is not sent, as to HEAD, with its length if known.
    Unsent(Option<u64>),
}

/// Function that returns the trailer fields after the content.
pub type Trailers = Box<dyn FnOnce() -> Vec<(String, String)> + Send>;

/// Content that is produced over time.
pub struct Streamed {
    pieces: Pin<Box<dyn Stream<Item = Option<Bytes>> + Send>>,
    pub length: Option<u64>,
}

impl Streamed {
    /// Creates the content of a stream of bytes, which may fail.
    pub fn new<S, B, E>(stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
    {
        Self::mapped(stream, length, |piece| piece.ok().map(Into::into))
    }

    /// Creates the content of a stream by way of a function that turns each of its items into
    /// bytes; `None` is the failure of the stream.
    pub fn mapped<S>(
        stream: S,
        length: Option<u64>,
        map: impl FnMut(S::Item) -> Option<Bytes> + Send + Unpin + 'static,
    ) -> Self
    where
        S: Stream + Send + 'static,
    {
        Self { pieces: Box::pin(Mapped { stream: Box::pin(stream), map }), length }
    }

    /// Returns the next piece; `Err` if the stream has failed, and `None` at its end.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failed>>> {
        self.pieces.as_mut().poll_next(context).map(|piece| Some(piece?.ok_or(Failed)))
    }
}

/// Failure of a stream. The cause stays with the stream's author.
#[derive(Debug)]
pub struct Failed;

/// A stream whose items a function turns into others.
struct Mapped<S, F> {
    stream: Pin<Box<S>>,
    map: F,
}

impl<S: Stream, T, F: FnMut(S::Item) -> T + Unpin> Stream for Mapped<S, F> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let item = ready!(self.stream.as_mut().poll_next(context));
        Poll::Ready(item.map(&mut self.map))
    }
}

impl Content {
    /// Returns its length, if known and if the status may state one.
    pub fn length(&self, status: Status) -> Option<u64> {
        match self {
            // (A 304 speaks of the content it spares, whose length is not known here.)
            Self::Nothing => status.may_have_body().then_some(0),
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File(file) => Some(file.size),
            Self::Segments { length, .. } => Some(*length),
            Self::Stream(streamed) => streamed.length,
            Self::Unsent(length) => *length,
            Self::Path(_) => None,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("(no content)"),
            Self::Bytes(bytes) => write!(f, "({} bytes)", bytes.len()),
            Self::Path(path) => write!(f, "(file {})", path.display()),
            Self::File(file) => write!(f, "({} bytes of a file)", file.size),
            Self::Stream(_) => f.write_str("(stream)"),
            Self::Segments { length, .. } => write!(f, "({length} bytes of a file)"),
            Self::Unsent(_) => f.write_str("(not sent)"),
        }
    }
}
