//! Time limits: a head in total, a body and an answer by their progress, the pause in between.
//!
//! The limits are short here and the margins wide: what must be cut is far too slow, what must not
//! be is far quicker.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use gustnado::config::Config;
use gustnado_http::date::imf_fixdate;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, PATIENCE, Server, Setup};

on_every_server!(
    a_head_that_never_ends_is_answered_408,
    a_trickling_head_is_cut_in_total_time,
    a_client_that_says_nothing_is_let_go,
    a_second_head_has_its_own_time,
    an_idle_connection_is_closed_without_a_word,
    a_busy_connection_is_not_idle,
    a_body_that_stalls_is_answered_408,
    a_body_slower_than_the_minimum_is_cut,
    a_slow_body_above_the_minimum_is_taken,
    a_client_that_never_reads_is_cut,
    a_reader_slower_than_the_minimum_is_cut,
    a_reader_above_the_minimum_gets_all,
    time_goes_on_for_a_worker_that_sleeps,
);

const SHORT: Duration = Duration::from_millis(400);

/// All limits so long that only the one under test can strike.
fn patient(setup: Setup) -> Config {
    let hour = Duration::from_hours(1);
    Config {
        header_timeout: hour,
        body_timeout: hour,
        body_rate_min: 0,
        write_timeout: hour,
        write_rate_min: 0,
        timeout_keep_alive: hour,
        ..setup.config()
    }
}

/// The connection ends for want of a whole head: with a 408, by HTTP/1.
fn expect_no_head(client: &mut Client, context: &str) {
    if Setup::is_http2() {
        client.expect_end(context);
    } else {
        expect_408(client, context);
    }
}

/// The connection ends with a 408 and in order.
fn expect_408(client: &mut Client, context: &str) {
    let answer = client.read_answer();
    assert_eq!(answer.status, 408, "{context}");
    assert!(answer.closes(), "{context}: {answer:?}");
    client.expect_end(context);
}

fn a_head_that_never_ends_is_answered_408(setup: Setup) {
    let server = Server::start(Config { header_timeout: SHORT, ..patient(setup) });
    let start = Instant::now();
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for (client, part) in
        clients.iter_mut().zip(["G", "GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\n", "GET /"])
    {
        client.send(part);
    }
    for client in &mut clients {
        expect_no_head(client, "half a head");
    }
    let time = start.elapsed();
    assert!(time >= SHORT / 2, "cut after {time:?} already");
    server.wait_until("each is counted", |stats| stats.timeouts == 4);
    drop(clients);
    server.wait_until_empty();
}

fn a_trickling_head_is_cut_in_total_time(setup: Setup) {
    let server = Server::start(Config { header_timeout: SHORT, ..patient(setup) });
    let start = Instant::now();
    let mut client = server.connect();
    let mut writer = client.second_handle();
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(4_000));
    let trickling = thread::spawn(move || writer.trickle_until_closed(long.as_bytes(), SHORT / 20));
    expect_no_head(&mut client, "a trickling head");
    assert!(start.elapsed() < PATIENCE, "each byte bought more time");
    // The server reads on for a while, so that the client can read the answer; a client that never
    // ends must not hold the connection.
    server.wait_until_empty();
    client.hang_up();
    trickling.join().expect("the trickle ends with the connection");
}

fn a_client_that_says_nothing_is_let_go(setup: Setup) {
    let server = Server::start(Config {
        header_timeout: SHORT,
        timeout_keep_alive: SHORT,
        ..patient(setup)
    });
    let mut client = server.connect();
    let bytes = client.read_to_end();
    assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 408 "), "{bytes:?}");
    server.wait_until_empty();
}

fn a_second_head_has_its_own_time(setup: Setup) {
    let server = Server::start(Config { header_timeout: SHORT * 2, ..patient(setup) });
    let mut client = server.connect();
    let half = get("/").len() / 2;
    for _ in 0..3 {
        thread::sleep(SHORT);
        client.send(&get("/")[..half]);
        thread::sleep(SHORT / 4);
        client.send(&get("/")[half..]);
        assert_eq!(client.read_answer().status, 200);
    }
    client.send(&get("/")[..half]);
    expect_no_head(&mut client, "half a head after whole ones");
}

fn an_idle_connection_is_closed_without_a_word(setup: Setup) {
    let server = Server::start(Config { timeout_keep_alive: SHORT, ..patient(setup) });
    let start = Instant::now();
    let mut clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    for client in &mut clients {
        client.expect_end("an idle connection");
    }
    assert!(start.elapsed() >= SHORT / 2, "closed at once");
    assert_eq!(server.stats().answers_4xx, 0);
    server.wait_until_empty();
}

fn a_busy_connection_is_not_idle(setup: Setup) {
    let server = Server::start(Config { timeout_keep_alive: SHORT * 3, ..patient(setup) });
    let mut client = server.connect();
    for _ in 0..8 {
        assert_eq!(client.get("/").status, 200);
        thread::sleep(SHORT / 2);
    }
    assert_eq!(server.stats().connections_accepted, 1);
}

fn a_body_that_stalls_is_answered_408(setup: Setup) {
    let server = Server::start(Config { body_timeout: SHORT, ..patient(setup) });
    let start = Instant::now();
    let mut by_length = server.connect();
    by_length.send(request("POST", "/echo", "Content-Length: 10\r\n") + "hello");
    let mut in_chunks = server.connect();
    in_chunks.send(request("POST", "/echo", "Transfer-Encoding: chunked\r\n") + "a\r\nhello");
    let mut waiting = server.connect();
    waiting.send(request("POST", "/echo", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
    assert_eq!(waiting.read_answer().status, 100);
    for client in [&mut by_length, &mut in_chunks, &mut waiting] {
        expect_408(client, "half a body");
    }
    assert!(start.elapsed() >= SHORT / 2, "cut at once");
    server.wait_until("each is counted", |stats| stats.timeouts == 3);
    drop((by_length, in_chunks, waiting));
    server.wait_until_empty();
}

fn a_body_slower_than_the_minimum_is_cut(setup: Setup) {
    let server =
        Server::start(Config { body_timeout: SHORT, body_rate_min: 100_000, ..patient(setup) });
    let mut client = server.connect();
    client.send(request("POST", "/echo", "Content-Length: 100000\r\n"));
    let mut writer = client.second_handle();
    let trickling = thread::spawn(move || writer.trickle_until_closed(&[b'x'; 4_000], SHORT / 20));
    assert_eq!(client.read_answer().status, 408, "no silence, but far too slow");
    client.expect_end("a trickling body");
    client.hang_up();
    trickling.join().expect("the trickle ends with the connection");
}

fn a_slow_body_above_the_minimum_is_taken(setup: Setup) {
    let server =
        Server::start(Config { body_timeout: SHORT * 2, body_rate_min: 100, ..patient(setup) });
    let mut client = server.connect();
    let body = noise(5, 20_000);
    client.send(request("POST", "/echo", "Content-Length: 20000\r\n"));
    for piece in body.chunks(4_000) {
        client.send(piece);
        thread::sleep(SHORT / 2);
    }
    assert!(client.read_answer().body == body, "another body came back");
}

/// A file larger than what the kernel holds for a client that does not read.
fn large_file() -> Folder {
    let folder = Folder::new();
    folder.hollow("large.bin", 64 << 20);
    folder
}

fn a_client_that_never_reads_is_cut(setup: Setup) {
    let folder = large_file();
    let root = Some(folder.root());
    let server = Server::start(Config { root, write_timeout: SHORT, ..patient(setup) });
    let start = Instant::now();
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/large.bin"));
    server.wait_until("it is connected", |stats| stats.connections_accepted == 1);
    server.wait_until_empty();
    assert!(start.elapsed() >= SHORT / 2, "cut at once");
    assert!(server.stats().timeouts >= 1);
    let (bytes, _) = client.read_until_ended();
    assert!(bytes.len() < 64 << 20, "all was sent");
    assert_eq!(server.get("/").status, 404, "others are served");
}

fn a_reader_slower_than_the_minimum_is_cut(setup: Setup) {
    let folder = large_file();
    let server = Server::start(Config {
        root: Some(folder.root()),
        write_timeout: SHORT,
        write_rate_min: 20 << 20,
        ..patient(setup)
    });
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/large.bin"));
    client.wait_for_bytes();
    let start = Instant::now();
    while server.stats().connections_open > 0 {
        assert!(start.elapsed() < PATIENCE, "each byte bought more time");
        if client.read_some(2_000).is_err() {
            break;
        }
        thread::sleep(SHORT / 20);
    }
    let (bytes, _) = client.read_until_ended();
    assert!(bytes.len() < 63 << 20, "all was sent");
    server.wait_until("it is counted", |stats| stats.timeouts >= 1);
    server.wait_until_empty();
}

fn a_reader_above_the_minimum_gets_all(setup: Setup) {
    let folder = Folder::new();
    let content = noise(7, 6 << 20);
    folder.file("some.bin", &content);
    let server = Server::start(Config {
        root: Some(folder.root()),
        write_timeout: SHORT * 5,
        write_rate_min: 1_000,
        ..patient(setup)
    });
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/some.bin"));
    client.wait_for_bytes();
    for _ in 0..5 {
        thread::sleep(SHORT / 2);
        client.read_ahead(400_000);
    }
    assert!(client.read_answer().body == content, "another body came");
}

fn time_goes_on_for_a_worker_that_sleeps(setup: Setup) {
    // A worker that slept and takes a connection at once must not count from when it fell asleep.
    let server = Server::start(Config {
        header_timeout: SHORT * 2,
        timeout_keep_alive: SHORT * 2,
        body_timeout: SHORT * 2,
        ..patient(setup)
    });
    assert_eq!(server.get("/").status, 200);
    thread::sleep(SHORT * 3);
    let mut clients: Vec<_> = (0..12).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(&get("/")[..10]);
    }
    thread::sleep(SHORT / 8);
    for client in &mut clients {
        client.send(&get("/")[10..]);
        let answer = client.read_answer();
        assert_eq!(answer.status, 200, "refused after a fraction of its time");
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970").as_secs();
        let dates = [now - 1, now].map(|secs| imf_fixdate(secs).to_vec());
        let date = answer.expect_field("date").as_bytes().to_vec();
        assert!(dates.contains(&date), "an old date: {answer:?}");
        assert_eq!(client.get("/").status, 200, "closed after a fraction of its time");
    }
}
