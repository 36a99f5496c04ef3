//! Handshakes: what is agreed on, what is resumed, what fails and how the client learns of it.

use std::time::{Duration, Instant};

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
    a_handshake_has_its_time,
    the_oldest_handshake_gives_way,
    an_old_version_is_refused,
    a_listener_may_stay_plain,
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
        (&b"\x00\x01\x02\x03"[..], None),
        // A record that no handshake has need of.
        (b"\x16\x03\x01\xff\xff", None),
        // A hello that is none.
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", Some(50)),
    ] {
        let mut client = server.connect();
        client.send(sent);
        let received = client.read_to_end();
        assert_eq!(received.last().copied(), alert, "{sent:?}: {received:?}");
    }
    server.wait_until("all are counted", |stats| stats.handshakes_failed == 3);
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
