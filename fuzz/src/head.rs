//! The head: split-equals-whole, agreement with httparse, bounds, and that a head is waited for
//! only while one can come.
#![no_main]

#[path = "../../crates/http/tests/tails/mod.rs"]
mod tails;

use std::sync::LazyLock;

use gustnado_http::head::{Decoded, Head, HeadError, Version};
use gustnado_http::limits::Limits;
use libfuzzer_sys::fuzz_target;

/// Small, so that a fuzzer reaches them.
const LIMITS: Limits =
    Limits { head_bytes_max: 512, target_bytes_max: 100, fields_max: 10, body_bytes_max: 1_000 };

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let whole = Head::decode(bytes, &mut 0, &LIMITS);
    let split = trickle(bytes, usize::from(*step) % 64 + 1);
    assert!(split == whole || (split == Ok(Decoded::NeedMore) && whole.is_err()));
    match whole {
        Ok(Decoded::Done(head)) => check(bytes, &head),
        Ok(Decoded::NeedMore) => {
            assert!(bytes.len() < LIMITS.head_bytes_max);
            assert!(TAILS.iter().any(|tail| is_open(&[bytes, tail].concat())));
        }
        Err(error) => {
            assert!((400..=505).contains(&error.status().code()) && !error.name().is_empty())
        }
    }
});

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(tails::of_heads);

/// Whether that is a head, or bytes that could not be known to be none before they were whole.
fn is_open(bytes: &[u8]) -> bool {
    use HeadError::{CodingUnknown, MethodUnknown, VersionUnknown};
    use HeadError::{TargetTooLong, TooLarge, TooManyFields};
    match Head::decode(bytes, &mut 0, &LIMITS) {
        Ok(decoded) => decoded != Decoded::NeedMore,
        Err(TargetTooLong { .. } | TooLarge { .. } | TooManyFields { .. }) => true,
        Err(error) => matches!(error, CodingUnknown | MethodUnknown | VersionUnknown),
    }
}

fn trickle(bytes: &[u8], step: usize) -> Result<Decoded<Head>, HeadError> {
    let mut seen = 0;
    let mut there = 0;
    loop {
        there = bytes.len().min(there + step);
        match Head::decode(&bytes[..there], &mut seen, &LIMITS) {
            Ok(Decoded::NeedMore) if there < bytes.len() => {}
            verdict => return verdict,
        }
    }
}

fn check(bytes: &[u8], head: &Head) {
    assert!(head.len() <= bytes.len().min(LIMITS.head_bytes_max));
    assert!(bytes[..head.len()].ends_with(b"\r\n\r\n"));
    let request = head.on(bytes);
    assert!(request.target().len() <= LIMITS.target_bytes_max);
    assert!(request.path().starts_with(b"/") || request.path() == b"*");
    assert!(
        request.version() == Version::Http10 || request.host().is_some_and(|host| !host.is_empty())
    );
    let fields: Vec<_> = request.fields().collect();
    assert!(fields.len() <= LIMITS.fields_max);
    assert!(fields.iter().all(|(_, value)| !value.iter().any(|byte| b"\r\n\0".contains(byte))));

    // httparse knows no minor version above 1.
    let mut bytes = bytes.to_vec();
    let version = bytes.windows(8).position(|bytes| bytes == b" HTTP/1.").expect("a request line");
    bytes[version + 8] = bytes[version + 8].min(b'1');
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut oracle = httparse::Request::new(&mut room);
    assert_eq!(oracle.parse(&bytes), Ok(httparse::Status::Complete(head.len())));
    assert_eq!(oracle.method, std::str::from_utf8(request.method_token()).ok());
    assert_eq!(oracle.path.map(str::as_bytes), Some(request.target()));
    assert_eq!(oracle.version, Some(u8::from(request.version() == Version::Http11)));
    let theirs: Vec<_> =
        oracle.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
    assert_eq!(fields, theirs);
}
