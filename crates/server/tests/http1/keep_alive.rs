//! Connections that live on after an answer, and those that do not. RFC 9112 §9.3.

use std::thread;
use std::time::Duration;

use gustnado::config::Config;

use crate::harness::client::{get, request};
use crate::harness::{Client, Folder, Server, Setup};

on_every_server!(
    a_connection_serves_one_request_after_another,
    a_plain_answer_says_nothing_about_the_connection,
    close_is_honoured_said_and_done,
    close_is_found_in_a_list_in_any_case,
    http_1_0_closes_unless_asked_not_to,
    http_1_0_with_keep_alive_is_told_so,
    a_closed_connection_ends_at_once_though_the_client_keeps_its_side_open,
    an_error_that_harms_nothing_keeps_the_connection,
    a_head_answer_leaves_the_next_answer_in_its_place,
    an_empty_line_before_a_request_is_skipped,
    a_request_sent_byte_by_byte_is_answered,
    a_connection_can_pause_between_requests,
    every_answer_has_a_date_and_the_servers_name,
    the_servers_name_can_be_another_or_none,
    clients_that_leave_without_a_word_leave_nothing_behind,
    requests_and_connections_are_counted,
);

fn a_connection_serves_one_request_after_another(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "first");
    folder.file("b.txt", "and second");
    let server = setup.files(&folder);
    let mut client = server.connect();
    for _ in 0..150 {
        assert_eq!(client.get("/a.txt").body, b"first");
        assert_eq!(client.get("/b.txt").body, b"and second");
    }
    assert_eq!(server.stats().connections_accepted, 1);
}

fn a_plain_answer_says_nothing_about_the_connection(setup: Setup) {
    let answer = setup.default_site().get("/");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("connection"), None);
}

fn close_is_honoured_said_and_done(setup: Setup) {
    if Setup::http1_only("HTTP/2 knows no such field") {
        return;
    }
    let server = setup.default_site();
    let mut client = server.connect();
    let answer = client.ask(request("GET", "/", "Connection: close\r\n"));
    assert_eq!(answer.status, 200);
    assert!(answer.closes(), "{answer:?}");
    client.expect_end("after the last answer");
}

fn close_is_found_in_a_list_in_any_case(setup: Setup) {
    if Setup::http1_only("HTTP/2 knows no such field") {
        return;
    }
    let server = setup.default_site();
    for line in ["Connection: Close", "Connection: x-kept, CLOSE", "connection:close"] {
        let mut client = server.connect();
        let answer = client.ask(request("GET", "/", &format!("{line}\r\n")));
        assert!(answer.closes(), "{line}: {answer:?}");
        client.expect_end(line);
    }
    let mut client = server.connect();
    client.ask(request("GET", "/", "Connection: x-kept\r\nConnection: close\r\n"));
    client.expect_end("close in a second line");
    let mut client = server.connect();
    let answer = client.ask(request("GET", "/", "Connection: disclose\r\n"));
    assert!(!answer.closes(), "only the whole word counts: {answer:?}");
}

fn http_1_0_closes_unless_asked_not_to(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let server = setup.default_site();
    let mut client = server.connect();
    let answer = client.ask("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(answer.status, 200, "HTTP/1.0 needs no Host");
    assert_eq!(answer.field("transfer-encoding"), None, "HTTP/1.0 knows no chunks");
    client.expect_end("HTTP/1.0");
}

fn http_1_0_with_keep_alive_is_told_so(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let server = setup.default_site();
    let mut client = server.connect();
    for turn in 0..3 {
        let answer = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let said = answer.expect_field("connection");
        assert!(said.eq_ignore_ascii_case("keep-alive"), "turn {turn}: {answer:?}");
    }
}

fn a_closed_connection_ends_at_once_though_the_client_keeps_its_side_open(setup: Setup) {
    // A descriptor closed while the kernel still waits for its bytes sends no end by itself.
    let server = setup.default_site();
    for _ in 0..20 {
        let mut client = server.connect();
        client.ask(request("GET", "/", "Connection: close\r\n"));
        let (bytes, time) = client.time_to_end();
        assert!(bytes.is_empty(), "{bytes:?}");
        assert!(time < Duration::from_secs(2), "the end came after {time:?}");
    }
}

fn an_error_that_harms_nothing_keeps_the_connection(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "here");
    let server = setup.files(&folder);
    let mut client = server.connect();
    for _ in 0..3 {
        let missing = client.get("/missing");
        assert_eq!(missing.status, 404);
        assert!(!missing.closes(), "{missing:?}");
        assert_eq!(client.get("/a.txt").body, b"here");
    }
}

fn a_head_answer_leaves_the_next_answer_in_its_place(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    client.send(request("HEAD", "/", "") + &get("/"));
    let head = client.read_head();
    let whole = client.read_answer();
    assert_eq!((head.status, whole.status), (200, 200));
    assert!(!whole.body.is_empty());
}

fn an_empty_line_before_a_request_is_skipped(setup: Setup) {
    if Setup::http1_only("there are no lines") {
        return;
    }
    // RFC 9112 §2.2: a server SHOULD ignore at least one, as old clients send one after a body.
    let server = setup.default_site();
    let mut client = server.connect();
    assert_eq!(client.ask(format!("\r\n{}", get("/"))).status, 200);
    assert_eq!(client.ask(format!("\r\n{}", get("/"))).status, 200);
}

fn a_request_sent_byte_by_byte_is_answered(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    client.trickle(get("/").as_bytes(), Duration::from_millis(1));
    assert_eq!(client.read_answer().status, 200);
    assert_eq!(client.get("/").status, 200);
}

fn a_connection_can_pause_between_requests(setup: Setup) {
    let server = setup.default_site();
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            assert_eq!(client.get("/").status, 200);
        }
        thread::sleep(Duration::from_millis(60));
    }
}

/// A request that is refused before it is routed, and how. (What is malformed has no response by
/// HTTP/2.)
fn bad() -> (String, u16) {
    if Setup::is_http2() {
        (request("GET", "/", "Expect: tea\r\n"), 417)
    } else {
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400)
    }
}

fn every_answer_has_a_date_and_the_servers_name(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "here");
    let server = setup.files(&folder);
    // (By HTTP/2 that is a stream error.)
    let (bad, refused) = bad();
    let asked = [get("/a.txt"), get("/missing"), request("PUT", "/a.txt", ""), bad];
    for (request, status) in asked.iter().zip([200, 404, 405, refused]) {
        let answer = server.ask(request);
        assert_eq!(answer.status, status, "{request:?}");
        assert_eq!(answer.count("date"), 1, "{answer:?}");
        assert_eq!(answer.count("server"), 1, "{answer:?}");
        assert_eq!(answer.field("server"), Some("gustnado"));
        let date = answer.expect_field("date");
        assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
    }
}

fn the_servers_name_can_be_another_or_none(setup: Setup) {
    for (name, expected) in [("breeze/1", Some("breeze/1")), ("", None)] {
        let server = Server::start(Config { server_name: name.to_owned(), ..setup.config() });
        for request in [get("/"), get("/missing"), bad().0] {
            let answer = server.ask(&request);
            assert_eq!(answer.field("server"), expected, "{request:?}");
        }
    }
}

fn clients_that_leave_without_a_word_leave_nothing_behind(setup: Setup) {
    let server = setup.default_site();
    for turn in 0..40 {
        let mut client = server.connect();
        match turn % 4 {
            0 => drop(client),
            1 => client.reset(),
            2 => client.send("GET / HT"),
            _ => {
                client.send(get("/"));
                client.reset();
            }
        }
    }
    server.wait_until_empty();
    assert_eq!(server.get("/").status, 200);
}

fn requests_and_connections_are_counted(setup: Setup) {
    let server = setup.default_site();
    let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
        assert_eq!(client.get("/missing").status, 404);
    }
    server.wait_until("ten requests are counted", |stats| stats.requests == 10);
    let stats = server.stats();
    assert_eq!((stats.connections_open, stats.connections_accepted), (5, 5));
    assert_eq!((stats.answers_2xx, stats.answers_4xx, stats.answers_5xx), (5, 5, 0));
    assert!(stats.bytes_sent > 0, "{stats:?}");
    drop(clients);
    server.wait_until_empty();
    assert_eq!(server.stats().requests, 10);
}
