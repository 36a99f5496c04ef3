//! The part of a file that a request selects: all of it (200), ranges (206), or nothing (304, 412,
//! 416). Nothing here reads the disk.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use gustnado_http::fields::HeaderId;
use gustnado_http::method::Method;
use gustnado_http::precondition::{self, Conditions, Verdict};
use gustnado_http::range::{self, ByteRange, Selected};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::Now;

use super::cached_file::{CachedFile, put_validators};
use super::headers::FolderHeaders;
use super::multipart::{MultipartRanges, content_range};
use super::response::{FileContent, FileResponse};
use super::segment::Segment;

/// Returns the response to a GET or HEAD of a file; `None` if that is 200 with all of it.
#[inline]
pub(super) fn select(
    file: &CachedFile,
    headers: &FolderHeaders,
    request: RequestView<'_>,
    now: Now,
) -> Option<FileResponse> {
    if request.head().is_conditional() { by_conditions(file, headers, request, now) } else { None }
}

/// Returns the response to a GET or HEAD of a file, also if it is the whole file.
pub(super) fn select_or_whole(
    file: Arc<CachedFile>,
    headers: &FolderHeaders,
    request: RequestView<'_>,
    now: Now,
) -> FileResponse {
    select(&file, headers, request, now).unwrap_or_else(|| FileResponse::whole(file))
}

fn by_conditions(
    file: &CachedFile,
    headers: &FolderHeaders,
    request: RequestView<'_>,
    now: Now,
) -> Option<FileResponse> {
    conditions_of(request, |conditions| by_conditions_of(conditions, file, headers, request, now))
}

/// Calls `act` with the conditions of a request.
pub(super) fn conditions_of<T>(
    request: RequestView<'_>,
    act: impl FnOnce(&Conditions<'_>) -> T,
) -> T {
    let if_match = list(request, HeaderId::IfMatch);
    let if_none_match = list(request, HeaderId::IfNoneMatch);
    act(&Conditions {
        if_match: if_match.as_deref(),
        if_unmodified_since: single(request, HeaderId::IfUnmodifiedSince),
        if_none_match: if_none_match.as_deref(),
        if_modified_since: single(request, HeaderId::IfModifiedSince),
    })
}

fn by_conditions_of(
    conditions: &Conditions<'_>,
    file: &CachedFile,
    headers: &FolderHeaders,
    request: RequestView<'_>,
    now: Now,
) -> Option<FileResponse> {
    match precondition::judge(conditions, true, &file.validators) {
        Verdict::Perform => by_range(file, headers, request, now),
        // RFC 9110 §15.4.5: the validator and what tells how long it may be kept, and no other
        // metadata, as the client has it already.
        Verdict::NotModified => {
            let response = FileResponse::new(Status::NOT_MODIFIED);
            let mut response = response.with_headers_of_file(headers, &file.own);
            file.representation.put_vary(response.fields.to_mut());
            if headers.are_types_ruled {
                let content_type = file.representation.content_type.to_string();
                response.put(HeaderId::ContentType, content_type.as_bytes());
            }
            if let Some(tag) = file.validators.tag_for(conditions.if_none_match) {
                response.put(HeaderId::ETag, tag.as_bytes());
            }
            Some(response)
        }
        Verdict::Failed => {
            let mut response = FileResponse::new(Status::PRECONDITION_FAILED).with_headers(headers);
            file.representation.put_vary(response.fields.to_mut());
            Some(response)
        }
    }
}

/// Joins all values of a list field (RFC 9110 §5.3); usually there is one.
fn list(request: RequestView<'_>, id: HeaderId) -> Option<Cow<'_, [u8]>> {
    if let Some(only) = single(request, id) {
        return Some(Cow::Borrowed(only));
    }
    let values: Vec<&[u8]> = lines(request, id).collect();
    (!values.is_empty()).then(|| Cow::Owned(values.join(b", ".as_slice())))
}

/// Returns the value of a field that has one line. A date on several lines is none (RFC 9110
/// §13.1.3).
fn single(request: RequestView<'_>, id: HeaderId) -> Option<&[u8]> {
    request.known(id).filter(|_| lines(request, id).nth(1).is_none())
}

fn lines(request: RequestView<'_>, id: HeaderId) -> impl Iterator<Item = &[u8]> {
    let is_same = move |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(id.name().as_bytes());
    request.fields().filter(is_same).map(|field| field.1)
}

/// Applies steps 5 and 6 of RFC 9110 §13.2.2. A range counts on GET only (§14.2).
fn by_range(
    file: &CachedFile,
    headers: &FolderHeaders,
    request: RequestView<'_>,
    now: Now,
) -> Option<FileResponse> {
    let if_range = request.known(HeaderId::IfRange);
    let value = request.known(HeaderId::Range).filter(|_| {
        request.method() != Method::Head
            && precondition::range_counts(if_range, &file.validators, now.unix_secs)
    })?;
    Some(match range::select(value, file.size) {
        Selected::Whole => return None,
        Selected::One(range) => one_range((file, headers), if_range, range),
        Selected::Several(ranges) => several_ranges((file, headers), if_range, &ranges),
        Selected::Unsatisfiable => {
            let size = format!("bytes */{}", file.size);
            let mut response =
                FileResponse::new(Status::RANGE_NOT_SATISFIABLE).with_headers(headers);
            file.representation.put_vary(response.fields.to_mut());
            response.with(HeaderId::ContentRange, size.as_bytes())
        }
    })
}

fn one_range(
    (file, headers): (&CachedFile, &FolderHeaders),
    if_range: Option<&[u8]>,
    range: ByteRange,
) -> FileResponse {
    let content_type = file.representation.content_type.to_string();
    let response = FileResponse::new(Status::PARTIAL_CONTENT)
        .with(HeaderId::ContentType, content_type.as_bytes())
        .with(HeaderId::ContentRange, content_range(range, file.size).as_bytes());
    let segments = VecDeque::from([segment_of(file, range)]);
    partial(response, (file, headers), if_range, (segments, range.len))
}

fn several_ranges(
    (file, headers): (&CachedFile, &FolderHeaders),
    if_range: Option<&[u8]>,
    ranges: &[ByteRange],
) -> FileResponse {
    let frame = MultipartRanges::new(&file.representation.content_type, ranges, file.size);
    let length = frame.body_bytes(ranges);
    let response = FileResponse::new(Status::PARTIAL_CONTENT)
        .with(HeaderId::ContentType, frame.content_type().as_bytes());
    let mut segments = VecDeque::new();
    for (head, range) in frame.part_heads.into_iter().zip(ranges) {
        segments.push_back(Segment::Bytes(head));
        segments.push_back(segment_of(file, *range));
    }
    segments.push_back(Segment::Bytes(frame.closing));
    partial(response, (file, headers), if_range, (segments, length))
}

/// Adds the fields that a 206 shares with the 200 (RFC 9110 §15.3.7), and the content.
fn partial(
    mut response: FileResponse,
    (file, headers): (&CachedFile, &FolderHeaders),
    if_range: Option<&[u8]>,
    (segments, length): (VecDeque<Segment>, u64),
) -> FileResponse {
    let tag = file.validators.tag_for(if_range);
    file.representation.put_coding(response.fields.to_mut());
    file.representation.put_vary(response.fields.to_mut());
    put_validators(response.fields.to_mut(), tag, &file.validators);
    response.put(HeaderId::AcceptRanges, b"bytes");
    let content = FileContent::Segments { segments, length };
    FileResponse { content, ..response.with_headers_of_content(headers, &file.own) }
}

fn segment_of(file: &CachedFile, range: ByteRange) -> Segment {
    let ByteRange { offset, len } = range;
    if let Some(open) = &file.file {
        let (file, cold) = (Arc::clone(open), file.cold().cloned());
        return Segment::File { file, offset, len, cold };
    }
    let start = usize::try_from(offset).expect("a small file has small offsets");
    let len = usize::try_from(len).expect("a small file has a small length");
    Segment::Bytes(file.body()[start..start + len].to_vec())
}
