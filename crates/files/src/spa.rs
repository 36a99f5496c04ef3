//! Applications of a single page: which requests for what is not there get that page.
//!
//! Such an application has paths of its own, which are no files. A browser that opens or reloads
//! one of them gets the page. A script, a style or an image that is not there is 404: as a page it
//! would be a syntax error, and a cache would keep it.

use gustnado_http::fields::HeaderId;
use gustnado_http::request::RequestView;

use super::cache_rules::ImmutableFolders;

/// The key of the page in a worker's cache. No path has it, as paths begin with a slash.
pub(super) const KEY: &[u8] = b"\0spa";

/// The fields that decide between the page and 404. A cache must not give one for the other.
pub(super) const VARY: &[u8] = b"Sec-Fetch-Mode, Accept";

/// Returns whether a request for something that is not there is for the page.
///
/// - `below`: the canonical path below the folder's own.
///
/// A browser says so by `Sec-Fetch-Mode`. For clients that send no such field it is a navigation if
/// they take HTML, and the last segment is no file's name. A file's name beneath an immutable
/// folder is never the application's.
pub(super) fn is_for_page(
    request: RequestView<'_>,
    below: &[u8],
    immutable: &ImmutableFolders<'_>,
) -> bool {
    let last = memchr::memrchr(b'/', below).map_or(below, |slash| &below[slash + 1..]);
    let is_file = last.contains(&b'.');
    let relative = below.strip_prefix(b"/").unwrap_or(below);
    if is_file && immutable.contain(relative) {
        return false;
    }
    match request.field("sec-fetch-mode") {
        Some(mode) => mode == b"navigate",
        None => !is_file && accepts_html(request),
    }
}

/// Returns whether a client takes HTML, and not merely anything (RFC 9110 §12.5.1).
fn accepts_html(request: RequestView<'_>) -> bool {
    let name = HeaderId::Accept.name().as_bytes();
    let values = request.fields().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    values.flat_map(|(_, value)| value.split(|byte| *byte == b',')).any(is_html)
}

/// Returns whether a member of `Accept` is HTML with a weight above zero.
fn is_html(member: &[u8]) -> bool {
    let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let is_named = parts.next().is_some_and(|range| range.eq_ignore_ascii_case(b"text/html"));
    let is_refused = |part: &[u8]| {
        let digits = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="));
        digits.is_some_and(|digits| digits.iter().all(|byte| matches!(byte, b'0' | b'.')))
    };
    is_named && !parts.any(is_refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::head::{Decoded, Head};
    use gustnado_http::limits::Limits;
    use proptest::prelude::*;

    const HTML: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    fn is_page(path: &str, fields: &[&str]) -> bool {
        let lines = fields.iter().fold(String::new(), |lines, field| lines + field + "\r\n");
        let input = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let outcome = Head::decode(input.as_bytes(), &mut 0, &Limits::default());
        let Ok(Decoded::Done(head)) = outcome else { panic!("{input}: {outcome:?}") };
        let folders = ["assets".to_owned()];
        let immutable = ImmutableFolders(&folders);
        is_for_page(head.on(input.as_bytes()), path.as_bytes(), &immutable)
    }

    #[test]
    fn only_navigations_get_the_page() {
        let navigate = "Sec-Fetch-Mode: navigate";
        for (path, fields, expected) in [
            ("/users/42", vec![HTML], true),
            ("/users/42", vec!["accept: Text/HTML"], true),
            ("/users/42", vec!["Accept: */*", "Accept: text/html;q=0.1"], true),
            ("/users/42", vec!["Accept: */*"], false),
            ("/users/42", vec!["Accept: text/html;q=0"], false),
            ("/users/42", vec!["Accept: text/html; q=0.000, application/json"], false),
            ("/users/42", vec!["Accept: application/json"], false),
            ("/users/42", vec![], false),
            ("/users/42", vec![navigate], true),
            ("/users/42", vec![navigate, "Accept: */*"], true),
            ("/users/42", vec!["Sec-Fetch-Mode: cors", HTML], false),
            ("/users/42", vec!["Sec-Fetch-Mode: no-cors", HTML], false),
            ("/users/42", vec!["Sec-Fetch-Mode: same-origin", HTML], false),
            ("/users/", vec![HTML], true),
            ("/users/john.doe", vec![HTML], false),
            ("/users/john.doe", vec![navigate], true),
            ("/v1.2/about", vec![HTML], true),
            ("/logo.png", vec![HTML], false),
            // A chunk that is gone, however it is asked for.
            ("/assets/main.9f2c.js", vec![HTML], false),
            ("/assets/main.9f2c.js", vec![navigate, HTML], false),
            ("/assets", vec![navigate], true),
        ] {
            assert_eq!(is_page(path, &fields), expected, "{path} {fields:?}");
        }
    }

    proptest! {
        #[test]
        fn any_accept_is_read(value in "[ -~]{0,200}") {
            is_page("/users", &[&format!("Accept: {value}")]);
            let refused = value.replace("text/html", "");
            let is_refused_page = is_page("/users", &[&format!("Accept: {refused}")]);
            prop_assert!(!is_refused_page || refused.to_ascii_lowercase().contains("text/html"));
        }
    }
}
