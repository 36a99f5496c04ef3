//! Ending: a drain lets the answers on their way arrive, a stop does not wait, and the address is
//! free at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::DrainReport;
use gustnado::config::{Acceptor, Config};

use crate::harness::client::{End, get, request, wait_until_refused};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_drain_of_an_idle_server_is_done_at_once,
    idle_connections_are_closed_at_once,
    a_request_on_its_way_is_answered_and_told_to_close,
    a_kept_connection_is_served_once_more,
    a_download_on_its_way_arrives_whole,
    pipelined_requests_on_their_way_are_not_lost,
    a_draining_server_takes_no_new_connections,
    the_deadline_ends_a_drain,
    a_second_drain_finds_nothing_to_do,
    requests_hammered_during_a_drain_are_answered_whole_or_not_at_all,
    a_stop_does_not_wait,
    stopping_is_quick_whatever_the_workers_wait_for,
    the_address_is_free_at_once,
    a_server_started_again_on_the_address_loses_nobody,
);
on_every_server!(alone: a_server_that_has_ended_does_not_end_its_successor);

const LONG: Duration = Duration::from_secs(15);

/// Drains in the background while `meanwhile` runs.
fn drain_while(server: &Server, deadline: Duration, meanwhile: impl FnOnce()) -> DrainReport {
    thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(deadline));
        meanwhile();
        draining.join().expect("the drain ends")
    })
}

fn a_drain_of_an_idle_server_is_done_at_once(setup: Setup) {
    let server = setup.default_site();
    thread::sleep(Duration::from_millis(100)); // its workers sleep in the kernel by now
    let start = Instant::now();
    let report = server.running().drain(LONG);
    assert_eq!(report.cut, 0);
    assert!(start.elapsed() < LONG / 3, "nothing to wait for, yet {:?}", start.elapsed());
}

fn idle_connections_are_closed_at_once(setup: Setup) {
    let server = setup.default_site();
    let mut used: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for client in &mut used {
        assert_eq!(client.get("/").status, 200);
    }
    let mut fresh = server.connect();
    server.wait_until("all are accepted", |stats| stats.connections_open == 11);
    let start = Instant::now();
    let report = drain_while(&server, LONG, || {
        for client in &mut used {
            client.expect_end("an idle connection");
        }
        fresh.expect_end("a connection without a request");
    });
    assert_eq!(report.cut, 0);
    assert!(start.elapsed() < LONG / 3, "{:?}", start.elapsed());
}

fn a_request_on_its_way_is_answered_and_told_to_close(setup: Setup) {
    let server = setup.default_site();
    let (head, rest) = ("POST /echo HTTP/1.1\r\nHost: x\r\n", "Content-Length: 5\r\n\r\nhel");
    let mut in_head = server.connect();
    assert_eq!(in_head.get("/").status, 200);
    in_head.send(head);
    let mut in_body = server.connect();
    in_body.send(head.to_owned() + rest);
    in_head.wait_until_read();
    in_body.wait_until_read();
    let report = drain_while(&server, LONG, || {
        wait_until("it ends", || !server.running().ready());
        in_head.send(rest);
        for client in [&mut in_head, &mut in_body] {
            let answer = client.ask("lo");
            assert_eq!((answer.status, &*answer.text()), (200, "hello"));
            assert!(answer.closes(), "{answer:?}");
            client.expect_end("the last answer");
        }
    });
    assert_eq!(report.cut, 0);
}

fn a_kept_connection_is_served_once_more(setup: Setup) {
    // It has a fraction of a second for its last request, which a busy machine may miss.
    let is_served = || {
        let server = setup.default_site();
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        let mut answer = None;
        let report = drain_while(&server, LONG, || {
            wait_until("it ends", || !server.running().ready());
            client.send(get("/"));
            answer = client.try_answer().ok();
        });
        assert_eq!(report.cut, 0);
        let Some(answer) = answer else { return false };
        assert_eq!(answer.status, 200);
        assert!(answer.closes(), "{answer:?}");
        client.expect_end("the last answer");
        true
    };
    assert!((0..10).any(|_| is_served()), "no request was answered once the server was ending");
}

fn a_download_on_its_way_arrives_whole(setup: Setup) {
    let folder = Folder::new();
    let content = noise(1, 16 << 20);
    folder.file("big.bin", &content);
    let server = setup.files(&folder);
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect_narrow(server.address())).collect();
    for client in &mut clients {
        client.send(get("/big.bin"));
        client.read_ahead(100_000);
    }
    let report = drain_while(&server, LONG, || {
        for client in &mut clients {
            thread::sleep(Duration::from_millis(100));
            assert!(client.read_answer().body == content, "another body came");
            client.expect_end("the last answer");
        }
    });
    assert_eq!(report.cut, 0);
}

fn pipelined_requests_on_their_way_are_not_lost(setup: Setup) {
    let folder = Folder::new();
    let content = noise(1, 3 << 20);
    folder.file("big.bin", &content);
    let server = setup.files(&folder);
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/big.bin").repeat(4));
    client.read_ahead(100_000);
    let report = drain_while(&server, LONG, move || {
        thread::sleep(Duration::from_millis(50));
        // The client leaves when it has read the end; until then the server lingers.
        loop {
            match client.try_answer() {
                Ok(answer) => {
                    assert!(answer.body == content, "another body came");
                    if answer.closes() {
                        return client.expect_end("the last answer");
                    }
                }
                Err(end) => return assert_eq!(end, End::Closed(0), "half an answer"),
            }
        }
    });
    assert_eq!(report.cut, 0);
}

fn a_draining_server_takes_no_new_connections(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("big.bin", 32 << 20);
    for acceptor in [Acceptor::PerWorker, Acceptor::Dedicated] {
        let server = Server::start(Config { acceptor, ..setup.folder_config(&folder) });
        let mut client = Client::connect_narrow(server.address());
        client.send(get("/big.bin"));
        client.read_ahead(100_000);
        let report = drain_while(&server, LONG, || {
            wait_until_refused(server.address());
            assert_eq!(client.read_answer().body.len(), 32 << 20);
        });
        assert_eq!(report.cut, 0, "{acceptor:?}");
        wait_until_refused(server.address());
    }
}

fn the_deadline_ends_a_drain(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("big.bin", 64 << 20);
    let server = setup.files(&folder);
    let mut stuck: Vec<_> = (0..2).map(|_| Client::connect_narrow(server.address())).collect();
    for client in &mut stuck {
        client.send(get("/big.bin"));
        client.wait_for_bytes();
    }
    let mut silent = server.connect();
    silent.send("GET / HT");
    silent.wait_until_read();
    server.wait_until("all are accepted", |stats| stats.connections_open == 3);
    let deadline = Duration::from_millis(400);
    let start = Instant::now();
    let report = server.running().drain(deadline);
    assert!(start.elapsed() >= deadline, "it gave up after {:?}", start.elapsed());
    assert!(start.elapsed() < LONG / 3, "it took {:?}", start.elapsed());
    // (A stream that has not begun waits for nothing.)
    assert_eq!(report.cut, 3 - usize::from(Setup::is_http2()), "{report:?}");
    assert!(report.took >= deadline && report.took < LONG / 3, "{report:?}");
    for client in &mut stuck {
        let (bytes, _) = client.read_until_ended();
        assert!(bytes.len() < 64 << 20, "it was not cut");
    }
    silent.read_until_ended();
}

fn a_second_drain_finds_nothing_to_do(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    for _ in 0..3 {
        let start = Instant::now();
        assert_eq!(server.running().drain(LONG).cut, 0);
        assert!(start.elapsed() < LONG / 3, "{:?}", start.elapsed());
    }
    client.expect_end("an idle connection");
}

fn requests_hammered_during_a_drain_are_answered_whole_or_not_at_all(setup: Setup) {
    let folder = Folder::new();
    let contents = [noise(1, 900), noise(2, 60_000)];
    folder.file("0", &contents[0]);
    folder.file("1", &contents[1]);
    let server = setup.files(&folder);
    let address = server.address();
    let (answered, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let hammer = || {
        let mut client = Client::connect(address);
        for turn in 0.. {
            let which = turn % 2;
            client.send_unless_closed(request("GET", &format!("/{which}"), ""));
            match client.try_answer() {
                Ok(answer) => assert!(answer.body == contents[which], "another body came"),
                Err(end) => {
                    assert_eq!(end.received(), 0, "cut in the middle of answer {turn}: {end:?}");
                    refused.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let hammering: Vec<_> = (0..16).map(|_| scope.spawn(hammer)).collect();
        while answered.load(Ordering::Relaxed) < 1_000 {
            assert!(
                !hammering.iter().all(thread::ScopedJoinHandle::is_finished),
                "all ended early"
            );
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(server.running().drain(LONG).cut, 0);
    });
    assert_eq!(refused.into_inner(), 16, "each connection ended");
    let stats = server.stats();
    assert!(stats.requests >= answered.into_inner(), "{stats:?}");
}

fn a_stop_does_not_wait(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("big.bin", 64 << 20);
    let server = setup.files(&folder);
    let address = server.address();
    let mut idle = server.connect();
    assert_eq!(idle.get("/missing").status, 404);
    let mut stuck = Client::connect_narrow(address);
    stuck.send(get("/big.bin"));
    stuck.wait_for_bytes();
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < LONG / 3, "{:?}", start.elapsed());
    idle.read_until_ended();
    let (bytes, _) = stuck.read_until_ended();
    assert!(bytes.len() < 64 << 20, "it waited");
    wait_until_refused(address);
}

fn stopping_is_quick_whatever_the_workers_wait_for(setup: Setup) {
    // Each stop must wake each worker: one that only a time limit finds shows in the sum.
    let start = Instant::now();
    for turn in 0..12 {
        let acceptor = if turn < 6 { Acceptor::PerWorker } else { Acceptor::Dedicated };
        let server = Server::start(Config { acceptor, ..setup.config() });
        let mut client = server.connect();
        if turn % 3 > 0 {
            assert_eq!(client.get("/").status, 200);
        }
        if turn % 3 > 1 {
            server.running().drain(LONG);
        }
        server.stop();
    }
    assert!(start.elapsed() < Duration::from_secs(4), "twelve stops took {:?}", start.elapsed());
}

fn the_address_is_free_at_once(setup: Setup) {
    let mut port = 0;
    for turn in 0..4 {
        let server = Server::start(Config { port, ..setup.config() });
        port = server.address().port();
        let mut open: Vec<_> = (0..10).map(|_| server.connect()).collect();
        for client in &mut open {
            assert_eq!(client.get("/").status, 200, "start {turn}");
        }
        if turn % 2 == 0 {
            server.running().drain(LONG);
        }
        server.stop();
        drop(open); // only now: the server's side ended first and remembers the address
    }
}

fn a_server_started_again_on_the_address_loses_nobody(setup: Setup) {
    // Whatever of the old server is left in the kernel must not take the new one's connections.
    let mut port = 0;
    for turn in 0..4 {
        let server = Server::start(Config { port, ..setup.config() });
        port = server.address().port();
        for client in 0..60 {
            let answer = server.ask(request("GET", "/", "Connection: close\r\n"));
            assert_eq!(answer.status, 200, "start {turn}, client {client}");
        }
        let mut open: Vec<_> = (0..20).map(|_| server.connect()).collect();
        for client in &mut open {
            assert_eq!(client.get("/").status, 200);
        }
        server.running().drain(LONG);
        server.stop();
    }
}

fn a_server_that_has_ended_does_not_end_its_successor(setup: Setup) {
    // Whatever a server has given back (numbers, names) may be another's by the time it is dropped.
    let folder = Folder::new();
    let content = noise(1, 8 << 20);
    folder.file("big.bin", &content);
    let path = folder.outside().join("gust.sock");
    let config = || Config { uds: Some(path.clone()), ..setup.folder_config(&folder) };
    let first = Server::start(config());
    assert_eq!(first.running().drain(LONG).cut, 0);
    let second = Server::start(config());
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect_unix(&path)).collect();
    first.stop();
    for client in &mut clients {
        assert!(client.get("/big.bin").body == content, "another body came");
    }
    assert!(path.exists(), "the socket's name was the second server's");
    assert_eq!(Client::connect_unix(&path).get("/missing").status, 404);
    assert_eq!(second.running().drain(LONG).cut, 0);
}
