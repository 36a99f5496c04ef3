//! What would take down a server that believes everything it is sent: each flood ends its own
//! connection, is counted, and costs nobody else.

use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Stats};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{flag, kind, setting};

use crate::harness::http2::heads::{KEPT, block, literal, request_frame};
use crate::harness::http2::{GoAway, Http2Client, frame_of};
use crate::harness::{Folder, Server, Setup};
use crate::{in_clear, of_folder};

on_every_server!(
    streams_that_are_reset_at_once_are_a_flood,
    streams_that_the_server_has_to_reset_are_a_flood,
    continuations_without_end_are_a_flood,
    a_small_block_that_decodes_to_much_is_refused,
    many_cookies_are_bounded_as_well,
    frames_that_serve_nobody_are_a_flood,
    empty_and_tiny_data_is_a_flood,
    tables_are_as_large_as_they_may,
    content_in_crumbs_is_a_flood,
    small_windows_that_are_given_back_are_no_flood,
    tiny_windows_hold_no_memory,
    a_thousand_slow_uploads_end_in_time,
    who_goes_on_as_browsers_do_is_let_be,
);

/// A server with a small budget, so that its end is soon reached.
fn strict(setup: Setup) -> Config {
    Config { h2_glitches: 50, h2_glitches_per_second: 1, ..in_clear(setup) }
}

fn routes() -> Routes {
    Routes::new()
        .get("/", |_: &Request| "here")
        .get("/slow", async |_: Request| {
            sleep(Duration::from_secs(20)).await;
            "slow"
        })
        .post("/", async |request: Request| Response::stream(request.into_body()))
}

/// Sends `bytes` again and again, until the server has had enough.
fn flooded(client: &mut Http2Client, mut bytes: impl FnMut(u32) -> Vec<u8>) -> GoAway {
    for number in 0..20_000 {
        if !client.try_send(&bytes(number)) {
            break;
        }
    }
    client.ended().expect("a GOAWAY")
}

/// What holds after each flood: who sent it knows why it was ended, and others are served.
fn assert_ended(server: &Server, goaway: &GoAway, count: impl Fn(&Stats) -> u64) {
    assert_eq!(goaway.code, ErrorCode::EnhanceYourCalm, "{goaway:?}");
    server.wait_until("it is counted", |stats| count(stats) == 1);
    assert_eq!(server.stats().http2_errors, 1);
    assert_eq!(Http2Client::connect(server.address()).ask("/").text(), "here");
}

fn streams_that_are_reset_at_once_are_a_flood(setup: Setup) {
    // CVE-2023-44487: no more streams than allowed are ever open at once.
    let server = Server::routes(strict(setup), routes());
    let mut client = Http2Client::connect(server.address());
    let goaway = flooded(&mut client, |number| {
        let id = 2 * number + 1;
        let reset = frame_of(kind::RST_STREAM, 0, id, &8_u32.to_be_bytes());
        [request_frame(id, "GET", "/slow", &[], true), reset].concat()
    });
    assert_ended(&server, &goaway, |stats| stats.http2_floods_resets);
    assert!((50..=60).contains(&server.stats().http2_resets), "{:?}", server.stats());
}

fn streams_that_the_server_has_to_reset_are_a_flood(setup: Setup) {
    // CVE-2025-8671: what the server resets must not go on behind the stream's back.
    let server = Server::routes(strict(setup), routes());
    let mut client = Http2Client::connect(server.address());
    let goaway = flooded(&mut client, |number| {
        let id = 2 * number + 1;
        let wrong = frame_of(kind::WINDOW_UPDATE, 0, id, &[0; 4]);
        [request_frame(id, "GET", "/slow", &[], true), wrong].concat()
    });
    assert_ended(&server, &goaway, |stats| stats.http2_floods_errors);
    // Each of its fifty requests had a handler.
    server.wait_until("no handler goes on", |stats| stats.tasks_live < 20);
}

fn continuations_without_end_are_a_flood(setup: Setup) {
    // CVE-2024-27316
    for payload in [&b""[..], &literal("x", &"v".repeat(100)), &[0x82; 10_000]] {
        let server = Server::routes(strict(setup), routes());
        let mut client = Http2Client::connect(server.address());
        client.send_frame(kind::HEADERS, flag::END_STREAM, 1, &block("GET", "/", &[]));
        let more = frame_of(kind::CONTINUATION, 0, 1, payload);
        let goaway = flooded(&mut client, |_| more.clone());
        assert_ended(&server, &goaway, |stats| stats.http2_floods_fields);
    }
}

fn a_small_block_that_decodes_to_much_is_refused(setup: Setup) {
    // An entry of 4,000 bytes that one byte stands for, thousands of times: 16 KB that decode to
    // 60 MB. No more of it is kept than a head may have.
    let server = Server::routes(strict(setup), routes());
    let mut client = Http2Client::connect(server.address());
    let mut bomb = block("GET", "/", &[]);
    let value = literal("x", &"v".repeat(4_000));
    bomb.push(0x40);
    bomb.extend(&value[1..]);
    let fits = 16_384 - bomb.len();
    bomb.extend(vec![KEPT; fits]);
    for _ in 0..20 {
        let id = client.new_stream();
        client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, &bomb);
        assert_eq!(client.answer(id).status, 431);
    }
    assert_eq!(client.ask("/").text(), "here", "its table is still that of the client");
}

fn many_cookies_are_bounded_as_well(setup: Setup) {
    // CVE-2026-49975: crumbs are joined, so their number alone bounds nothing.
    let server = Server::routes(strict(setup), routes());
    let mut client = Http2Client::connect(server.address());
    let mut bomb = block("GET", "/", &[]);
    bomb.push(0x40);
    bomb.extend(&literal("cookie", "a=b")[1..]);
    let fits = 16_384 - bomb.len();
    bomb.extend(vec![KEPT; fits]);
    let id = client.new_stream();
    client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, &bomb);
    assert_eq!(client.answer(id).status, 431);
}

fn frames_that_serve_nobody_are_a_flood(setup: Setup) {
    let settings = [&setting::HEADER_TABLE_SIZE.to_be_bytes()[..], &[0, 0, 16, 0]].concat();
    let frames = [
        ("PING", frame_of(kind::PING, 0, 0, &[0; 8])),
        ("an answer to no PING", frame_of(kind::PING, flag::ACK, 0, &[0; 8])),
        ("SETTINGS", frame_of(kind::SETTINGS, 0, 0, &settings)),
        ("PRIORITY", frame_of(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
        ("PRIORITY_UPDATE", frame_of(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1")),
        ("WINDOW_UPDATE", frame_of(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("a frame of no known kind", frame_of(99, 0, 0, b"what")),
    ];
    for (what, frame) in frames {
        let server = Server::routes(strict(setup), routes());
        let mut client = Http2Client::connect(server.address());
        let goaway = flooded(&mut client, |_| frame.repeat(10));
        assert_eq!(goaway.code, ErrorCode::EnhanceYourCalm, "{what}");
        assert_ended(&server, &goaway, |stats| stats.http2_floods_idle);
    }
}

fn empty_and_tiny_data_is_a_flood(setup: Setup) {
    for (flags, payload) in [(0, &b""[..]), (0, b"x"), (flag::PADDED, &[100; 101])] {
        let server = Server::routes(strict(setup), routes());
        let mut client = Http2Client::connect(server.address());
        let id = client.request("POST", "/", &[], false);
        let frame = frame_of(kind::DATA, flags, id, payload);
        let goaway = flooded(&mut client, |_| frame.clone());
        assert_ended(&server, &goaway, |stats| stats.http2_floods_idle);
    }
}

fn tables_are_as_large_as_they_may(setup: Setup) {
    // A client that allows for a huge table does not get one.
    let server = Server::routes(in_clear(setup), routes());
    let settings = [(setting::HEADER_TABLE_SIZE, u32::MAX)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    for _ in 0..20 {
        assert_eq!(client.ask("/").text(), "here");
    }
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::HEADER_TABLE_SIZE, 0)]);
    for _ in 0..20 {
        assert_eq!(client.ask("/").text(), "here");
    }
}

fn tiny_windows_hold_no_memory(setup: Setup) {
    // A hundred large files that are asked for and not taken: they stay on the disk.
    let folder = Folder::new();
    folder.hollow("large.bin", 100 << 20);
    let server = Server::start(of_folder(setup, &folder));
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    client.gives_window = false;
    let ids: Vec<u32> = (0..100).map(|_| client.get("/large.bin")).collect();
    for id in &ids {
        client.wait_for(*id, |answer| answer.body.len() == 1);
    }
    assert!(server.stats().bytes_sent < 100_000);
    client.cut();
    server.wait_until_empty();
}

fn a_thousand_slow_uploads_end_in_time(setup: Setup) {
    // Ten connections with a hundred uploads each, of a byte now and then.
    let config = Config {
        body_timeout: Duration::from_millis(700),
        body_rate_min: 1_000,
        ..in_clear(setup)
    };
    let server = Server::routes(config, routes());
    let mut clients: Vec<Http2Client> =
        (0..10).map(|_| Http2Client::connect(server.address())).collect();
    for client in &mut clients {
        for _ in 0..100 {
            let id = client.request("POST", "/", &[], false);
            client.send_data(id, b"a few bytes at first, for a start", false);
        }
    }
    for client in &mut clients {
        for n in 0..100 {
            let answer = client.answer(2 * n + 1);
            let has_ended = answer.reset.is_some() || answer.status == 408;
            assert!(has_ended, "{answer:?}");
        }
    }
    assert_eq!(server.stats().timeouts, 1_000);
}

fn who_goes_on_as_browsers_do_is_let_be(setup: Setup) {
    // Pages whose requests are cancelled, windows given back in small steps, pings now and then:
    // with the budget that is the default.
    let server = Server::routes(in_clear(setup), routes());
    let mut client = Http2Client::connect(server.address());
    for _ in 0..5 {
        let ids: Vec<u32> = (0..90).map(|_| client.get("/slow")).collect();
        for id in ids {
            client.reset(id, ErrorCode::Cancel);
        }
        client.ping();
        for _ in 0..50 {
            client.give(0, 100);
            client.ask("/");
        }
    }
    assert_eq!(server.stats().http2_errors, 0);
    assert_eq!(server.stats().http2_resets, 450);
}

fn content_in_crumbs_is_a_flood(setup: Setup) {
    // CVE-2019-9511: room for a byte at a time, of a large file.
    let folder = Folder::new();
    folder.hollow("large.bin", 100 << 20);
    let config = Config { h2_glitches: 50, h2_glitches_per_second: 1, ..of_folder(setup, &folder) };
    let server = Server::start(config);
    let settings = [(setting::INITIAL_WINDOW_SIZE, 0)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    client.gives_window = false;
    let id = client.get("/large.bin");
    let goaway =
        flooded(&mut client, |_| frame_of(kind::WINDOW_UPDATE, 0, id, &1_u32.to_be_bytes()));
    assert_eq!(goaway.code, ErrorCode::EnhanceYourCalm);
    server.wait_until("it is counted", |stats| stats.http2_floods_idle == 1);
}

fn small_windows_that_are_given_back_are_no_flood(setup: Setup) {
    // As clients do that give back each few hundred bytes, on many streams at once.
    let folder = Folder::new();
    let body = crate::harness::folder::noise(5, 100_000);
    folder.file("file.bin", &body);
    let config = Config { h2_glitches: 50, h2_glitches_per_second: 1, ..of_folder(setup, &folder) };
    let server = Server::start(config);
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1_023)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    let ids: Vec<u32> = (0..80).map(|_| client.get("/file.bin")).collect();
    for id in ids {
        assert!(client.answer(id).body == body);
    }
    assert_eq!(server.stats().http2_errors, 0);
}
