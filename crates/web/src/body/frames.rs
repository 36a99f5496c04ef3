//! A request's body as the crate `http-body` sees it: for services of tower.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::head::Framing;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{Full, Limited};

use super::{Body, BodyError, Inside, Live};
use crate::request_head::RequestHeadRef;
use crate::trailers::RequestTrailers;

/// The error of a service.
pub type ServiceError = Box<dyn std::error::Error + Send + Sync>;

/// Frames of data, and behind them one of trailers, if the request has some.
///
/// It fails with a boxed [`BodyError`]; past a limit with the error to which frameworks respond
/// with 413: [`LengthLimitError`](http_body_util::LengthLimitError).
impl http_body::Body for Body {
    type Data = Bytes;
    type Error = ServiceError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ServiceError>>> {
        let mut body = self;
        if let Some(piece) = ready!(body.as_mut().poll_next(context)) {
            return Poll::Ready(Some(piece.map(Frame::data).map_err(boxed)));
        }
        let trailers = body.head().and_then(|head| head.channel().take_trailers());
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(map_of(&trailers)))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inside::Whole(bytes, head) => bytes.is_empty() && head.as_ref().is_none_or(has_none),
            Inside::AtHand { next, head, .. } => next.is_none() && has_none(head),
            Inside::Live(Live { parts, .. }) => parts.channel().is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inside::Whole(bytes, _) => SizeHint::with_exact(bytes.len() as u64),
            Inside::AtHand { next, .. } => {
                SizeHint::with_exact(next.as_ref().map_or(0, |next| next.len() as u64))
            }
            Inside::Live(Live { parts, framing: Framing::Length(all) }) => {
                SizeHint::with_exact(all.saturating_sub(parts.channel().taken()))
            }
            Inside::Live(_) => SizeHint::default(),
        }
    }
}

fn has_none(head: &RequestHeadRef) -> bool {
    head.channel().trailers().is_none()
}

/// Returns the trailer fields as the crate `http` has them.
fn map_of(trailers: &RequestTrailers) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in trailers.iter() {
        // Both are checked, by rules that are as strict.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        {
            map.append(name, value);
        }
    }
    map
}

fn boxed(error: BodyError) -> ServiceError {
    match error {
        BodyError::TooLarge => length_limit_error(),
        error => error.into(),
    }
}

/// Returns the error of a body past its limit. Its type has no constructor: a body with a limit of
/// 0 is polled for it.
fn length_limit_error() -> ServiceError {
    let mut limited = Limited::new(Full::new(Bytes::from_static(b"x")), 0);
    let polled = Pin::new(&mut limited).poll_frame(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(Some(Err(error))) => error,
        _ => BodyError::TooLarge.into(),
    }
}
