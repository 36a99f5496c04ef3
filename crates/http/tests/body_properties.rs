//! What must hold for every body: however it is cut, whatever it is.

mod tails;

use std::sync::LazyLock;

use gustnado_http::body::{BodyDecodeError, BodyDecoder};
use gustnado_http::chunk::{LAST_CHUNK, write_chunk};
use gustnado_http::head::Framing;
use gustnado_http::limits::Limits;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const LIMITS: Limits =
    Limits { head_bytes_max: 60, target_bytes_max: 10, fields_max: 3, body_bytes_max: 200 };

/// The data, the bytes used up, and whether the body ended; or the data before the error, and the
/// error.
type Verdict = Result<(Vec<u8>, usize, bool), (Vec<u8>, BodyDecodeError)>;

/// Decodes bytes that come in pieces of these sizes, again and again.
fn read(framing: Framing, bytes: &[u8], sizes: &[usize]) -> Verdict {
    let mut decoder = BodyDecoder::new(framing, &LIMITS);
    let (mut data, mut at, mut there) = (Vec::new(), 0, 0);
    let mut sizes = sizes.iter().cycle();
    loop {
        let piece = match decoder.decode(&bytes[at..there]) {
            Ok(piece) => piece,
            Err(error) => return Err((data, error)),
        };
        data.extend_from_slice(piece.data);
        assert!(piece.data.len() <= piece.consumed);
        assert!(data.len() as u64 <= LIMITS.body_bytes_max);
        at += piece.consumed;
        if piece.done {
            return Ok((data, at, true));
        }
        if at == there {
            if there == bytes.len() {
                return Ok((data, at, false));
            }
            there = bytes.len().min(there + sizes.next().expect("it cycles"));
        } else {
            assert!(piece.consumed > 0, "no progress");
        }
    }
}

fn body_soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "0\r\n",
        "0\r\n\r\n",
        "1\r\na\r\n",
        "5\r\nhello\r\n",
        "A\r\n0123456789\r\n",
        "00f\r\n",
        "c8\r\n",
        "c9\r\n",
        "1;x=y\r\nb\r\n",
        "1 ;\r\nb\r\n",
        "2\t;a = \"b\\\"c;\" ; d\r\nbb\r\n",
        "3;a=",
        "\"b\"",
        "\\",
        "=",
        "ffffffffffffffff\r\n",
        "\r\n",
        "\r",
        "\n",
        "a: b\r\n",
        "X-Long: 012345678901234567890123456789\r\n",
        " ",
        ";",
        "g",
        "-",
        "hello",
        "\0",
        "é",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| tails::of_bodies(200));

/// Whether that is a whole body, or one past a limit.
fn is_open(verdict: &Verdict) -> bool {
    use BodyDecodeError::{ChunkExtensionTooLong, TooLarge, TooManyTrailers, TrailersTooLarge};
    match verdict {
        Ok((.., done)) => *done,
        Err((_, TooLarge { .. } | TooManyTrailers { .. } | TrailersTooLarge { .. })) => true,
        Err((_, error)) => *error == ChunkExtensionTooLong,
    }
}

fn framings() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::None), Just(Framing::Chunked), (0..250_u64).prop_map(Framing::Length)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_body_cut_at_any_byte_reads_the_same(
        framing in framings(),
        bytes in body_soup(),
        sizes in prop::collection::vec(1_usize..12, 1..6),
    ) {
        let whole = read(framing, &bytes, &[usize::MAX / 2]);
        prop_assert_eq!(&read(framing, &bytes, &sizes), &whole);
        prop_assert_eq!(&read(framing, &bytes, &[1]), &whole);
    }

    #[test]
    fn bytes_that_need_more_can_become_a_body(bytes in body_soup(), cut: Index) {
        let begun = &bytes[..cut.index(bytes.len() + 1)];
        let whole = |bytes: &[u8]| read(Framing::Chunked, bytes, &[usize::MAX / 2]);
        if let Ok((.., false)) = whole(begun) {
            let is_end = |tail: &Vec<u8>| is_open(&whole(&[begun, tail].concat()));
            prop_assert!(TAILS.iter().any(is_end), "{}", begun.escape_ascii());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        framing in framings(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = read(framing, &bytes, &[usize::MAX / 2]);
    }

    #[test]
    fn written_chunks_read_back_as_the_same_data(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..10),
        sizes in prop::collection::vec(1_usize..30, 1..6),
        next in "[ -~]{0,20}",
    ) {
        let mut bytes = Vec::new();
        for chunk in &chunks {
            write_chunk(&mut bytes, chunk);
        }
        bytes.extend_from_slice(LAST_CHUNK);
        let end = bytes.len();
        bytes.extend_from_slice(next.as_bytes());
        prop_assert_eq!(read(Framing::Chunked, &bytes, &sizes), Ok((chunks.concat(), end, true)));
    }
}
