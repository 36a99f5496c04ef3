//! From an answer of the crate `http` to one of ours.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use gustnado_http::status::Status;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, response};

use super::context::Context;
use crate::response::{Content, Failed, Response, Streamed, usual_type};

/// Makes an answer of a service's. Its body is looked at once or twice: most are at hand, and leave
/// with the head.
///
/// - `is_head`: the request was HEAD, so that the body is nobody's.
pub(super) fn convert<B>(
    answer: http::Response<B>,
    is_head: bool,
    context: &Context,
    waking: &mut task::Context<'_>,
) -> Response
where
    B: http_body::Body<Data: Send> + Send + 'static,
{
    let (head, body) = answer.into_parts();
    let Some((mut response, said)) = convert_head(&head) else {
        return Response::new(Status::INTERNAL_SERVER_ERROR);
    };
    let exact = body.size_hint().exact();
    if is_head || !response.status.may_have_body() {
        // axum says 0 of whatever body is empty: of a 304's too, where it would mean the resource.
        let said = said.filter(|bytes| is_head || *bytes > 0);
        let by_body = exact.filter(|bytes| is_head && *bytes > 0);
        response.content = Content::Unsent(said.or(by_body));
        return response;
    }
    if exact == Some(0) || (exact.or(said).is_none() && body.is_end_stream()) {
        response.content = Content::Bytes(Bytes::new());
        return response;
    }
    let length = exact.or(said);
    let mut frames = Frames::new(body, context);
    response.content = match frames.look(length, waking) {
        Ok(true) => Content::Bytes(frames.first.take().unwrap_or_default()),
        Ok(false) => {
            if length.is_none() {
                let trailers = Arc::clone(frames.shared.get_or_insert_default());
                response = response.trailers(move || trailer_lines(&trailers));
            }
            Content::Stream(Streamed::new(frames, length))
        }
        // Nothing has been sent yet, so the client can be told.
        Err(Failed) => return Response::new(Status::INTERNAL_SERVER_ERROR),
    };
    response
}

/// Status and fields, and the length that the service says. `None` for an interim answer, which
/// cannot stand for a whole one: upgrades above all.
fn convert_head(head: &response::Parts) -> Option<(Response, Option<u64>)> {
    let mut response = Response::new(Status::OK);
    if head.status != StatusCode::OK {
        set_status(&mut response, head.status)?;
    }
    let fields = &head.headers;
    let mut lines = Vec::new();
    let (mut said, mut closes) = (None, false);
    for (name, value) in fields {
        if *name == header::CONTENT_TYPE && response.kind.is_none() {
            response.kind = usual_type(value.as_bytes());
            if response.kind.is_some() {
                continue;
            }
        }
        if !is_servers(name, head.status) {
            if lines.is_empty() {
                lines.reserve(bytes_of(fields));
            }
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(value.as_bytes());
            lines.extend_from_slice(b"\r\n");
        } else if *name == header::CONTENT_LENGTH {
            said = value.to_str().ok().and_then(|digits| digits.parse().ok());
        } else if *name == header::CONNECTION {
            closes |= says_close(value);
        }
    }
    response.lines = lines;
    Some((if closes { response.close() } else { response }, said))
}

/// How many bytes all field lines take.
fn bytes_of(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

#[cold]
fn set_status(response: &mut Response, status: StatusCode) -> Option<()> {
    let code = status.as_u16();
    response.status = match Status::from_code(code) {
        _ if status.is_informational() => return None,
        Some(known) => known,
        None => {
            let reason = status.canonical_reason().unwrap_or("");
            response.set_status_line(format!("HTTP/1.1 {code} {reason}\r\n"));
            // Its class decides how it is handled (RFC 9110 §15).
            match code / 100 {
                2 => Status::OK,
                3 => Status::MULTIPLE_CHOICES,
                4 => Status::BAD_REQUEST,
                _ => Status::INTERNAL_SERVER_ERROR,
            }
        }
    };
    Some(())
}

/// Whether the server writes a field itself, or it is of the service's own connection (RFC 9110
/// §7.6.1).
fn is_servers(name: &HeaderName, status: StatusCode) -> bool {
    match *name {
        header::CONNECTION
        | header::CONTENT_LENGTH
        | header::DATE
        | header::SERVER
        | header::TRANSFER_ENCODING => true,
        // 426 has to say what to upgrade to (RFC 9110 §15.5.22).
        header::UPGRADE => status != StatusCode::UPGRADE_REQUIRED,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}

fn says_close(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .split(|byte| *byte == b',')
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

type Trailers = Arc<Mutex<HeaderMap>>;

fn trailer_lines(trailers: &Trailers) -> Vec<(String, String)> {
    let trailers = trailers.lock().unwrap_or_else(PoisonError::into_inner);
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    trailers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// A service's body as a stream of bytes.
struct Frames<B> {
    /// Gone once it has ended.
    body: Option<Pin<Box<B>>>,
    /// What came before the answer's head was written.
    first: Option<Bytes>,
    second: Option<Bytes>,
    trailers: HeaderMap,
    /// Where trailers are awaited.
    shared: Option<Trailers>,
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

    /// Looks at what is at hand. Returns whether one piece, or nothing, is all there is.
    ///
    /// - `length`: how many bytes there are in all, as far as that is known.
    fn look(
        &mut self,
        length: Option<u64>,
        waking: &mut task::Context<'_>,
    ) -> Result<bool, Failed> {
        let Poll::Ready(first) = self.poll_data(waking) else { return Ok(false) };
        self.first = first.transpose()?;
        if let Some(length) = length {
            // What brings less or more than it says is left to who counts the bytes.
            let is_whole = self.first.as_ref().is_some_and(|first| first.len() as u64 == length);
            if is_whole {
                self.body = None;
            }
            return Ok(is_whole);
        }
        // Often the end is at hand too, and says that this is all.
        let Poll::Ready(second) = self.poll_data(waking) else { return Ok(false) };
        self.second = second.transpose()?;
        Ok(self.second.is_none() && self.trailers.is_empty())
    }

    /// The next bytes of the body; `None` at its end, with the trailers kept.
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
        let data = {
            let context = this.context.clone();
            let _inside = context.enter();
            ready!(this.poll_data(waking))
        };
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
