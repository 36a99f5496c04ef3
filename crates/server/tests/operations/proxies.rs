//! Who the client is behind a proxy: PROXY headers, and fields that say so.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, ForwardedFields};
use gustnado::task::yield_now;
use gustnado::{Endpoint, Middleware, Request, Response, Routes, StartError, blocking};

use crate::harness::client::{get, request};
use crate::harness::{Client, Server, Setup, TransportKind};

on_every_server!(
    a_header_of_either_version_says_whose_the_connection_is,
    a_header_cut_anywhere_reads_the_same,
    a_header_counts_for_all_requests_behind_it,
    a_proxy_that_speaks_for_itself_is_the_client,
    a_connection_without_a_valid_header_is_refused_and_counted,
    a_slow_header_is_ended_as_a_slow_head_is,
    only_those_who_may_can_send_a_header,
    a_paced_connection_has_its_header_read,
    fields_of_a_stranger_are_ignored,
    a_client_behind_a_proxy_cannot_make_itself_another,
    a_chain_of_proxies_is_followed_to_its_end,
    forwarded_is_believed_where_it_was_chosen,
    a_unix_socket_can_be_believed,
    a_header_s_client_can_be_a_proxy_itself,
    a_page_for_errors_knows_the_client,
    a_network_that_is_none_is_refused_at_the_start,
    a_reload_changes_who_is_believed,
    nobody_can_be_forgotten_who_may_send_a_header,
);

pub(super) const TEXT: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n";
const TEXT_ENDS: &str = "192.0.2.1:56324 198.51.100.2:443";
/// What a request without any fields is told of its scheme and host.
fn by_itself() -> String {
    format!("{} gust.example", TransportKind::chosen().scheme())
}

/// Why tests of PROXY headers are left out over TLS: `tests/tls` has some of its own.
const HEADER_FIRST: &str = "the header comes before the handshake";

/// Peer, local end, client, scheme and host.
fn told(request: &Request) -> String {
    let text = |end: Option<Endpoint>| end.map_or_else(|| "?".to_owned(), |end| end.to_string());
    let (peer, local, client) = (request.peer(), request.local(), request.client());
    let host = request.public_host().unwrap_or_default();
    let (peer, local, client) = (text(peer), text(local), text(client));
    format!("{peer} {local} {client} {} {host}", request.scheme())
}

pub(super) fn routes() -> Routes {
    Routes::new()
        .any("/inline", told)
        .any("/late", async |request: Request| {
            yield_now().await;
            told(&request)
        })
        .any("/pool", blocking(|request: Request| told(&request)))
        .any("/client", |request: &Request| {
            let client = request.client().map(|client| client.to_string()).unwrap_or_default();
            format!("{client} {} {}", request.scheme(), request.public_host().unwrap_or_default())
        })
}

pub(super) fn proxied(setup: Setup) -> Config {
    let proxy_allow_from = vec!["127.0.0.1".to_owned()];
    Config { proxy_protocol: true, proxy_allow_from, ..setup.patient_config() }
}

/// A header of version 2.
fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let len = u16::try_from(block.len()).expect("a short block");
    let start = b"\r\n\r\n\0\r\nQUIT\n";
    [start, &[command, family][..], &len.to_be_bytes(), block].concat()
}

pub(super) fn binary_of(source: &str, destination: &str, behind: &[u8]) -> Vec<u8> {
    let parse = |text: &str| text.parse::<SocketAddr>().expect("an address of this test");
    let octets = |address: SocketAddr| match address {
        SocketAddr::V4(address) => address.ip().octets().to_vec(),
        SocketAddr::V6(address) => address.ip().octets().to_vec(),
    };
    let (source, destination) = (parse(source), parse(destination));
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    let block = [&octets(source), &octets(destination), &ports, behind].concat();
    binary(0x21, if source.is_ipv4() { 0x11 } else { 0x21 }, &block)
}

/// What a client of a proxy with these two ends is told.
pub(super) fn ends(text: &str) -> String {
    let client = text.split(' ').next().expect("it has two parts");
    format!("{text} {client} {}", by_itself())
}

fn a_header_of_either_version_says_whose_the_connection_is(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let server = Server::routes(proxied(setup), routes());
    let mut paths = [0; 216];
    paths[..5].copy_from_slice(b"/from");
    paths[108..111].copy_from_slice(b"/to");
    let tlv = [4, 0, 3, b'a', b'b', b'c'];
    for (header, wanted) in [
        (TEXT.to_vec(), TEXT_ENDS),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n".to_vec(), "[2001:db8::1]:1 [2001:db8::2]:2"),
        (binary_of("192.0.2.1:1", "192.0.2.2:2", b""), "192.0.2.1:1 192.0.2.2:2"),
        (binary_of("192.0.2.1:1", "192.0.2.2:2", &tlv), "192.0.2.1:1 192.0.2.2:2"),
        (binary_of("[2001:db8::1]:1", "[2001:db8::2]:2", &tlv), "[2001:db8::1]:1 [2001:db8::2]:2"),
        (binary(0x21, 0x31, &paths), "unix:/from unix:/to"),
    ] {
        for path in ["/inline", "/late", "/pool"] {
            let mut client = server.connect();
            // In one segment, and apart.
            let answer = client.ask([&header, get(path).as_bytes()].concat());
            assert_eq!(answer.text(), ends(wanted), "{path}");
            let mut client = server.connect();
            client.send(&header);
            thread::sleep(Duration::from_millis(2));
            assert_eq!(client.get(path).text(), ends(wanted), "{path}");
        }
    }
    assert_eq!(server.stats().proxy_refused, 0);
}

fn a_header_cut_anywhere_reads_the_same(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let server = Server::routes(proxied(setup), routes());
    let binary = binary_of("192.0.2.1:1", "192.0.2.2:2", b"\x04\0\x01x");
    for (header, wanted) in [(TEXT, TEXT_ENDS), (&binary, "192.0.2.1:1 192.0.2.2:2")] {
        let bytes = [header, get("/inline").as_bytes()].concat();
        for at in 1..header.len() + 3 {
            let mut client = server.connect();
            client.send_cut(&bytes, at);
            assert_eq!(client.read_answer().text(), ends(wanted), "cut at {at}");
        }
        let mut client = server.connect();
        for byte in &bytes {
            client.send([*byte]);
        }
        assert_eq!(client.read_answer().text(), ends(wanted), "byte by byte");
    }
}

fn a_header_counts_for_all_requests_behind_it(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let server = Server::routes(proxied(setup), routes());
    let mut client = server.connect();
    let pipelined = [get("/inline"), get("/late"), get("/pool"), get("/inline")].concat();
    client.send([TEXT, pipelined.as_bytes()].concat());
    for _ in 0..4 {
        assert_eq!(client.read_answer().text(), ends(TEXT_ENDS));
    }
    for _ in 0..3 {
        for path in ["/inline", "/late", "/pool"] {
            assert_eq!(client.get(path).text(), ends(TEXT_ENDS));
        }
    }
    let posted = crate::harness::client::post("/late", "body");
    assert_eq!(client.ask(posted).text(), ends(TEXT_ENDS));
    if !Setup::is_http2() {
        // A second header is none: it is a request, against the rules.
        assert_eq!(client.ask(TEXT).status, 400);
    }
    // Whoever comes next has ends of its own.
    drop(client);
    for port in 1..40_u16 {
        let address = format!("192.0.2.7:{port}");
        let header = binary_of(&address, "192.0.2.2:2", b"");
        let answer = server.ask([&header, get("/inline").as_bytes()].concat());
        assert_eq!(answer.text(), ends(&format!("{address} 192.0.2.2:2")));
    }
}

fn a_proxy_that_speaks_for_itself_is_the_client(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let server = Server::routes(proxied(setup), routes());
    for header in [
        binary(0x20, 0x00, b""),
        binary(0x20, 0x11, &[1; 12]),
        binary(0x21, 0x00, b""),
        b"PROXY UNKNOWN\r\n".to_vec(),
        b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n".to_vec(),
    ] {
        let mut client = server.connect();
        let (own, to) = client.ends();
        let answer = client.ask([&header, get("/inline").as_bytes()].concat());
        assert_eq!(answer.text(), ends(&format!("{own} {to}")));
    }
}

fn a_connection_without_a_valid_header_is_refused_and_counted(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let server = Server::routes(proxied(setup), routes());
    let too_long = binary(0x21, 0x11, &[0; 4_081]);
    let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    let bad: [&[u8]; 8] = [
        get("/inline").leak().as_bytes(),
        b"\x16\x03\x01\x02\0\x01\0",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 x\r\n",
        b"PROXY TCP4 1.2.3.4\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c",
        b"\r\n\r\n",
        &too_long,
        &endless,
    ];
    for (count, bytes) in bad.iter().enumerate() {
        let mut client = server.connect();
        if *bytes == b"\r\n\r\n" {
            // So far it may become a header, and then it does not.
            client.send_cut(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n", 4);
        } else {
            client.send(bytes);
        }
        let answer = client.read_answer();
        assert_eq!(answer.status, 400, "{}", bytes.escape_ascii());
        client.expect_end("a refusal");
        server.wait_until("it is counted", |stats| stats.proxy_refused == count as u64 + 1);
    }
    let stats = server.stats();
    assert_eq!((stats.bad_requests, stats.answers_2xx), (8, 0));
    // One that says nothing at all has done nothing wrong.
    server.connect().shut_write();
    server.wait_until_empty();
    assert_eq!(server.stats().proxy_refused, 8);
}

fn a_slow_header_is_ended_as_a_slow_head_is(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let config = Config { header_timeout: Duration::from_millis(150), ..proxied(setup) };
    let server = Server::routes(config, routes());
    let mut slow = server.connect();
    for byte in &TEXT[..30] {
        slow.send_unless_closed([*byte]);
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(slow.read_answer().status, 408);
    slow.expect_end("a refusal");
    let mut silent = server.connect();
    assert!(silent.try_answer().is_err(), "it is closed without an answer");
    // A header alone is not yet a request.
    let mut idle = server.connect();
    idle.send(TEXT);
    assert!(idle.try_answer().is_err(), "it is closed without an answer");
    // The head behind it has no more time than is left.
    let mut head = server.connect();
    head.send([TEXT, b"GET / HTTP/1.1\r\n"].concat());
    if Setup::is_http2() {
        head.expect_end("half a head");
    } else {
        assert_eq!(head.read_answer().status, 408);
    }
    let stats = server.stats();
    assert_eq!((stats.timeouts, stats.proxy_refused), (4, 0));
}

fn only_those_who_may_can_send_a_header(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let allow = |networks: &[&str]| networks.iter().map(|&text| text.to_owned()).collect();
    let with = |proxy_allow_from| Config { proxy_allow_from, ..proxied(setup) };
    let server = Server::routes(with(allow(&["192.0.2.0/24", "unix"])), routes());
    let answer = server.ask([TEXT, get("/inline").as_bytes()].concat());
    assert_eq!(answer.status, 403);
    assert_eq!(server.stats().proxy_refused, 1);
    let server = Server::routes(with(allow(&["192.0.2.0/24", "127.0.0.0/8"])), routes());
    let answer = server.ask([TEXT, get("/inline").as_bytes()].concat());
    assert_eq!(answer.text(), ends(TEXT_ENDS));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let config = Config { uds: Some(path.clone()), ..with(allow(&["unix"])) };
    let _server = Server::routes(config, routes());
    let answer = Client::connect_unix(&path).ask([TEXT, get("/inline").as_bytes()].concat());
    assert_eq!(answer.text(), ends(TEXT_ENDS));
}

fn a_paced_connection_has_its_header_read(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let mut config = proxied(setup);
    config.pace.write_rate = 100_000;
    config.pace.requests_per_second = 1;
    config.pace.requests_burst = 2;
    let server = Server::routes(config, routes());
    let ask = |header: &[u8]| server.ask([header, get("/inline").as_bytes()].concat());
    assert_eq!(ask(TEXT).text(), ends(TEXT_ENDS));
    assert_eq!(ask(TEXT).text(), ends(TEXT_ENDS));
    // Each client of the proxy has a pace of its own.
    assert_eq!(ask(TEXT).status, 429);
    let other = binary_of("192.0.2.99:1", "192.0.2.2:2", b"");
    assert_eq!(ask(&other).status, 200);
    assert_eq!(server.get("/inline").status, 400);
}

const FIELDS: &str = "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n\
                      X-Forwarded-Host: public.example\r\nForwarded: for=192.0.2.8;proto=https\r\n";

fn believing(setup: Setup, networks: &[&str]) -> Config {
    let forwarded_allow_ips = networks.iter().map(|&text| text.to_owned()).collect();
    Config { forwarded_allow_ips, ..setup.config() }
}

fn fields_of_a_stranger_are_ignored(setup: Setup) {
    for networks in [&[][..], &["192.0.2.0/24", "unix", "::1"]] {
        let server = Server::routes(believing(setup, networks), routes());
        for path in ["/inline", "/late", "/pool"] {
            let mut client = server.connect();
            let (own, to) = client.ends();
            let answer = client.ask(request("GET", path, FIELDS));
            assert_eq!(answer.text(), ends(&format!("{own} {to}")), "{path}");
        }
    }
}

fn a_client_behind_a_proxy_cannot_make_itself_another(setup: Setup) {
    let server = Server::routes(believing(setup, &["127.0.0.1"]), routes());
    // The client's own entries stand to the left of the proxy's.
    let fields = "X-Forwarded-For: 127.0.0.1, 10.0.0.1\r\nX-Forwarded-For: 192.0.2.9\r\n\
                  X-Forwarded-Proto: https, http\r\n\
                  X-Forwarded-Host: evil.example, good.example\r\n";
    for path in ["/inline", "/late", "/pool"] {
        let mut client = server.connect();
        let (own, to) = client.ends();
        let answer = client.ask(request("GET", path, fields));
        assert_eq!(answer.text(), format!("{own} {to} 192.0.2.9:0 http good.example"), "{path}");
        let answer = client.ask(request("GET", path, FIELDS));
        assert_eq!(answer.text(), format!("{own} {to} 192.0.2.9:0 https public.example"));
        // What one request says is not another's.
        assert_eq!(client.get(path).text(), ends(&format!("{own} {to}")), "{path}");
    }
}

fn a_chain_of_proxies_is_followed_to_its_end(setup: Setup) {
    let server = Server::routes(believing(setup, &["127.0.0.1", "10.0.0.0/8"]), routes());
    let fields = "X-Forwarded-For: 1.1.1.1, [2001:db8::9]:77, 10.0.0.2, 10.0.0.3:80\r\n\
                  X-Forwarded-Proto: http, https, http, http\r\n";
    let answer = server.ask(request("GET", "/client", fields));
    assert_eq!(answer.text(), "[2001:db8::9]:77 https gust.example");
    let fields = "X-Forwarded-For: 192.0.2.9, garbage, 10.0.0.3\r\n";
    let answer = server.ask(request("GET", "/client", fields));
    assert_eq!(answer.text(), format!("10.0.0.3:0 {}", by_itself()));
}

fn forwarded_is_believed_where_it_was_chosen(setup: Setup) {
    let config = believing(setup, &["127.0.0.1", "10.0.0.0/8"]);
    let config = Config { forwarded_fields: ForwardedFields::Forwarded, ..config };
    let server = Server::routes(config, routes());
    let fields = "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=1.1.1.1;proto=http, \
                  for=\"[2001:db8::9]:77\";proto=https;host=\"public.example:8443\"\r\n\
                  forwarded: for=10.0.0.2;proto=http\r\n";
    let answer = server.ask(request("GET", "/client", fields));
    assert_eq!(answer.text(), "[2001:db8::9]:77 https public.example:8443");
}

fn a_unix_socket_can_be_believed(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (networks, wanted) in [
        (&["unix"][..], "192.0.2.9:0 https public.example"),
        (&["*"], "192.0.2.9:0 https public.example"),
        (&["127.0.0.1"], &*format!("unix: {}", by_itself())),
    ] {
        let path = folder.path().join("socket");
        let config = Config { uds: Some(path.clone()), ..believing(setup, networks) };
        let server = Server::routes(config, routes());
        let answer = Client::connect_unix(&path).ask(request("GET", "/client", FIELDS));
        assert_eq!(answer.text(), wanted);
        server.stop();
    }
}

fn a_header_s_client_can_be_a_proxy_itself(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let Config { forwarded_allow_ips, .. } = believing(setup, &["192.0.2.1"]);
    let config = Config { forwarded_allow_ips, ..proxied(setup) };
    let server = Server::routes(config, routes());
    let fields = "X-Forwarded-For: 203.0.113.5\r\n";
    let ask = |header: &[u8]| {
        server.ask([header, request("GET", "/client", fields).as_bytes()].concat()).text()
    };
    assert_eq!(ask(TEXT), "203.0.113.5:0 http gust.example");
    let other = binary_of("192.0.2.2:9", "192.0.2.3:80", b"");
    assert_eq!(ask(&other), "192.0.2.2:9 http gust.example");
}

fn a_page_for_errors_knows_the_client(setup: Setup) {
    let routes = routes().error_pages(|request: &Request, _| told(request)).middleware(
        Middleware::after(|request: &Request, response: &mut Response| {
            let client = request.client_ip().map(|ip| ip.to_string()).unwrap_or_default();
            response.try_header("X-Client", client).expect("an address is a good value");
        }),
    );
    let server = Server::routes(believing(setup, &["127.0.0.1"]), routes);
    let mut client = server.connect();
    let (own, to) = client.ends();
    let answer = client.ask(request("GET", "/none", FIELDS));
    assert_eq!(answer.text(), format!("{own} {to} 192.0.2.9:0 https public.example"));
    assert_eq!(answer.expect_field("x-client"), "192.0.2.9");
    assert_eq!(answer.status, 404);
}

fn a_network_that_is_none_is_refused_at_the_start(setup: Setup) {
    for (allow, setting) in [(true, "forwarded-allow-ips"), (false, "proxy-allow-from")] {
        let mut config = setup.config();
        let texts = vec!["10.0.0.1/8".to_owned()];
        if allow {
            config.forwarded_allow_ips = texts;
        } else {
            config.proxy_allow_from = texts;
        }
        let error = gustnado::start(config).expect_err("bits behind the network's own");
        assert!(matches!(error, StartError::Network { .. }), "{error:?}");
        assert_eq!(error.exit_code(), 78);
        let said = error.to_string();
        assert!(said.starts_with(&format!("--{setting} 10.0.0.1/8: ")), "{said}");
    }
}

fn nobody_can_be_forgotten_who_may_send_a_header(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let nobody = || Config { proxy_allow_from: Vec::new(), ..proxied(setup) };
    let error = gustnado::start(nobody()).expect_err("anybody could choose an address");
    assert!(matches!(error, StartError::AnyProxy), "{error}");
    assert_eq!(error.exit_code(), 78);
    let said = error.to_string();
    for wanted in [
        "--proxy-allow-from 10.0.0.1",
        "GUSTNADO_PROXY_ALLOW_FROM=",
        "proxy-allow-from = \"10.0.0.1\"",
        ".proxy_allow_from(&[\"10.0.0.1\"])",
        "proxy_allow_from=\"10.0.0.1\"",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let server = gustnado::Server::new().config(nobody());
    assert!(matches!(server.check(), Err(StartError::AnyProxy)));
    let everybody = Config { proxy_allow_from: vec!["*".to_owned()], ..proxied(setup) };
    let running = Server::routes(everybody, routes());
    assert_eq!(running.ask([TEXT, get("/inline").as_bytes()].concat()).text(), ends(TEXT_ENDS));
    let server = server.routes(routes());
    let refused = running.running().reload(server).expect_err("a reload may not forget it either");
    assert!(refused.to_string().contains("--proxy-allow-from"), "{refused}");
}

fn a_reload_changes_who_is_believed(setup: Setup) {
    if Setup::plain_only(HEADER_FIRST) {
        return;
    }
    let server = Server::routes(believing(setup, &[]), routes());
    let mut client = server.connect();
    let (own, _) = client.ends();
    let asked = request("GET", "/client", FIELDS);
    assert_eq!(client.ask(&asked).text(), format!("{own} {}", by_itself()));
    let to = gustnado::Server::new().config(believing(setup, &["127.0.0.1"])).routes(routes());
    server.running().reload(to).expect("it takes that");
    assert_eq!(client.ask(&asked).text(), "192.0.2.9:0 https public.example");
    let to = gustnado::Server::new().config(proxied(setup)).routes(routes());
    server.running().reload(to).expect("it takes that");
    assert_eq!(
        client.ask(&asked).text(),
        format!("{own} {}", by_itself()),
        "it goes on as it began"
    );
    let answer = server.ask([TEXT, get("/inline").as_bytes()].concat());
    assert_eq!(answer.text(), ends(TEXT_ENDS));
}
