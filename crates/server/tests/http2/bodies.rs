//! Bodies of requests: whole and in pieces, their limits, and what nobody reads.

use std::time::Duration;

use gustnado::config::Config;
use gustnado::site::SiteFile;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Server as Builder};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{flag, kind};

use crate::harness::folder::noise;
use crate::harness::http2::heads::literal;
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Folder, Server, Setup};
use crate::in_clear;

on_every_server!(
    a_body_comes_back,
    a_body_in_any_pieces_comes_back,
    a_large_body_flows_while_it_is_read,
    a_body_above_the_limit_is_refused,
    the_limit_of_a_route_is_for_actions_that_read_no_body,
    a_wrong_length_is_a_stream_error,
    a_body_that_nobody_reads_stops_at_its_window,
    an_answer_before_the_end_of_the_body_stops_it,
    a_rest_that_nobody_reads_may_end,
    a_client_that_waits_with_its_rest_is_told_to_stop,
    trailers_of_a_request_end_it,
    a_client_that_waits_is_told_to_continue,
    a_body_that_is_silent_is_timed_out,
    padding_is_no_content,
    an_upload_may_take_longer_than_a_head,
    a_body_that_outlives_a_reload_is_for_the_routes_of_before,
);

fn echo() -> Routes {
    Routes::new()
        .post("/inline", |request: &Request| Response::bytes(request.bytes().to_vec()))
        .post("/task", async |request: Request| Response::stream(request.into_body()))
        .post("/whole", async |request: Request| request.into_body().bytes(8 << 20).await)
        .get("/", |_: &Request| "here")
}

fn a_body_comes_back(setup: Setup) {
    let server = Server::routes(in_clear(setup), echo());
    let mut client = Http2Client::connect(server.address());
    for target in ["/inline", "/task", "/whole"] {
        for length in [0, 1, 16_384, 50_000] {
            let body = noise(length as u64, length);
            let answer = client.post(target, &body);
            assert_eq!((answer.status, answer.body == body), (200, true), "{target} {length}");
        }
    }
}

fn a_body_in_any_pieces_comes_back(setup: Setup) {
    let server = Server::routes(in_clear(setup), echo());
    let mut client = Http2Client::connect(server.address());
    for (target, pieces) in [("/inline", [1, 17, 100, 3_000]), ("/task", [5, 20, 9_000, 16])] {
        let body = noise(7, pieces.iter().sum());
        let length = body.len().to_string();
        let id = client.request("POST", target, &[("content-length", &length)], false);
        let mut at = 0;
        for piece in pieces {
            client.send_data(id, &body[at..at + piece], at + piece == body.len());
            client.ping();
            at += piece;
        }
        assert!(client.answer(id).body == body, "{target}");
    }
}

fn a_large_body_flows_while_it_is_read(setup: Setup) {
    let server = Server::routes(Config { limit_body_bytes: 8 << 20, ..in_clear(setup) }, echo());
    let mut client = Http2Client::connect(server.address());
    let body = noise(3, 3 << 20);
    for target in ["/task", "/whole", "/inline"] {
        let answer = client.post_within_windows(target, &body);
        assert_eq!((answer.status, answer.body == body), (200, true), "{target}");
    }
}

fn a_body_above_the_limit_is_refused(setup: Setup) {
    let server = Server::routes(Config { limit_body_bytes: 1_000, ..in_clear(setup) }, echo());
    let mut client = Http2Client::connect(server.address());
    for target in ["/inline", "/whole"] {
        let id = client.request("POST", target, &[("content-length", "1001")], false);
        assert_eq!(client.answer(id).status, 413, "{target}: announced");
        let id = client.request("POST", target, &[], false);
        client.send_data(id, &[b'a'; 1001], false);
        assert_eq!(client.answer(id).status, 413, "{target}: sent");
        assert_eq!(client.ask("/").text(), "here", "the connection goes on");
    }
}

fn the_limit_of_a_route_is_for_actions_that_read_no_body(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "x");
    let text = "root = \"root\"\n\
                [[route]]\npath = \"/text\"\nanswer = \"x\"\nlimit-body-bytes = \"10\"\n\
                methods = [\"GET\", \"POST\"]\n\
                [[route]]\npath = \"/away\"\nredirect = \"/\"\nlimit-body-bytes = \"10\"\n\
                [[route]]\npath = \"/files\"\nfolder = \"root\"\nlimit-body-bytes = \"10\"\n\
                [[route]]\npath = \"/large\"\nanswer = \"x\"\nlimit-body-bytes = \"10m\"\n";
    let file = SiteFile::parse(&folder.outside().join("site.toml"), text).expect("well formed");
    let config = Config { limit_body_bytes: 1_000, root: Some(folder.root()), ..in_clear(setup) };
    let server = Server::built(file.server_with(config));
    let mut client = Http2Client::connect(server.address());
    for (target, length, wanted) in [
        ("/text", 10, 200),
        ("/text", 11, 413),
        ("/away", 10, 308),
        ("/away", 11, 413),
        ("/files/a.txt", 10, 200),
        ("/files/a.txt", 11, 413),
        ("/a.txt", 1_000, 200),
        ("/a.txt", 1_001, 413),
        ("/large", 1_001, 200),
    ] {
        let told = [("content-length", &*length.to_string())];
        let id = client.request("GET", target, &told, false);
        assert_eq!(client.answer(id).status, wanted, "{target} {length}");
        client.send_data(id, &vec![b'a'; length], true);
    }
    // Where no length is announced the response comes first, as from a handler that reads nothing.
    assert_eq!(client.post("/text", &[b'a'; 11]).status, 200);
    assert_eq!(client.ask("/a.txt").text(), "x", "the connection goes on");
}

fn a_wrong_length_is_a_stream_error(setup: Setup) {
    let server = Server::routes(in_clear(setup), echo());
    let mut client = Http2Client::connect(server.address());
    for (length, body) in [("4", "hello"), ("6", "hello"), ("0", "hello")] {
        let id = client.request("POST", "/inline", &[("content-length", length)], false);
        client.send_data(id, body.as_bytes(), true);
        assert_eq!(client.answer(id).reset, Some(ErrorCode::ProtocolError), "{length}");
    }
    let id = client.request("POST", "/inline", &[("content-length", "5")], true);
    assert_eq!(client.answer(id).reset, Some(ErrorCode::ProtocolError));
    assert_eq!(client.ask("/").text(), "here");
}

fn a_body_that_nobody_reads_stops_at_its_window(setup: Setup) {
    let routes =
        Routes::new().get("/", |_: &Request| "here").post("/", async |request: Request| {
            sleep(Duration::from_millis(300)).await;
            Response::stream(request.into_body())
        });
    let server = Server::routes(Config { h2_window_bytes: 20_000, ..in_clear(setup) }, routes);
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let id = client.request("POST", "/", &[], false);
    client.send_data(id, &[b'a'; 16_384], false);
    client.send_data(id, &[b'a'; 3_616], false);
    client.ping();
    assert_eq!(client.window(id), 0, "nothing is given back before it is read");
    // Other streams go on.
    assert_eq!(client.ask("/").text(), "here");
    client.wait_for(id, |answer| answer.body.len() == 20_000);
    assert!(client.window(id) > 0, "it is read now");
    client.send_data(id, b"end", true);
    assert_eq!(client.answer(id).body.len(), 20_003);
}

fn an_answer_before_the_end_of_the_body_stops_it(setup: Setup) {
    let routes =
        Routes::new().post("/", async |_: Request| "no need").get("/", |_: &Request| "here");
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[], false);
    let answer = client.answer(id);
    assert_eq!((&*answer.text(), answer.reset), ("no need", None));
    // What follows is read and dropped, until the client is told to stop (RFC 9113 §8.1).
    let mut sent = 0;
    while sent < 20 << 20 && client.so_far(id).reset.is_none() {
        if client.window(id).min(client.window(0)) < 16_384 {
            client.next_frame();
            continue;
        }
        client.send_data(id, &[b'a'; 16_384], false);
        sent += 16_384;
    }
    while client.so_far(id).reset.is_none() {
        client.next_frame();
    }
    assert_eq!(client.so_far(id).reset, Some(ErrorCode::NoError), "{sent} bytes");
    assert!(sent > 16 << 20, "{sent} bytes");
    assert_eq!(client.ask("/").text(), "here");
}

fn trailers_of_a_request_end_it(setup: Setup) {
    let server = Server::routes(in_clear(setup), echo());
    let mut client = Http2Client::connect(server.address());
    for target in ["/inline", "/task"] {
        let id = client.request("POST", target, &[], false);
        client.send_data(id, b"body", false);
        let flags = flag::END_HEADERS | flag::END_STREAM;
        client.send_frame(kind::HEADERS, flags, id, &literal("x-sum", "4"));
        assert_eq!(client.answer(id).text(), "body");
    }
}

fn a_client_that_waits_is_told_to_continue(setup: Setup) {
    let server = Server::routes(in_clear(setup), echo());
    let mut client = Http2Client::connect(server.address());
    for target in ["/inline", "/task"] {
        let id = client.request("POST", target, &[("expect", "100-continue")], false);
        let told = client.wait_for(id, |answer| !answer.interim.is_empty());
        assert_eq!(told.interim, [(100, vec![])]);
        client.send_data(id, b"body", true);
        assert_eq!(client.answer(id).text(), "body");
    }
}

fn a_body_that_is_silent_is_timed_out(setup: Setup) {
    let config = Config { body_timeout: Duration::from_millis(200), ..in_clear(setup) };
    let server = Server::routes(config, echo());
    let mut client = Http2Client::connect(server.address());
    let gathered = client.request("POST", "/inline", &[], false);
    let read = client.request("POST", "/whole", &[], false);
    client.send_data(gathered, b"some", false);
    client.send_data(read, b"some", false);
    assert_eq!(client.answer(gathered).status, 408);
    assert_eq!(client.answer(read).status, 408);
    assert_eq!(client.ask("/").text(), "here", "the connection goes on");
    assert_eq!(server.stats().timeouts, 2);
}

fn padding_is_no_content(setup: Setup) {
    let server = Server::routes(in_clear(setup), echo());
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/inline", &[("content-length", "4")], false);
    let payload = [&[200_u8][..], b"body", &[0; 200]].concat();
    client.send_frame(kind::DATA, flag::PADDED | flag::END_STREAM, id, &payload);
    assert_eq!(client.answer(id).text(), "body");
}

fn a_rest_that_nobody_reads_may_end(setup: Setup) {
    let server = Server::routes(in_clear(setup), Routes::new().post("/", async |_: Request| "no"));
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[("content-length", "1000000")], false);
    client.wait_for(id, |answer| answer.is_whole);
    let mut left = 1_000_000_usize;
    while left > 0 {
        if client.window(id).min(client.window(0)) < 16_384 {
            client.next_frame();
            continue;
        }
        let count = left.min(16_384);
        left -= count;
        client.send_data(id, &vec![0; count], left == 0);
    }
    assert_eq!(client.post("/", b"").text(), "no");
    assert_eq!(client.so_far(id).reset, None, "it has sent all of it");
}

fn a_client_that_waits_with_its_rest_is_told_to_stop(setup: Setup) {
    let server = Server::routes(in_clear(setup), Routes::new().post("/", async |_: Request| "no"));
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[("content-length", "1000000")], false);
    assert_eq!(client.answer(id).text(), "no");
    client.wait_for(id, |answer| answer.reset == Some(ErrorCode::NoError));
}

fn an_upload_may_take_longer_than_a_head(setup: Setup) {
    let config = Config { header_timeout: Duration::from_millis(300), ..in_clear(setup) };
    let server = Server::routes(config, echo());
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let body = noise(9, 10_000);
    let id = client.request("POST", "/task", &[], false);
    let last = frame_of(kind::DATA, flag::END_STREAM, id, b"");
    let frames: Vec<u8> =
        body.chunks(500).flat_map(|piece| frame_of(kind::DATA, 0, id, piece)).chain(last).collect();
    // Each piece ends within a frame, as those of a long upload do.
    for piece in frames.chunks(700) {
        client.send(piece);
        std::thread::sleep(Duration::from_millis(40));
    }
    assert!(client.answer(id).body == body);
    assert_eq!(server.stats().timeouts, 0);
}

fn a_body_that_outlives_a_reload_is_for_the_routes_of_before(setup: Setup) {
    let of = |name: &'static str, deny: &[&str]| {
        let read = move |request: &Request| format!("{name} {}", request.bytes().len());
        let mut config = in_clear(setup);
        config.routes.access.deny = deny.iter().copied().map(str::to_owned).collect();
        Builder::new().config(config).routes(Routes::new().post("/", read))
    };
    let server = Server::built(of("old", &[]));
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[], false);
    client.send_data(id, b"some of ", false);
    client.ping();
    // It would be past the new gate: that lets those through whose body has come.
    server.running().reload(of("new", &["*"])).expect("it is valid");
    assert_eq!(client.post("/", b"more").status, 403);
    client.send_data(id, b"it", true);
    assert_eq!(client.answer(id).text(), "old 10");
}
