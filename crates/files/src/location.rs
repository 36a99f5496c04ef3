//! The `Location` of a redirect within a folder (RFC 9110 §10.2.2).

use std::io::Write;

use gustnado_http::path::CanonicalPath;

use super::target::{Moved, PAGE_SUFFIX};

/// Returns the address that a request is sent to: its path, changed, and its query.
///
/// It starts with exactly one slash, because two would name another host (RFC 3986 §4.2): a
/// canonical path has no empty segment. Bytes that a URI does not allow are escaped.
pub(super) fn of(path: &CanonicalPath<'_>, query: Option<&[u8]>, moved: Moved) -> Vec<u8> {
    let path = path.as_str();
    let folder = || path.rfind('/').map_or("/", |at| &path[..=at]);
    let (path, slash) = match moved {
        Moved::WithSlash => (path.strip_suffix('/').unwrap_or(path), "/"),
        Moved::WithoutSlash => (path.trim_end_matches('/'), ""),
        Moved::WithoutSuffix => (path.strip_suffix(PAGE_SUFFIX).unwrap_or(path), ""),
        Moved::WithoutName => (folder(), ""),
        Moved::WithoutNameAndSlash => (folder().trim_end_matches('/'), ""),
    };
    let mut location = Vec::with_capacity(path.len() + 1);
    location.extend_from_slice(path.as_bytes());
    location.extend_from_slice(slash.as_bytes());
    if location.is_empty() {
        location.push(b'/');
    }
    if let Some(query) = query {
        location.push(b'?');
        for byte in query {
            if byte.is_ascii_graphic() && !b"\"#<>\\".contains(byte) {
                location.push(*byte);
            } else {
                write!(location, "%{byte:02X}").expect("a vector takes all");
            }
        }
    }
    location
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Moved; 5] = [
        Moved::WithSlash,
        Moved::WithoutSlash,
        Moved::WithoutSuffix,
        Moved::WithoutName,
        Moved::WithoutNameAndSlash,
    ];

    fn location(path: &str, query: Option<&str>) -> String {
        moved(path, query, Moved::WithSlash)
    }

    fn moved(path: &str, query: Option<&str>, moved: Moved) -> String {
        let path = CanonicalPath::of(path.as_bytes()).expect("a path that is served");
        let location = of(&path, query.map(str::as_bytes), moved);
        String::from_utf8(location).expect("a location is ASCII")
    }

    #[test]
    fn a_slash_is_added_and_the_query_kept() {
        assert_eq!(location("/docs", None), "/docs/");
        assert_eq!(location("/a%20b", Some("x=1&y=%2f")), "/a%20b/?x=1&y=%2f");
        assert_eq!(location("/docs", Some("")), "/docs/?");
    }

    #[test]
    fn the_path_of_a_page_is_written_without_its_ending() {
        assert_eq!(moved("/docs/", Some("a=1"), Moved::WithoutSlash), "/docs?a=1");
        assert_eq!(moved("/a/about.html", None, Moved::WithoutSuffix), "/a/about");
        assert_eq!(moved("/a/index.html", None, Moved::WithoutName), "/a/");
        assert_eq!(moved("/a/index.html", None, Moved::WithoutNameAndSlash), "/a");
        assert_eq!(moved("/index.html", Some("x"), Moved::WithoutName), "/?x");
    }

    #[test]
    fn no_other_host_is_named() {
        assert_eq!(location("//example.org", None), "/example.org/");
        assert_eq!(location("////example.org", Some("//x")), "/example.org/?//x");
        assert_eq!(location("/\\example.org", None), "/%5Cexample.org/");
    }

    proptest! {
        #[test]
        fn any_bytes_give_one_line_that_starts_with_one_slash(
            path in proptest::collection::vec(any::<u8>(), 0..40),
            has_slash: bool,
            query in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
            moved in proptest::sample::select(&ALL),
        ) {
            let path = [if has_slash { b"//".as_slice() } else { b"/" }, &path].concat();
            let Ok(path) = CanonicalPath::of(&path) else { return Ok(()) };
            let location = of(&path, query.as_deref(), moved);
            prop_assert!(location.iter().all(u8::is_ascii_graphic));
            prop_assert!(location[0] == b'/');
            prop_assert!(!matches!(location.get(1), Some(b'\\' | b'/')));
        }
    }
}
