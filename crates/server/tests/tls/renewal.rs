//! Certificates that are replaced while the server runs, and sessions that outlive them.

use std::fs;
use std::time::Duration;

use gustnado::config::{Config, SiteTls, TlsRecords};
use gustnado::{Request, Server as Builder};
use rustls::HandshakeKind;
use rustls::version::TLS13;

use super::authority::{Authority, ClientOf};
use super::client::{TlsClient, request_of};
use crate::harness::client::get;
use crate::harness::{Server, Setup, wait_until};

on_every_server!(
    a_replaced_certificate_is_read_again_and_ends_no_session,
    a_handler_sees_the_certificate_that_its_connection_was_given,
    pages_tell_when_certificates_end,
    a_pair_that_cannot_be_used_leaves_the_last_one,
    a_certificate_that_is_not_valid_yet_is_taken_once_it_is,
    a_reload_ends_no_session,
    a_certificate_that_a_reload_brings_is_watched_too,
    servers_that_share_keys_resume_each_others_sessions,
);

fn config(authority: &Authority, setup: Setup) -> Config {
    let pair = authority.issue("server", &["a.test"]);
    Config {
        tls_cert: Some(pair.cert),
        tls_key: Some(pair.key),
        tls_records: TlsRecords::Own,
        ..setup.patient_config()
    }
}

/// The server's certificate as a new connection gets it, and how the handshake went.
fn presented(
    server: &Server,
    config: &std::sync::Arc<rustls::ClientConfig>,
) -> (Vec<u8>, HandshakeKind) {
    let mut client = TlsClient::connect_to(server, "a.test", config);
    assert_eq!(client.ask(request_of("a.test")).status, 200);
    let connection = &client.0.conn;
    let chain = connection.peer_certificates().expect("the server's");
    (chain[0].to_vec(), connection.handshake_kind().expect("it is over"))
}

fn a_replaced_certificate_is_read_again_and_ends_no_session(setup: Setup) {
    let authority = Authority::new();
    let server = Server::start(config(&authority, setup));
    let trusted = authority.client(&[&TLS13], ClientOf::Nobody);
    let (first, _) = presented(&server, &trusted);
    let mut open = TlsClient::connect_to(&server, "a.test", &trusted);
    assert_eq!(open.ask(get("/")).status, 200);

    authority.issue("server", &["a.test"]);
    let others = || authority.client(&[&TLS13], ClientOf::Nobody);
    wait_until("the new one is there", || presented(&server, &others()).0 != first);
    assert!(server.stats().reloads >= 1);
    assert_eq!(open.ask(get("/")).status, 200, "an open connection goes on");
    assert_eq!(presented(&server, &trusted).1, HandshakeKind::Resumed);
}

fn a_handler_sees_the_certificate_that_its_connection_was_given(setup: Setup) {
    let authority = Authority::new();
    let config = config(&authority, setup);
    let cert = config.tls_cert.clone().expect("it is set");
    let pem = || fs::read_to_string(&cert).expect("the file").replace("\r\n", "\n");
    let told = |request: &Request| request.tls().expect("by TLS").server_certificate.to_string();
    let server = Server::built(Builder::new().config(config).get("/", told));
    let trusted = authority.client(&[&TLS13], ClientOf::Nobody);
    let first = pem();
    let mut open = TlsClient::connect_to(&server, "a.test", &trusted);
    assert_eq!(open.ask(get("/")).text(), first);

    authority.issue("server", &["a.test"]);
    wait_until("the new one is there", || server.stats().reloads >= 1);
    let mut client = TlsClient::connect_to(&server, "a.test", &trusted);
    let now = client.ask(get("/")).text();
    assert!(now == pem() && now != first, "{now}");
    assert_eq!(open.ask(get("/")).text(), first, "it is what the open connection was given");
}

fn pages_tell_when_certificates_end(setup: Setup) {
    let authority = Authority::new();
    let shop = authority.issue("shop", &["shop.test"]);
    let shop = SiteTls { cert: shop.cert, key: Some(shop.key), ..SiteTls::default() };
    let routes = Builder::new()
        .config(config(&authority, setup))
        .get("/metrics", gustnado::metrics_page())
        .get("/stats", gustnado::stats_page())
        .site_tls(&["www.shop.test", "shop.test"], shop);
    let server = Server::built(routes);
    let trusted = authority.client(&[&TLS13], ClientOf::Nobody);
    let mut client = TlsClient::connect_to(&server, "a.test", &trusted);
    let answer = client.ask(get("/metrics"));
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.expect_field("content-type"), kind);
    let page = answer.text();
    assert!(
        page.contains("gustnado_handshakes_by_version_total{version=\"TLSv1.3\"} 1\n"),
        "{page}"
    );
    let ends: Vec<_> =
        page.lines().filter(|line| line.starts_with("gustnado_certificate_expires")).collect();
    // Rcgen's certificates end in the year 4096.
    let of = |host: &str| format!("gustnado_certificate_expires_seconds{{host=\"{host}\"}} 67");
    assert!(ends.len() == 2, "{ends:?}");
    assert!(ends[0].starts_with(&of("a.test")), "of its certificate: {ends:?}");
    assert!(ends[1].starts_with(&of("www.shop.test")), "the first of its hosts: {ends:?}");
    let json = client.ask(get("/stats")).text();
    assert!(json.contains("\"certificates\":[{\"host\":\"a.test\",\"expires_s\":67"), "{json}");
}

fn a_pair_that_cannot_be_used_leaves_the_last_one(setup: Setup) {
    let authority = Authority::new();
    let config = config(&authority, setup);
    let cert = config.tls_cert.clone().expect("it is set");
    let server = Server::start(config);
    let others = || authority.client(&[&TLS13], ClientOf::Nobody);
    let (first, _) = presented(&server, &others());

    let whole = fs::read(&cert).expect("the file");
    fs::write(&cert, &whole[..whole.len() / 2]).expect("half of it");
    wait_until("it is refused", || server.stats().reloads_refused >= 1);
    assert!(presented(&server, &others()).0 == first);

    // The key of another certificate, until its own is written too.
    let before = server.stats().reloads;
    authority.issue("server", &["a.test"]);
    wait_until("both are there", || server.stats().reloads > before);
    assert!(presented(&server, &others()).0 != first);
}

fn a_certificate_that_is_not_valid_yet_is_taken_once_it_is(setup: Setup) {
    let authority = Authority::new();
    let server = Server::start(config(&authority, setup));
    let others = || authority.client(&[&TLS13], ClientOf::Nobody);
    let (first, _) = presented(&server, &others());
    authority.issue_ahead("server", &["a.test"], Duration::from_secs(3));
    wait_until("it is refused", || server.stats().reloads_refused >= 1);
    assert!(presented(&server, &others()).0 == first);
    // Nothing changes but the time.
    wait_until("it is there", || presented(&server, &others()).0 != first);
}

fn a_reload_ends_no_session(setup: Setup) {
    let authority = Authority::new();
    let config = config(&authority, setup);
    let server = Server::start(config.clone());
    let trusted = authority.client(&[&TLS13], ClientOf::Nobody);
    assert_eq!(presented(&server, &trusted).1, HandshakeKind::Full);
    authority.issue("server", &["a.test"]);
    let next = Builder::new().config(config).get("/", |_: &Request| "");
    server.running().reload(next).expect("a reload");
    assert_eq!(presented(&server, &trusted).1, HandshakeKind::Resumed);
}

fn a_certificate_that_a_reload_brings_is_watched_too(setup: Setup) {
    let authority = Authority::new();
    let server = Server::start(setup.patient_config());
    let next = Builder::new().config(config(&authority, setup)).get("/", |_: &Request| "");
    server.running().reload(next).expect("a reload");
    let others = || authority.client(&[&TLS13], ClientOf::Nobody);
    let (first, _) = presented(&server, &others());

    authority.issue("server", &["a.test"]);
    wait_until("the new one is there", || presented(&server, &others()).0 != first);
}

fn servers_that_share_keys_resume_each_others_sessions(setup: Setup) {
    let authority = Authority::new();
    let file = authority.path().with_file_name("tickets");
    fs::write(&file, format!("{}\n", "5a".repeat(32))).expect("a file");
    let config = Config { tls_ticket_keys: Some(file.clone()), ..config(&authority, setup) };
    let (one, other) = (Server::start(config.clone()), Server::start(config));
    let trusted = authority.client(&[&TLS13], ClientOf::Nobody);
    assert_eq!(presented(&one, &trusted).1, HandshakeKind::Full);
    assert_eq!(presented(&other, &trusted).1, HandshakeKind::Resumed);
    // A new key in front seals from now on, and the old one still opens.
    fs::write(&file, format!("{}\n{}\n", "77".repeat(32), "5a".repeat(32))).expect("a file");
    wait_until("it is read", || other.stats().reloads >= 1);
    assert_eq!(presented(&other, &trusted).1, HandshakeKind::Resumed);
}
