//! How a connection comes to speak HTTP/2, and how not (RFC 9113 §3).

use gustnado::config::Config;
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{PREFACE, kind, setting};

use crate::harness::client::request;
use crate::harness::http2::heads::request_frame;
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Server, Setup};
use crate::in_clear;

on_every_server!(
    prior_knowledge_is_enough_where_a_setting_allows_it,
    without_the_setting_the_preface_is_a_bad_request,
    an_upgrade_to_h2c_is_ignored,
    a_preface_in_pieces_is_taken,
    requests_may_come_with_the_preface,
    http_1_goes_on_beside_it,
    http_1_is_refused_where_it_is_left_out,
    the_server_says_what_it_takes,
);

fn prior_knowledge_is_enough_where_a_setting_allows_it(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect(server.address());
    let answer = client.ask("/");
    assert_eq!(
        (answer.status, answer.field("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert_eq!(answer.field("connection"), None, "it is no field of HTTP/2");
    assert!(answer.text().contains("<html"), "{}", answer.text());
    assert_eq!(client.ask("/nothing/here").status, 404);
}

fn without_the_setting_the_preface_is_a_bad_request(setup: Setup) {
    let server = Server::start(Config { h2c: false, ..in_clear(setup) });
    let mut client = server.connect();
    client.send(PREFACE);
    assert_eq!(client.read_answer().status, 505);
}

fn an_upgrade_to_h2c_is_ignored(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let fields =
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    let answer = server.ask(request("GET", "/", fields));
    assert_eq!((answer.status, answer.field("upgrade")), (200, None));
}

fn a_preface_in_pieces_is_taken(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect_silently(server.address());
    let opening = [&PREFACE[..], &frame_of(kind::SETTINGS, 0, 0, b"")].concat();
    for byte in opening {
        client.send(&[byte]);
    }
    assert_eq!(client.ask("/").status, 200);
}

fn requests_may_come_with_the_preface(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect_silently(server.address());
    let mut opening = [&PREFACE[..], &frame_of(kind::SETTINGS, 0, 0, b"")].concat();
    for id in [1, 3, 5] {
        opening.extend(request_frame(id, "GET", "/", &[], true));
    }
    client.send(&opening);
    for id in [1, 3, 5] {
        assert_eq!(client.answer(id).status, 200);
    }
}

fn http_1_is_refused_where_it_is_left_out(setup: Setup) {
    let server = Server::start(Config { http1: false, ..in_clear(setup) });
    let answer = server.get("/");
    assert_eq!((answer.status, answer.field("connection")), (505, Some("close")));
    assert_eq!(server.ask(b"GET / HTTP/1.0\r\n\r\n").status, 505);
    assert_eq!(Http2Client::connect(server.address()).ask("/").status, 200);
}

fn http_1_goes_on_beside_it(setup: Setup) {
    let server = Server::start(in_clear(setup));
    assert_eq!(server.get("/").status, 200);
    // (A method that begins as the preface does.)
    let answer = server.ask(request("PRIVATE", "/", ""));
    assert!((400..=501).contains(&answer.status), "{}", answer.status);
    let mut client = Http2Client::connect_silently(server.address());
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX");
    client.send(&[0; 64]);
    let code = client.ended().map(|goaway| goaway.code);
    assert!(matches!(code, None | Some(ErrorCode::ProtocolError)), "{code:?}");
}

fn the_server_says_what_it_takes(setup: Setup) {
    let config = Config { h2_streams: 7, h2_window_bytes: 20_000, ..in_clear(setup) };
    let server = Server::start(config);
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.streams_max(), 7);
    assert_eq!(client.setting(setting::INITIAL_WINDOW_SIZE), Some(20_000));
    assert_eq!(client.setting(setting::NO_RFC7540_PRIORITIES), Some(1));
}
