//! The response: split-equals-whole, agreement with httparse on heads, progress and bounds in
//! bodies, and that a head is waited for only while one can come.
#![no_main]

#[path = "../../crates/http/tests/tails/mod.rs"]
mod tails;

use std::sync::LazyLock;

use gustnado_http::head::Decoded;
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::response::{ResponseBody, ResponseError, ResponseFraming, ResponseHead};
use libfuzzer_sys::fuzz_target;

/// Small, so that a fuzzer reaches them.
const LIMITS: Limits =
    Limits { head_bytes_max: 512, target_bytes_max: 10, fields_max: 10, body_bytes_max: 300 };

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let method = Method::ALL[usize::from(*choice) % Method::ALL.len()];
    let step = usize::from(*choice) % 64 + 1;
    let whole = ResponseHead::decode(bytes, &mut 0, method, &LIMITS);
    let split = trickle(bytes, method, step);
    assert!(split == whole || (split == Ok(Decoded::NeedMore) && whole.is_err()));
    match whole {
        Ok(Decoded::Done(head)) => {
            check(bytes, &head, method);
            bodies(head.framing(), &bytes[head.len()..], step);
        }
        Ok(Decoded::NeedMore) => {
            assert!(bytes.len() < LIMITS.head_bytes_max);
            assert!(TAILS.iter().any(|tail| is_open(&[bytes, tail].concat(), method)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    bodies(ResponseFraming::Chunked, bytes, step);
});

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(tails::of_responses);

/// Whether that is a head, or bytes that could not be known to be none before they were whole.
fn is_open(bytes: &[u8], method: Method) -> bool {
    use ResponseError::{CodingUnknown, LengthConflict, TooLarge, TooManyFields};
    match ResponseHead::decode(bytes, &mut 0, method, &LIMITS) {
        Ok(decoded) => decoded != Decoded::NeedMore,
        // (Of a list that begins with any number, no tail knows which one has to follow.)
        Err(error) => {
            matches!(error, CodingUnknown | LengthConflict | TooLarge { .. } | TooManyFields { .. })
        }
    }
}

fn trickle(
    bytes: &[u8],
    method: Method,
    step: usize,
) -> Result<Decoded<ResponseHead>, ResponseError> {
    let (mut seen, mut there) = (0, 0);
    loop {
        there = bytes.len().min(there + step);
        match ResponseHead::decode(&bytes[..there], &mut seen, method, &LIMITS) {
            Ok(Decoded::NeedMore) if there < bytes.len() => {}
            verdict => return verdict,
        }
    }
}

fn check(bytes: &[u8], head: &ResponseHead, method: Method) {
    assert!(head.len() <= bytes.len().min(LIMITS.head_bytes_max));
    assert!(bytes[..head.len()].ends_with(b"\r\n\r\n"));
    assert!((100..1000).contains(&head.status()));
    if head.is_interim() || method == Method::Head {
        assert_eq!(head.framing(), ResponseFraming::None);
    }
    if matches!(head.framing(), ResponseFraming::UntilClose | ResponseFraming::Tunnel) {
        assert!(!head.keep_alive());
    }
    let response = head.on(bytes);
    let fields: Vec<_> = response.fields().collect();
    assert!(fields.len() <= LIMITS.fields_max);
    assert!(fields.iter().all(|(_, value)| !value.iter().any(|byte| b"\r\n\0".contains(byte))));

    // httparse knows no minor version above 1.
    let mut bytes = bytes.to_vec();
    bytes[7] = bytes[7].min(b'1');
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut oracle = httparse::Response::new(&mut room);
    assert_eq!(oracle.parse(&bytes), Ok(httparse::Status::Complete(head.len())));
    assert_eq!(oracle.code, Some(response.status()));
    let theirs: Vec<_> =
        oracle.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
    assert_eq!(fields, theirs);
}

fn bodies(framing: ResponseFraming, bytes: &[u8], step: usize) {
    let whole = read(framing, bytes, usize::MAX / 2);
    for step in [1, step] {
        let cut = read(framing, bytes, step);
        // Past a limit, more of the data may have been handed on before the error.
        assert!(cut == whole || (cut.1 == Err(()) && whole.1 == Err(())));
    }
}

/// The data, and the bytes used up, whether the body ended, and how many trailers it has.
type Verdict = (Vec<u8>, Result<(usize, bool, usize), ()>);

fn read(framing: ResponseFraming, bytes: &[u8], step: usize) -> Verdict {
    let mut body = ResponseBody::new(framing, &LIMITS);
    let (mut data, mut at, mut there) = (Vec::new(), 0, 0);
    loop {
        let Ok(piece) = body.decode(&bytes[at..there]) else { return (data, Err(())) };
        data.extend_from_slice(piece.data);
        assert!(piece.data.len() <= piece.consumed && piece.consumed <= there - at);
        assert!(data.len() as u64 == body.received());
        assert!(body.received() <= LIMITS.body_bytes_max);
        at += piece.consumed;
        if piece.done || (at == there && there == bytes.len()) {
            let trailers = body.trailers().map_or(0, Iterator::count);
            assert!(trailers <= LIMITS.fields_max && (piece.done || trailers == 0));
            return (data, Ok((at, piece.done, trailers)));
        }
        if at < there {
            assert!(piece.consumed > 0, "no progress");
        } else {
            there = bytes.len().min(there.saturating_add(step));
        }
    }
}
