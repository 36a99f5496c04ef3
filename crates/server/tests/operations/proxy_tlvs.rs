//! What a PROXY header of version 2 says besides addresses.

use gustnado::config::Config;
use gustnado::task::yield_now;
use gustnado::{Request, Routes, blocking};

use super::proxies::{TEXT, binary_of, ends, proxied, routes};
use crate::harness::client::get;
use crate::harness::{Server, Setup};

on_every_server!(
    a_header_of_version_2_says_more_than_addresses,
    a_header_whose_checksum_is_wrong_is_refused,
);

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).expect("a short value");
    [&[kind][..], &len.to_be_bytes(), value].concat()
}

/// What `HAProxy` writes of a client with a certificate by `send-proxy-v2-ssl-cn
/// proxy-v2-options authority,unique-id`.
fn tlvs() -> Vec<u8> {
    let of_tls = [tlv(0x21, b"TLSv1.3"), tlv(0x23, b"TLS_AES_128_GCM_SHA256"), tlv(0x22, b"Al B")];
    let tls = [&[0x07, 0, 0, 0, 0][..], &of_tls.concat()].concat();
    [tlv(1, b"h2"), tlv(2, b"shop.example"), tlv(5, b"7f-1"), tlv(0x20, &tls), tlv(0x30, b"blue")]
        .concat()
}

/// Everything that a header says besides addresses, and the scheme that comes of it.
fn told_of_proxy(request: &Request) -> String {
    let Some(info) = request.proxy_info() else { return format!("- {}", request.scheme()) };
    let bytes = |bytes: &Option<Box<[u8]>>| {
        bytes.as_deref().map_or_else(String::new, |bytes| bytes.escape_ascii().to_string())
    };
    let tls = info.tls.as_ref().map(|tls| {
        let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or("?").to_owned();
        let (version, cipher, name) =
            (text(&tls.version), text(&tls.cipher), text(&tls.client_name));
        format!("{version} {cipher} {name} {} {}", tls.has_certificate, tls.is_verified)
    });
    let (alpn, id) = (bytes(&info.alpn), bytes(&info.unique_id));
    let authority = info.authority.as_deref().unwrap_or_default();
    format!("{alpn} {authority} {id} {} {}", tls.unwrap_or_default(), request.scheme())
}

fn a_header_of_version_2_says_more_than_addresses(setup: Setup) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let names = ["alpn", "authority", "unique_id", "ssl_version", "ssl_cn", "ssl_verify"];
    let format = names.map(|name| format!("%({{proxy_protocol_tlv_{name}}}x)s")).join(" ");
    let config =
        Config { access_log: Some(log.clone()), access_log_format: format, ..proxied(setup) };
    let routes = Routes::new()
        .any("/inline", told_of_proxy)
        .any("/late", async |request: Request| {
            yield_now().await;
            told_of_proxy(&request)
        })
        .any("/pool", blocking(|request: Request| told_of_proxy(&request)));
    let server = Server::routes(config, routes);
    let wanted =
        "h2 shop.example 7f-1 TLSv1.3 TLS_AES_128_GCM_SHA256 Al B true true https".to_owned();
    let with = binary_of("192.0.2.1:1", "192.0.2.2:2", &tlvs());
    let without = binary_of("192.0.2.1:1", "192.0.2.2:2", b"");
    for path in ["/inline", "/late", "/pool"] {
        let mut client = server.connect();
        assert_eq!(client.ask([&with, get(path).as_bytes()].concat()).text(), wanted, "{path}");
        assert_eq!(client.get(path).text(), wanted, "it counts for all requests: {path}");
        // A worker reuses requests: nothing of one connection may be seen on another.
        let mut client = server.connect();
        assert_eq!(client.ask([&without, get(path).as_bytes()].concat()).text(), "- http");
        let mut client = server.connect();
        assert_eq!(client.ask([TEXT, get(path).as_bytes()].concat()).text(), "- http");
    }
    assert_eq!(server.stats().proxy_refused, 0);
    server.stop();
    let lines = std::fs::read_to_string(&log).expect("the log");
    let count = |wanted: &str| lines.lines().filter(|line| *line == wanted).count();
    assert_eq!(count("h2 shop.example 7f-1 TLSv1.3 Al\\x20B 0"), 6, "{lines}");
    assert_eq!(count("- - - - - -"), 6, "{lines}");
}

fn a_header_whose_checksum_is_wrong_is_refused(setup: Setup) {
    let server = Server::routes(proxied(setup), routes());
    let ends_and_sum =
        |sum: u32| binary_of("192.0.2.1:1", "192.0.2.2:2", &tlv(3, &sum.to_be_bytes()));
    // The sum of these 35 bytes, by another implementation.
    let right = 0x4fff_f33d;
    let mut client = server.connect();
    let answer = client.ask([&ends_and_sum(right)[..], get("/inline").as_bytes()].concat());
    assert_eq!(answer.text(), ends("192.0.2.1:1 192.0.2.2:2"));
    let malformed = binary_of("192.0.2.1:1", "192.0.2.2:2", b"\x01\0\x09short");
    for (at, header) in [ends_and_sum(right ^ 1), ends_and_sum(0), malformed].iter().enumerate() {
        let mut client = server.connect();
        let answer = client.ask([header, get("/inline").as_bytes()].concat());
        assert_eq!(answer.status, 400, "{at}");
        client.expect_end("refused");
        assert_eq!(server.stats().proxy_refused, at as u64 + 1);
    }
}
