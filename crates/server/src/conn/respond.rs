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
use super::remainder::{Notices, Paced, Remainder};
use super::terms::Terms;
use super::upgrade::take_upgrade;
use crate::body::Body;
use crate::contained::contained;
use crate::error_page::error_page;
use crate::proxies::Proxies;
use crate::request::{Origin, Request};
use crate::request_head::Recycled;
use crate::response::{Content, INLINE_BYTES_MAX, Response, ResponsePrefix, StatusLine};
use crate::routes::Pages;
use gustnado_files::CachedFile;

/// What an answer is written for.
pub(super) struct Asked<'a> {
    pub(super) parts: &'a Recycled,
    pub(super) pages: &'a Pages,
    pub(super) common: &'a ResponsePrefix,
    pub(super) now: Now,
    pub(super) ending: Ending,
    pub(super) socket: ConnectionId,
    pub(super) proxies: Option<&'a Arc<Proxies>>,
    /// What is special about its route's time.
    pub(super) terms: Option<Terms>,
    /// When the request was read.
    pub(super) read_ms: u64,
}

impl Conn {
    /// Writes an answer's head and, if it is short and ready, its content.
    #[inline]
    pub(super) fn write_response(
        &self,
        response: Response,
        asked: &Asked<'_>,
        out: &mut Vec<u8>,
    ) -> (HeadAt, Begun) {
        let before = out.len();
        let begun = if response.is_ready() && asked.terms.is_none() {
            let head_only = asked.parts.view().method() == Method::Head;
            let persist = asked.ending.persist();
            let written = response.write_ready(asked.common, persist, head_only, out);
            Begun { rest: None, ending: asked.ending, written }
        } else {
            write(response, asked, out)
        };
        (self.count_response(begun.written, before, out), begun)
    }
}

/// An answer whose head has been written.
pub(super) struct Begun {
    /// What is left to be sent, if there is anything.
    pub(super) rest: Option<Box<Remainder>>,
    /// Whether the connection goes on.
    pub(super) ending: Ending,
    /// Nothing if the head is left to be sent, too.
    written: WrittenHead,
}

/// Writes an answer of any kind, which may be the last before another protocol.
fn write(mut response: Response, asked: &Asked<'_>, out: &mut Vec<u8>) -> Begun {
    let Some(on_upgrade) = take_upgrade(&mut response, asked.parts.view(), asked.ending) else {
        return write_at_pace(response, asked, out);
    };
    // (Whether the connection goes on is no longer a matter of HTTP.)
    let ending = Wanted::new(Persist::Default).with(BodyEnd::Empty);
    let mut begun = write_at_pace(response, &Asked { ending, ..*asked }, out);
    let nothing = || Box::new(Remainder::new(Notices(Vec::new()), ending));
    begun.rest.get_or_insert_with(nothing).on_upgrade = Some(on_upgrade);
    begun
}

/// Writes an answer. If it has a pace, all of it is left to be sent.
fn write_at_pace(mut response: Response, asked: &Asked<'_>, out: &mut Vec<u8>) -> Begun {
    let Some(pace) = response.rare.as_mut().and_then(|rare| rare.pace.take()) else {
        return write_unpaced(response, asked, out);
    };
    let before = out.len();
    let Begun { rest, ending, written } = write_unpaced(response, asked, out);
    let start = out.split_off(before);
    let nothing = || Box::new(Remainder::new(Notices(Vec::new()), ending));
    let mut rest = rest.unwrap_or_else(nothing);
    rest.paced = Some(Box::new(Paced { pace, start, written, read_ms: asked.read_ms }));
    Begun { rest: Some(rest), ending, written: WrittenHead::default() }
}

fn write_unpaced(response: Response, asked: &Asked<'_>, out: &mut Vec<u8>) -> Begun {
    let Response { status, content_type, fields, content, rare } = prepared(response, asked);
    let is_plain = rare.is_none();
    let rare = rare.map_or_else(Default::default, |rare| *rare);
    let view = asked.parts.view();
    let head_only = view.method() == Method::Head;
    let is_endless = matches!(&content, Content::Stream(streamed) if streamed.length.is_none());
    let is_old = view.version() == Version::Http10 || asked.ending.persist().is_old();
    let ending =
        if rare.close || is_endless && is_old { asked.ending.ended() } else { asked.ending };
    let persist = ending.persist();
    let mut remainder = Remainder::new(Notices(rare.on_sent), ending);
    remainder.terms = asked.terms;
    if let Content::File(file) = &content
        && is_plain
        && status == Status::OK
        && fields.is(file.fields())
    {
        let written = write_file(file, head_only, &asked.common.opening, persist, out);
        remainder.segments.extend(file.segment().filter(|_| !head_only));
        return Begun { rest: remainder.boxed(), ending, written };
    }
    let before = out.len();
    let mut answer = rare.replaced.start(out, status, &asked.common.opening, persist);
    if let Some(kind) = content_type.filter(|_| status.may_have_body()) {
        answer.constant("Content-Type", kind.name());
    }
    answer.fields(&fields);
    let chunked = is_endless && !is_old;
    let mut written = finish_framed(answer, content.length(status), chunked);
    if !head_only && status.may_have_body() {
        let trailers = rare.trailers.filter(|_| chunked);
        let inline_max = if asked.terms.is_none() { INLINE_BYTES_MAX } else { 0 };
        remainder.place(content, (chunked, trailers), inline_max, out);
    }
    if let Some(line) = rare.status_line {
        written = with_status_line(line, before..before + status.line().len(), written, out);
    }
    Begun { rest: remainder.boxed(), ending, written }
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
fn prepared(response: Response, asked: &Asked<'_>) -> Response {
    let mut response = response;
    response.open_file(asked.parts.view(), asked.now);
    let mut response = if response.wants_page() { page(response, asked) } else { response };
    if response.rare.as_ref().is_some_and(|rare| rare.trailers.is_some()) {
        let view = asked.parts.view();
        let is_old = view.version() == Version::Http10 || asked.ending.persist().is_old();
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
fn page(response: Response, asked: &Asked<'_>) -> Response {
    let status = response.status;
    let made = asked.pages.of(status).and_then(|page| {
        let origin = Origin::lent(asked.socket, asked.proxies);
        let request = Request::new(asked.parts.clone(), Body::empty(), origin);
        contained(|| page(&request, status))
    });
    let hint = response.rare.as_ref().and_then(|rare| rare.hint);
    let common = asked.common.opening.lines();
    let mut page = made.unwrap_or_else(|| error_page(status, hint, (common, &response.fields)));
    page.status = status;
    let of_page = std::mem::replace(&mut page.fields, response.fields);
    if !of_page.is_empty() {
        page.fields.to_mut().extend(&of_page);
    }
    page.rare = response.rare.or(page.rare);
    page
}
