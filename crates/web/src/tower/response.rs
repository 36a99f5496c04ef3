//! Conversion of a response of the crate `http`.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use gustnado_http::status::Status;
use http::header::{HeaderMap, HeaderValue, TRAILER, UPGRADE};
use http::{StatusCode, response};

use super::upgrade::PendingUpgrade;
use crate::response::{Content, Failed, ForeignHead, Response, Streamed};
use crate::tokio_runtime::Context;

/// Converts a service's response. The body is polled once or twice: most are complete, and are sent
/// with the head.
///
/// - `traits`: properties of the request.
pub(super) fn convert<B>(
    response: http::Response<B>,
    traits: RequestTraits,
    context: &Context,
    waking: &mut task::Context<'_>,
) -> Response
where
    B: http_body::Body<Data: Send> + Send + 'static,
{
    let (head, body) = response.into_parts();
    let trailer_names = head.headers.get(TRAILER).cloned();
    let Some(head) = convert_head(&head) else {
        return Response::new(Status::INTERNAL_SERVER_ERROR);
    };
    let is_head = traits.is_head;
    let (exact, stated) = (body.size_hint().exact(), head.length());
    if is_head || !head.may_have_content() {
        // axum states 0 for every empty body, also of a 304, where it would mean the resource.
        let stated = stated.filter(|bytes| is_head || *bytes > 0);
        let by_body = exact.filter(|bytes| is_head && *bytes > 0);
        return head.with(Content::Unsent(stated.or(by_body)));
    }
    let length = exact.or(stated);
    let takes_trailers = match traits.trailers {
        TrailersPlace::Nowhere => false,
        TrailersPlace::BehindChunks => length.is_none(),
        TrailersPlace::Anywhere => true,
    };
    let may_have_trailers = length.is_some() && takes_trailers && !body.is_end_stream();
    if exact == Some(0) && !may_have_trailers || length.is_none() && body.is_end_stream() {
        return head.bytes(Bytes::new());
    }
    let mut frames = Frames::new(body, context);
    match frames.poll_available(length, may_have_trailers, waking) {
        Ok(true) => head.bytes(frames.first.take().unwrap_or_default()),
        Ok(false) => {
            let trailers = takes_trailers.then(|| frames.shared.get_or_insert_default().clone());
            let mut response = head.with(Content::Stream(Streamed::new(frames, length)));
            let Some(trailers) = trailers else { return response };
            if let Some(names) = trailer_names {
                response.fields.to_mut().add_trusted(TRAILER.as_str(), names.as_bytes());
            }
            response.trailers(move || trailer_lines(&trailers))
        }
        // Nothing has been sent yet, so the client can get an error.
        Err(Failed) => Response::new(Status::INTERNAL_SERVER_ERROR),
    }
}

/// Converts a response that opens a tunnel; `None`: it does not.
///
/// - `upgrade`: what the request offers.
pub(super) fn switched<B>(
    response: &http::Response<B>,
    traits: RequestTraits,
    upgrade: Option<Box<PendingUpgrade>>,
) -> Option<Response> {
    let status = response.status();
    let is_opened = traits.is_connect && status.is_success();
    if !is_opened && status != StatusCode::SWITCHING_PROTOCOLS {
        return None;
    }
    let upgrade = upgrade?;
    let named = response.headers().get(UPGRADE);
    let protocol = if is_opened { None } else { Some(named?.to_str().ok()?) };
    // What the client gets if the server begins nothing any more.
    let mut head = ForeignHead::new(Status::SERVICE_UNAVAILABLE.code(), "").ok()?;
    for (name, value) in response.headers() {
        head.checked_field(name.as_str(), value.as_bytes());
    }
    let mut switched = head.with(Content::Unsent(None));
    upgrade.offer(&mut switched, protocol);
    Some(switched)
}

/// Properties of a request that its response depends on.
#[derive(Clone, Copy, Default)]
pub(super) struct RequestTraits {
    /// The method was HEAD, so the body is discarded.
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
    pub(super) trailers: TrailersPlace,
}

/// Behind what content a client accepts trailers (RFC 9110 §6.5.1).
#[derive(Clone, Copy, Default)]
pub(super) enum TrailersPlace {
    #[default]
    Nowhere,
    /// In HTTP/1 they are a part of chunks, for clients that ask for them.
    BehindChunks,
    /// Frames end the content in HTTP/2 (RFC 9113 §8.1), whether its length is known or not.
    Anywhere,
}

/// Converts status and fields, except for `Trailer`, which is added if trailers follow. `None` for
/// an interim response, which cannot be a final one.
fn convert_head(head: &response::Parts) -> Option<ForeignHead> {
    let code = head.status.as_u16();
    // The server has the standard phrases: those of the crate `http` are older.
    let own = head.status.canonical_reason().filter(|_| Status::from_code(code).is_none());
    let mut foreign = ForeignHead::new(code, own.unwrap_or("")).ok()?;
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != TRAILER) {
        foreign.checked_field(name.as_str(), value.as_bytes());
    }
    Some(foreign)
}

type SharedTrailers = Arc<Mutex<HeaderMap>>;

fn trailer_lines(trailers: &SharedTrailers) -> Vec<(String, String)> {
    let trailers = trailers.lock().unwrap_or_else(PoisonError::into_inner);
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    trailers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// A service's body as a stream of bytes.
struct Frames<B> {
    /// `None` once it has ended.
    body: Option<Pin<Box<B>>>,
    /// Bytes that were polled before the head was written.
    first: Option<Bytes>,
    second: Option<Bytes>,
    trailers: HeaderMap,
    /// The place for trailers, if the client accepts them.
    shared: Option<SharedTrailers>,
    context: Context,
}

impl<B: http_body::Body> Frames<B> {
    fn new(body: B, context: &Context) -> Self {
        Self {
            body: Some(Box::pin(body)),
            first: None,
            second: None,
            trailers: HeaderMap::new(),
            shared: None,
            context: context.clone(),
        }
    }

    /// Polls the body for what is available. Returns whether that is all: one piece or nothing.
    ///
    /// - `length`: bytes in all, if known.
    /// - `may_have_trailers`: trailers may follow although it is known.
    fn poll_available(
        &mut self,
        length: Option<u64>,
        may_have_trailers: bool,
        waking: &mut task::Context<'_>,
    ) -> Result<bool, Failed> {
        let Poll::Ready(first) = self.poll_data(waking) else { return Ok(false) };
        self.first = first.transpose()?;
        if let Some(length) = length {
            // A body that differs from its length is detected where the bytes are counted.
            let is_whole = self.first.as_ref().map_or(0, Bytes::len) as u64 == length;
            let has_ended = self.body.as_ref().is_none_or(|body| body.is_end_stream());
            if is_whole && (!may_have_trailers || has_ended) {
                self.body = None;
                return Ok(self.trailers.is_empty());
            }
            if !is_whole {
                return Ok(false);
            }
        }
        // Often the end is available as well.
        let Poll::Ready(second) = self.poll_data(waking) else { return Ok(false) };
        self.second = second.transpose()?;
        Ok(self.second.is_none() && self.trailers.is_empty())
    }

    /// Returns the next bytes of the body; `None` at its end, with the trailers kept.
    fn poll_data(&mut self, waking: &mut task::Context<'_>) -> Poll<Option<Result<Bytes, Failed>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let data = match ready!(body.as_mut().poll_frame(waking)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(mut data) => Some(Ok(data.copy_to_bytes(data.remaining()))),
                Err(frame) => {
                    self.trailers = frame.into_trailers().unwrap_or_default();
                    None
                }
            },
            Some(Err(_)) => Some(Err(Failed)),
            None => None,
        };
        if !matches!(data, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(data)
    }
}

impl<B: http_body::Body> Stream for Frames<B> {
    type Item = Result<Bytes, Failed>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        waking: &mut task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(held) = this.first.take().or_else(|| this.second.take()) {
            return Poll::Ready(Some(Ok(held)));
        }
        let context = this.context.clone();
        let data = ready!(context.poll(waking, |waking| this.poll_data(waking)));
        if let (None, Some(shared)) = (&data, &this.shared) {
            let trailers = mem::take(&mut this.trailers);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = trailers;
        }
        Poll::Ready(data)
    }
}

impl<B> Drop for Frames<B> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            let _inside = self.context.enter();
            drop(body);
        }
    }
}
