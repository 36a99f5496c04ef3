//! Compressed messages: any bytes are inflated within their bound, or refused, and what is
//! compressed comes back, with contexts and without.
#![no_main]

use gustnado_ws::fuzzing::{DeflateEnds, MESSAGE_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [first, bytes @ ..] = input else { return };
    let (keeps_context, window_bits) = (first & 1 == 1, 9 + (first >> 1) % 7);
    let mut ends = DeflateEnds::new(keeps_context, window_bits);
    for message in bytes.chunks(97) {
        let Some(compressed) = ends.compress(message) else { continue };
        let inflated = ends.inflate_own(&compressed).expect("it is our own");
        assert_eq!(inflated, message);
    }
    // Any bytes, as a peer that is wrong or malicious sends them.
    for message in bytes.split(|byte| *byte == b'|') {
        match ends.inflate(message) {
            Ok(inflated) => assert!(inflated.len() as u64 <= MESSAGE_BYTES_MAX),
            Err(code) => assert!(code == 1007 || code == 1009, "{code}"),
        }
    }
});
