//! Limits: connections in total and per worker, requests per connection, descriptors. At a limit
//! accepting pauses; nothing is lost, and it resumes.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, Io};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::client::{get, request};
use crate::harness::{Client, Server, Setup, process};

on_every_server!(
    at_the_limit_of_connections_accepting_pauses_and_resumes,
    a_crowd_at_a_small_limit_is_served_to_the_last,
    a_client_that_gives_up_waiting_harms_nobody,
    idle_connections_make_room_in_time,
    slots_of_all_workers_are_used_before_anyone_waits,
    a_queue_grows_beyond_the_slots,
    the_last_request_a_connection_may_make_says_so,
    requests_beyond_the_last_are_not_answered,
    a_smaller_head_limit_counts,
);
on_every_server!(alone: without_descriptors_the_server_waits_serves_and_recovers);

/// Connections that have each been answered once, and stay open.
pub(crate) fn connected_clients(server: &Server, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    clients
}

/// Connections that have sent a request and were not answered for a while.
fn waiters(server: &Server, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| server.connect_early()).collect();
    for client in &mut clients {
        client.send(get("/"));
    }
    for client in &mut clients {
        client.expect_silence(Duration::from_millis(60));
    }
    clients
}

fn at_the_limit_of_connections_accepting_pauses_and_resumes(setup: Setup) {
    let server = Server::start(Config { connections_max: 4, ..setup.config() });
    for round in 0..3 {
        let connected = connected_clients(&server, 4);
        let waiting = waiters(&server, 4);
        assert_eq!(server.stats().connections_open, 4, "round {round}");
        drop(connected);
        for mut client in waiting {
            assert_eq!(client.read_answer().status, 200, "round {round}");
        }
        server.wait_until_empty();
    }
}

fn a_crowd_at_a_small_limit_is_served_to_the_last(setup: Setup) {
    let server = Server::start(Config { connections_max: 8, ..setup.config() });
    let address = server.address();
    let asking: Vec<_> = (0..100)
        .map(|turn| {
            thread::spawn(move || {
                let close = if turn % 2 == 0 { "Connection: close\r\n" } else { "" };
                let answer = Client::connect(address).ask(request("GET", "/", close));
                assert_eq!(answer.status, 200, "client {turn}");
            })
        })
        .collect();
    while asking.iter().any(|client| !client.is_finished()) {
        let open = server.stats().connections_open;
        assert!(open <= 8, "{open} connections are open");
        thread::sleep(Duration::from_millis(1));
    }
    for client in asking {
        client.join().expect("an answer for each");
    }
    server.wait_until_empty();
    assert_eq!(server.stats().connections_accepted, 100, "each was accepted once");
}

fn a_client_that_gives_up_waiting_harms_nobody(setup: Setup) {
    let server = Server::start(Config { connections_max: 2, ..setup.config() });
    let mut connected = connected_clients(&server, 2);
    let waiting = waiters(&server, 6);
    for (turn, client) in waiting.into_iter().enumerate() {
        if turn % 2 == 0 {
            drop(client);
        } else {
            client.reset();
        }
    }
    for client in &mut connected {
        assert_eq!(client.get("/").status, 200);
    }
    drop(connected);
    connected_clients(&server, 2);
}

fn idle_connections_make_room_in_time(setup: Setup) {
    let server = Server::start(Config {
        connections_max: 2,
        timeout_keep_alive: Duration::from_millis(300),
        ..setup.config()
    });
    let _idle = connected_clients(&server, 2);
    let mut late = server.connect();
    assert_eq!(late.get("/").status, 200);
}

fn slots_of_all_workers_are_used_before_anyone_waits(setup: Setup) {
    if !setup.has_slots() {
        return;
    }
    let server = Server::start(Config { slots: 3, ..setup.config() });
    for _ in 0..3 {
        let connected = connected_clients(&server, 6);
        let waiting = waiters(&server, 3);
        assert_eq!(server.stats().connections_open, 6);
        drop(connected);
        for mut client in waiting {
            assert_eq!(client.read_answer().status, 200);
        }
        server.wait_until_empty();
    }
}

fn a_queue_grows_beyond_the_slots(setup: Setup) {
    if setup.has_slots() {
        return;
    }
    let server = Server::start(Config { slots: 3, ..setup.config() });
    let mut connected = connected_clients(&server, 40);
    for client in &mut connected {
        assert_eq!(client.get("/").status, 200);
    }
}

fn the_last_request_a_connection_may_make_says_so(setup: Setup) {
    let server = Server::start(Config { max_requests_per_connection: 3, ..setup.config() });
    for _ in 0..3 {
        let mut client = server.connect();
        assert!(!client.get("/").closes());
        assert!(!client.get("/missing").closes());
        let last = client.get("/");
        assert_eq!(last.status, 200);
        // (HTTP/2 says so behind it.)
        assert!(last.closes() || Setup::is_http2(), "{last:?}");
        client.expect_end("after the last request");
    }
    let server = Server::start(Config { max_requests_per_connection: 1, ..setup.config() });
    assert!(server.get("/").closes() || Setup::is_http2());
}

fn requests_beyond_the_last_are_not_answered(setup: Setup) {
    if Setup::http1_only("the end is announced before the last request, by GOAWAY") {
        return;
    }
    let server = Server::start(Config { max_requests_per_connection: 3, ..setup.config() });
    let mut client = server.connect();
    client.send(get("/").repeat(500));
    for closes in [false, false, true] {
        assert_eq!(client.read_answer().closes(), closes);
    }
    client.expect_end("with requests unread");
}

fn a_smaller_head_limit_counts(setup: Setup) {
    if Setup::http1_only("HTTP/2 counts bytes of a head in another way (RFC 9113 §6.5.2)") {
        return;
    }
    let server = Server::start(Config { limit_head_bytes: 1_000, ..setup.config() });
    let head = |pad: usize| request("GET", "/", &format!("X: {}\r\n", "y".repeat(pad)));
    let room = 1_000 - head(0).len();
    assert_eq!(server.ask(head(room)).status, 200);
    let mut client = server.connect();
    assert_eq!(client.ask(head(room + 1)).status, 431);
    client.expect_end("a head over its limit");
}

fn without_descriptors_the_server_waits_serves_and_recovers(setup: Setup) {
    if Setup::plain_only("a client of TLS waits for its handshake before it sends") {
        return;
    }
    let server = setup.default_site();
    drop(connected_clients(&server, 4));
    server.wait_until_empty();
    let sockets: Vec<_> = (0..30).map(|_| Client::socket()).collect();
    let before = leave_descriptors(6);
    let mut clients: Vec<_> = sockets
        .into_iter()
        .map(|socket| {
            rustix::net::connect(&socket, &server.address()).expect("the backlog has room");
            Client::over(TcpStream::from(socket))
        })
        .collect();
    for client in &mut clients {
        client.send(get("/"));
    }
    thread::sleep(Duration::from_millis(300));
    let is_served = |client: &mut Client| client.has_bytes_within(Duration::from_millis(5));
    let (mut connected, mut waiting): (Vec<_>, Vec<_>) =
        clients.into_iter().map(|mut client| (is_served(&mut client), client)).partition(|c| c.0);
    assert!(!connected.is_empty(), "those who found a descriptor are served");
    if setup.io == Io::Epoll {
        assert!(waiting.len() >= 20, "only {} wait: the limit was not met", waiting.len());
    }
    if !waiting.is_empty() {
        server.wait_until("the failure is counted", |stats| stats.accept_exhausted > 0);
        // Not for so long that those who are connected would be idle, and give way.
        let spent = process::processor_time_over(Duration::from_millis(400));
        assert!(spent < Duration::from_millis(125), "{spent:?} of 400 ms spent on trying");
    }
    for (_, client) in &mut connected {
        assert_eq!(client.read_answer().status, 200);
        // On a busy machine it was idle for long enough to give way to those who wait.
        client.send_unless_closed(get("/"));
        if !client.try_answer().is_ok_and(|answer| answer.status == 200) {
            // Its end is counted a moment after its client sees it.
            server.wait_until("it gave way, or it is served", |stats| stats.evicted > 0);
        }
    }
    setrlimit(Resource::Nofile, before).expect("the old limit");
    for (_, client) in &mut waiting {
        assert_eq!(client.read_answer().status, 200, "nobody was lost");
    }
    assert_eq!(server.get("/").status, 200);
}

/// Lowers the limit of descriptors until only so many can still be opened. Returns what it was.
pub(crate) fn leave_descriptors(count: usize) -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let listing = std::fs::read_dir("/proc/self/fd").expect("the descriptors of this process");
    let names = listing.map(|entry| entry.expect("a descriptor").file_name());
    let taken: Vec<u64> =
        names.map(|name| name.to_string_lossy().parse().expect("a number")).collect();
    let mut free = (0..).filter(|number| !taken.contains(number));
    let limit = free.nth(count).expect("numbers do not end");
    let lowered = Rlimit { current: Some(limit), maximum: before.maximum };
    setrlimit(Resource::Nofile, lowered).expect("a lower limit");
    before
}
