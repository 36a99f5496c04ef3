//! No request costs an allocation: neither of a file that is cached, nor of a handler that answers
//! with what is there.
//!
//! A binary of its own: it has a global allocator that counts.

#[macro_use]
mod harness;

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;

use gustnado::websocket::{WebSocket, websocket};
use gustnado::{Request, Routes};
use harness::client::get;
use harness::{Folder, Server, Setup};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

on_every_server!(alone: // All that this process allocates is counted.
    a_request_costs_no_allocation,
    an_idle_websocket_holds_little_beyond_its_connection,
);

/// Connections of each kind that are held, and how much more one may hold as a WebSocket. Of that,
/// 104 bytes are the future of its handler.
const HELD: usize = 500;
// (240 are its own. A table of a worker that has to grow adds 40 to each.)
const WEBSOCKET_BYTES_MAX: usize = 300;

/// Some at first: buffers that are used again from then on.
const REQUESTS_TO_WARM_UP: usize = 200;
const REQUESTS: usize = 200;
/// Once a second, each worker makes the Date field anew. So one of some batches has to be without.
const BATCHES: usize = 5;

fn a_request_costs_no_allocation(setup: Setup) {
    let folder = Folder::new();
    folder.file("small.txt", "what is in the file");
    let routes = Routes::new()
        .get("/inline", |_: &Request| "Hello, world!")
        .get("/param/{name}", |request: &Request| match &*request.param("name") {
            "one" => "the first",
            _ => "another",
        })
        .get("/task", async |_: Request| "Hello from a task!")
        .get("/made", |request: &Request| format!("{} was asked for", request.target()));
    let handlers = Server::routes(setup.config(), routes);
    let files = setup.files(&folder);
    let asked = [
        (&handlers, "/inline"),
        (&handlers, "/param/one"),
        (&handlers, "/task"),
        (&files, "/small.txt"),
    ];
    for (server, path) in asked {
        let fewest = fewest_allocations(server, path);
        assert_eq!(fewest, 0, "{path}: {fewest} allocations in {REQUESTS} requests");
    }
    let made = fewest_allocations(&handlers, "/made");
    assert!(made >= REQUESTS, "this handler allocates: {made} allocations");
}

fn fewest_allocations(server: &Server, path: &str) -> usize {
    let mut link = TcpStream::connect(server.address()).expect("a connection");
    let request = get(path).into_bytes();
    let mut answer = [0; 4096];
    let mut ask = |times| {
        for _ in 0..times {
            link.write_all(&request).expect("the request is sent");
            let read = link.read(&mut answer).expect("the answer comes");
            assert!(answer[..read].starts_with(b"HTTP/1.1 200 "), "{path}");
        }
    };
    ask(REQUESTS_TO_WARM_UP);
    let batches = (0..BATCHES).map(|_| {
        let region = Region::new(ALLOCATOR);
        ask(REQUESTS);
        let change = region.change();
        change.allocations + change.reallocations
    });
    batches.min().expect("there are batches")
}

fn an_idle_websocket_holds_little_beyond_its_connection(setup: Setup) {
    let echo = async |mut socket: WebSocket| {
        while let Ok(Some(message)) = socket.recv().await {
            _ = socket.send(message).await;
        }
    };
    let routes = Routes::new().get("/", |_: &Request| "text").get("/echo", websocket(echo));
    let server = Server::routes(setup.patient_config(), routes);
    let upgrade = "GET /echo HTTP/1.1\r\nHost: gust.example\r\nConnection: Upgrade\r\nUpgrade: \
        websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\
        \r\n\r\n";
    let idle = get("/");
    let mut links = Vec::with_capacity(4 * HELD);
    // The first ones make what all share.
    for _ in 0..2 {
        held_by(&server, idle.as_bytes(), b"HTTP/1.1 200 ", &mut links);
        held_by(&server, upgrade.as_bytes(), b"HTTP/1.1 101 ", &mut links);
        links.clear();
        server.wait_until_empty();
    }
    let of_connection = held_by(&server, idle.as_bytes(), b"HTTP/1.1 200 ", &mut links);
    let of_websocket = held_by(&server, upgrade.as_bytes(), b"HTTP/1.1 101 ", &mut links);
    let more = of_websocket.saturating_sub(of_connection);
    eprintln!("{setup:?}: {of_connection} bytes, and {of_websocket} of a WebSocket");
    assert!(more <= WEBSOCKET_BYTES_MAX, "{of_websocket} bytes, {more} beyond its connection");
}

/// Opens connections. Returns how many bytes each makes the process hold.
fn held_by(server: &Server, request: &[u8], wanted: &[u8], links: &mut Vec<TcpStream>) -> usize {
    let live = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated - stats.bytes_deallocated
    };
    let before = live();
    for _ in 0..HELD {
        let mut link = TcpStream::connect(server.address()).expect("a connection");
        link.write_all(request).expect("the request is sent");
        let mut answer = [0; 4096];
        let read = link.read(&mut answer).expect("the answer comes");
        assert!(answer[..read].starts_with(wanted));
        if wanted.ends_with(b"101 ") {
            // A text of one byte, and its echo.
            link.write_all(b"\x81\x81\x00\x00\x00\x00x").expect("it is sent");
            let read = link.read(&mut answer).expect("the echo comes");
            assert_eq!(answer[..read], *b"\x81\x01x");
        }
        links.push(link);
    }
    // Workers may still be at the last ones.
    std::thread::sleep(std::time::Duration::from_millis(100));
    live().saturating_sub(before) / HELD
}
