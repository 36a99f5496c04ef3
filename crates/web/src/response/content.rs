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
    /// A file by its path, which is opened when the request is known.
    Path(PathBuf),
    /// All of a file of a folder.
    File(Arc<CachedFile>),
    /// Parts of files and what stands between them, in order; so many bytes in all.
    Segments {
        segments: VecDeque<Segment>,
        length: u64,
    },
    Stream(Streamed),
    /// What is not sent, as to HEAD, and how long it would be, if that is known.
    Unsent(Option<u64>),
}

/// Makes the trailer fields, at the end.
pub type Trailers = Box<dyn FnOnce() -> Vec<(String, String)> + Send>;

/// Content that comes over time.
pub struct Streamed {
    pieces: Pin<Box<dyn Stream<Item = Option<Bytes>> + Send>>,
    pub length: Option<u64>,
}

impl Streamed {
    pub fn new<S, B, E>(stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
    {
        Self { pieces: Box::pin(Pieces(Box::pin(stream))), length }
    }

    /// The next piece; `Err` if the stream has failed, and `None` at its end.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failed>>> {
        self.pieces.as_mut().poll_next(context).map(|piece| Some(piece?.ok_or(Failed)))
    }
}

/// Failure of a stream. The cause stays with the stream's author.
#[derive(Debug)]
pub struct Failed;

/// A stream whose pieces are made bytes, and whose errors are all one.
struct Pieces<S>(Pin<Box<S>>);

impl<S, B, E> Stream for Pieces<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Into<Bytes>,
{
    type Item = Option<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(self.0.as_mut().poll_next(context));
        Poll::Ready(piece.map(|piece| piece.ok().map(Into::into)))
    }
}

impl Content {
    /// Returns how long it is, if that is known and may be told.
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
