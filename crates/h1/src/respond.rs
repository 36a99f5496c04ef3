//! From a handler's answer to bytes.

use std::ops::Range;
use std::sync::Arc;

use gustnado_http::fields::HeaderId;
use gustnado_http::head::Version;
use gustnado_http::method::Method;
use gustnado_http::response_writer::{Opening, Persist, ResponseWriter, WrittenHead};
use gustnado_http::status::Status;
use gustnado_tasks::{ConnectionId, Now};

use super::Conn;
use super::arrived::HeadAt;
use super::body_end::{BodyEnd, Ending, Wanted};
use super::pending::{Notices, Paced, PendingContent};
use super::timeouts::RouteTimeouts;
use super::upgrade::take_upgrade;
use gustnado_files::CachedFile;
use gustnado_web::body::Body;
use gustnado_web::contained::contained;
use gustnado_web::error_page::error_page;
use gustnado_web::request::{Origin, Request};
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{Content, INLINE_BYTES_MAX, Response, ResponsePrefix, StatusLine};
use gustnado_web::routes::Pages;
use gustnado_web::trusted_proxies::TrustedProxies;

/// What an answer is written for.
pub(super) struct WriteContext<'a> {
    pub(super) parts: &'a RequestHeadRef,
    pub(super) pages: &'a Pages,
    pub(super) common: &'a ResponsePrefix,
    pub(super) now: Now,
    pub(super) ending: Ending,
    pub(super) socket: ConnectionId,
    pub(super) trusted_proxies: Option<&'a Arc<TrustedProxies>>,
    /// What is special about its route's time.
    pub(super) timeouts: Option<RouteTimeouts>,
    /// When the request was read.
    pub(super) read_ms: u64,
}

impl Conn {
    /// Writes an answer's head and, if it is short and ready, its content.
    #[inline]
    pub(super) fn write_response(
        &self,
        response: Response,
        wanted: &WriteContext<'_>,
        out: &mut Vec<u8>,
    ) -> (HeadAt, Begun) {
        let before = out.len();
        let begun = if response.is_ready() && wanted.timeouts.is_none() {
            let head_only = wanted.parts.view().method() == Method::Head;
            let persist = wanted.ending.persist();
            let written = response.write_ready(wanted.common, persist, head_only, out);
            Begun { rest: None, ending: wanted.ending, written }
        } else {
            write(response, wanted, out)
        };
        (self.count_response(begun.written, before, out), begun)
    }
}

/// An answer whose head has been written.
pub(super) struct Begun {
    /// What is left to be sent, if there is anything.
    pub(super) rest: Option<Box<PendingContent>>,
    /// Whether the connection goes on.
    pub(super) ending: Ending,
    /// Nothing if the head is left to be sent, too.
    written: WrittenHead,
}

/// Writes an answer of any kind, which may be the last before another protocol.
fn write(mut response: Response, wanted: &WriteContext<'_>, out: &mut Vec<u8>) -> Begun {
    let Some(on_upgrade) = take_upgrade(&mut response, wanted.parts.view(), wanted.ending) else {
        return write_at_pace(response, wanted, out);
    };
    // (Whether the connection goes on is no longer a matter of HTTP.)
    let ending = Wanted::new(Persist::Default).with(BodyEnd::Empty);
    let mut begun = write_at_pace(response, &WriteContext { ending, ..*wanted }, out);
    let nothing = || Box::new(PendingContent::new(Notices(Vec::new()), ending));
    begun.rest.get_or_insert_with(nothing).on_upgrade = Some(on_upgrade);
    begun
}

/// Writes an answer. If it has a pace, all of it is left to be sent.
fn write_at_pace(mut response: Response, wanted: &WriteContext<'_>, out: &mut Vec<u8>) -> Begun {
    let Some(pace) = response.extras.as_mut().and_then(|extras| extras.pace.take()) else {
        return write_unpaced(response, wanted, out);
    };
    let before = out.len();
    let Begun { rest, ending, written } = write_unpaced(response, wanted, out);
    let start = out.split_off(before);
    let nothing = || Box::new(PendingContent::new(Notices(Vec::new()), ending));
    let mut rest = rest.unwrap_or_else(nothing);
    rest.paced = Some(Box::new(Paced { pace, start, written, read_ms: wanted.read_ms }));
    Begun { rest: Some(rest), ending, written: WrittenHead::default() }
}

fn write_unpaced(response: Response, wanted: &WriteContext<'_>, out: &mut Vec<u8>) -> Begun {
    let Response { status, content_type, fields, content, extras } = prepared(response, wanted);
    let is_plain = extras.is_none();
    let extras = extras.map_or_else(Default::default, |extras| *extras);
    let view = wanted.parts.view();
    let head_only = view.method() == Method::Head;
    let is_endless = matches!(&content, Content::Stream(streamed) if streamed.length.is_none());
    let is_old = view.version() == Version::Http10 || wanted.ending.persist().is_old();
    let ending =
        if extras.close || is_endless && is_old { wanted.ending.ended() } else { wanted.ending };
    let persist = ending.persist();
    let mut pending = PendingContent::new(Notices(extras.on_sent), ending);
    pending.timeouts = wanted.timeouts;
    if let Content::File(file) = &content
        && is_plain
        && status == Status::OK
        && fields.is(file.fields())
    {
        let written = write_file(file, head_only, &wanted.common.opening, persist, out);
        pending.segments.extend(file.segment().filter(|_| !head_only));
        return Begun { rest: pending.boxed(), ending, written };
    }
    let before = out.len();
    let mut answer = extras.replaced.start(out, status, &wanted.common.opening, persist);
    if let Some(kind) = content_type.filter(|_| status.may_have_body()) {
        answer.constant("Content-Type", kind.name());
    }
    answer.fields(&fields);
    let chunked = is_endless && !is_old;
    let mut written = finish_framed(answer, content.length(status), chunked);
    if !head_only && status.may_have_body() {
        let trailers = extras.trailers.filter(|_| chunked);
        let inline_max = if wanted.timeouts.is_none() { INLINE_BYTES_MAX } else { 0 };
        pending.place(content, (chunked, trailers), inline_max, out);
    }
    if let Some(line) = extras.status_line {
        written = with_status_line(line, before..before + status.line().len(), written, out);
    }
    Begun { rest: pending.boxed(), ending, written }
}

/// Puts a status line of an application's own in the place of the usual one.
fn with_status_line(
    StatusLine { number, text }: StatusLine,
    usual: Range<usize>,
    written: WrittenHead,
    out: &mut Vec<u8>,
) -> WrittenHead {
    // (Neither is as long as the head that it is a part of.)
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    let head_bytes = written.head_bytes - usual.len() as u32 + text.len() as u32;
    out.splice(usual, text.into_bytes());
    WrittenHead { status: number, head_bytes }
}

/// With the page for its status, if that is its content; and without `Trailer` where no trailers
/// can follow.
fn prepared(response: Response, wanted: &WriteContext<'_>) -> Response {
    let mut response = response;
    response.open_file(wanted.parts.view(), wanted.now);
    let mut response = if response.wants_page() { page(response, wanted) } else { response };
    if response.extras.as_ref().is_some_and(|extras| extras.trailers.is_some()) {
        let view = wanted.parts.view();
        let is_old = view.version() == Version::Http10 || wanted.ending.persist().is_old();
        let is_endless =
            matches!(&response.content, Content::Stream(sent) if sent.length.is_none());
        let has_content = view.method() != Method::Head && response.status.may_have_body();
        if is_old || !is_endless || !has_content {
            response.fields.to_mut().remove(HeaderId::Trailer);
        }
    }
    response
}

/// Writes 200 with all of a file out of ready parts, but for the bytes of one that is not small.
#[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
#[inline(always)]
pub(super) fn write_file(
    file: &CachedFile,
    head_only: bool,
    opening: &Opening,
    persist: Persist,
    out: &mut Vec<u8>,
) -> WrittenHead {
    let (before, ready) = (out.len(), file.ready(head_only));
    ResponseWriter::ready(out, Status::OK, opening, persist, ready);
    WrittenHead::new(Status::OK, out.len() - before, ready.len() - file.head_bytes())
}

/// Writes a response whose content is at hand, and nothing of any other content.
pub(super) fn write_short(
    response: &Response,
    opening: &Opening,
    persist: Persist,
    head_only: bool,
    out: &mut Vec<u8>,
) -> WrittenHead {
    let content: &[u8] = match &response.content {
        Content::Bytes(bytes) if response.status.may_have_body() => bytes,
        _ => &[],
    };
    let mut answer = ResponseWriter::start(out, response.status, opening, persist);
    if let Some(kind) = response.content_type.filter(|_| response.status.may_have_body()) {
        answer.constant("Content-Type", kind.name());
    }
    answer.fields(&response.fields);
    if response.status.may_have_body() {
        answer.content_length(content.len() as u64);
    }
    let written = answer.finish();
    if !head_only {
        out.extend_from_slice(content);
    }
    written
}

/// Ends a head with how its content is framed: by its length, in chunks, or by the end of the
/// connection.
fn finish_framed(
    mut answer: ResponseWriter<'_>,
    length: Option<u64>,
    chunked: bool,
) -> WrittenHead {
    match length {
        Some(length) => answer.content_length(length),
        None if chunked => answer.chunked(),
        None => {}
    }
    answer.finish()
}

/// The page for an answer without content: somebody's, or the plain one.
#[cold]
fn page(response: Response, wanted: &WriteContext<'_>) -> Response {
    let status = response.status;
    let made = wanted.pages.of(status).and_then(|page| {
        let origin = Origin::lent(wanted.socket, wanted.trusted_proxies);
        let request = Request::new(wanted.parts.clone(), Body::empty(), origin);
        contained(|| page(&request, status))
    });
    let hint = response.extras.as_ref().and_then(|extras| extras.hint);
    let common = wanted.common.opening.lines();
    let mut page = made.unwrap_or_else(|| error_page(status, hint, (common, &response.fields)));
    page.status = status;
    let of_page = std::mem::replace(&mut page.fields, response.fields);
    if !of_page.is_empty() {
        page.fields.to_mut().extend(&of_page);
    }
    page.extras = response.extras.or(page.extras);
    page
}
