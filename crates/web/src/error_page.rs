//! Pages for errors: those that a program or a file has, and small ones that explain a status.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gustnado_files::ContentType;
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::response_writer::has_field;
use gustnado_http::status::Status;

use crate::request::Request;
use crate::response::Response;

const NOSNIFF: HeaderId = HeaderId::XContentTypeOptions;

/// Function that returns the page for an error.
pub type ErrorPage = Arc<dyn Fn(&Request, Status) -> Response + Send + Sync>;

/// Returns a page that is the same for every request.
///
/// - `file`: the name of which tells its type.
#[doc(hidden)]
pub fn static_page(file: &Path, content: Bytes) -> ErrorPage {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    let content_type = ContentType::of(name).to_string();
    Arc::new(move |_, status| {
        Response::new(status).content_type(&content_type).body(content.clone())
    })
}

/// Returns a response with a small page that explains its status; a status without content by
/// definition (204, 304) gets none.
///
/// - `hint`: a sentence in place of the usual one.
/// - `lines`: field lines that every response of the server has.
/// - `fields`: those that this one will have.
pub fn error_page(
    status: Status,
    hint: Option<&str>,
    (lines, fields): (&[u8], &Fields),
) -> Response {
    if !status.may_have_body() {
        return Response::new(status);
    }
    let page = page(status, hint.unwrap_or_else(|| usual_hint(status)));
    let response = Response::html(page).status(status);
    if has_field(lines, NOSNIFF.name()) || fields.contains(NOSNIFF) {
        return response;
    }
    response.header(NOSNIFF.name(), "nosniff")
}

/// Returns the page. It repeats nothing of the request, so no request can inject anything.
fn page(status: Status, hint: &str) -> String {
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

/// Returns a sentence for the reader of the page.
fn usual_hint(status: Status) -> &'static str {
    match status {
        Status::MOVED_PERMANENTLY => "This page has another address.",
        Status::BAD_REQUEST => "The server could not understand the request.",
        Status::FORBIDDEN => "The server is not allowed to read this.",
        Status::NOT_FOUND => "There is nothing at this address.",
        Status::METHOD_NOT_ALLOWED => "This address does not take that kind of request.",
        Status::REQUEST_TIMEOUT => "The request took too long to arrive.",
        Status::PRECONDITION_FAILED => "This has changed since you last saw it.",
        Status::RANGE_NOT_SATISFIABLE => "The requested part does not exist.",
        Status::SERVICE_UNAVAILABLE => "The server is busy. Please try again in a moment.",
        status if status.code() >= 500 => "Something went wrong on the server.",
        _ => "The request was not accepted.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_status() {
        let response = error_page(Status::METHOD_NOT_ALLOWED, None, (b"", &Fields::new()));
        let page = response.content().expect("bytes");
        let page = std::str::from_utf8(page).expect("pages are UTF-8");
        assert!(page.contains("405") && page.contains("Method Not Allowed"), "{page}");
        assert_eq!(response.header_value(NOSNIFF.name()), Some(&b"nosniff"[..]));
    }

    #[test]
    fn a_field_that_is_there_is_not_repeated() {
        let mut fields = Fields::new();
        fields.add("x-content-type-options", "nosniff").expect("a good field");
        let response = error_page(Status::NOT_FOUND, Some("Look elsewhere."), (b"", &fields));
        assert_eq!(response.header_value(NOSNIFF.name()), None);
        let page = response.content().expect("bytes");
        assert!(page.windows(15).any(|part| part == b"Look elsewhere."));
    }

    #[test]
    fn a_status_without_content_gets_none() {
        assert!(error_page(Status::NO_CONTENT, None, (b"", &Fields::new())).content().is_none());
    }
}
