use super::{BodyDecodeError, BodyDecoder};
use crate::head::Framing;
use crate::limits::Limits;

const LIMITS: Limits =
    Limits { head_bytes_max: 100, target_bytes_max: 10, fields_max: 2, body_bytes_max: 1_000 };

/// The whole body, how many bytes it took, and whether it ended.
fn read(
    framing: Framing,
    input: &[u8],
    step: usize,
) -> Result<(Vec<u8>, usize, bool), BodyDecodeError> {
    let mut decoder = BodyDecoder::new(framing, &LIMITS);
    let (mut data, mut at, mut there) = (Vec::new(), 0, 0);
    loop {
        let piece = decoder.decode(&input[at..there])?;
        data.extend_from_slice(piece.data);
        at += piece.consumed;
        assert_eq!(piece.done, decoder.is_done());
        assert_eq!(decoder.received(), data.len() as u64);
        if piece.done {
            return Ok((data, at, true));
        }
        if at == there {
            if there == input.len() {
                return Ok((data, at, false));
            }
            there = input.len().min(there + step);
        }
    }
}

fn chunked(input: &str) -> Result<(Vec<u8>, usize, bool), BodyDecodeError> {
    let whole = read(Framing::Chunked, input.as_bytes(), usize::MAX / 2);
    for step in 1..20 {
        assert_eq!(read(Framing::Chunked, input.as_bytes(), step), whole, "{input:?} by {step}");
    }
    whole
}

#[test]
fn a_body_of_known_length_ends_where_it_should() {
    assert_eq!(read(Framing::None, b"GET", 9), Ok((vec![], 0, true)));
    assert_eq!(read(Framing::Length(0), b"GET", 9), Ok((vec![], 0, true)));
    for step in 1..9 {
        assert_eq!(read(Framing::Length(4), b"bodyGET", step), Ok((b"body".to_vec(), 4, true)));
        assert_eq!(read(Framing::Length(4), b"bod", step), Ok((b"bod".to_vec(), 3, false)));
    }
}

#[test]
fn a_body_announced_too_large_is_refused_before_its_first_byte() {
    for (bytes, refused) in [(1_000, false), (1_001, true), (u64::MAX, true)] {
        let mut decoder = BodyDecoder::new(Framing::Length(bytes), &LIMITS);
        assert_eq!(decoder.decode(b"").is_err(), refused, "{bytes}");
    }
    let error =
        BodyDecoder::new(Framing::Length(1_001), &LIMITS).decode(b"").expect_err("too large");
    assert_eq!(error.status().code(), 413);
}

#[test]
fn chunks_become_one_body() {
    for (input, data) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("1\r\na\r\n00A\r\n0123456789\r\n0\r\n\r\n", "a0123456789"),
        ("1;a\r\na\r\n1 ; b=c;d=\"e f\"\r\nb\r\n0;x\r\n\r\n", "ab"),
        ("1\t;\ta \t=\tb \t;\tc\r\na\r\n1;a=\"\\\"\\\\;\té\" ;b\r\nb\r\n0;x=\"\"\r\n\r\n", "ab"),
        ("1\r\na\r\n0\r\nTrailer: x y\r\nOther:\r\n\r\n", "a"),
        ("2\r\n\r\n\r\n0000000000000000\r\n\r\n", "\r\n"),
    ] {
        let input = format!("{input}GET / HTTP/1.1\r\n");
        assert_eq!(
            chunked(&input),
            Ok((data.as_bytes().to_vec(), input.len() - 16, true)),
            "{input:?}"
        );
        let cut = &input[..input.len() - 17];
        assert!(matches!(chunked(cut), Ok((_, at, false)) if at == cut.len()), "{cut:?}");
    }
}

#[test]
fn trailer_lines_are_kept_if_they_are_wanted() {
    for (input, lines) in [
        ("1\r\na\r\n0\r\nA: b\r\nC:\r\n\r\n", Some("A: b\r\nC:\r\n")),
        ("0\r\nA:\t b \r\n\r\n", Some("A:\t b \r\n")),
        ("1;x=y\r\na\r\n0;z\r\n\r\n", None),
    ] {
        for cut in 0..input.len() {
            for is_wanted in [true, false] {
                let mut decoder = BodyDecoder::new(Framing::Chunked, &LIMITS);
                decoder.keep_trailers(is_wanted);
                for mut rest in [&input[..cut], &input[cut..]].map(str::as_bytes) {
                    assert_eq!(decoder.take_trailers(), None, "the body is not over");
                    while !rest.is_empty() {
                        let piece = decoder.decode(rest).expect("it is well-formed");
                        rest = &rest[piece.consumed..];
                    }
                }
                let kept = lines.filter(|_| is_wanted).map(|lines| lines.as_bytes().to_vec());
                assert!(decoder.is_done() && decoder.take_trailers() == kept, "{input:?} {cut}");
            }
        }
    }
    let mut decoder = BodyDecoder::new(Framing::Chunked, &LIMITS);
    decoder.keep_trailers(true);
    decoder.decode(b"0\r\nA: b").expect("it is well-formed so far");
    assert_eq!(decoder.trailer_lines(), b"A: b");
    decoder.keep_trailers(false);
    assert_eq!(decoder.trailer_lines(), b"", "they are not wanted any more");
}

#[test]
fn each_bad_chunk_has_its_status() {
    let long = "a".repeat(300);
    let extensions = "1;eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\r\na\r\n".repeat(100);
    for (input, status) in [
        ("\r\n", 400),
        (";a\r\n", 400),
        ("g\r\n", 400),
        ("-1\r\n", 400),
        ("+1\r\n", 400),
        ("0x1\r\n", 400),
        (" 1\r\n", 400),
        ("1 \r\na\r\n", 400),
        ("1_0\r\n", 400),
        ("1\na\r\n0\r\n\r\n", 400),
        ("1\ra\r\n", 400),
        ("1\r\nab\r\n", 400),
        ("1\r\na\n0\r\n\r\n", 400),
        ("1\r\na\rb", 400),
        ("1\r\na0\r\n\r\n", 400),
        ("2;\nxx\r\n0\r\n\r\n", 400),
        ("2;a\nxx\r\n", 400),
        ("2;a\0\r\nxx\r\n", 400),
        ("2 a\r\nxx\r\n", 400),
        ("2;\r\nxx\r\n", 400),
        ("2; \r\nxx\r\n", 400),
        ("2;;a\r\nxx\r\n", 400),
        ("2;a;\r\nxx\r\n", 400),
        ("2;a \r\nxx\r\n", 400),
        ("2;a b\r\nxx\r\n", 400),
        ("2;a=\r\nxx\r\n", 400),
        ("2;a=b \r\nxx\r\n", 400),
        ("2;a=b=c\r\nxx\r\n", 400),
        ("2;=b\r\nxx\r\n", 400),
        ("2;a[=b\r\nxx\r\n", 400),
        ("2;a=b\"c\"\r\nxx\r\n", 400),
        ("2;a=\"b\r\nxx\r\n", 400),
        ("2;a=\"b\\\r\n\"\r\nxx\r\n", 400),
        ("2;a=\"b\"c\r\nxx\r\n", 400),
        ("2;a=\"b\" \r\nxx\r\n", 400),
        ("2;\"a\"\r\nxx\r\n", 400),
        ("2;é\r\nxx\r\n", 400),
        ("10000000000000000\r\n", 400),
        ("00000000000000001\r\n", 400),
        ("FFFFFFFFFFFFFFFFF\r\n", 400),
        ("FFFFFFFFFFFFFFFF\r\n", 413),
        ("3e9\r\n", 413),
        ("0\r\nX\r\n\r\n", 400),
        ("0\r\nX : y\r\n\r\n", 400),
        ("0\r\n: y\r\n\r\n", 400),
        ("0\r\n x: y\r\n\r\n", 400),
        ("0\r\nx: y\n\r\n", 400),
        ("0\r\nx: y\r\n z\r\n\r\n", 400),
        ("0\r\nx: \x01\r\n\r\n", 400),
        ("0\r\n\n", 400),
        ("0\r\n\rX", 400),
        ("0\r\na: b\r\nc: d\r\ne: f\r\n\r\n", 431),
        (&format!("0\r\na: {long}\r\n\r\n"), 431),
        (&format!("1;{long}\r\n"), 400),
        (&extensions, 400),
    ] {
        let error = chunked(input).expect_err(input);
        assert_eq!(error.status().code(), status, "{input:?}: {error}");
    }
}

#[test]
fn the_limit_counts_all_chunks_together() {
    let hundred = format!("64\r\n{}\r\n", "a".repeat(100));
    let full = format!("{}0\r\n\r\n", hundred.repeat(10));
    assert!(matches!(chunked(&full), Ok((data, _, true)) if data.len() == 1_000));
    let past = format!("{}1\r\na\r\n0\r\n\r\n", hundred.repeat(10));
    assert_eq!(chunked(&past), Err(BodyDecodeError::TooLarge { limit_bytes: 1_000 }));
}

#[test]
fn a_finished_decoder_takes_nothing_more() {
    let mut decoder = BodyDecoder::new(Framing::Chunked, &LIMITS);
    let piece = decoder.decode(b"0\r\n\r\n").expect("a whole body");
    assert!(piece.done && piece.consumed == 5);
    let piece = decoder.decode(b"5\r\nhello").expect("nothing to read");
    assert!(piece.done && piece.consumed == 0 && piece.data.is_empty());
}
