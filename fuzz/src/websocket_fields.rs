//! What clients and servers say of compression: any bytes are taken or declined, and what is
//! agreed on is what the other side reads.
#![no_main]

use gustnado_http::websocket::CloseReason;
use gustnado_http::websocket::deflate::{DeflateAgreed, DeflateOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [first, bytes @ ..] = input else { return };
    let wanted =
        DeflateOptions { keeps_context: first & 1 == 1, window_bits_max: 9 + (first >> 1) % 7 };
    let fields = bytes.split(|byte| *byte == b'\n');
    if let Some(agreed) = DeflateAgreed::choose(fields, wanted) {
        assert!((9..=15).contains(&agreed.server_window_bits), "{agreed:?}");
        assert!((8..=15).contains(&agreed.client_window_bits), "{agreed:?}");
        assert!(wanted.keeps_context || agreed.server_no_context_takeover, "{agreed:?}");
        assert!(wanted.keeps_context || agreed.client_no_context_takeover, "{agreed:?}");
        let answer = agreed.to_string();
        let read = DeflateAgreed::of_answer(answer.as_bytes()).expect("it is our own");
        assert_eq!(read.server_no_context_takeover, agreed.server_no_context_takeover);
        assert_eq!(read.client_no_context_takeover, agreed.client_no_context_takeover);
        assert_eq!(read.server_window_bits, agreed.server_window_bits);
        assert!(read.client_window_bits >= agreed.client_window_bits, "{answer}");
    }
    _ = DeflateAgreed::of_answer(bytes);
    if let Ok(close) = CloseReason::read(bytes)
        && !bytes.is_empty()
    {
        let mut again = Vec::new();
        close.write(&mut again);
        assert_eq!(again, &bytes[..bytes.len().min(again.len())]);
        assert!(again.len() <= 125 && (bytes.len() > 125 || again.len() == bytes.len()));
    }
});
