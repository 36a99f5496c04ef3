//! The canonical path: agreement with a slow reference, no second decoding, and no spelling that
//! reaches a file past a route that guards it.
#![no_main]

use gustnado::test::TestClient;
use gustnado::{Request, Routes, Status};
use gustnado_http::path::{CanonicalPath, as_sent};
use libfuzzer_sys::fuzz_target;

/// A folder to serve: the corpora. What is in that of this target is guarded.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
const GUARD: &str = "/path/{*rest}";

thread_local! {
    static CLIENT: TestClient = TestClient::new(
        &Routes::new().root(ROOT).any(GUARD, |_: &Request| (Status::FORBIDDEN, "guarded")),
    );
}

fuzz_target!(|input: &[u8]| {
    let [mode, raw @ ..] = input else { return };
    let expected = reference(raw);
    let path = CanonicalPath::of(raw).ok();
    assert_eq!(path.as_ref().map(CanonicalPath::as_str), expected.as_ref().map(written).as_deref());
    if let (Some(path), Some(expected)) = (path, &expected) {
        check(raw, &path, expected);
    }
    // Asking costs a thousand times as much.
    let is_target = raw.first() == Some(&b'/') && raw.iter().all(|byte| is_target(*byte));
    if mode % 4 == 0 && is_target {
        ask(raw, expected.as_ref());
    }
});

fn check(raw: &[u8], path: &CanonicalPath<'_>, expected: &Segments) {
    assert_eq!(path.is_as_sent(), path.as_str().as_bytes() == raw);
    let again = CanonicalPath::of(path.as_str().as_bytes()).expect("it has one");
    assert!(again.is_as_sent() && !again.has_stray_percent());
    assert_eq!(reference(path.as_str().as_bytes()).as_ref(), Some(expected));
    for keeps_empty in [false, true] {
        let sent = as_sent(raw, 0..path.as_str().len(), keeps_empty);
        if raw.is_ascii() {
            let again = CanonicalPath::of(sent.as_bytes()).expect("it has one");
            assert_eq!(again.as_str(), path.as_str());
        }
    }
    let base = CanonicalPath::of(b"/path").expect("it has one");
    assert_eq!(path.is_under(&base), expected.0.first().is_some_and(|name| name == b"path"));
    let decoded = path.reborrow().into_decoded();
    let slashes = decoded.bytes().filter(|byte| *byte == b'/').count();
    assert_eq!(slashes, expected.0.len() + usize::from(expected.1));
    assert!(!decoded.contains(['\\', '\0']));
}

/// A guarded path is answered by its guard, and what goes upwards by nobody.
fn ask(raw: &[u8], expected: Option<&Segments>) {
    let target = std::str::from_utf8(raw).expect("targets are ASCII");
    let Ok(answer) = CLIENT.with(|client| client.get(target).try_send()) else { return };
    let status = answer.status();
    let Some((names, ends_with_slash)) = expected else {
        assert_eq!(status, 400, "{target}");
        return;
    };
    let is_below = names.len() > 1 || *ends_with_slash;
    if names.first().is_some_and(|name| name == b"path") && is_below {
        assert!(status == 403 || (status == 400 && raw.contains(&b'\\')), "{target}: {status}");
    } else {
        assert!(answer.text() != "guarded", "{target}");
    }
}

/// A byte of a path as it may be sent.
fn is_target(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#<>?".contains(&byte)
}

/// Decoded segments, and whether a slash is at the end.
type Segments = (Vec<Vec<u8>>, bool);

/// The rules, one after the other and without any shortcut. `None` for what gets 400.
fn reference(raw: &[u8]) -> Option<Segments> {
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
        match digits.filter(|_| segment[at] == b'%') {
            Some(digits) => {
                let digits = std::str::from_utf8(digits).expect("digits are ASCII");
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                at += 3;
            }
            None => {
                bytes.push(segment[at]);
                at += 1;
            }
        }
    }
    bytes
}

fn written((names, ends_with_slash): &Segments) -> String {
    let mut text = String::new();
    for name in names {
        text.push('/');
        for byte in name {
            if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte) {
                text.push(char::from(*byte));
            } else {
                text += &format!("%{byte:02X}");
            }
        }
    }
    text + if *ends_with_slash { "/" } else { "" }
}
