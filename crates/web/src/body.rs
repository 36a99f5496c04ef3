//! The body of a request.

mod collected;
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
use gustnado_tasks::contained;

pub use text::{decoded, encoding_of};

use crate::request_head::{RequestHead, RequestHeadRef};
use crate::trailers::RequestTrailers;

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
    /// The whole body, and its head, if a reader needs that.
    Whole(Bytes, Option<RequestHeadRef>),
    /// It arrived with the head, and is read like one that has not.
    AtHand {
        next: Option<Bytes>,
        length: u64,
        head: RequestHeadRef,
    },
    Live(Live),
}

/// The reader's side of a body that the connection receives.
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

    /// Creates a body that has arrived with the head; it is read like one that has not.
    #[doc(hidden)]
    pub fn at_hand(bytes: Bytes, head: RequestHeadRef) -> Self {
        let length = bytes.len() as u64;
        Self(Inside::AtHand { next: Some(bytes), length, head })
    }

    /// Creates a body that the connection has still to receive, of the request with the head
    /// `parts`.
    #[doc(hidden)]
    pub fn live(parts: RequestHeadRef, framing: Framing) -> Self {
        Self(Inside::Live(Live { parts, framing }))
    }

    /// Adds the head, which a reader needs for the charset.
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

    /// Returns the whole body if it has been read; otherwise nothing.
    #[doc(hidden)]
    pub fn whole(&self) -> &[u8] {
        self.as_whole().map_or(&[], |bytes| bytes)
    }

    /// Returns the whole body, if it has been read for the handler.
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

    /// Returns the trailer fields, as [`Request::trailers`](crate::request::Request::trailers).
    pub fn trailers(&self) -> Option<RequestTrailers> {
        self.head()?.channel().trailers()
    }

    /// Returns the number of bytes received so far.
    pub fn received(&self) -> u64 {
        match &self.0 {
            Inside::Whole(bytes, _) => bytes.len() as u64,
            Inside::AtHand { length, .. } => *length,
            Inside::Live(live) => live.parts.channel().received(),
        }
    }

    /// Notes whether the reader keeps all that it takes. Then the memory is charged to the body:
    /// where memory is short, it is received more slowly, or not to its end.
    #[doc(hidden)]
    pub fn set_collected(&self, is_collected: bool) {
        if let Inside::Live(live) = &self.0 {
            live.parts.channel().set_collected(is_collected);
        }
    }

    /// Notes that the reader keeps a part of what it takes: see [`Body::set_released`].
    #[doc(hidden)]
    pub fn set_sifted(&self) {
        if let Inside::Live(live) = &self.0 {
            live.parts.channel().set_sifted();
        }
    }

    /// Notes how many of the received bytes a reader that collects does not hold any more.
    #[doc(hidden)]
    pub fn set_released(&self, bytes: u64) {
        if let Inside::Live(live) = &self.0 {
            live.parts.channel().set_released(bytes);
        }
    }

    /// Returns the next bytes, at least 1; `None` at the end.
    ///
    /// # Errors
    /// [`BodyError`], which ends the body.
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

    /// Reads the whole body as text.
    ///
    /// The charset is that of Content-Type (RFC 9110 §8.3.2), by default UTF-8. A byte order mark
    /// takes precedence over both, and is not part of the text. Names of charsets mean what they
    /// mean in browsers (WHATWG Encoding): `iso-8859-1` is windows-1252.
    ///
    /// - `bytes_max`: as for [`Body::bytes`].
    ///
    /// # Errors
    /// As [`Body::bytes`]. [`BodyError::UnknownCharset`], before anything is read.
    /// [`BodyError::NotText`]: bytes that are invalid in the charset. To replace them, use
    /// [`Body::bytes`] and `String::from_utf8_lossy`.
    pub async fn text(&mut self, bytes_max: usize) -> Result<String, BodyError> {
        let kind = self.head().and_then(|head| head.view().field("content-type"));
        let encoding = encoding_of(kind)?;
        text::decoded_bytes(encoding, self.bytes(bytes_max).await?)
    }

    /// Calls `report` whenever more of the body has been read, with the bytes so far and the length
    /// that the client announced, if any. For a progress bar, or a limit of the program's own.
    ///
    /// It is called by the reader, as often as it reads. For a body that has been read it is called
    /// once, now.
    pub fn on_progress(&mut self, mut report: impl FnMut(u64, Option<u64>) + Send + 'static) {
        match &self.0 {
            Inside::Whole(bytes, _) => report(bytes.len() as u64, Some(bytes.len() as u64)),
            Inside::AtHand { length, .. } => report(*length, Some(*length)),
            Inside::Live(live) => live.parts.channel().set_progress(Box::new(report)),
        }
    }
}

/// A waker that calls a function, once.
struct Call<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It runs in the connection's task, which a panic must not end.
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
                let channel = live.parts.channel();
                let polled = channel.poll_take(context);
                if let Poll::Ready(Some(Ok(_))) = &polled {
                    channel.report_progress(length);
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
