//! Clients that close their sending side and still wait for the answer.

use std::thread;
use std::time::Duration;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Setup};

on_every_server!(
    a_half_closed_client_gets_its_answer,
    a_half_closed_client_gets_all_its_answers,
    an_end_that_arrives_with_the_request_is_not_missed,
    an_end_that_arrives_late_is_not_missed,
    a_big_answer_goes_out_whole_after_a_half_close,
    a_body_followed_by_a_half_close_is_answered,
    half_a_request_and_a_half_close_is_the_end,
    a_half_close_after_the_answer_ends_the_connection,
);

fn a_half_closed_client_gets_its_answer(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    client.send(get("/"));
    client.shut_write();
    assert_eq!(client.read_answer().status, 200);
    client.expect_end("the only answer");
    server.wait_until_empty();
}

fn a_half_closed_client_gets_all_its_answers(setup: Setup) {
    let folder = Folder::new();
    folder.file("a", "this is a");
    folder.file("b", noise(1, 50_000));
    let server = setup.files(&folder);
    let mut client = server.connect();
    client.send((get("/a") + &get("/b") + &get("/none")).repeat(20));
    client.shut_write();
    for turn in 0..20 {
        assert_eq!(client.read_answer().body, b"this is a", "round {turn}");
        assert!(client.read_answer().body == noise(1, 50_000), "round {turn}");
        assert_eq!(client.read_answer().status, 404, "round {turn}");
    }
    client.expect_end("the last answer");
    server.wait_until_empty();
}

fn an_end_that_arrives_with_the_request_is_not_missed(setup: Setup) {
    // One edge reports the request and the end together; a short read must not swallow the end.
    let server = setup.default_site();
    for turn in 0..150 {
        let mut client = server.connect();
        client.send(get("/"));
        client.shut_write();
        assert_eq!(client.read_answer().status, 200, "client {turn}");
        client.expect_end("the only answer");
    }
    server.wait_until_empty();
    assert_eq!(server.stats().requests, 150);
}

fn an_end_that_arrives_late_is_not_missed(setup: Setup) {
    let server = setup.default_site();
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
        client.send(get("/"));
    }
    thread::sleep(Duration::from_millis(20));
    for client in &mut clients {
        client.shut_write();
        assert_eq!(client.read_answer().status, 200);
        client.expect_end("the last answer");
    }
    server.wait_until_empty();
}

fn a_big_answer_goes_out_whole_after_a_half_close(setup: Setup) {
    let folder = Folder::new();
    // Who sends no more gives no more window.
    let content = noise(2, if Setup::is_http2() { 1 << 20 } else { 8 << 20 });
    folder.file("big.bin", &content);
    let server = setup.files(&folder);
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/big.bin"));
    client.shut_write();
    thread::sleep(Duration::from_millis(50));
    assert!(client.read_answer().body == content, "another body came");
    client.expect_end("the only answer");
}

fn a_body_followed_by_a_half_close_is_answered(setup: Setup) {
    let server = setup.default_site();
    for whole in [
        request("POST", "/echo", "Content-Length: 5\r\n") + "hello",
        request("POST", "/echo", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.send(whole);
        client.shut_write();
        assert_eq!(client.read_answer().text(), "hello");
        client.expect_end("the only answer");
    }
}

fn half_a_request_and_a_half_close_is_the_end(setup: Setup) {
    let server = setup.default_site();
    for cut in [0, 1, 10, get("/").len() - 1] {
        let mut client = server.connect();
        client.send(&get("/")[..cut]);
        client.shut_write();
        let bytes = client.read_to_end();
        assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 400 "), "cut at {cut}: {bytes:?}");
    }
    let mut client = server.connect();
    client.send(get("/") + &get("/")[..10]);
    client.shut_write();
    assert_eq!(client.read_answer().status, 200, "the whole one is answered");
    let rest = client.read_to_end();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400 "), "{rest:?}");
    server.wait_until_empty();
}

fn a_half_close_after_the_answer_ends_the_connection(setup: Setup) {
    let server = setup.default_site();
    for _ in 0..20 {
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        client.shut_write();
        let (bytes, time) = client.time_to_end();
        assert!(bytes.is_empty(), "{bytes:?}");
        assert!(time < Duration::from_secs(2), "the end came after {time:?}");
    }
    server.wait_until_empty();
}
