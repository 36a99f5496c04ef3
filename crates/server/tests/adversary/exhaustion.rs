//! Clients that do nothing hold no descriptors that others need.

use std::fs::{File, read_dir};

use gustnado::config::{Config, Io};
use gustnado::{Request, Routes};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::harness::client::get;
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    alone: idle_clients_that_fetched_a_file_leave_descriptors_for_others,
    clients_keep_their_addresses_when_no_descriptor_is_free,
);

const LIMIT: usize = 1_024;
const CLIENTS: usize = 400;
/// Bytes of a file that is sent by the kernel, not copied from memory.
const FILE_BYTES: usize = 16 << 10;

fn descriptors() -> usize {
    read_dir("/proc/self/fd").expect("the descriptors of this process").count()
}

fn idle_clients_that_fetched_a_file_leave_descriptors_for_others(setup: Setup) {
    // (A test beside it may leave some of its own to this process.)
    let limit = Some((LIMIT + descriptors()) as u64);
    let low = Rlimit { current: limit, maximum: limit };
    setrlimit(Resource::Nofile, low).expect("a limit can be lowered");
    let folder = Folder::new();
    for name in ["fetched", "cold"] {
        folder.file(name, vec![b'f'; FILE_BYTES]);
    }
    let config = Config { root: Some(folder.root()), ..setup.patient_config() };
    let server = Server::start(config);
    let before = descriptors();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut clients {
        // The second time it is a connection that has sent one before.
        for _ in 0..2 {
            assert_eq!(client.get("/fetched").body.len(), FILE_BYTES);
        }
    }
    let (held, own) = (descriptors() - before, CLIENTS);
    assert_eq!(server.stats().evicted, 0, "{before} descriptors before, {held} now");
    // The server's own ends under epoll; with a ring, an eighth of what may be open, and those that
    // one worker has accepted for the other. (And some files.)
    let of_server = if setup.io == Io::Epoll { CLIENTS } else { LIMIT / 8 + LIMIT / 16 };
    let most = own + 32 + of_server;
    assert!(held <= most, "{held} descriptors for {CLIENTS} clients, {most} at most");
    assert_eq!(server.get("/cold").body.len(), FILE_BYTES);
    // All at once, they are served too.
    for client in &mut clients {
        client.send(get("/fetched"));
    }
    for client in &mut clients {
        assert_eq!(client.read_answer().body.len(), FILE_BYTES);
    }
    drop(clients);
    server.wait_until_empty();
    crate::harness::wait_until("descriptors come back", || descriptors() <= before + 32);
}

/// Whoever counts by client would else count all of them as one.
fn clients_keep_their_addresses_when_no_descriptor_is_free(setup: Setup) {
    let limit = Some(LIMIT as u64);
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).expect("it is lowered");
    let who = |request: &Request| {
        request.peer().map_or_else(|| "unknown".to_owned(), |peer| peer.to_string())
    };
    let server = Server::routes(setup.patient_config(), Routes::new().get("/who", who));
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    server.wait_until("all are accepted", |stats| stats.connections_open == 50);
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    for client in &mut clients {
        let own = client.ends().0.to_string();
        assert_eq!(client.get("/who").text(), own);
    }
    drop(taken);
}
