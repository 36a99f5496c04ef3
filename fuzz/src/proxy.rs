//! What proxies say: PROXY headers, where a verdict on some bytes is the verdict on all that begin
//! with them, and fields about the client.
#![no_main]

#[path = "../../crates/http/tests/tails/mod.rs"]
mod tails;

use std::net::SocketAddr;
use std::sync::LazyLock;

use gustnado_http::forwarded;
use gustnado_http::head::Decoded;
use gustnado_http::proxy::{
    self, BINARY_BYTES_MAX, Ends, ProxyError, ProxyHeader, UNIQUE_ID_BYTES_MAX,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    header(input);
    fields(input);
});

fn header(input: &[u8]) {
    let whole = proxy::decode(input);
    if whole == Ok(Decoded::NeedMore) {
        assert!(TAILS.iter().any(|tail| is_open(&[input, tail].concat())));
    }
    for end in 0..input.len() {
        match proxy::decode(&input[..end]) {
            Ok(Decoded::NeedMore) => {}
            verdict => assert_eq!(verdict, whole, "at {end}"),
        }
    }
    if let Ok(Decoded::Done(ProxyHeader { len, ends, info })) = whole {
        assert!(len <= input.len() && len <= BINARY_BYTES_MAX);
        if let Ends::Inet { source, destination } = ends {
            assert_eq!(source.is_ipv4(), destination.is_ipv4());
            read_back(source);
        }
        let id = info.and_then(|info| info.unique_id).unwrap_or_default();
        assert!(id.len() <= UNIQUE_ID_BYTES_MAX);
    }
}

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(tails::of_proxies);

/// Whether that is a header, or one past the limit.
fn is_open(bytes: &[u8]) -> bool {
    match proxy::decode(bytes) {
        Ok(decoded) => decoded != Decoded::NeedMore,
        // What nothing before the whole header can show.
        Err(error) => {
            matches!(error, ProxyError::TooLarge { .. } | ProxyError::Tlv | ProxyError::Checksum)
        }
    }
}

fn fields(input: &[u8]) {
    for entry in forwarded::entries(input) {
        assert!(!entry.is_empty() && !entry.contains(&b','));
        if let Some(address) = forwarded::node(entry) {
            read_back(address);
        }
        _ = (forwarded::host(entry), forwarded::port(entry), forwarded::scheme(entry));
    }
    for element in forwarded::elements(input).unwrap_or_default() {
        _ = element.from.and_then(|from| forwarded::node(&from));
    }
}

/// An address is the same when it is written and read again; port 0 is none.
fn read_back(address: SocketAddr) {
    let canonical = SocketAddr::new(address.ip().to_canonical(), address.port());
    assert_eq!(forwarded::node(address.to_string().as_bytes()), Some(canonical));
}
