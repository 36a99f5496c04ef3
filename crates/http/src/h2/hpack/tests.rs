//! The examples of RFC 7541, appendix C, and round trips.

use proptest::prelude::*;

use super::*;
use crate::fields::{FieldName, Fields, HeaderId};

type Pairs = Vec<(String, String)>;

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Pairs, HpackError> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    let each = |name: &[u8], value: &[u8]| fields.push((text(name), text(value)));
    decoder.decode(block, &mut Strings::default(), each)?;
    Ok(fields)
}

fn pairs(fields: &[(&str, &str)]) -> Pairs {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("hex");
        u8::from_str_radix(text, 16).expect("hex")
    };
    digits.chunks(2).map(byte).collect()
}

#[test]
fn requests_of_the_rfc_are_decoded() {
    // C.3 and C.4: the same requests, without and with the Huffman code.
    for blocks in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut next = |block: &str| decoded(&mut decoder, &bytes(block)).expect("an example");
        let first = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
        ];
        assert_eq!(next(blocks[0]), pairs(&first));
        assert_eq!(
            next(blocks[1]),
            pairs(&[&first[..], &[("cache-control", "no-cache")]].concat())
        );
        let third = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ];
        assert_eq!(next(blocks[2]), pairs(&third));
    }
}

#[test]
fn a_table_of_256_bytes_evicts_as_the_rfc_shows() {
    // C.6: responses.
    let mut decoder = Decoder::new(256);
    let mut next = |block: &str| decoded(&mut decoder, &bytes(block)).expect("an example");
    let first = next(
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
    );
    let date = "Mon, 21 Oct 2013 20:13:21 GMT";
    let location = ("location", "https://www.example.com");
    let of = |status, date| {
        pairs(&[(":status", status), ("cache-control", "private"), ("date", date), location])
    };
    assert_eq!(first, of("302", date));
    assert_eq!(next("4883 640e ffc1 c0bf"), of("307", date));
    let third = next(
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
         4ee5 b106 3d50 07",
    );
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let wanted = [
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        location,
        ("content-encoding", "gzip"),
        ("set-cookie", cookie),
    ];
    assert_eq!(third, pairs(&wanted));
}

#[test]
fn blocks_that_break_the_rules_are_refused() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("ff00", HpackError::Index),
        ("82 3f", HpackError::TableSize),
        ("3fe2 1f", HpackError::TableSize),
        ("20 20 20", HpackError::TableSize),
        ("40", HpackError::Truncated),
        ("41 0f77", HpackError::Truncated),
        ("ff80 8080 8080 01", HpackError::Integer),
        ("ffff ffff ff7f", HpackError::Integer),
        ("4181 00", HpackError::Padding),
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES);
        assert_eq!(decoded(&mut decoder, &bytes(block)), Err(error), "{block}");
    }
    let mut decoder = Decoder::new(TABLE_BYTES);
    decoder.set_max_bytes(100);
    assert_eq!(decoded(&mut decoder, &bytes("82")), Err(HpackError::TableSize), "it is due");
    assert_eq!(decoded(&mut decoder, &bytes("3f45 82")), Ok(pairs(&[(":method", "GET")])));
}

#[test]
fn lines_of_every_response_are_two_bytes_the_second_time() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(TABLE_BYTES));
    let mut fixed = Fields::new();
    fixed.add("Server", "gustnado").expect("a field");
    fixed.add("X-Frame-Options", "DENY").expect("a field");
    let date = |secs: u8| {
        *format!("Sun, 06 Nov 1994 08:49:{secs:02} GMT").as_bytes().first_chunk().expect("29")
    };
    let mut lens = Vec::new();
    for (of, secs) in [(1, 1), (1, 1), (1, 2), (1, 2), (2, 2), (2, 2)] {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        encoder.status(200, &mut out);
        encoder.lines(&ResponseLines::new(of, fixed.clone(), secs.into(), date(secs)), &mut out);
        lens.push(out.len());
        let text = String::from_utf8(date(secs).to_vec()).expect("ASCII");
        let wanted = [
            (":status", "200"),
            ("server", "gustnado"),
            ("x-frame-options", "DENY"),
            ("date", &text),
        ];
        assert_eq!(decoded(&mut decoder, &out), Ok(pairs(&wanted)));
    }
    assert_eq!((lens[1], lens[3], lens[5]), (4, 4, 4), "{lens:?}");
    assert!(lens[2] < lens[0], "the date alone is new: {lens:?}");
}

#[test]
fn secrets_and_what_is_ever_new_are_not_kept() {
    let mut encoder = Encoder::new();
    let mut block = |name: HeaderId, value: &str| {
        let mut out = Vec::new();
        encoder.field(name.into(), value.as_bytes(), &mut out);
        out
    };
    let once = block(HeaderId::SetCookie, "a=b");
    assert_eq!((once[0] & 0xf0, &block(HeaderId::SetCookie, "a=b")), (0x10, &once));
    let once = block(HeaderId::ETag, "\"1\"");
    assert_eq!((once[0] & 0xf0, &block(HeaderId::ETag, "\"1\"")), (0, &once));
    assert!(block(HeaderId::CacheControl, "no-cache").len() > 1);
    assert_eq!(block(HeaderId::CacheControl, "no-cache"), [0xbe]);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..HeaderId::ALL.len()).prop_map(|at| HeaderId::ALL[at].name().to_owned()),
        "[a-zA-Z][a-zA-Z0-9-]{0,80}",
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,40}", "[ -~]{300,400}"]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        blocks in prop::collection::vec(
            (
                prop::option::weighted(0.2, 0_usize..5_000),
                (200_u16..600, prop::option::of(1_u8..4), 0_u64..100_000),
                prop::collection::vec((name(), value()), 0..20),
            ),
            1..12,
        ),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(TABLE_BYTES));
        for (resize, (status, kind, length), fields) in blocks {
            if let Some(bytes) = resize {
                encoder.set_max_bytes(bytes);
            }
            let mut out = Vec::new();
            encoder.begin(&mut out);
            encoder.status(status, &mut out);
            let mut wanted = vec![(":status".to_owned(), status.to_string())];
            wanted.extend(kind.map(|of| {
                let value = format!("text/{of}");
                encoder.content_type(of, value.as_bytes(), &mut out);
                ("content-type".to_owned(), value)
            }));
            encoder.content_length(length, &mut out);
            wanted.push(("content-length".to_owned(), length.to_string()));
            for (name, value) in &fields {
                encoder.field(FieldName::from(name.as_str()), value.as_bytes(), &mut out);
            }
            wanted.extend(fields.into_iter().map(|(name, value)| (name.to_lowercase(), value)));
            prop_assert_eq!(decoded(&mut decoder, &out), Ok(wanted));
        }
    }

    #[test]
    fn no_block_makes_the_decoder_panic(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8),
    ) {
        let mut decoder = Decoder::new(TABLE_BYTES);
        for block in blocks {
            if decoded(&mut decoder, &block).is_err() {
                break;
            }
            prop_assert!(decoder.heap_bytes() <= 4 * TABLE_BYTES);
        }
    }
}
