//! Requests and answers, many at once: folders, conditions, ranges, methods.

use std::time::Duration;

use gustnado::{Request, Response, Routes};
use gustnado_http::h2::frame::flag;

use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::http2::heads::{KEPT, block, request_frame};
use crate::harness::{Folder, Server, Setup};
use crate::{in_clear, of_folder};

on_every_server!(
    a_folder_answers_as_by_http_1,
    a_file_comes_in_parts_and_not_again,
    methods_are_what_they_are,
    requests_of_one_receive_are_answered_in_one_send,
    a_hundred_requests_at_once_get_their_own_answers,
    more_requests_than_allowed_are_refused_and_can_be_repeated,
    heads_of_any_length_come_back,
    the_table_of_fields_serves_every_request,
    a_head_that_is_refused_gets_no_content,
);

fn a_folder_answers_as_by_http_1(setup: Setup) {
    let folder = Folder::new();
    folder.file("small.txt", "small");
    let large = noise(1, 300_000);
    folder.file("large.bin", &large);
    folder.file("empty.txt", "");
    let server = Server::start(of_folder(setup, &folder));
    let mut client = Http2Client::connect(server.address());
    for (target, body) in
        [("/small.txt", &b"small"[..]), ("/large.bin", &large), ("/empty.txt", b"")]
    {
        let (ours, theirs) = (client.ask(target), server.get(target));
        assert_eq!((ours.status, &*ours.body), (200, body), "{target}");
        for name in ["content-type", "content-length", "etag", "last-modified", "server"] {
            assert_eq!(ours.field(name), theirs.field(name), "{target}: {name}");
        }
        assert!(ours.field("date").is_some());
        let id = client.request("HEAD", target, &[], true);
        let head = client.answer(id);
        let length = body.len().to_string();
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.field("content-length"), Some(&*length));
    }
}

fn a_file_comes_in_parts_and_not_again(setup: Setup) {
    let folder = Folder::new();
    let body = noise(2, 100_000);
    folder.file("file.bin", &body);
    let server = Server::start(of_folder(setup, &folder));
    let mut client = Http2Client::connect(server.address());
    let id = client.request("GET", "/file.bin", &[("range", "bytes=10-70009")], true);
    let part = client.answer(id);
    assert_eq!((part.status, &*part.body), (206, &body[10..70_010]));
    assert_eq!(part.field("content-range"), Some("bytes 10-70009/100000"));
    let tag = part.field("etag").expect("a tag").to_owned();
    let id = client.request("GET", "/file.bin", &[("if-none-match", &tag)], true);
    let again = client.answer(id);
    assert_eq!((again.status, again.body.len(), again.field("etag")), (304, 0, Some(&*tag)));
    let id = client.request("GET", "/file.bin", &[("range", "bytes=0-0,5-9")], true);
    let parts = client.answer(id);
    assert_eq!(parts.status, 206);
    assert!(parts.field("content-type").is_some_and(|kind| kind.starts_with("multipart/")));
}

fn methods_are_what_they_are(setup: Setup) {
    let routes = Routes::new()
        .get("/", |_: &Request| "hello")
        .post("/", |request: &Request| request.method_str().to_owned());
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[], true);
    assert_eq!(client.answer(id).text(), "POST");
    let id = client.request("DELETE", "/", &[], true);
    let answer = client.answer(id);
    assert_eq!((answer.status, answer.field("allow").is_some()), (405, true));
    let id = client.request("FROBNICATE", "/", &[], true);
    assert!(matches!(client.answer(id).status, 405 | 501));
    let id = client.request("HEAD", "/", &[], true);
    let head = client.answer(id);
    assert_eq!(
        (head.status, head.field("content-length"), &*head.body),
        (200, Some("5"), &b""[..])
    );
}

fn requests_of_one_receive_are_answered_in_one_send(setup: Setup) {
    let server = Server::routes(in_clear(setup), Routes::new().get("/", |_: &Request| "hello"));
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let sent: Vec<u8> =
        (0..30).flat_map(|n| request_frame(2 * n + 1, "GET", "/", &[], true)).collect();
    client.send(&sent);
    // The first of them is here, and with it all of them.
    client.wait_for(1, |answer| answer.is_whole);
    let whole = (0..30).filter(|n| client.is_received(2 * n + 1)).count();
    assert_eq!(whole, 30);
}

fn a_hundred_requests_at_once_get_their_own_answers(setup: Setup) {
    let routes = Routes::new()
        .get("/inline/{n}", |request: &Request| request.param("n").into_owned())
        .get("/task/{n}", async |request: Request| {
            let number: u64 = request.param("n").parse().expect("a number");
            gustnado::task::sleep(Duration::from_millis(number % 7)).await;
            Response::text(number.to_string())
        });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    for _ in 0..5 {
        let ids: Vec<(u32, String)> = (0..100)
            .map(|n| {
                let kind = if n % 3 == 0 { "inline" } else { "task" };
                (client.get(&format!("/{kind}/{n}")), n.to_string())
            })
            .collect();
        for (id, text) in ids {
            assert_eq!(client.answer(id).text(), text);
        }
    }
    assert_eq!(server.stats().requests, 500);
}

fn more_requests_than_allowed_are_refused_and_can_be_repeated(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        gustnado::task::sleep(Duration::from_millis(200)).await;
        "late"
    });
    let config = gustnado::config::Config { h2_streams: 4, ..in_clear(setup) };
    let server = Server::routes(config, routes);
    let mut client = Http2Client::connect(server.address());
    let ids: Vec<u32> = (0..6).map(|_| client.get("/")).collect();
    let answers: Vec<_> = ids.iter().map(|id| client.answer(*id)).collect();
    for answer in &answers[..4] {
        assert_eq!((answer.status, &*answer.text()), (200, "late"));
    }
    for answer in &answers[4..] {
        // The code that says: nothing was done about it (RFC 9113 §8.7).
        assert_eq!(answer.reset, Some(gustnado_http::h2::ErrorCode::RefusedStream));
    }
    assert_eq!(client.ask("/").text(), "late");
}

fn heads_of_any_length_come_back(setup: Setup) {
    let routes = Routes::new().get("/", |request: &Request| {
        Response::text("").header("X-Seen", request.header("x-sent").unwrap_or("none"))
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    for length in [0, 1, 126, 127, 128, 300, 5_000, 12_000] {
        let value = "v".repeat(length);
        let id = client.request("GET", "/", &[("x-sent", &value)], true);
        assert_eq!(client.answer(id).field("x-seen"), Some(&*value), "{length}");
    }
}

fn the_table_of_fields_serves_every_request(setup: Setup) {
    let routes = Routes::new().get("/", |request: &Request| {
        Response::text(request.header("x-kept").unwrap_or("none").to_owned())
            .header("ETag", "\"of all\"")
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let mut kept = block("GET", "/", &[]);
    // Kept under index 62, the first of the dynamic table.
    kept.extend(b"\x40\x06x-kept\x05value");
    let flags = flag::END_HEADERS | flag::END_STREAM;
    for n in 0..50 {
        let id = client.new_stream();
        let again = [&block("GET", "/", &[])[..], &[KEPT]].concat();
        client.send_frame(1, flags, id, if n == 0 { &kept } else { &again });
        let answer = client.answer(id);
        assert_eq!((&*answer.text(), answer.field("etag")), ("value", Some("\"of all\"")));
    }
}

fn a_head_that_is_refused_gets_no_content(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect(server.address());
    let long = format!("/{}", "x".repeat(9_000));
    for (target, fields, status) in
        [("/\\", &[][..], 400), (&*long, &[], 414), ("/", &[("expect", "tea")], 417)]
    {
        let id = client.request("HEAD", target, fields, true);
        let answer = client.answer(id);
        assert_eq!((answer.status, answer.body.len(), answer.reset), (status, 0, None), "{target}");
    }
}
