//! A request's body as the crate `http-body` sees it: for services of tower.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::head::Framing;
use http_body::{Frame, SizeHint};

use super::{Body, BodyError, Inside, Live};

/// Frames of data. Trailers of a request are checked and not kept, so there are none.
impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let piece = ready!(self.poll_next(context));
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inside::Whole(bytes, _) => bytes.is_empty(),
            Inside::AtHand { next, .. } => next.is_none(),
            Inside::Live(Live { parts, .. }) => parts.exchange().is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inside::Whole(bytes, _) => SizeHint::with_exact(bytes.len() as u64),
            Inside::AtHand { next, .. } => {
                SizeHint::with_exact(next.as_ref().map_or(0, |next| next.len() as u64))
            }
            Inside::Live(Live { parts, framing: Framing::Length(all) }) => {
                SizeHint::with_exact(all.saturating_sub(parts.exchange().taken()))
            }
            Inside::Live(_) => SizeHint::default(),
        }
    }
}
