//! The `Location` of a redirect to a directory (RFC 9110 §10.2.2).

use std::io::Write;

use gustnado_http::path::CanonicalPath;

/// Returns the address of a directory: its path, with a slash added.
///
/// It starts with exactly one slash, because two would name another host (RFC 3986 §4.2): a
/// canonical path has no empty segment. Bytes that a URI does not allow are escaped.
pub(super) fn with_slash(path: &CanonicalPath<'_>, query: Option<&[u8]>) -> Vec<u8> {
    let path = path.as_str().as_bytes();
    let mut location = Vec::with_capacity(path.len() + 1);
    location.extend_from_slice(path);
    if !path.ends_with(b"/") {
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

    fn location(path: &str, query: Option<&str>) -> String {
        let path = CanonicalPath::of(path.as_bytes()).expect("a path that is served");
        let location = with_slash(&path, query.map(str::as_bytes));
        String::from_utf8(location).expect("a location is ASCII")
    }

    #[test]
    fn a_slash_is_added_and_the_query_kept() {
        assert_eq!(location("/docs", None), "/docs/");
        assert_eq!(location("/a%20b", Some("x=1&y=%2f")), "/a%20b/?x=1&y=%2f");
        assert_eq!(location("/docs", Some("")), "/docs/?");
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
        ) {
            let path = [if has_slash { b"//".as_slice() } else { b"/" }, &path].concat();
            let Ok(path) = CanonicalPath::of(&path) else { return Ok(()) };
            let location = with_slash(&path, query.as_deref());
            prop_assert!(location.iter().all(u8::is_ascii_graphic));
            prop_assert!(location[0] == b'/');
            prop_assert!(!matches!(location.get(1), Some(b'\\' | b'/')));
        }
    }
}
