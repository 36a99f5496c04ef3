//! A server that has nothing to do does nothing: no tick, no loop, no memory for who is silent.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, SchedulerKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::{Client, Server, Setup, process};

on_every_server!(alone:
    without_connections_it_takes_no_processor_time,
    with_thousands_of_connections_it_takes_no_processor_time,
    workers_that_may_come_take_no_processor_time_and_little_memory,
);

/// Of two seconds; a timer of a millisecond would be seen.
const IDLE_MAX: Duration = Duration::from_millis(30);
const CONNECTIONS_MAX: u64 = 4_000;
/// What an idle connection may take here, the slack of the allocator included.
const CONNECTION_BYTES_MAX: u64 = 2_048;

/// What a worker may take that is not there: its letter box and its counts.
const ABSENT_WORKER_BYTES_MAX: u64 = 32 << 10;

fn expect_idle(context: &str) {
    thread::sleep(Duration::from_millis(300)); // what was just done may have to be put away
    let spent = process::processor_time_over(Duration::from_secs(2));
    assert!(spent < IDLE_MAX, "{context}: {spent:?} of 2 s");
}

fn without_connections_it_takes_no_processor_time(setup: Setup) {
    let server = setup.default_site();
    let spinning = Server::start(Config { spin_us: 500, ..setup.config() });
    for server in [&server, &spinning] {
        assert_eq!(server.get("/").status, 200);
        server.wait_until_empty();
    }
    expect_idle("no connection");
    for server in [&server, &spinning] {
        assert_eq!(server.get("/").status, 200);
    }
}

fn with_thousands_of_connections_it_takes_no_processor_time(setup: Setup) {
    if Setup::http1_only(
        "it counts memory, of which clients of HTTP/2 have much in the same process",
    ) {
        return;
    }
    if Setup::plain_only("it counts memory, of which clients of TLS have much in the same process")
    {
        return;
    }
    let count = connections_that_fit();
    let server = setup.default_site();
    let open: Vec<TcpStream> = (0..20).map(|_| visit(&server)).collect();
    drop(open);
    server.wait_until_empty();
    let before = process::resident_bytes();
    let open: Vec<TcpStream> = (0..count).map(|_| visit(&server)).collect();
    let grown = process::resident_bytes().saturating_sub(before);
    assert_eq!(server.stats().connections_open, count);
    assert!(grown < count * CONNECTION_BYTES_MAX + (1 << 20), "{grown} bytes for {count}");
    expect_idle("thousands of connections");
    for stream in open.into_iter().step_by(97) {
        assert_eq!(Client::over(stream).get("/").status, 200, "it still is served");
    }
    server.wait_until_empty();
}

fn workers_that_may_come_take_no_processor_time_and_little_memory(setup: Setup) {
    let first = setup.default_site();
    assert_eq!(first.get("/").status, 200);
    first.wait_until_empty();
    let before = process::resident_bytes();
    let server = Server::start(Config {
        workers_max: 256,
        slots: 2,
        shrink_period: Duration::from_millis(200),
        ..setup.config()
    });
    assert_eq!(server.get("/").status, 200);
    server.wait_until_empty();
    let grown = process::resident_bytes().saturating_sub(before);
    assert!(grown < ABSENT_WORKER_BYTES_MAX * 256 + (4 << 20), "{grown} bytes for 254 to come");
    // With all slots taken some come where slots are each worker's, and go again.
    let clients: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    if setup.scheduler == SchedulerKind::Pool {
        // (Those who say nothing are accepted late.)
        server.wait_until("more have come", |stats| {
            stats.connections_open == 16 && stats.workers >= 8
        });
    }
    expect_idle("while all slots are taken, or none");
    drop(clients);
    server.wait_until("the floor is left", |stats| stats.workers == 2);
    expect_idle("after some have gone");
    assert_eq!(server.get("/").status, 200);
}

/// A connection that has made one request; the client's memory of it is given back.
fn visit(server: &Server) -> TcpStream {
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    client.into_stream()
}

/// How many connections find room, both ends in this process, after asking for all there is.
fn connections_that_fit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, all).expect("the soft limit may rise to the hard one");
    let descriptors = limit.maximum.unwrap_or(u64::MAX);
    CONNECTIONS_MAX.min((descriptors - 200) / 2)
}
