//! From a file and a request to an answer: 200, 206, 304, 412 or 416. Nothing here asks the disk.

use std::borrow::Cow;
use std::collections::VecDeque;

use gustnado_http::date;
use gustnado_http::fields::HeaderId;
use gustnado_http::method::Method;
use gustnado_http::precondition::{self, Conditions, Verdict};
use gustnado_http::range::{self, ByteRange, Selected};
use gustnado_http::request::Request;
use gustnado_http::response_writer::{ResponseWriter, WrittenHead};
use gustnado_http::status::Status;
use gustnado_tasks::Now;

use super::dressing::Dressing;
use super::multipart::{Multipart, content_range};
use super::stored::Stored;
use super::{Replied, Rest, Segment};
use crate::status_page::Turn;

/// Answers a GET or HEAD for `stored`.
#[inline]
pub(super) fn respond(
    stored: &Stored,
    dressing: &Dressing,
    request: Request<'_>,
    now: Now,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    if request.is_conditional() {
        respond_if((stored, dressing), request, now, turn, out)
    } else {
        whole(stored, request.method() == Method::Head, turn, out)
    }
}

#[inline]
fn whole(stored: &Stored, head_only: bool, turn: &Turn<'_>, out: &mut Vec<u8>) -> Replied {
    let ready = stored.ready(head_only);
    let before = out.len();
    ResponseWriter::ready(out, Status::OK, turn.common, turn.persist, ready);
    let content_bytes = ready.len() - stored.head_bytes();
    let written = WrittenHead::new(Status::OK, out.len() - before, content_bytes);
    if head_only || stored.file().is_none() {
        return written.into();
    }
    let mut body = Body { stored, out, segments: VecDeque::new() };
    body.push_range(ByteRange { offset: 0, len: stored.size });
    body.replied(written)
}

fn respond_if(
    (stored, dressing): (&Stored, &Dressing),
    request: Request<'_>,
    now: Now,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    let head_only = request.method() == Method::Head;
    let if_match = list(request, HeaderId::IfMatch, "If-Match");
    let if_none_match = list(request, HeaderId::IfNoneMatch, "If-None-Match");
    let conditions = Conditions {
        if_match: if_match.as_deref(),
        if_unmodified_since: request.known(HeaderId::IfUnmodifiedSince),
        if_none_match: if_none_match.as_deref(),
        if_modified_since: request.known(HeaderId::IfModifiedSince),
    };
    match precondition::judge(&conditions, true, &stored.validators) {
        Verdict::Perform => perform((stored, dressing), request, now, turn, out),
        Verdict::NotModified => not_modified((stored, dressing), turn, out).into(),
        Verdict::Failed => {
            dressing.status_page(out, Status::PRECONDITION_FAILED, turn, head_only, &[]).into()
        }
    }
}

/// All values of a list field as one (RFC 9110 §5.3): usually the only one, as it stands.
fn list<'a>(request: Request<'a>, known: HeaderId, name: &str) -> Option<Cow<'a, [u8]>> {
    let first = request.known(known)?;
    let mut same = request.fields().filter(|field| field.0.eq_ignore_ascii_case(name.as_bytes()));
    if same.by_ref().nth(1).is_none() {
        return Some(Cow::Borrowed(first));
    }
    let lines = request.fields().filter(|field| field.0.eq_ignore_ascii_case(name.as_bytes()));
    let values: Vec<&[u8]> = lines.map(|field| field.1).collect();
    Some(Cow::Owned(values.join(b", ".as_slice())))
}

/// RFC 9110 §15.4.5: the validator and no other metadata, as the client has it already.
fn not_modified(
    (stored, dressing): (&Stored, &Dressing),
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> WrittenHead {
    let mut answer = ResponseWriter::start(out, Status::NOT_MODIFIED, turn.common, turn.persist);
    answer.ready_lines(&dressing.lines);
    put(&mut answer, "ETag", stored.validators.tag.as_bytes());
    answer.finish()
}

/// Step 5 and 6 of RFC 9110 §13.2.2. A range counts on GET only (§14.2).
fn perform(
    (stored, dressing): (&Stored, &Dressing),
    request: Request<'_>,
    now: Now,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    let head_only = request.method() == Method::Head;
    let value = request.known(HeaderId::Range).filter(|_| {
        let if_range = request.known(HeaderId::IfRange);
        !head_only && precondition::range_counts(if_range, &stored.validators, now.unix_secs)
    });
    match value.map_or(Selected::Whole, |value| range::select(value, stored.size)) {
        Selected::Whole => whole(stored, head_only, turn, out),
        Selected::One(range) => one_range((stored, dressing), range, turn, out),
        Selected::Several(ranges) => several_ranges((stored, dressing), &ranges, turn, out),
        Selected::Unsatisfiable => {
            let size = format!("bytes */{}", stored.size);
            let fields = [("Content-Range", size.as_bytes())];
            let status = Status::RANGE_NOT_SATISFIABLE;
            dressing.status_page(out, status, turn, head_only, &fields).into()
        }
    }
}

fn one_range(
    (stored, dressing): (&Stored, &Dressing),
    range: ByteRange,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    let mut answer = ResponseWriter::start(out, Status::PARTIAL_CONTENT, turn.common, turn.persist);
    put(&mut answer, "Content-Type", stored.content_type.to_string().as_bytes());
    put(&mut answer, "Content-Range", content_range(range, stored.size).as_bytes());
    let written = finish_partial(answer, (stored, dressing), range.len);
    let mut body = Body { stored, out, segments: VecDeque::new() };
    body.push_range(range);
    body.replied(written)
}

fn several_ranges(
    (stored, dressing): (&Stored, &Dressing),
    ranges: &[ByteRange],
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Replied {
    let frame = Multipart::new(stored.content_type, ranges, stored.size);
    let mut answer = ResponseWriter::start(out, Status::PARTIAL_CONTENT, turn.common, turn.persist);
    put(&mut answer, "Content-Type", frame.content_type().as_bytes());
    let written = finish_partial(answer, (stored, dressing), frame.body_bytes(ranges));
    let mut body = Body { stored, out, segments: VecDeque::new() };
    for (head, range) in frame.part_heads.iter().zip(ranges) {
        body.push_bytes(head);
        body.push_range(*range);
    }
    body.push_bytes(&frame.closing);
    body.replied(written)
}

/// The fields that a 206 shares with the 200 (RFC 9110 §15.3.7).
fn finish_partial(
    mut answer: ResponseWriter<'_>,
    (stored, dressing): (&Stored, &Dressing),
    body_bytes: u64,
) -> WrittenHead {
    answer.content_length(body_bytes);
    put(&mut answer, "Last-Modified", &date::imf_fixdate(stored.validators.modified_secs));
    put(&mut answer, "ETag", stored.validators.tag.as_bytes());
    put(&mut answer, "Accept-Ranges", b"bytes");
    if !dressing.says_nosniff {
        put(&mut answer, "X-Content-Type-Options", b"nosniff");
    }
    answer.ready_lines(&dressing.lines);
    answer.finish()
}

fn put(answer: &mut ResponseWriter<'_>, name: &str, value: &[u8]) {
    answer.field(name, value).expect("made here of constants, digits and type names");
}

/// A body in the making: as long as all of it fits in memory it goes straight to `out`.
struct Body<'a> {
    stored: &'a Stored,
    out: &'a mut Vec<u8>,
    segments: VecDeque<Segment>,
}

impl Body<'_> {
    fn push_bytes(&mut self, bytes: &[u8]) {
        if self.segments.is_empty() {
            self.out.extend_from_slice(bytes);
        } else {
            self.segments.push_back(Segment::Bytes(bytes.to_vec()));
        }
    }

    fn push_range(&mut self, range: ByteRange) {
        let ByteRange { offset, len } = range;
        if let Some(file) = self.stored.file() {
            let file = file.clone();
            let cold = self.stored.cold().cloned();
            self.segments.push_back(Segment::File { file, offset, len, cold });
            return;
        }
        let start = usize::try_from(offset).expect("a small file has small offsets");
        let len = usize::try_from(len).expect("a small file has a small length");
        self.out.extend_from_slice(&self.stored.body()[start..start + len]);
    }

    fn rest(self) -> Rest {
        if self.segments.is_empty() {
            Rest::Nothing
        } else {
            Rest::Segments(Box::new(self.segments))
        }
    }

    fn replied(self, written: WrittenHead) -> Replied {
        Replied { written, rest: self.rest() }
    }
}
