//! Bytes that a connection has no use for yet keep no other connection from being heard.
//!
//! Under `io_uring` all connections of a worker receive into a few buffers that they share. A
//! connection that is busy, sending or waiting for its handler, must not keep any of them.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Request, Routes, route};
use gustnado_tasks::sleep;

use crate::harness::client::{get, request};
use crate::harness::{Client, Folder, Server, Setup};

on_every_server!(
    clients_that_read_nothing_and_send_on_silence_nobody,
    clients_whose_body_is_not_read_silence_nobody,
    clients_that_send_while_their_handler_waits_silence_nobody,
);

/// As many as a worker has buffers.
const CLIENTS: usize = 64;
/// Ten times what an honest client should wait at most.
const PROMPT: Duration = Duration::from_millis(250);
/// Longer than the test: nobody is let go for being slow.
const LONG: Duration = Duration::from_secs(20);

fn one_worker(setup: Setup) -> Config {
    Config { workers: 1, ..setup.patient_config() }
}

/// Two buffers' worth of requests that are never answered.
fn two_buffers() -> Vec<u8> {
    get("/small").repeat(8_192).into_bytes()[..8_192].to_vec()
}

/// Asks again and again, on new connections and on a kept one.
fn expect_prompt_answers(server: &Server, kept: &mut Client) {
    let mut waits = Vec::new();
    for _ in 0..5 {
        for is_new in [true, false] {
            let begun = Instant::now();
            let answer = if is_new { server.get("/small") } else { kept.get("/small") };
            assert_eq!(answer.status, 200);
            waits.push(begun.elapsed());
        }
    }
    waits.sort();
    // (Not the longest one: the machine may be doing something else.)
    assert!(waits[7] < PROMPT, "honest clients waited {waits:?}");
}

fn clients_that_read_nothing_and_send_on_silence_nobody(setup: Setup) {
    let folder = Folder::new();
    folder.file("small", "small");
    folder.hollow("large", 64 << 20);
    let server = Server::start(Config { root: Some(folder.root()), ..one_worker(setup) });
    let mut kept = server.connect();
    assert_eq!(kept.get("/small").status, 200);
    let mut greedy: Vec<_> =
        (0..CLIENTS).map(|_| Client::connect_narrow(server.address())).collect();
    for client in &mut greedy {
        // The second request is what a connection stays armed for.
        client.send(get("/small"));
        assert_eq!(client.read_answer().status, 200);
        client.send(get("/large"));
        client.wait_for_bytes();
    }
    for client in &mut greedy {
        client.send(two_buffers());
    }
    expect_prompt_answers(&server, &mut kept);
    // What they sent was kept for them: whoever reads is answered in order.
    let mut reader = greedy.pop().expect("there are many");
    assert_eq!(reader.read_answer().body.len(), 64 << 20);
    for _ in 0..10 {
        assert_eq!(reader.read_answer().text(), "small");
    }
}

/// Sends more than is read ahead for anybody, a buffer's worth at a time.
fn send_in_portions(clients: &mut [Client], portion: &[u8]) {
    for _ in 0..24 {
        for client in &mut *clients {
            client.send(portion);
        }
        // The worker takes each portion alone.
        thread::sleep(Duration::from_millis(5));
    }
}

fn waiting_routes() -> Routes {
    Routes::new().get("/small", |_: &Request| "small").route(
        "/waits",
        route().any(async |_: Request| {
            sleep(LONG).await;
            "late"
        }),
    )
}

fn clients_whose_body_is_not_read_silence_nobody(setup: Setup) {
    let server = Server::routes(one_worker(setup), waiting_routes());
    let mut kept = server.connect();
    assert_eq!(kept.get("/small").status, 200);
    let mut greedy: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut greedy {
        assert_eq!(client.get("/small").status, 200);
        client.send(request("POST", "/waits", "Content-Length: 1000000\r\n"));
    }
    send_in_portions(&mut greedy, &[b'x'; 4_096]);
    expect_prompt_answers(&server, &mut kept);
}

fn clients_that_send_while_their_handler_waits_silence_nobody(setup: Setup) {
    if Setup::http1_only("half a head is sent and never ended") {
        return;
    }
    let server = Server::routes(one_worker(setup), waiting_routes());
    let mut kept = server.connect();
    assert_eq!(kept.get("/small").status, 200);
    let mut greedy: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut greedy {
        assert_eq!(client.get("/small").status, 200);
        client.send(get("/waits"));
    }
    send_in_portions(&mut greedy, &two_buffers()[..4_096]);
    expect_prompt_answers(&server, &mut kept);
}
