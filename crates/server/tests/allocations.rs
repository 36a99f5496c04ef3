//! No request costs an allocation: neither of a file that is cached, nor of a handler that answers
//! with what is there.
//!
//! A binary of its own: it has a global allocator that counts.

#[macro_use]
mod harness;

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;

use gustnado::{Request, Routes};
use harness::client::get;
use harness::{Folder, Server, Setup};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

on_every_server!(alone: // All that this process allocates is counted.
    a_request_costs_no_allocation,
);

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
