//! Writes a handler's response as bytes.

use std::ops::Range;

use gustnado_http::fields::HeaderId;
use gustnado_http::head::Version;
use gustnado_http::method::Method;
use gustnado_http::response_writer::{Opening, Persist, ResponseWriter, WrittenHead};
use gustnado_http::status::Status;
use gustnado_tasks::Now;

use super::Conn;
use super::body_end::{BodyEnd, Ending, RequestedPersist};
use super::pending::{Paced, PendingContent};
use super::received::Responded;
use super::timeouts::RouteTimeouts;
use super::upgrade::take_upgrade;
use gustnado_files::CachedFile;
use gustnado_observe::exchange::SentCallbacks;
use gustnado_web::prepared::prepared as web_prepared;
use gustnado_web::request::RequestSource;
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{Content, INLINE_BYTES_MAX, Response, ResponsePrefix, StatusLine};
use gustnado_web::routes::Pages;

/// Everything that a written response depends on but the response itself.
pub(super) struct WriteContext<'a> {
    pub(super) parts: &'a RequestHeadRef,
    pub(super) pages: &'a Pages,
    pub(super) prefix: &'a ResponsePrefix,
    pub(super) now: Now,
    pub(super) ending: Ending,
    pub(super) origin: RequestSource<'a>,
    /// Time-outs of its route, if it has its own.
    pub(super) timeouts: Option<RouteTimeouts>,
    /// When the request was read.
    pub(super) read_ms: u64,
}

impl Conn {
    /// Writes a response's head and, if it is short and ready, its content.
    #[inline]
    pub(super) fn write_response(
        &self,
        response: Response,
        wanted: &WriteContext<'_>,
        out: &mut Vec<u8>,
    ) -> WrittenResponse {
        let before = out.len();
        let started = if response.is_ready() && wanted.timeouts.is_none() {
            let head_only = wanted.parts.view().method() == Method::Head;
            let persist = wanted.ending.persist();
            let written = response.write_ready(wanted.prefix, persist, head_only, out);
            WrittenResponse::new(written, before, wanted.ending)
        } else {
            write(response, wanted, out)
        };
        self.count_response(&started.responded, out);
        started
    }
}

/// A response whose head has been written.
pub(super) struct WrittenResponse {
    /// The rest to be sent, if any.
    pub(super) rest: Option<Box<PendingContent>>,
    /// Whether the connection persists.
    pub(super) ending: Ending,
    /// Without a head if that is still to be sent as well.
    pub(super) responded: Responded,
}

impl WrittenResponse {
    /// - `at`: where the head begins.
    fn new(written: WrittenHead, at: usize, ending: Ending) -> Self {
        Self { rest: None, ending, responded: Responded { written, at, on_sent: None } }
    }
}

/// Writes any response, which may be the last one before another protocol.
fn write(mut response: Response, wanted: &WriteContext<'_>, out: &mut Vec<u8>) -> WrittenResponse {
    let Some(on_upgrade) = take_upgrade(&mut response, wanted.parts.view(), wanted.ending) else {
        return write_at_pace(response, wanted, out);
    };
    // From here on the connection's end is the other protocol's business, not that of HTTP.
    let ending = RequestedPersist::new(Persist::Default).with(BodyEnd::Empty);
    let mut started = write_at_pace(response, &WriteContext { ending, ..*wanted }, out);
    started.rest.get_or_insert_with(|| PendingContent::nothing(ending)).on_upgrade =
        Some(on_upgrade);
    started
}

/// Writes a response. With a pace, all of it is left to be sent.
fn write_at_pace(
    mut response: Response,
    wanted: &WriteContext<'_>,
    out: &mut Vec<u8>,
) -> WrittenResponse {
    let Some(pace) = response.extras.as_mut().and_then(|extras| extras.pace.take()) else {
        return write_unpaced(response, wanted, out);
    };
    let before = out.len();
    let mut started = write_unpaced(response, wanted, out);
    // Its bytes leave the turn's buffer: the responses before it must not wait for its pace.
    let start = out.split_off(before);
    let written = std::mem::take(&mut started.responded.written);
    started.rest.get_or_insert_with(|| PendingContent::nothing(started.ending)).paced =
        Some(Box::new(Paced { pace, start, written, read_ms: wanted.read_ms }));
    started
}

fn write_unpaced(
    response: Response,
    wanted: &WriteContext<'_>,
    out: &mut Vec<u8>,
) -> WrittenResponse {
    let Response { status, content_type, fields, content, extras } = prepared(response, wanted);
    let is_plain = extras.is_none();
    let extras = extras.map_or_else(Default::default, |extras| *extras);
    let view = wanted.parts.view();
    let head_only = view.method() == Method::Head;
    let is_endless = matches!(&content, Content::Stream(streamed) if streamed.length.is_none());
    let is_old = view.version() == Version::Http10 || wanted.ending.persist().is_old();
    let ending =
        if extras.close || is_endless && is_old { wanted.ending.ended() } else { wanted.ending };
    let (persist, before) = (ending.persist(), out.len());
    let mut pending = PendingContent::new(ending);
    pending.timeouts = wanted.timeouts;
    if let Content::File(file) = &content
        && is_plain
        && status == Status::OK
        && fields.is(file.fields())
    {
        let written = write_file(file, head_only, &wanted.prefix.opening, persist, out);
        pending.segments.extend(file.segment().filter(|_| !head_only));
        return WrittenResponse {
            rest: pending.boxed(),
            ..WrittenResponse::new(written, before, ending)
        };
    }
    let mut writer = extras.replaced.start(out, status, &wanted.prefix.opening, persist);
    if let Some(kind) = content_type.filter(|_| status.may_have_body()) {
        writer.constant("Content-Type", kind.name());
    }
    writer.fields(&fields);
    let chunked = is_endless && !is_old;
    let mut written = finish_framed(writer, content.length(status), chunked);
    if !head_only && status.may_have_body() {
        let trailers = extras.trailers.filter(|_| chunked);
        let inline_max = if wanted.timeouts.is_none() { INLINE_BYTES_MAX } else { 0 };
        pending.place(content, (chunked, trailers), inline_max, out);
    }
    if let Some(line) = extras.status_line {
        written = with_status_line(line, before..before + status.line().len(), written, out);
    }
    let on_sent = SentCallbacks::boxed(extras.on_sent);
    let responded = Responded { written, at: before, on_sent };
    WrittenResponse { rest: pending.boxed(), ending, responded }
}

/// Replaces the status line by one that an application chose.
fn with_status_line(
    StatusLine { number, text }: StatusLine,
    usual: Range<usize>,
    written: WrittenHead,
    out: &mut Vec<u8>,
) -> WrittenHead {
    // Both are shorter than the head, whose length fits.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    let head_bytes = written.head_bytes - usual.len() as u32 + text.len() as u32;
    // The version stays as it is.
    let version = "HTTP/1.1".len();
    out.splice(usual.start + version..usual.end, text[version..].bytes());
    WrittenHead { status: number, head_bytes }
}

/// Makes a response ready, and removes `Trailer` where no trailers can follow.
fn prepared(response: Response, wanted: &WriteContext<'_>) -> Response {
    let common = (wanted.prefix.opening.lines(), wanted.now);
    let mut response = web_prepared(response, wanted.parts, wanted.pages, common, wanted.origin);
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

/// Writes 200 with the prepared bytes of a file; the content of a larger one is sent separately.
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
    ResponseWriter::ready(out, opening, persist, ready);
    WrittenHead::new(Status::OK, out.len() - before, ready.len() - file.head_bytes())
}

/// Writes a response with content in memory, and only the head of any other.
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
    let mut writer = ResponseWriter::start(out, response.status, opening, persist);
    if let Some(kind) = response.content_type.filter(|_| response.status.may_have_body()) {
        writer.constant("Content-Type", kind.name());
    }
    writer.fields(&response.fields);
    if response.status.may_have_body() {
        writer.content_length(content.len() as u64);
    }
    let written = writer.finish();
    if !head_only {
        out.extend_from_slice(content);
    }
    written
}

/// Ends a head with the framing of its content: a length, chunks, or the end of the connection.
fn finish_framed(
    mut writer: ResponseWriter<'_>,
    length: Option<u64>,
    chunked: bool,
) -> WrittenHead {
    match length {
        Some(length) => writer.content_length(length),
        None if chunked => writer.chunked(),
        None => {}
    }
    writer.finish()
}
