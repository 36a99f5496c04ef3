//! What must hold for every path: its canonical form is that of a slow reference, and stays so.

use std::fmt::Write;

use gustnado_http::path::{CanonicalPath, PathError, as_sent};
use proptest::prelude::*;
use proptest::sample::select;

/// The rules, one after the other and without any shortcut: decoded segments, and whether a slash
/// is at the end. `None` for what gets 400.
fn reference(raw: &[u8]) -> Option<(Vec<Vec<u8>>, bool)> {
    if raw.first() != Some(&b'/') {
        return None;
    }
    let decoded: Vec<Vec<u8>> = raw[1..].split(|byte| *byte == b'/').map(decoded).collect();
    if decoded.iter().any(|segment| segment == b"..") {
        return None;
    }
    let is_dropped = |segment: &Vec<u8>| segment.is_empty() || segment == b".";
    let ends_with_slash = decoded.last().is_some_and(is_dropped);
    let names = decoded.into_iter().filter(|segment| !is_dropped(segment)).collect();
    Some((names, ends_with_slash))
}

/// Once, and a `%` that begins no escape is itself.
fn decoded(segment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < segment.len() {
        let digits =
            segment.get(at + 1..at + 3).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.map(|two| std::str::from_utf8(two).expect("digits are ASCII"));
        if let Some(digits) = digits.filter(|_| segment[at] == b'%') {
            bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
            at += 3;
        } else {
            bytes.push(segment[at]);
            at += 1;
        }
    }
    bytes
}

fn written((names, ends_with_slash): &(Vec<Vec<u8>>, bool)) -> String {
    let mut text = String::new();
    for name in names {
        text.push('/');
        for byte in name {
            let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte);
            if is_plain {
                text.push(char::from(*byte));
            } else {
                write!(text, "%{byte:02X}").expect("a string takes all text");
            }
        }
    }
    text + if *ends_with_slash { "/" } else { "" }
}

/// Pieces of paths, good and bad, that make interesting wholes when strung together.
fn path_soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "/", "/", "/", "//", ".", "..", "%2e", "%2E", "%", "%2", "%25", "%2f", "%2F", "%5c", "%00",
        "a", "b", "A", "%61", "%41", "+", "%2b", "%2B", "~", "%7e", ":", "@", "[", "%5B", "{", "}",
        "\\", "|", "%zz", "%c3%a9", "\u{e9}", "%ff", ";", "?", "*",
    ]);
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

fn rooted(path: &[u8]) -> Vec<u8> {
    [b"/".as_slice(), path].concat()
}

proptest! {
    #[test]
    fn the_canonical_form_is_that_of_the_reference(
        raw in prop_oneof![
            path_soup().prop_map(|path| rooted(&path)),
            path_soup(),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(|path| rooted(&path)),
        ],
    ) {
        let path = CanonicalPath::of(&raw);
        let Some(expected) = reference(&raw) else {
            prop_assert!(matches!(path, Err(PathError::Parent | PathError::NotRooted)));
            return Ok(());
        };
        let path = path.expect("the reference has one");
        prop_assert_eq!(path.as_str(), written(&expected));
        prop_assert_eq!(path.is_as_sent(), path.as_str().as_bytes() == raw);
        // Nothing is decoded twice, and the form of the form is itself.
        let again = CanonicalPath::of(path.as_str().as_bytes()).expect("it has one");
        prop_assert!(again.is_as_sent() && !again.has_stray_percent());
        prop_assert_eq!(reference(path.as_str().as_bytes()), Some(expected));
    }

    #[test]
    fn what_is_beneath_what_is_decided_by_segments(one in path_soup(), other in path_soup()) {
        let (one, other) = (rooted(&one), rooted(&other));
        let (Some(below), Some(base)) = (reference(&one), reference(&other)) else {
            return Ok(());
        };
        let longer = [&other[..], b"/", &one].concat();
        let of = |raw| CanonicalPath::of(raw).expect("the reference has one");
        prop_assert_eq!(of(&one).is_under(&of(&other)), below.0.starts_with(&base.0));
        prop_assert!(of(&longer).is_under(&of(&other)));
    }

    #[test]
    fn the_path_as_sent_means_the_same(raw in path_soup(), keeps_empty: bool) {
        let raw = rooted(&raw);
        let Ok(path) = CanonicalPath::of(&raw) else { return Ok(()) };
        let sent = as_sent(&raw, 0..path.as_str().len(), keeps_empty);
        let again = CanonicalPath::of(sent.as_bytes()).expect("it has one");
        prop_assert_eq!(again.as_str(), path.as_str());
        let has_empty = sent.trim_end_matches('/').contains("//");
        prop_assert!(keeps_empty || !has_empty, "{}", sent);
    }
}
