use super::*;
use gustnado_http::path::CanonicalPath;
use proptest::prelude::*;

/// Returns the result for a path as it was sent.
fn found(raw: &[u8], hidden: bool) -> Result<FilePath, FilePathError> {
    let path = CanonicalPath::of(raw).map_err(|_| FilePathError::Malformed)?;
    decode(path.as_str().as_bytes(), hidden)
}

fn relative(raw: &str) -> String {
    let path = found(raw.as_bytes(), false).expect("a path that is served");
    String::from_utf8(path.relative).expect("test paths are UTF-8")
}

#[test]
fn ordinary_paths_are_decoded_once() {
    let cases = [
        ("/", ""),
        ("/a", "a"),
        ("/a/b.html", "a/b.html"),
        ("/a/", "a"),
        ("/a%20b", "a b"),
        ("/%61%62", "ab"),
        ("/%C3%A9", "é"),
        ("/%252e%252e/x", "%2e%2e/x"),
        ("/%252fetc", "%2fetc"),
        ("/a//b", "a/b"),
        ("//a", "a"),
        ("/./a/./b/.", "a/b"),
        ("/a/%2e/b", "a/b"),
        ("/.", ""),
        ("/100%25", "100%"),
        ("/a+b", "a+b"),
        ("/a..b", "a..b"),
        ("/a./b", "a./b"),
        ("/.well-known/x", ".well-known/x"),
    ];
    for (raw, expected) in cases {
        assert_eq!(relative(raw), expected, "{raw}");
    }
}

#[test]
fn hostile_paths_are_refused_with_hidden_names_and_without() {
    for raw in [
        "/..",
        "/../",
        "/../etc/passwd",
        "/a/../b",
        "/a/..",
        "/%2e%2e/etc/passwd",
        "/%2E%2E/x",
        "/.%2e/x",
        "/%2e./x",
        "/..%2fetc/passwd",
        "/a%2fb",
        "/a%2Fb",
        "/%2f",
        "/%2fetc/passwd",
        "/..%5cx",
        "/..\\..\\x",
        "/a\\b",
        "/%5c",
        "/%5Ca",
        "\\..",
        "/a%00",
        "/%00",
        "/a%00.html",
        "/a/%2e%2e/%2e%2e/x",
        "//../x",
        "/a//..//x",
        "/a\0b",
        "/%2e%2e%2f",
        "/%2e%2e%5c",
    ] {
        for hidden in [false, true] {
            let leads_upwards = CanonicalPath::of(raw.as_bytes()).is_err();
            let reason =
                if leads_upwards { FilePathError::Malformed } else { FilePathError::Refused };
            assert_eq!(found(raw.as_bytes(), hidden), Err(reason), "{raw}");
            // The second wall does not rely on the first one.
            assert!(decode(raw.as_bytes(), hidden).is_err(), "{raw}");
        }
    }
}

#[test]
fn what_has_no_root_is_malformed() {
    for raw in ["", "a", "*", "%2f"] {
        assert_eq!(decode(raw.as_bytes(), false), Err(FilePathError::Malformed), "{raw}");
    }
}

#[test]
fn names_with_a_leading_dot_are_hidden_unless_asked_for() {
    for raw in ["/.git/config", "/a/.env", "/%2eenv", "/.well-known2", "/...", "/..a/b"] {
        assert_eq!(found(raw.as_bytes(), false), Err(FilePathError::Refused), "{raw}");
        assert!(found(raw.as_bytes(), true).is_ok(), "{raw}");
    }
}

#[test]
fn a_path_too_long_for_the_kernel_is_refused() {
    let path = format!("/{}", "a/".repeat(2_048));
    assert!(found(&path.as_bytes()[..4_096], false).is_ok());
    let path = format!("/{}", "ab/".repeat(1_366));
    assert_eq!(found(path.as_bytes(), false), Err(FilePathError::Refused));
}

proptest! {
    #[test]
    fn no_path_yields_a_segment_that_leads_astray(
        raw in "/([./%\\\\]|%2[eEfF]|%5c|%00|%25|[a-c]){0,12}", hidden: bool,
    ) {
        check_all_segments(raw.as_bytes(), hidden);
    }

    #[test]
    fn no_bytes_yield_a_segment_that_leads_astray(
        raw in proptest::collection::vec(any::<u8>(), 0..60), hidden: bool,
    ) {
        check_all_segments(&raw, hidden);
    }
}

fn check_all_segments(raw: &[u8], hidden: bool) {
    for path in [found(raw, hidden), decode(raw, hidden)].into_iter().flatten() {
        check_relative(&path);
    }
}

fn check_relative(path: &FilePath) {
    assert!(!path.relative.starts_with(b"/") && !path.relative.ends_with(b"/"));
    for name in path.relative.split(|byte| *byte == b'/') {
        assert!(name != b".." && name != b".");
        assert!(!name.contains(&0) && !name.contains(&b'\\'));
        assert!(!name.is_empty() || path.relative.is_empty());
    }
}
