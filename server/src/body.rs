//! A request's body, as handlers read it.

mod exchange;
#[cfg(feature = "tower")]
mod frames;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::body::BodyError as Broken;
use gustnado_http::head::Framing;
use gustnado_http::status::Status;

pub(crate) use exchange::{Exchange, Feed};

use crate::request::Recycled;

/// The body of a request: read when a handler asks for it, and never faster than it asks.
///
/// It is a stream of runs of bytes as they come, and may be moved to another task or thread; what
/// is not read when the answer is complete is thrown away. `Expect: 100-continue` is answered by
/// the first look at it.
pub struct Body(Inside);

enum Inside {
    Whole(Bytes),
    /// It came with the head, and is read as if it were still to come.
    AtHand {
        next: Option<Bytes>,
        length: u64,
    },
    Live(Live),
}

/// The reader's side of a body that is still coming.
struct Live {
    parts: Recycled,
    framing: Framing,
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self(Inside::Whole(Bytes::new()))
    }

    pub(crate) fn from_whole(bytes: Bytes) -> Self {
        Self(Inside::Whole(bytes))
    }

    /// A body that is to be read, and is all here.
    pub(crate) fn at_hand(bytes: Bytes) -> Self {
        let length = bytes.len() as u64;
        Self(Inside::AtHand { next: Some(bytes), length })
    }

    /// The body of the request that `parts` is the head of.
    pub(crate) fn live(parts: Recycled, framing: Framing) -> Self {
        Self(Inside::Live(Live { parts, framing }))
    }

    /// What is here already, where all of it is.
    pub(crate) fn whole(&self) -> &[u8] {
        match &self.0 {
            Inside::Whole(bytes) => bytes,
            Inside::AtHand { .. } | Inside::Live(_) => &[],
        }
    }

    /// How many bytes it has in all, if the client has said so.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            Inside::Whole(bytes) => Some(bytes.len() as u64),
            Inside::AtHand { length, .. } => Some(*length),
            Inside::Live(Live { framing: Framing::Length(bytes), .. }) => Some(*bytes),
            Inside::Live(_) => None,
        }
    }

    /// How many bytes have come so far.
    pub fn received(&self) -> u64 {
        match &self.0 {
            Inside::Whole(bytes) => bytes.len() as u64,
            Inside::AtHand { length, .. } => *length,
            Inside::Live(live) => live.parts.exchange().received(),
        }
    }

    /// The next bytes, 1 at least; `None` at the end.
    ///
    /// # Errors
    /// [`BodyError`], after which nothing more comes.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// All of it.
    ///
    /// - `bytes_max`: more is an error, and the rest stays unread. The server's own limit holds
    ///   besides.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, BodyError> {
        let too_large =
            |length: u64| usize::try_from(length).is_ok_and(|length| length > bytes_max);
        if self.length().is_some_and(too_large) {
            return Err(BodyError::TooLarge);
        }
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let mut all = Vec::new();
        let mut piece = first;
        loop {
            if piece.len() > bytes_max - all.len() {
                return Err(BodyError::TooLarge);
            }
            let Some(next) = self.next().await.transpose()? else {
                // Most bodies come in one piece, which is then all.
                return Ok(if all.is_empty() {
                    piece
                } else {
                    all.extend_from_slice(&piece);
                    all.into()
                });
            };
            all.extend_from_slice(&piece);
            piece = next;
        }
    }

    /// All of it as text in UTF-8; other bytes become U+FFFD.
    ///
    /// # Errors
    /// As [`Body::bytes`].
    pub async fn text(&mut self, bytes_max: usize) -> Result<String, BodyError> {
        Ok(String::from_utf8_lossy(&self.bytes(bytes_max).await?).into_owned())
    }
}

impl Stream for Body {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.0 {
            Inside::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Inside::Whole(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Inside::AtHand { next, .. } => Poll::Ready(next.take().map(Ok)),
            Inside::Live(live) => live.parts.exchange().poll_take(context),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.parts.exchange().give_up();
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.received();
        f.debug_struct("Body").field("length", &self.length()).field("received", &received).finish()
    }
}

/// Why a body did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// It has more bytes than are wanted.
    TooLarge,
    /// It is against the rules (RFC 9112 §6, §7.1).
    Malformed,
    /// The client stopped sending, or sends too slowly.
    TooSlow,
    /// The client has gone, or the answer is complete.
    Gone,
}

impl BodyError {
    /// How a server answers it.
    pub fn status(self) -> Status {
        match self {
            Self::TooLarge => Status::CONTENT_TOO_LARGE,
            Self::TooSlow => Status::REQUEST_TIMEOUT,
            Self::Malformed | Self::Gone => Status::BAD_REQUEST,
        }
    }

    pub(crate) fn of(error: Broken) -> Self {
        if error.status() == Status::CONTENT_TOO_LARGE { Self::TooLarge } else { Self::Malformed }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is larger than the limit",
            Self::Malformed => "the body is against the rules of HTTP",
            Self::TooSlow => "the body came too slowly",
            Self::Gone => "the client has gone",
        })
    }
}

impl std::error::Error for BodyError {}
