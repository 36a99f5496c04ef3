//! Handshakes: what is agreed on, what is resumed, what fails and how the client learns of it.

use std::time::{Duration, Instant};

use gustnado::Stats;
use gustnado::config::{Config, TlsRecords, TlsVersionMin};
use rustls::HandshakeKind;
use rustls::version::{TLS12, TLS13};

use super::client::{Certificate, TlsClient};
use crate::harness::client::get;
use crate::harness::{Client, Server, Setup};

on_every_server!(
    a_session_is_resumed_on_another_connection,
    plain_http_gets_a_clear_400,
    what_is_no_handshake_gets_an_alert,
    a_client_that_knows_http_1_0_alone_is_served,
    a_handshake_has_its_time,
    the_oldest_handshake_gives_way,
    an_old_version_is_refused,
    a_listener_may_stay_plain,
    handshakes_are_counted_by_version_cipher_and_group,
    failures_are_counted_by_reason,
);

fn config(certificate: &Certificate, setup: Setup) -> Config {
    certificate.config(setup, TlsRecords::Own)
}

fn a_session_is_resumed_on_another_connection(setup: Setup) {
    for version in [&TLS13, &TLS12] {
        let certificate = Certificate::new();
        let server = Server::start(config(&certificate, setup));
        let trusted = certificate.trusted(&[version]);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let mut client = TlsClient::connect(&server, &trusted);
            assert_eq!(client.ask(get("/")).status, 200);
            assert_eq!(client.0.conn.alpn_protocol(), None, "it offered none");
            kinds.push(client.0.conn.handshake_kind().expect("it is over"));
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed]);
        let stats = server.stats();
        assert_eq!((stats.handshakes, stats.handshakes_resumed), (2, 1));
    }
}

fn plain_http_gets_a_clear_400(setup: Setup) {
    let certificate = Certificate::new();
    let server = Server::start(config(&certificate, setup));
    let answer = server.get("/");
    assert_eq!(answer.status, 400);
    assert!(answer.closes());
    let stats = server.stats();
    assert_eq!((stats.handshakes_failed, stats.handshakes_plain), (1, 1));
}

fn what_is_no_handshake_gets_an_alert(setup: Setup) {
    let certificate = Certificate::new();
    let server = Server::start(config(&certificate, setup));
    for (sent, alert) in [
        // No TLS at all.
        (&b"\x00\x01\x02\x03"[..], Some(10)),
        // A record that no handshake has need of.
        (b"\x16\x03\x01\xff\xff", Some(22)),
        // One that is longer than any in plain may be.
        (b"\x16\x03\x01\x40\x01", Some(22)),
        // A hello that is none.
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", Some(50)),
    ] {
        let mut client = server.connect();
        client.send(sent);
        let received = client.read_to_end();
        assert_eq!(received.last().copied(), alert, "{sent:?}: {received:?}");
    }
    server.wait_until("all are counted", |stats| stats.handshakes_failed == 4);
    server.wait_until_empty();
}

fn a_handshake_has_its_time(setup: Setup) {
    let certificate = Certificate::new();
    let limit = Duration::from_millis(200);
    let config = Config { tls_handshake_timeout: limit, ..config(&certificate, setup) };
    let server = Server::start(config);
    let mut client: Client = server.connect();
    client.send(b"\x16\x03\x01\x01\x00");
    client.wait_until_read();
    let began = Instant::now();
    client.read_until_ended();
    // The server's clock is one of milliseconds, and had begun.
    assert!(began.elapsed() >= limit / 2, "{:?}", began.elapsed());
    assert_eq!(server.stats().handshakes_slow, 1);
}

fn the_oldest_handshake_gives_way(setup: Setup) {
    let certificate = Certificate::new();
    let server = Server::start(Config { tls_handshakes: 2, ..config(&certificate, setup) });
    let half = || {
        let mut client: Client = server.connect();
        client.send(b"\x16\x03\x01\x01\x00");
        client.wait_until_read();
        client
    };
    let (mut first, mut second) = (half(), half());
    let mut third = half();
    first.read_until_ended();
    server.wait_until("it is counted", |stats| stats.handshakes_evicted == 1);
    second.expect_silence(Duration::from_millis(50));
    // An honest client gets in, and the next one ends.
    let mut client = TlsClient::connect(&server, &certificate.trusted(&[&TLS13]));
    assert_eq!(client.ask(get("/")).status, 200);
    second.read_until_ended();
    third.expect_silence(Duration::from_millis(50));
    assert_eq!(client.ask(get("/")).status, 200, "one that is over gives way to nobody");
}

fn an_old_version_is_refused(setup: Setup) {
    let certificate = Certificate::new();
    let config = Config { tls_version_min: TlsVersionMin::V13, ..config(&certificate, setup) };
    let server = Server::start(config);
    let mut client = TlsClient::connect(&server, &certificate.trusted(&[&TLS12]));
    let error = client.try_send(b"GET").expect_err("there is no common version");
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    let mut client = TlsClient::connect(&server, &certificate.trusted(&[&TLS13]));
    assert_eq!(client.ask(get("/")).status, 200);
}

fn a_listener_may_stay_plain(setup: Setup) {
    let certificate = Certificate::new();
    let listen = ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(str::to_owned).to_vec();
    let server = Server::start(Config { listen, ..config(&certificate, setup) });
    let urls = server.running().urls();
    assert!(urls[0].starts_with("http://") && urls[1].starts_with("https://"), "{urls:?}");
    assert_eq!(server.get("/").status, 200);
}

fn handshakes_are_counted_by_version_cipher_and_group(setup: Setup) {
    let certificate = Certificate::new();
    let server = Server::start(config(&certificate, setup));
    for version in [&TLS13, &TLS12] {
        let trusted = certificate.trusted(&[version]);
        for _ in 0..2 {
            let mut client = TlsClient::connect(&server, &trusted);
            assert_eq!(client.ask(get("/")).status, 200);
        }
    }
    let stats = server.stats();
    assert_eq!((stats.handshakes_tls13, stats.handshakes_tls12), (2, 2));
    assert_eq!((stats.handshakes_aes128, stats.handshakes_ecdsa_aes128), (2, 2));
    assert_eq!((stats.handshakes_other_cipher, stats.handshakes_other_group), (0, 0));
    // The session of TLS 1.2 that is resumed exchanges no keys.
    assert_eq!(stats.handshakes_x25519, 3);
}

fn failures_are_counted_by_reason(setup: Setup) {
    let certificate = Certificate::new();
    let config = Config { tls_version_min: TlsVersionMin::V13, ..config(&certificate, setup) };
    let server = Server::start(config);
    let mut old = TlsClient::connect(&server, &certificate.trusted(&[&TLS12]));
    old.try_send(b"GET").expect_err("there is no common version");
    server.wait_until("it is counted", |stats| stats.handshakes_incompatible == 1);
    // One that trusts another certificate.
    let mut wary = TlsClient::connect(&server, &Certificate::new().trusted(&[&TLS13]));
    wary.try_send(b"GET").expect_err("the certificate is not trusted");
    server.wait_until("it is counted", |stats| stats.handshakes_alert == 1);
    for (sent, counted) in [
        (&b"\x00\x01\x02\x03"[..], (|stats| stats.handshakes_not_tls) as fn(&Stats) -> u64),
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", |stats| stats.handshakes_malformed),
        (b"GET / HTTP/1.1\r\n\r\n", |stats| stats.handshakes_plain),
    ] {
        server.connect().send(sent);
        server.wait_until("it is counted", |stats| counted(stats) == 1);
    }
    let mut gone = server.connect();
    gone.send(b"\x16\x03\x01\x01\x00");
    gone.wait_until_read();
    gone.hang_up();
    server.wait_until("it is counted", |stats| stats.handshakes_lost == 1);
    let stats = server.stats();
    assert_eq!((stats.handshakes_failed, stats.handshakes_refused), (6, 4));
}

fn a_client_that_knows_http_1_0_alone_is_served(setup: Setup) {
    let certificate = Certificate::new();
    let server = Server::start(config(&certificate, setup));
    for protocol in ["http/1.0", "http/1.1"] {
        let mut trusted = (*certificate.trusted(&[&TLS13])).clone();
        trusted.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let mut client = TlsClient::connect(&server, &std::sync::Arc::new(trusted));
        assert_eq!(client.ask(get("/")).status, 200);
        assert_eq!(client.0.conn.alpn_protocol(), Some(protocol.as_bytes()));
    }
}
