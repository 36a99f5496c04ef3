//! HPACK: any bytes decode, or are refused, as another decoder does; what is encoded comes back.
#![no_main]

use gustnado_http::fields::Fields;
use gustnado_http::h2::hpack::{Decoder, Encoder, Strings, TABLE_BYTES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    agree(input);
    come_back(input);
});

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

/// Blocks on one connection, cut by their first bytes: what decodes has the same fields for both.
fn agree(input: &[u8]) {
    let (mut ours, mut theirs) = (Decoder::new(TABLE_BYTES), fluke_hpack::Decoder::new());
    let mut strings = Strings::default();
    let mut rest = input;
    while let [length, behind @ ..] = rest {
        let (block, after) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = after;
        let mut found = Lines::new();
        let read = ours.decode(block, &mut strings, |name, value| {
            found.push((name.to_vec(), value.to_vec()));
        });
        // What is refused is not shown to the other one, which panics at some of it.
        if read.is_err() {
            return;
        }
        match theirs.decode(block) {
            Ok(wanted) => assert_eq!(found, wanted),
            // It refuses a change of the table's size with nothing behind it. RFC 7541 §4.2 does
            // not.
            Err(fluke_hpack::decoder::DecoderError::SizeUpdateAtEnd) => return,
            Err(error) => panic!("{found:?}: the other one refuses it: {error:?}"),
        }
    }
}

/// Fields of the input, encoded on one connection, are the same for both decoders.
fn come_back(input: &[u8]) {
    let (mut encoder, mut theirs) = (Encoder::new(), fluke_hpack::Decoder::new());
    let (mut ours, mut strings) = (Decoder::new(TABLE_BYTES), Strings::default());
    for block in input.chunks(64) {
        let mut fields = Fields::new();
        for field in block.chunks(16) {
            let name: String =
                field.iter().take(5).map(|byte| char::from(b'a' + byte % 26)).collect();
            let value: Vec<u8> = field.iter().skip(5).map(|byte| 0x20 + byte % 0x5f).collect();
            _ = fields.add(&*name, value.trim_ascii());
        }
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in fields.iter() {
            encoder.field(name, value, &mut out);
        }
        let wanted: Lines = fields
            .iter()
            .map(|(name, value)| (name.as_str().to_ascii_lowercase().into_bytes(), value.to_vec()))
            .collect();
        let mut found = Lines::new();
        let each = |name: &[u8], value: &[u8]| found.push((name.to_vec(), value.to_vec()));
        ours.decode(&out, &mut strings, each).expect("it is our own");
        assert_eq!(found, wanted);
        assert_eq!(theirs.decode(&out).expect("it is valid"), wanted);
    }
}
