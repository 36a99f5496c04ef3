//! What must hold for every PROXY header: however it is cut, whatever it is.

mod tails;

use std::net::SocketAddr;
use std::sync::LazyLock;

use gustnado_http::head::Decoded;
use gustnado_http::proxy::{ProxyError, decode};
use proptest::prelude::*;
use proptest::sample::{Index, select};

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(tails::of_proxies);

/// Pieces of headers, good and bad, that make interesting wholes when strung together.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        &b"TCP4 "[..],
        b"TCP6 ",
        b"UNKNOWN",
        b"1.2.3.4 ",
        b"255.",
        b"2001:db8::1 ",
        b"::ffff:1.2.3.4 ",
        b"1:2:3:4:5:6:7:",
        b"443",
        b"0",
        b" ",
        b"\r",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\x21",
        b"\x20",
        b"\x11",
        b"\x31",
        b"\x00",
        b"\x00\x0c",
        b"\xd8",
        b"abcdefghijkl",
    ]);
    let start = select(vec![&b"PROXY "[..], b"PROXY TCP4 ", b"\r\n\r\n\0\r\nQUIT\n", b""]);
    let pieces = prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    (start, pieces).prop_map(|(start, pieces)| [start, &pieces].concat())
}

/// Whether nothing before the whole header can show that.
fn is_found_at_its_end(error: ProxyError) -> bool {
    matches!(error, ProxyError::TooLarge { .. } | ProxyError::Tlv | ProxyError::Checksum)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_verdict_on_some_bytes_is_the_verdict_on_all_that_begin_with_them(bytes in soup()) {
        let whole = decode(&bytes);
        for end in 0..bytes.len() {
            let verdict = decode(&bytes[..end]);
            prop_assert!(verdict == Ok(Decoded::NeedMore) || verdict == whole, "at {}", end);
        }
    }

    #[test]
    fn bytes_that_need_more_can_become_a_header(bytes in soup(), cut: Index) {
        let begun = &bytes[..cut.index(bytes.len() + 1)];
        if decode(begun) == Ok(Decoded::NeedMore) {
            let is_end = |tail: &Vec<u8>| match decode(&[begun, tail].concat()) {
                Ok(decoded) => decoded != Decoded::NeedMore,
                Err(error) => is_found_at_its_end(error),
            };
            prop_assert!(TAILS.iter().any(is_end), "{}", begun.escape_ascii());
        }
    }

    #[test]
    fn every_beginning_of_a_line_needs_more(source: SocketAddr, port: u16) {
        let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
        let line = format!("PROXY {family} {0} {0} {1} {port}\r\n", source.ip(), source.port());
        for end in 0..line.len() {
            let begun = &line.as_bytes()[..end];
            prop_assert_eq!(decode(begun), Ok(Decoded::NeedMore), "{} {}", line, end);
        }
        prop_assert!(matches!(decode(line.as_bytes()), Ok(Decoded::Done(_))), "{}", line);
    }
}
