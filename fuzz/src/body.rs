//! The body: split-equals-whole, progress, bounds, what is written reads back, and that more is
//! waited for only while a body can come.
#![no_main]

#[path = "../../crates/http/tests/tails/mod.rs"]
mod tails;

use std::sync::LazyLock;

use gustnado_http::body::{BodyDecodeError, BodyDecoder};
use gustnado_http::chunk::{LAST_CHUNK, write_chunk};
use gustnado_http::head::Framing;
use gustnado_http::limits::Limits;
use libfuzzer_sys::fuzz_target;

/// Small, so that a fuzzer reaches them.
const LIMITS: Limits =
    Limits { head_bytes_max: 200, target_bytes_max: 10, fields_max: 4, body_bytes_max: 300 };

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let step = usize::from(*step) % 32 + 1;
    for framing in [Framing::Chunked, Framing::Length(bytes.len() as u64 / 2), Framing::None] {
        let whole = read(framing, bytes, usize::MAX / 2);
        assert_eq!(read(framing, bytes, step), whole);
        assert_eq!(read(framing, bytes, 1), whole);
    }
    if let Ok((.., false)) = read(Framing::Chunked, bytes, usize::MAX / 2) {
        assert!(TAILS.iter().any(|tail| is_open(&[bytes, tail].concat())));
    }
    round_trip(&bytes[..bytes.len().min(300)], step);
});

static TAILS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| tails::of_bodies(LIMITS.body_bytes_max as usize));

/// Whether that is a whole body, or one past a limit.
fn is_open(bytes: &[u8]) -> bool {
    use BodyDecodeError::{ChunkExtensionTooLong, TooLarge, TooManyTrailers, TrailersTooLarge};
    match read(Framing::Chunked, bytes, usize::MAX / 2) {
        Ok((.., done)) => done,
        Err((_, TooLarge { .. } | TooManyTrailers { .. } | TrailersTooLarge { .. })) => true,
        Err((_, error)) => error == ChunkExtensionTooLong,
    }
}

type Verdict = Result<(Vec<u8>, usize, bool), (Vec<u8>, BodyDecodeError)>;

fn read(framing: Framing, bytes: &[u8], step: usize) -> Verdict {
    let mut decoder = BodyDecoder::new(framing, &LIMITS);
    let (mut data, mut at, mut there) = (Vec::new(), 0, 0);
    loop {
        let piece = match decoder.decode(&bytes[at..there]) {
            Ok(piece) => piece,
            Err(error) => return Err((data, error)),
        };
        data.extend_from_slice(piece.data);
        assert!(piece.data.len() <= piece.consumed && piece.consumed <= there - at);
        assert!(
            data.len() as u64 == decoder.received() && decoder.received() <= LIMITS.body_bytes_max
        );
        at += piece.consumed;
        if piece.done {
            assert!(framing != Framing::Chunked || bytes[..at].ends_with(b"\r\n\r\n"));
            return Ok((data, at, true));
        }
        if at < there {
            assert!(piece.consumed > 0, "no progress");
        } else if there == bytes.len() {
            return Ok((data, at, false));
        } else {
            there = bytes.len().min(there.saturating_add(step));
        }
    }
}

fn round_trip(data: &[u8], step: usize) {
    let mut bytes = Vec::new();
    for chunk in data.chunks(step) {
        write_chunk(&mut bytes, chunk);
    }
    bytes.extend_from_slice(LAST_CHUNK);
    let len = bytes.len();
    assert_eq!(read(Framing::Chunked, &bytes, step), Ok((data.to_vec(), len, true)));
}
