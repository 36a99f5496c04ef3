//! Requests sent without waiting for answers. RFC 9112 §9.3.2.

use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::{Request, Routes};

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup, process};

on_every_server!(
    answers_come_in_the_order_of_the_requests,
    an_error_in_the_third_still_delivers_the_first_two,
    much_that_follows_an_error_is_dropped_without_a_reset,
    nothing_after_a_close_is_answered,
    a_thousand_requests_in_one_write_are_answered,
    requests_cut_at_any_byte_are_answered_alike,
    bodies_between_requests_are_told_apart,
    big_answers_come_whole_and_in_order_to_a_slow_reader,
    a_client_that_reads_late_gets_every_answer,
);
on_every_server!(alone: clients_that_never_read_hold_little_and_hinder_nobody);

/// Files that tell by their content which they are.
fn letters() -> Folder {
    let folder = Folder::new();
    for name in ["a", "bb", "ccc"] {
        folder.file(name, format!("this is {name}"));
    }
    folder
}

fn answers_come_in_the_order_of_the_requests(setup: Setup) {
    let folder = letters();
    let server = setup.files(&folder);
    let mut client = server.connect();
    client
        .send(get("/ccc") + &get("/none") + &get("/a") + &request("HEAD", "/bb", "") + &get("/bb"));
    assert_eq!(client.read_answer().body, b"this is ccc");
    assert_eq!(client.read_answer().status, 404);
    assert_eq!(client.read_answer().body, b"this is a");
    assert_eq!(client.read_head().field("content-length"), Some("10"));
    assert_eq!(client.read_answer().body, b"this is bb");
    client.expect_silence(Duration::from_millis(50));
}

fn an_error_in_the_third_still_delivers_the_first_two(setup: Setup) {
    if Setup::http1_only("a stream that is refused is no end of the others") {
        return;
    }
    let folder = letters();
    let server = setup.files(&folder);
    for bad in ["GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/9.9\r\nHost: x\r\n\r\n", "\0\r\n\r\n"] {
        let mut client = server.connect();
        client.send(get("/a") + &get("/bb") + bad + &get("/ccc"));
        assert_eq!(client.read_answer().body, b"this is a", "before {bad:?}");
        assert_eq!(client.read_answer().body, b"this is bb", "before {bad:?}");
        let error = client.read_answer();
        assert!([400, 505].contains(&error.status), "for {bad:?}: {error:?}");
        assert!(error.closes(), "for {bad:?}: {error:?}");
        client.expect_end(bad);
    }
}

fn much_that_follows_an_error_is_dropped_without_a_reset(setup: Setup) {
    if Setup::http1_only("a stream that is refused is no end of the others") {
        return;
    }
    let folder = letters();
    let server = setup.files(&folder);
    let rest = get("/ccc").repeat(2_000);
    for _ in 0..10 {
        let mut client = server.connect();
        client.send(get("/a") + &get("/bb") + "BAD\r\n\r\n" + &rest);
        thread::sleep(Duration::from_millis(20)); // the answers wait for a client that is late
        assert_eq!(client.read_answer().body, b"this is a");
        assert_eq!(client.read_answer().body, b"this is bb");
        assert_eq!(client.read_answer().status, 400);
        client.expect_end("with 90 KB unread");
    }
}

fn nothing_after_a_close_is_answered(setup: Setup) {
    if Setup::http1_only("HTTP/2 knows no such field") {
        return;
    }
    let folder = letters();
    let server = setup.files(&folder);
    for _ in 0..10 {
        let mut client = server.connect();
        let last = request("GET", "/bb", "Connection: close\r\n");
        client.send(get("/a") + &last + &get("/ccc").repeat(500));
        assert!(!client.read_answer().closes());
        let answer = client.read_answer();
        assert_eq!(answer.body, b"this is bb");
        assert!(answer.closes(), "{answer:?}");
        client.expect_end("after the last answer");
    }
}

fn a_thousand_requests_in_one_write_are_answered(setup: Setup) {
    let folder = letters();
    let server = setup.files(&folder);
    let mut client = server.connect();
    let three = get("/a") + &get("/bb") + &get("/ccc");
    client.send(three.repeat(333) + &get("/a"));
    for turn in 0..333 {
        assert_eq!(client.read_answer().body, b"this is a", "round {turn}");
        assert_eq!(client.read_answer().body, b"this is bb", "round {turn}");
        assert_eq!(client.read_answer().body, b"this is ccc", "round {turn}");
    }
    assert_eq!(client.read_answer().body, b"this is a");
    server.wait_until("each is counted", |stats| stats.requests == 1_000);
}

fn requests_cut_at_any_byte_are_answered_alike(setup: Setup) {
    let folder = letters();
    let server = setup.files(&folder);
    let mut client = server.connect();
    let three = get("/a") + &get("/bb") + &get("/ccc");
    for cut in 1..three.len() {
        client.send_cut(three.as_bytes(), cut);
        assert_eq!(client.read_answer().body, b"this is a", "cut at {cut}");
        assert_eq!(client.read_answer().body, b"this is bb", "cut at {cut}");
        assert_eq!(client.read_answer().body, b"this is ccc", "cut at {cut}");
    }
}

fn bodies_between_requests_are_told_apart(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    let first = request("POST", "/echo", "Content-Length: 16\r\n") + "GET /no HTTP/1.1";
    let second = request("POST", "/echo", "Transfer-Encoding: chunked\r\n");
    let chunks = "6\r\nGET / \r\n7\r\nHTTP/1.\r\n0\r\n\r\n";
    client.send(first + &second + chunks + &get("/"));
    assert_eq!(client.read_answer().text(), "GET /no HTTP/1.1");
    assert_eq!(client.read_answer().text(), "GET / HTTP/1.");
    assert_eq!(client.read_answer().status, 200);
    client.expect_silence(Duration::from_millis(50));
}

fn big_answers_come_whole_and_in_order_to_a_slow_reader(setup: Setup) {
    // Two sends of one connection under way at once would mix their bytes where the first falls
    // short, so each kind of answer follows each other kind.
    let folder = Folder::new();
    let sizes = [300_000, 90, 70_000, 4_096, 9_000, 500_000];
    let contents: Vec<Vec<u8>> = (1..).zip(sizes).map(|(seed, size)| noise(seed, size)).collect();
    for (index, content) in contents.iter().enumerate() {
        folder.file(&format!("{index}.bin"), content);
    }
    let server = setup.files(&folder);
    let mut client = Client::connect_narrow(server.address());
    let asked: String = (0..sizes.len()).map(|index| get(&format!("/{index}.bin"))).collect();
    client.send(asked.repeat(3));
    for round in 0..3 {
        for (index, content) in contents.iter().enumerate() {
            thread::sleep(Duration::from_millis(10));
            let answer = client.read_answer();
            assert!(answer.body == *content, "round {round}, file {index}: {:?}", answer.fields);
        }
    }
}

fn a_client_that_reads_late_gets_every_answer(setup: Setup) {
    let folder = Folder::new();
    let page = noise(1, 4_000);
    folder.file("page.bin", &page);
    let server = setup.files(&folder);
    let mut client = Client::connect_narrow(server.address());
    let asked = get("/page.bin").repeat(2_500);
    let mut writer = client.second_handle();
    let sending = thread::spawn(move || writer.send(asked));
    thread::sleep(Duration::from_millis(200));
    for turn in 0..2_500 {
        assert!(client.read_answer().body == page, "answer {turn} is another");
    }
    sending.join().expect("all requests were taken");
    assert_eq!(client.get("/page.bin").status, 200);
}

fn clients_that_never_read_hold_little_and_hinder_nobody(setup: Setup) {
    let page = noise(1, 4_000);
    let routes = Routes::new().get("/page", move |_: &Request| page.clone());
    let server = Server::routes(Config { workers: 1, ..setup.config() }, routes);
    let mut others: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut others {
        assert_eq!(client.get("/page").status, 200);
    }
    let before = process::resident_bytes();
    let asked = get("/page").repeat(1_000);
    let sending: Vec<_> = (0..8)
        .map(|_| (Client::connect_narrow(server.address()), asked.clone()))
        .map(|(client, asked)| thread::spawn(move || send_without_reading(client, &asked)))
        .collect();
    let stuck: Vec<_> = sending.into_iter().map(|sent| sent.join().expect("sent")).collect();
    for round in 0..5 {
        for client in &mut others {
            assert_eq!(client.get("/page").status, 200, "round {round}");
        }
    }
    let grown = process::resident_bytes().saturating_sub(before);
    assert!(grown < 24 << 20, "eight clients that do not read hold {grown} bytes");
    drop(stuck);
    server.wait_until("only the others are left", |stats| stats.connections_open == 8);
}

/// Sends until the server takes no more, and keeps the connection.
fn send_without_reading(mut client: Client, asked: &str) -> Client {
    let sent = client.send_until_blocked(asked.as_bytes(), 64 << 20);
    assert!(sent < 64 << 20, "the server takes requests without end");
    client
}
