//! Heads of requests: what is taken, what is refused with a status, and what breaks the rules
//! (RFC 9113 §8).

use gustnado::config::Config;
use gustnado::{Request, Response, Routes};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{flag, kind};

use crate::harness::http2::Http2Client;
use crate::harness::http2::heads::{block, literal};
use crate::harness::{Server, Setup};
use crate::in_clear;

on_every_server!(
    a_request_is_the_same_as_by_http_1,
    crumbs_of_a_cookie_are_one_field,
    malformed_requests_are_stream_errors,
    heads_above_the_limits_get_their_statuses,
    a_head_in_many_frames_is_taken,
    connect_is_not_allowed,
    an_asterisk_is_answered,
);

fn told() -> Routes {
    Routes::new().get("/{*rest}", |request: &Request| {
        let fields: Vec<String> = request
            .headers()
            .map(|(name, value)| format!("{name}={}", value.escape_ascii()))
            .collect();
        let query = request.raw_query().unwrap_or("none");
        let host = request.host().unwrap_or("none").to_owned();
        Response::text(format!("{} {query} {host} {}", request.path(), fields.join("|")))
    })
}

/// Sends a block as it is, and returns its stream.
fn sent(client: &mut Http2Client, block: &[u8]) -> u32 {
    let id = client.new_stream();
    client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, block);
    id
}

fn a_request_is_the_same_as_by_http_1(setup: Setup) {
    let server = Server::routes(in_clear(setup), told());
    let mut client = Http2Client::connect(server.address());
    let id = client.request("GET", "/a%20b/c?d=e&f", &[("x-one", "1"), ("x-two", "2")], true);
    let ours = client.answer(id).text();
    let fields = "X-One: 1\r\nX-Two: 2\r\n";
    let theirs =
        server.ask(crate::harness::client::request("GET", "/a%20b/c?d=e&f", fields)).text();
    assert_eq!(ours.to_lowercase(), theirs.to_lowercase());
}

fn crumbs_of_a_cookie_are_one_field(setup: Setup) {
    let routes = Routes::new()
        .get("/", |request: &Request| request.header("cookie").unwrap_or("none").to_owned());
    let config = Config { limit_header_fields: 10, ..in_clear(setup) };
    let server = Server::routes(config, routes);
    let mut client = Http2Client::connect(server.address());
    let crumbs: Vec<String> = (0..40).map(|number| format!("c{number}={number}")).collect();
    let fields: Vec<(&str, &str)> = crumbs.iter().map(|crumb| ("cookie", &**crumb)).collect();
    let id = client.request("GET", "/", &fields, true);
    assert_eq!(client.answer(id).text(), crumbs.join("; "));
    // Their bytes count fully.
    let long: Vec<String> = (0..400).map(|number| format!("c={number:0>60}")).collect();
    let fields: Vec<(&str, &str)> = long.iter().map(|crumb| ("cookie", &**crumb)).collect();
    let mut block = block("GET", "/", &fields);
    let id = client.new_stream();
    let rest = block.split_off(16_000);
    client.send_frame(kind::HEADERS, flag::END_STREAM, id, &block);
    for (at, piece) in rest.chunks(16_000).enumerate() {
        let is_last = (at + 1) * 16_000 >= rest.len();
        let flags = if is_last { flag::END_HEADERS } else { 0 };
        client.send_frame(kind::CONTINUATION, flags, id, piece);
    }
    assert_eq!(client.answer(id).status, 431);
}

fn malformed_requests_are_stream_errors(setup: Setup) {
    let server = Server::routes(in_clear(setup), told());
    let mut client = Http2Client::connect(server.address());
    let get = block("GET", "/", &[]);
    let with = |name: &str, value: &str| [&get[..], &literal(name, value)].concat();
    let pseudo = |fields: &[(&str, &str)]| {
        fields.iter().flat_map(|(name, value)| literal(name, value)).collect::<Vec<u8>>()
    };
    let blocks = [
        ("an upper-case name", with("X-Upper", "1")),
        ("a space in a name", with("x y", "1")),
        ("an empty name", with("", "1")),
        ("a line end in a value", with("x", "a\r\nb: c")),
        ("a zero in a value", with("x", "a\0b")),
        ("a space around a value", with("x", " a")),
        ("connection", with("connection", "close")),
        ("transfer-encoding", with("transfer-encoding", "chunked")),
        ("keep-alive", with("keep-alive", "5")),
        ("upgrade", with("upgrade", "h2c")),
        ("te", with("te", "gzip")),
        ("a pseudo field behind", with(":path", "/other")),
        ("an unknown pseudo field", pseudo(&[(":method", "GET"), (":what", "x")])),
        ("a status", pseudo(&[(":method", "GET"), (":status", "200")])),
        ("no method", pseudo(&[(":scheme", "http"), (":path", "/"), (":authority", "a")])),
        ("no scheme", pseudo(&[(":method", "GET"), (":path", "/"), (":authority", "a")])),
        ("no path", pseudo(&[(":method", "GET"), (":scheme", "http"), (":authority", "a")])),
        (
            "an empty path",
            pseudo(&[(":method", "GET"), (":scheme", "http"), (":path", ""), (":authority", "a")]),
        ),
        (
            "two paths",
            pseudo(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":path", "/")]),
        ),
        ("another host", with("host", "other.example")),
        ("two lengths", [with("content-length", "0"), literal("content-length", "1")].concat()),
        ("a length that is no number", with("content-length", "-1")),
    ];
    for (what, block) in blocks {
        let id = sent(&mut client, &block);
        let answer = client.answer(id);
        assert_eq!((answer.status, answer.reset), (0, Some(ErrorCode::ProtocolError)), "{what}");
    }
    assert_eq!(client.ask("/").status, 200, "the connection goes on");
    assert_eq!(server.stats().bad_requests, 22);
}

fn heads_above_the_limits_get_their_statuses(setup: Setup) {
    let config = Config {
        limit_head_bytes: 4_096,
        limit_header_fields: 20,
        limit_target_bytes: 100,
        ..in_clear(setup)
    };
    let server = Server::routes(config, told());
    let mut client = Http2Client::connect(server.address());
    let long = "v".repeat(4_096);
    let id = client.request("GET", "/", &[("x", &long)], true);
    assert_eq!(client.answer(id).status, 431);
    let many: Vec<(&str, &str)> = (0..21).map(|_| ("x", "1")).collect();
    let id = client.request("GET", "/", &many, true);
    assert_eq!(client.answer(id).status, 431);
    let target = format!("/{}", "t".repeat(100));
    assert_eq!(client.ask(&target).status, 414);
    let id = client.request("GET", "/", &[("expect", "the worst")], true);
    assert_eq!(client.answer(id).status, 417);
    assert_eq!(client.ask("/").status, 200);
}

fn a_head_in_many_frames_is_taken(setup: Setup) {
    let server = Server::routes(in_clear(setup), told());
    let mut client = Http2Client::connect(server.address());
    let block = block("GET", "/here", &[("x-long", &"v".repeat(1_000))]);
    for pieces in [2, 3, 5, 8] {
        let id = client.new_stream();
        let size = block.len().div_ceil(pieces);
        let count = block.len().div_ceil(size);
        for (at, piece) in block.chunks(size).enumerate() {
            let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
            let end = if at + 1 == count { flag::END_HEADERS } else { 0 };
            let flags = end | if at == 0 { flag::END_STREAM } else { 0 };
            client.send_frame(kind, flags, id, piece);
        }
        assert!(client.answer(id).text().starts_with("/here"), "{pieces}");
    }
}

fn connect_is_not_allowed(setup: Setup) {
    let server = Server::routes(in_clear(setup), told());
    let mut client = Http2Client::connect(server.address());
    let block = [literal(":method", "CONNECT"), literal(":authority", "example.org:443")].concat();
    let id = sent(&mut client, &block);
    assert_eq!(client.answer(id).status, 405);
    assert_eq!(client.ask("/").status, 200);
}

fn an_asterisk_is_answered(setup: Setup) {
    let server = Server::routes(in_clear(setup), told());
    let mut client = Http2Client::connect(server.address());
    let id = client.request("OPTIONS", "*", &[], true);
    let answer = client.answer(id);
    assert_eq!((answer.status, answer.field("allow").is_some()), (204, true));
}
