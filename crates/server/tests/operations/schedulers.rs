//! The four schedulers, placement and acceptors: who runs a connection, and who waits for whom.
//!
//! A gate stands in for a slow handler: it holds its worker until the test opens it, so that these
//! tests ask what happens meanwhile and never how long something took.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use gustnado::config::{Acceptor, Config, Io, Placement, SchedulerKind};
use gustnado::{Request, Routes};

use crate::harness::client::get;
use crate::harness::{Client, Folder, PATIENCE, Server, Setup, wait_until};

on_every_server!(
    a_held_worker_delays_nobody_where_connections_are_shared,
    a_burst_behind_a_held_worker_is_run_by_the_others,
    one_free_worker_is_enough_where_connections_are_shared,
    a_connection_stays_with_its_worker_where_it_is_pinned,
    a_held_worker_delays_only_its_own_connections,
    nothing_is_lost_while_every_worker_is_held,
    connections_are_spread_over_all_workers,
    no_worker_has_much_more_than_its_share,
    the_first_worker_is_filled_before_the_next,
    every_acceptor_serves_every_placement,
    what_was_chosen_instead_is_said_once,
    a_worker_that_spins_serves_as_well,
);

/// Holds whoever comes, until it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    held: Vec<String>,
    is_open: bool,
}

impl Gate {
    /// Holds the calling thread. A limit keeps a failing test from hanging.
    fn pass(&self) {
        let mut state = self.state.lock().expect("no test panics inside");
        state.held.push(thread_name());
        let limit = PATIENCE * 2;
        let waited = self.changed.wait_timeout_while(state, limit, |state| !state.is_open);
        drop(waited.expect("no test panics inside"));
    }

    /// Lets everybody through, now and later.
    fn open(&self) {
        self.state.lock().expect("no test panics inside").is_open = true;
        self.changed.notify_all();
    }

    /// The workers that were ever held.
    fn held(&self) -> Vec<String> {
        self.state.lock().expect("no test panics inside").held.clone()
    }

    /// Whether it still holds whoever came.
    fn is_shut(&self) -> bool {
        !self.state.lock().expect("no test panics inside").is_open
    }
}

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Opens the gate when a test ends, so that one that fails can stop its server.
struct OpenAtEnd(Arc<Gate>);

fn thread_name() -> String {
    let current = thread::current();
    format!("{} {:?}", current.name().unwrap_or_default(), current.id())
}

/// A server whose `/slow` waits at the gate and whose `/who` tells the thread that ran it.
fn gated(config: Config) -> (Server, OpenAtEnd) {
    let gate = Arc::new(Gate::default());
    let held_by = Arc::clone(&gate);
    let slow = move |_: &Request| {
        held_by.pass();
        "slow"
    };
    let routes = Routes::new().get("/slow", slow).get("/who", |_: &Request| thread_name());
    (Server::routes(config, routes), OpenAtEnd(gate))
}

/// Connections that have each been answered, with the worker that did it.
fn settled(server: &Server, count: usize) -> Vec<(Client, String)> {
    let clients = (0..count).map(|_| server.connect());
    clients.map(|mut client| (client.get("/who").text(), client)).map(|(w, c)| (c, w)).collect()
}

/// Sends the client into the gate and waits until it holds a worker.
fn hold(client: &mut Client, gate: &Gate) {
    let before = gate.held().len();
    client.send(get("/slow"));
    wait_until("a worker is held", || gate.held().len() > before);
}

fn a_held_worker_delays_nobody_where_connections_are_shared(setup: Setup) {
    if !setup.is_shared() {
        return;
    }
    for round in 0..5 {
        let (server, gate) = gated(setup.config());
        let mut clients = settled(&server, 16);
        let (mut slow, _) = clients.pop().expect("sixteen");
        hold(&mut slow, &gate.0);
        let held = gate.0.held().pop().expect("one worker");
        for (client, before) in &mut clients {
            for _ in 0..3 {
                let now = client.get("/who").text();
                assert_ne!(now, held, "round {round}: run by a held worker, before by {before}");
            }
        }
        assert!(gate.0.is_shut(), "all were answered while the worker was held");
        gate.0.open();
        assert_eq!(slow.read_answer().body, b"slow");
    }
}

fn a_burst_behind_a_held_worker_is_run_by_the_others(setup: Setup) {
    if !setup.is_shared() {
        return;
    }
    for _ in 0..5 {
        let (server, gate) = gated(setup.config());
        let mut clients = settled(&server, 64);
        // All at once: whoever finds the slow one has found some of the others with it.
        for (turn, (client, _)) in clients.iter_mut().enumerate() {
            client.send(get(if turn == 20 { "/slow" } else { "/who" }));
        }
        let (mut slow, _) = clients.remove(20);
        for (client, _) in &mut clients {
            assert_eq!(client.read_answer().status, 200);
        }
        assert!(gate.0.is_shut(), "all were answered while the worker was held");
        gate.0.open();
        assert_eq!(slow.read_answer().body, b"slow");
    }
}

fn one_free_worker_is_enough_where_connections_are_shared(setup: Setup) {
    if !setup.is_shared() {
        return;
    }
    let (server, gate) = gated(Config { workers: 4, ..setup.config() });
    let mut clients = settled(&server, 16);
    let mut slow = clients.split_off(13);
    for (client, _) in &mut slow {
        hold(client, &gate.0);
    }
    let held: HashSet<String> = gate.0.held().into_iter().collect();
    assert_eq!(held.len(), 3, "three workers are held");
    let late = settled(&server, 8);
    for (mut client, _) in clients.into_iter().chain(late) {
        assert!(!held.contains(&client.get("/who").text()), "run by a held worker");
    }
    gate.0.open();
    for (client, _) in &mut slow {
        assert_eq!(client.read_answer().body, b"slow");
    }
}

fn a_connection_stays_with_its_worker_where_it_is_pinned(setup: Setup) {
    if setup.is_shared() {
        return;
    }
    let (server, _gate) = gated(setup.config());
    let mut clients = settled(&server, 16);
    for round in 0..10 {
        for (client, worker) in &mut clients {
            assert_eq!(client.get("/who").text(), *worker, "round {round}");
        }
    }
}

fn a_held_worker_delays_only_its_own_connections(setup: Setup) {
    if setup.is_shared() {
        return;
    }
    let (server, gate) = gated(setup.config());
    let mut clients = settled(&server, 32);
    let (mut slow, _) = clients.pop().expect("thirty-two");
    hold(&mut slow, &gate.0);
    let held = gate.0.held().pop().expect("one worker");
    let (mut behind, mut beside): (Vec<_>, Vec<_>) =
        clients.into_iter().partition(|(_, worker)| *worker == held);
    assert!(!behind.is_empty() && !beside.is_empty(), "both workers have connections");
    for (client, worker) in &mut beside {
        assert_eq!(client.get("/who").text(), *worker);
    }
    for (client, _) in &mut behind {
        client.send(get("/who"));
    }
    behind[0].0.expect_silence(Duration::from_millis(50));
    assert!(gate.0.is_shut());
    gate.0.open();
    for (client, worker) in &mut behind {
        assert_eq!(client.read_answer().text(), *worker);
    }
    assert_eq!(slow.read_answer().body, b"slow");
}

fn nothing_is_lost_while_every_worker_is_held(setup: Setup) {
    let (server, gate) = gated(setup.config());
    let mut clients = settled(&server, 40);
    let mut slow: Vec<Client> = Vec::new();
    while slow.len() < 2 {
        let held = gate.0.held();
        let place =
            clients.iter().position(|(_, worker)| setup.is_shared() || !held.contains(worker));
        let (mut client, _) = clients.remove(place.expect("a connection of a free worker"));
        hold(&mut client, &gate.0);
        slow.push(client);
    }
    for (client, _) in &mut clients {
        client.send(get("/who"));
    }
    let mut late: Vec<_> = (0..10).map(|_| server.connect_early()).collect();
    for client in &mut late {
        client.send(get("/who"));
    }
    clients[0].0.expect_silence(Duration::from_millis(50));
    gate.0.open();
    for client in slow.iter_mut().chain(clients.iter_mut().map(|(client, _)| client)) {
        assert_eq!(client.read_answer().status, 200);
    }
    for client in &mut late {
        assert_eq!(client.read_answer().status, 200);
    }
}

fn connections_are_spread_over_all_workers(setup: Setup) {
    if setup.is_shared() {
        return;
    }
    for acceptor in [Acceptor::PerWorker, Acceptor::Dedicated] {
        let placement = Placement::Spread;
        let (server, _gate) = gated(Config { workers: 4, acceptor, placement, ..setup.config() });
        let clients = settled(&server, 64);
        let workers: HashSet<_> = clients.iter().map(|(_, worker)| worker).collect();
        assert_eq!(workers.len(), 4, "{acceptor:?}");
    }
}

fn no_worker_has_much_more_than_its_share(setup: Setup) {
    if setup.is_shared() {
        return;
    }
    let folder = Folder::new();
    let path = folder.path("its.socket");
    for (count, most) in [(60, 30), (1000, 300)] {
        let listen = vec!["127.0.0.1:0".to_owned(), format!("unix:{}", path.display())];
        let (server, _gate) = gated(Config { workers: 4, listen, ..setup.config() });
        for is_unix in [false, true] {
            let connect = || if is_unix { Client::connect_unix(&path) } else { server.connect() };
            let mut clients: Vec<_> = (0..count).map(|_| connect()).collect();
            let mut found = HashMap::<_, usize>::new();
            for client in &mut clients {
                *found.entry(client.get("/who").text()).or_default() += 1;
            }
            assert!(found.values().all(|&it| it <= most), "unix: {is_unix}, {found:?}");
            drop(clients);
            server.wait_until_empty();
        }
    }
}

fn the_first_worker_is_filled_before_the_next(setup: Setup) {
    if setup.is_shared() {
        return;
    }
    for acceptor in [Acceptor::PerWorker, Acceptor::Dedicated] {
        let placement = Placement::Fill;
        let (server, _gate) = gated(Config { slots: 8, acceptor, placement, ..setup.config() });
        let first = settled(&server, 8);
        let workers: HashSet<_> = first.iter().map(|(_, worker)| worker).collect();
        assert_eq!(workers.len(), 1, "eight fit: {acceptor:?}");
        let more = settled(&server, 8);
        let elsewhere = more.iter().filter(|(_, worker)| !workers.contains(worker)).count();
        let expected = if setup.scheduler == SchedulerKind::Pool { 8 } else { 0 };
        assert_eq!(elsewhere, expected, "a queue has no end, slots have: {acceptor:?}");
    }
}

fn every_acceptor_serves_every_placement(setup: Setup) {
    for acceptor in [Acceptor::PerWorker, Acceptor::Dedicated] {
        for placement in [Placement::Spread, Placement::Fill] {
            let (server, _gate) = gated(Config { acceptor, placement, ..setup.config() });
            let mut clients = settled(&server, 40);
            let mut workers = HashSet::new();
            for _ in 0..5 {
                for (client, _) in &mut clients {
                    workers.insert(client.get("/who").text());
                }
            }
            assert!(workers.len() <= 2, "{acceptor:?}, {placement:?}: {workers:?}");
            drop(clients);
            server.wait_until_empty();
            assert_eq!(server.stats().connections_accepted, 40);
        }
    }
}

fn what_was_chosen_instead_is_said_once(setup: Setup) {
    // The shared schedulers cannot use io_uring, which may be asked for all the same.
    let io = if setup.is_shared() { Io::Uring } else { setup.io };
    let server = Server::start(Config { io, ..setup.config() });
    let notes = server.running().notes();
    let about_backend: Vec<_> = notes.iter().filter(|note| note.contains("epoll")).collect();
    match (io, setup.is_shared()) {
        (Io::Uring, true) => assert_eq!(about_backend.len(), 1, "{notes:?}"),
        _ => assert!(about_backend.is_empty(), "it was given what it asked for: {notes:?}"),
    }
}

fn a_worker_that_spins_serves_as_well(setup: Setup) {
    let (server, _gate) = gated(Config { spin_us: 200, ..setup.config() });
    let mut clients = settled(&server, 8);
    for _ in 0..20 {
        for (client, _) in &mut clients {
            assert_eq!(client.get("/who").status, 200);
        }
        thread::sleep(Duration::from_millis(1));
    }
    drop(clients);
    server.wait_until_empty();
}
