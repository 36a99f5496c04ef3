//! Plain HTTP beside TLS: redirects, HSTS, and what proxies report.

use std::io::Write;

use gustnado::config::{Config, TlsRecords};
use gustnado::task::sleep;
use gustnado::{Request, Routes};
use rustls::version::TLS13;

use super::client::{Certificate, TlsClient};
use crate::harness::client::{get, request};
use crate::harness::http2::Http2Client;
use crate::harness::{Client, Server, Setup};

on_every_server!(
    plain_requests_are_sent_to_https,
    browsers_are_told_to_stay_with_https_by_tls_alone,
    plain_responses_of_any_kind_have_no_hsts,
    http2_in_clear_has_no_hsts_either,
    hsts_in_plain_is_refused_at_the_start,
    a_request_that_may_be_a_replay_gets_425,
    a_proxy_header_comes_before_the_handshake,
    a_hello_in_the_packet_of_the_header_counts_as_a_handshake,
);

fn config(certificate: &Certificate, setup: Setup) -> Config {
    let listen = ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(str::to_owned).to_vec();
    Config { listen, ..certificate.config(setup, TlsRecords::Own) }
}

fn plain_requests_are_sent_to_https(setup: Setup) {
    let certificate = Certificate::new();
    let proxies = vec!["127.0.0.1".to_owned()];
    let config = Config {
        https_redirect: true,
        forwarded_allow_ips: proxies,
        ..config(&certificate, setup)
    };
    let server = Server::start(config);
    for (host, target, location) in [
        ("example.org", "/a%20b/?x=1&y", "https://example.org/a%20b/?x=1&y"),
        ("Example.org.:8080", "/", "https://example.org/"),
        ("[::1]:80", "/", "https://[::1]/"),
    ] {
        let asked = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = server.ask(asked);
        assert_eq!((answer.status, answer.expect_field("location")), (308, location));
        assert!(answer.closes());
    }
    // A proxy has spoken https for it.
    let secure = server.ask(request("GET", "/", "X-Forwarded-Proto: https\r\n"));
    assert_eq!(secure.status, 200);
    let acme = server.get("/.well-known/acme-challenge/x");
    assert_eq!(acme.status, 404);
}

fn browsers_are_told_to_stay_with_https_by_tls_alone(setup: Setup) {
    let certificate = Certificate::new();
    let config = Config {
        https_redirect: true,
        hsts: std::time::Duration::from_hours(24),
        ..config(&certificate, setup)
    };
    let server = Server::start(config);
    assert_eq!(server.get("/").field("strict-transport-security"), None);
    let to = server.running().addresses()[1].to_string().parse().expect("an address");
    let mut client = TlsClient::connect_at(to, &certificate.trusted(&[&TLS13]));
    let answer = client.ask(get("/"));
    assert_eq!(answer.expect_field("strict-transport-security"), "max-age=86400");
}

fn plain_responses_of_any_kind_have_no_hsts(setup: Setup) {
    let certificate = Certificate::new();
    let hsts = std::time::Duration::from_hours(24);
    let proxies = || vec!["127.0.0.1".to_owned()];
    let late = async |_: Request| {
        sleep(std::time::Duration::from_millis(5)).await;
        "late"
    };
    let routes = || {
        Routes::new()
            .get("/", |_: &Request| "here")
            .get("/late", late)
            .post("/body", |request: &Request| request.bytes().len().to_string())
    };
    let redirecting = Config {
        https_redirect: true,
        hsts,
        forwarded_allow_ips: proxies(),
        ..config(&certificate, setup)
    };
    let serving = Config { hsts, forwarded_allow_ips: proxies(), ..setup.patient_config() };
    let told = Some("max-age=86400");
    let secure = "X-Forwarded-Proto: https\r\n";
    for (config, status) in [(redirecting, 308), (serving, 200)] {
        let server = Server::routes(Config { limit_head_bytes: 2_000, ..config }, routes());
        for (asked, status) in [
            (request("GET", "/", ""), status),
            (request("GET", "/late", ""), status),
            (request("OPTIONS", "*", ""), 204),
            (request("CONNECT", "a:1", ""), 405),
            (request("GET", "/.well-known/acme-challenge/x", ""), 404),
            ("nonsense\r\n\r\n".to_owned(), 400),
            (request("GET", "/", &format!("x: {}\r\n", "y".repeat(2_000))), 431),
            (request("GET", "/", "Expect: miracles\r\n"), 417),
        ] {
            let answer = server.ask(&asked);
            let found = (answer.status, answer.field("strict-transport-security"));
            assert_eq!(found, (status, None), "{asked}");
        }
        // A proxy has spoken https for these: in one turn with others, and behind a body.
        let mut client = server.connect();
        let body = |fields: &str| {
            request("POST", "/body", &(fields.to_owned() + "Content-Length: 4\r\n")) + "body"
        };
        let both = [request("GET", "/", secure), body(secure)];
        for asked in &both {
            assert_eq!(client.ask(asked).field("strict-transport-security"), told, "{asked}");
        }
        let late = client.ask(request("GET", "/late", secure));
        assert_eq!((&*late.text(), late.field("strict-transport-security")), ("late", told));
        client.send(both.concat() + &get("/.well-known/acme-challenge/x") + &both[0]);
        for hsts in [told, told, None, told] {
            assert_eq!(client.read_answer().field("strict-transport-security"), hsts);
        }
        if status == 200 {
            let answer = client.ask(body(""));
            assert_eq!((&*answer.text(), answer.field("strict-transport-security")), ("4", None));
        }
    }
}

fn http2_in_clear_has_no_hsts_either(setup: Setup) {
    let certificate = Certificate::new();
    let config = Config {
        https_redirect: true,
        h2c: true,
        hsts: std::time::Duration::from_hours(24),
        forwarded_allow_ips: vec!["127.0.0.1".to_owned()],
        ..config(&certificate, setup)
    };
    let late = async |_: Request| {
        sleep(std::time::Duration::from_millis(5)).await;
        "late"
    };
    let routes = Routes::new().get("/", |_: &Request| "here").get("/late", late);
    let server = Server::routes(config, routes);
    let mut client = Http2Client::connect(server.address());
    let told = Some("max-age=86400");
    let secure = [("x-forwarded-proto", "https")];
    for (method, target, fields, status, hsts) in [
        ("GET", "/", &[][..], 308, None),
        ("OPTIONS", "*", &[], 204, None),
        ("GET", "/.well-known/acme-challenge/x", &[], 404, None),
        // A proxy has spoken https for it.
        ("GET", "/", &secure, 200, told),
        ("GET", "/late", &secure, 200, told),
        ("GET", "/late", &[("x-forwarded-proto", "http")], 308, None),
        ("GET", "/", &[("expect", "miracles")], 417, None),
    ] {
        let id = client.request(method, target, fields, true);
        let answer = client.answer(id);
        assert_eq!(answer.status, status, "{method} {target} {fields:?}");
        assert_eq!(answer.field("strict-transport-security"), hsts, "{target} {fields:?}");
    }
    // Without the redirect a plain request is served, and nothing is asked of its client.
    let config = Config {
        h2c: true,
        hsts: std::time::Duration::from_hours(24),
        forwarded_allow_ips: vec!["127.0.0.1".to_owned()],
        ..setup.patient_config()
    };
    let server =
        Server::routes(config, Routes::new().get("/", |_: &Request| "here").get("/late", late));
    let mut client = Http2Client::connect(server.address());
    for target in ["/", "/late", "/none"] {
        for (fields, hsts) in [(&[][..], None), (&secure, told)] {
            let id = client.request("GET", target, fields, true);
            let answer = client.answer(id);
            assert_eq!(answer.field("strict-transport-security"), hsts, "{target} {fields:?}");
        }
    }
}

fn hsts_in_plain_is_refused_at_the_start(setup: Setup) {
    let certificate = Certificate::new();
    let hsts = std::time::Duration::from_hours(24);
    let config = Config { hsts, ..config(&certificate, setup) };
    let error = gustnado::start(config).expect_err("a plain listener").to_string();
    assert!(error.contains("https-redirect"), "{error}");
}

fn a_request_that_may_be_a_replay_gets_425(setup: Setup) {
    let trusted =
        Config { forwarded_allow_ips: vec!["127.0.0.1".to_owned()], ..setup.patient_config() };
    let server = Server::start(trusted);
    let early = |method: &str| request(method, "/", "Early-Data: 1\r\n");
    assert_eq!(server.ask(early("GET")).status, 200);
    assert_eq!(server.ask(early("POST")).status, 425);
    assert_ne!(server.ask(request("POST", "/", "")).status, 425);
    // Nobody else is believed.
    let server = Server::start(setup.patient_config());
    assert_ne!(server.ask(early("POST")).status, 425);
}

fn a_proxy_header_comes_before_the_handshake(setup: Setup) {
    let certificate = Certificate::new();
    let config = Config {
        proxy_protocol: true,
        proxy_allow_from: vec!["127.0.0.1".to_owned()],
        ..certificate.config(setup, TlsRecords::Own)
    };
    let server = Server::start(config);
    let mut client = TlsClient::connect(&server, &certificate.trusted(&[&TLS13]));
    let header = b"PROXY TCP4 192.0.2.9 192.0.2.1 4000 443\r\n";
    client.0.sock.write_all(header).expect("it is sent");
    assert_eq!(client.ask(get("/")).status, 200);
    // Without the header there is no handshake.
    let mut plain: Client = server.connect();
    plain.send(b"\x16\x03\x01\x00\x04\x01\x00\x00\x00");
    plain.read_until_ended();
    server.wait_until("it is counted", |stats| stats.proxy_refused == 1);
}

fn a_hello_in_the_packet_of_the_header_counts_as_a_handshake(setup: Setup) {
    let certificate = Certificate::new();
    let config = Config {
        proxy_protocol: true,
        proxy_allow_from: vec!["127.0.0.1".to_owned()],
        tls_handshakes: 1,
        ..certificate.config(setup, TlsRecords::Own)
    };
    let server = Server::start(config);
    let half = || {
        let mut client: Client = server.connect();
        let header = &b"PROXY TCP4 192.0.2.9 192.0.2.1 4000 443\r\n"[..];
        client.send([header, b"\x16\x03\x01\x01\x00"].concat());
        client.wait_until_read();
        client
    };
    let mut first = half();
    let mut second = half();
    first.read_until_ended();
    server.wait_until("it is counted", |stats| stats.handshakes_evicted == 1);
    second.expect_silence(std::time::Duration::from_millis(50));
}
