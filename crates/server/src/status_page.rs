//! Small pages that say what a status means, and what all responses of a turn have in common.

use gustnado_http::response_writer::{Opening, Persist, ResponseWriter, WrittenHead, has_field};
use gustnado_http::status::Status;

/// What all answers of one turn have in common.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// What each begins with: Server and Date.
    pub common: &'a Opening,
    /// Whether the connection stays open after the answer.
    pub persist: Persist,
}

/// Writes a complete answer whose body is a small page that says what the status means.
///
/// - `head_only`: the request was HEAD; the fields are those of a GET and no body follows.
/// - `extra`: further fields, such as Allow with a 405 (RFC 9110 §15.5.6 demands it). One that
///   could split the answer is left out.
/// - A status that has no body by its definition (204, 304) gets its fields alone.
pub fn status_page(
    out: &mut Vec<u8>,
    status: Status,
    turn: &Turn<'_>,
    head_only: bool,
    extra: &[(&str, &[u8])],
) -> WrittenHead {
    status_page_saying(hint(status), out, (status, head_only), turn, extra)
}

/// The same with a sentence of its own.
pub(crate) fn status_page_saying(
    hint: &str,
    out: &mut Vec<u8>,
    (status, head_only): (Status, bool),
    turn: &Turn<'_>,
    extra: &[(&str, &[u8])],
) -> WrittenHead {
    let mut answer = ResponseWriter::start(out, status, turn.common, turn.persist);
    for (name, value) in extra {
        // Nothing of such a line is written; the answer stays well formed without it.
        let outcome = answer.field(name, value);
        debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
    if !status.may_have_body() {
        return answer.finish();
    }
    let page = page_saying(status, hint);
    let fields: [(&str, &[u8]); 2] =
        [("Content-Type", b"text/html; charset=utf-8"), ("X-Content-Type-Options", b"nosniff")];
    for (name, value) in fields {
        if !has_field(turn.common.lines(), name) {
            answer.field(name, value).expect("constant fields are well formed");
        }
    }
    answer.content_length(page.len() as u64);
    let written = answer.finish();
    if !head_only {
        out.extend_from_slice(page.as_bytes());
    }
    written
}

/// Nothing of the request is repeated in the page, so nothing can be smuggled into it.
pub(crate) fn page(status: Status) -> String {
    page_saying(status, hint(status))
}

fn page_saying(status: Status, hint: &str) -> String {
    let (code, reason) = (status.code(), status.reason());
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\"><title>{code} {reason}</title>\
         <style>:root{{color-scheme:light dark}}body{{font:1.1rem/1.6 system-ui,sans-serif;\
         max-width:34rem;margin:18vh auto;padding:0 1.5rem}}b{{font-size:4.5rem;line-height:1;\
         color:light-dark(#a8560c,#f0a95b)}}h1{{margin:.4rem 0;font-size:1.5rem}}\
         p{{opacity:.75}}</style>\
         <b>{code}</b><h1>{reason}</h1><p>{hint}</p>\n"
    )
}

/// One sentence for the person in front of the browser.
fn hint(status: Status) -> &'static str {
    match status {
        Status::MOVED_PERMANENTLY => "This page has another address.",
        Status::BAD_REQUEST => "The server could not understand the request.",
        Status::FORBIDDEN => "The server is not allowed to read this.",
        Status::NOT_FOUND => "There is nothing at this address.",
        Status::METHOD_NOT_ALLOWED => "This address does not take that kind of request.",
        Status::REQUEST_TIMEOUT => "The request took too long to arrive.",
        Status::PRECONDITION_FAILED => "This has changed since you last saw it.",
        Status::RANGE_NOT_SATISFIABLE => "The part that was asked for does not exist.",
        Status::SERVICE_UNAVAILABLE => "The server is busy. Please try again in a moment.",
        status if status.code() >= 500 => "Something went wrong on the server.",
        _ => "The request was not accepted.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(status: Status, head_only: bool, extra: &[(&str, &[u8])]) -> String {
        let mut out = Vec::new();
        let common = Opening::new(b"Date: today\r\n");
        let turn = Turn { common: &common, persist: Persist::Close };
        status_page(&mut out, status, &turn, head_only, extra);
        String::from_utf8(out).expect("pages are UTF-8")
    }

    #[test]
    fn a_page_says_its_length_and_the_given_fields() {
        let text = written(Status::METHOD_NOT_ALLOWED, false, &[("Allow", b"GET, HEAD")]);
        let (head, body) = text.split_once("\r\n\r\n").expect("a blank line");
        assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\nDate: today\r\n"), "{head}");
        assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
        assert!(head.contains("\r\nAllow: GET, HEAD\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{head}");
        assert!(body.contains("405") && body.contains("Method Not Allowed"), "{body}");
    }

    #[test]
    fn a_head_only_page_has_the_same_fields_and_no_body() {
        let whole = written(Status::NOT_FOUND, false, &[]);
        let head = written(Status::NOT_FOUND, true, &[]);
        assert!(whole.starts_with(&head) && head.ends_with("\r\n\r\n"));
    }

    #[test]
    fn a_status_without_body_gets_none() {
        let text = written(Status::NO_CONTENT, false, &[("Allow", b"GET")]);
        assert!(text.ends_with("Allow: GET\r\n\r\n") && !text.contains("Content-"), "{text}");
    }
}
