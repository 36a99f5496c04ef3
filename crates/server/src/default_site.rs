//! The site that is served when no folder is given: one page about this very server, the counters
//! that the page reads once a second, and its icon.
//!
//! Everything is embedded; nothing here touches the disk or the network.

use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::request::Request;
use gustnado_http::response_writer::{ResponseWriter, WrittenHead};
use gustnado_http::status::Status;

use crate::files::Rest;
use crate::status_page::{Turn, status_page};

mod live;

pub(crate) use live::cpu_ms;
pub use live::{Live, Process};

const PAGE: &[u8] = include_bytes!("../site/index.html");
const ICON: &[u8] = include_bytes!("../site/favicon.svg");

const PATHS: [&str; 5] = ["/", "/index.html", "/stats.json", "/favicon.svg", "/favicon.ico"];

/// The page is complete in itself: nothing else may be loaded, sent or framed.
const POLICY: &[u8] = b"default-src 'none'; connect-src 'self'; img-src 'self'; \
    style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Answers a request to the built-in site; nothing is left to be sent afterwards.
///
/// - `stats`: makes the text of `/stats.json`, see [`Live::json`]; called only when that is asked
///   for.
///
/// GET and HEAD are served, other methods get 405 with Allow, and other paths 404.
pub fn answer(
    request: &Request<'_>,
    stats: impl FnOnce() -> String,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Rest {
    reply(request, stats, turn, out);
    Rest::Nothing
}

pub(crate) fn reply(
    request: &Request<'_>,
    stats: impl FnOnce() -> String,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> WrittenHead {
    let head_only = request.method() == Method::Head;
    let Ok(path) = CanonicalPath::of(request.path()) else {
        return status_page(out, Status::BAD_REQUEST, turn, head_only, &[]);
    };
    let path = path.as_str();
    if !PATHS.contains(&path) {
        return status_page(out, Status::NOT_FOUND, turn, head_only, &[]);
    }
    if !matches!(request.method(), Method::Get | Method::Head) {
        let allow: (&str, &[u8]) = ("Allow", b"GET, HEAD");
        return status_page(out, Status::METHOD_NOT_ALLOWED, turn, false, &[allow]);
    }
    match path {
        "/stats.json" => write(out, turn, head_only, "application/json", stats().as_bytes()),
        "/favicon.svg" => write(out, turn, head_only, "image/svg+xml", ICON),
        "/favicon.ico" => {
            let to_icon: &[(&str, &[u8])] = &[("Location", b"/favicon.svg")];
            status_page(out, Status::MOVED_PERMANENTLY, turn, head_only, to_icon)
        }
        _ => write(out, turn, head_only, "text/html; charset=utf-8", PAGE),
    }
}

fn write(
    out: &mut Vec<u8>,
    turn: &Turn<'_>,
    head_only: bool,
    kind: &str,
    body: &[u8],
) -> WrittenHead {
    let mut answer = ResponseWriter::start(out, Status::OK, turn.common, turn.persist);
    let caching = if kind == "application/json" { "no-store" } else { "no-cache" };
    let fields: [(&str, &[u8]); 4] = [
        ("Content-Type", kind.as_bytes()),
        ("Cache-Control", caching.as_bytes()),
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", b"nosniff"),
    ];
    for (name, value) in fields {
        answer.field(name, value).expect("constant fields are well formed");
    }
    answer.content_length(body.len() as u64);
    let written = answer.finish();
    if !head_only {
        out.extend_from_slice(body);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::head::{Decoded, Head};
    use gustnado_http::limits::Limits;
    use gustnado_http::response_writer::{Opening, Persist};

    fn answered(line: &str) -> (String, Vec<u8>) {
        let bytes = format!("{line} HTTP/1.1\r\nHost: here\r\n\r\n").into_bytes();
        let head = match Head::decode(&bytes, &mut 0, &Limits::default()) {
            Ok(Decoded::Done(head)) => head,
            other => panic!("expected a head, got {other:?}"),
        };
        let turn =
            Turn { common: &Opening::new(b"Server: gustnado\r\n"), persist: Persist::Default };
        let mut out = Vec::new();
        let rest = answer(&head.on(&bytes), || "{\"requests\":1}".to_owned(), &turn, &mut out);
        assert!(matches!(rest, Rest::Nothing));
        let end = out.windows(4).position(|four| four == b"\r\n\r\n").expect("a blank line") + 4;
        let head = String::from_utf8(out[..end].to_vec()).expect("heads are ASCII");
        (head, out[end..].to_vec())
    }

    #[test]
    fn the_page_is_served_whole() {
        let (head, body) = answered("GET /");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nServer: gustnado\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/html; charset=utf-8\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert_eq!(body, PAGE);
        assert_eq!(answered("GET /index.html?x=1").1, PAGE);
    }

    #[test]
    fn head_has_the_same_fields_and_no_body() {
        for path in ["/", "/stats.json", "/favicon.svg", "/favicon.ico", "/none"] {
            let (get, _) = answered(&format!("GET {path}"));
            let (head, body) = answered(&format!("HEAD {path}"));
            assert_eq!((head, body.len()), (get, 0), "{path}");
        }
    }

    #[test]
    fn counters_are_never_kept_by_a_cache() {
        let (head, body) = answered("GET /stats.json");
        assert!(head.contains("Cache-Control: no-store\r\n"), "{head}");
        assert!(head.contains("Content-Type: application/json\r\n"), "{head}");
        assert_eq!(body, b"{\"requests\":1}");
    }

    #[test]
    fn the_icon_has_two_addresses() {
        assert_eq!(answered("GET /favicon.svg").1, ICON);
        let (head, _) = answered("GET /favicon.ico");
        assert!(head.starts_with("HTTP/1.1 301 ") && head.contains("Location: /favicon.svg\r\n"));
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        assert!(answered("GET /index").0.starts_with("HTTP/1.1 404 "));
        let (head, _) = answered("DELETE /");
        assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("Allow: GET, HEAD\r\n"));
        assert!(answered("DELETE /none").0.starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = std::str::from_utf8(PAGE).expect("the page is UTF-8");
        for forbidden in ["https://", "//cdn", "@import", "src=\"http"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(PAGE.len() < 32_768, "{} bytes", PAGE.len());
    }
}
