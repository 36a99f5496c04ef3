//! The body of a request.

#[cfg(feature = "tower")]
mod frames;
mod text;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::head::Framing;

pub use text::{decoded, encoding_of};

use crate::contained::contained;
use crate::request_head::{RequestHead, RequestHeadRef};

pub use crate::body_channel::BodyError;
#[cfg(feature = "tower")]
pub use frames::ServiceError;

/// The body of a request. It is read on demand, never ahead of the handler.
///
/// It is a stream of bytes as they arrive, and may move to another task or thread. The part that is
/// unread when the response is complete is discarded. The first read responds to `Expect:
/// 100-continue` (RFC 9110 §10.1.1).
pub struct Body(Inside);

enum Inside {
    /// All of it, and the head that it belongs to, where a reader needs that.
    Whole(Bytes, Option<RequestHeadRef>),
    /// It came with the head, and is read as if it were still to come.
    AtHand {
        next: Option<Bytes>,
        length: u64,
        head: RequestHeadRef,
    },
    Live(Live),
}

/// The reader's side of a body that is still coming.
struct Live {
    parts: RequestHeadRef,
    framing: Framing,
}

impl Body {
    #[doc(hidden)]
    pub fn empty() -> Self {
        Self::from_whole(Bytes::new())
    }

    #[doc(hidden)]
    pub fn from_whole(bytes: Bytes) -> Self {
        Self(Inside::Whole(bytes, None))
    }

    /// A body that is to be read, and is all here.
    #[doc(hidden)]
    pub fn at_hand(bytes: Bytes, head: RequestHeadRef) -> Self {
        let length = bytes.len() as u64;
        Self(Inside::AtHand { next: Some(bytes), length, head })
    }

    /// The body of the request that `parts` is the head of.
    #[doc(hidden)]
    pub fn live(parts: RequestHeadRef, framing: Framing) -> Self {
        Self(Inside::Live(Live { parts, framing }))
    }

    /// The same, knowing its head, which says what it is.
    #[doc(hidden)]
    pub fn of_head(mut self, head: &RequestHeadRef) -> Self {
        if let Inside::Whole(_, known @ None) = &mut self.0 {
            *known = Some(head.clone());
        }
        self
    }

    fn head(&self) -> Option<&RequestHead> {
        match &self.0 {
            Inside::Whole(_, head) => head.as_deref(),
            Inside::AtHand { head, .. } => Some(head),
            Inside::Live(live) => Some(&live.parts),
        }
    }

    /// What is here already, where all of it is.
    #[doc(hidden)]
    pub fn whole(&self) -> &[u8] {
        self.as_whole().map_or(&[], |bytes| bytes)
    }

    /// All of it, if it has been read for the handler.
    #[doc(hidden)]
    pub fn as_whole(&self) -> Option<&Bytes> {
        match &self.0 {
            Inside::Whole(bytes, _) => Some(bytes),
            Inside::AtHand { .. } | Inside::Live(_) => None,
        }
    }

    /// Returns the length in bytes, if the client announced it.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            Inside::Whole(bytes, _) => Some(bytes.len() as u64),
            Inside::AtHand { length, .. } => Some(*length),
            Inside::Live(Live { framing: Framing::Length(bytes), .. }) => Some(*bytes),
            Inside::Live(_) => None,
        }
    }

    /// Returns the number of bytes received so far.
    pub fn received(&self) -> u64 {
        match &self.0 {
            Inside::Whole(bytes, _) => bytes.len() as u64,
            Inside::AtHand { length, .. } => *length,
            Inside::Live(live) => live.parts.channel().received(),
        }
    }

    /// Returns the next bytes, at least 1; `None` at the end.
    ///
    /// # Errors
    /// [`BodyError`], after which nothing more comes.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the next bytes or the end if available; otherwise calls `call` once, when it is
    /// worth polling again. For readers outside of tasks.
    ///
    /// - `call`: called on the worker that receives the body, also when the client is gone or the
    ///   response is complete. It should not wait. A later one replaces it; if bytes are available
    ///   it is dropped.
    ///
    /// # Errors
    /// As [`Body::next`].
    pub fn next_or_call(
        &mut self,
        call: impl FnOnce() + Send + 'static,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        let mut body = Pin::new(self);
        let at_once = body.as_mut().poll_next(&mut Context::from_waker(Waker::noop()));
        if at_once.is_ready() {
            return at_once;
        }
        let waker = Waker::from(Arc::new(Call(Mutex::new(Some(call)))));
        body.poll_next(&mut Context::from_waker(&waker))
    }

    /// Reads the whole body.
    ///
    /// - `bytes_max`: a longer body is an error, and its rest stays unread. The server's limit
    ///   applies as well.
    ///
    /// # Errors
    /// [`BodyError`]: the body is longer than `bytes_max`, malformed or too slow, or the client has
    /// gone.
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

    /// Reads all of it, and returns it as text.
    ///
    /// The charset is what Content-Type says (RFC 9110 §8.3.2), and UTF-8 where it says nothing. A
    /// byte order mark counts more than both, and is no part of the text. Names of charsets are
    /// understood as browsers do (WHATWG Encoding): `iso-8859-1` is windows-1252.
    ///
    /// - `bytes_max`: as for [`Body::bytes`].
    ///
    /// # Errors
    /// As [`Body::bytes`]. [`BodyError::UnknownCharset`], before anything is read.
    /// [`BodyError::NotText`]: bytes that the charset does not have. (To have them replaced, take
    /// [`Body::bytes`] and `String::from_utf8_lossy`.)
    pub async fn text(&mut self, bytes_max: usize) -> Result<String, BodyError> {
        let kind = self.head().and_then(|head| head.view().field("content-type"));
        let encoding = encoding_of(kind)?;
        text::decoded_bytes(encoding, self.bytes(bytes_max).await?)
    }

    /// Calls `tell` whenever more of it has been read: with the bytes so far, and how many it has
    /// in all, if the client has said so. For a progress bar, or a limit of one's own.
    ///
    /// It is called by the reader of the body, at the pace of the reading. For a body that is here
    /// already it is called at once.
    pub fn on_progress(&mut self, mut tell: impl FnMut(u64, Option<u64>) + Send + 'static) {
        match &self.0 {
            Inside::Whole(bytes, _) => tell(bytes.len() as u64, Some(bytes.len() as u64)),
            Inside::AtHand { length, .. } => tell(*length, Some(*length)),
            Inside::Live(live) => live.parts.channel().set_progress(Box::new(tell)),
        }
    }
}

/// What is called once, where a task would be woken.
struct Call<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It runs in the connection's task, which is not to end with it.
        _ = contained(|| call.map(|call| call()));
    }
}

impl Stream for Body {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let length = self.length();
        match &mut self.0 {
            Inside::Whole(bytes, _) if bytes.is_empty() => Poll::Ready(None),
            Inside::Whole(bytes, _) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Inside::AtHand { next, .. } => Poll::Ready(next.take().map(Ok)),
            Inside::Live(live) => {
                let exchange = live.parts.channel();
                let polled = exchange.poll_take(context);
                if let Poll::Ready(Some(Ok(_))) = &polled {
                    exchange.tell_progress(length);
                }
                polled
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.parts.channel().give_up();
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.received();
        f.debug_struct("Body").field("length", &self.length()).field("received", &received).finish()
    }
}
