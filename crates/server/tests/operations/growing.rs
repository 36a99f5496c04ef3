//! Servers whose workers grow and shrink in number: whoever asks is answered meanwhile.
//!
//! A gate stands in for a handler that blocks: it holds its worker until the test opens it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::{Request, Routes};

use crate::harness::client::get;
use crate::harness::{Client, Folder, PATIENCE, Server, Setup, wait_until};

on_every_server!(
    requests_are_served_while_all_workers_of_the_start_are_held,
    no_request_fails_while_workers_come_and_go,
    a_drain_ends_while_workers_come_and_go,
    routes_swapped_while_workers_wait_count_when_they_come_back,
    files_are_served_by_whoever_comes,
    what_may_come_is_said_once,
);

const CEILING: usize = 4;

/// Holds whoever comes, while it is shut.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: usize,
    is_open: bool,
}

impl Gate {
    /// Holds the calling thread. A limit keeps a failing test from hanging.
    fn pass(&self) {
        let mut state = self.state.lock().expect("no test panics inside");
        state.held += 1;
        let limit = PATIENCE * 2;
        let waited = self.changed.wait_timeout_while(state, limit, |state| !state.is_open);
        waited.expect("no test panics inside").0.held -= 1;
    }

    fn set(&self, is_open: bool) {
        self.state.lock().expect("no test panics inside").is_open = is_open;
        self.changed.notify_all();
    }

    fn held(&self) -> usize {
        self.state.lock().expect("no test panics inside").held
    }
}

/// Opens the gate when a test ends, so that one that fails can stop its server.
struct OpenAtEnd(Arc<Gate>);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn growing(setup: Setup) -> Config {
    let shrink_period = Duration::from_millis(20);
    Config { workers_max: CEILING, shrink_period, ..setup.config() }
}

/// Routes whose `/slow` waits at the gate and whose `/word` says `word`.
fn routes(gate: &Arc<Gate>, word: &'static str) -> Routes {
    let gate = Arc::clone(gate);
    let slow = move |_: &Request| {
        gate.pass();
        "slow"
    };
    Routes::new().get("/slow", slow).get("/word", move |_: &Request| word)
}

fn gated(config: Config) -> (Server, OpenAtEnd) {
    let gate = Arc::new(Gate::default());
    (Server::routes(config, routes(&gate, "one")), OpenAtEnd(gate))
}

/// Holds one more worker.
fn hold(server: &Server, gate: &Gate) -> Client {
    let before = gate.held();
    let mut client = server.connect();
    client.send(get("/slow"));
    wait_until("one more worker is held", || gate.held() > before);
    client
}

fn answer_all(held: &mut [Client]) {
    for client in held {
        assert_eq!(client.read_answer().body, b"slow");
    }
}

/// Holds as many as there may be, lets them go, and waits until only those of the start are left.
fn come_and_go(server: &Server, gate: &Gate) {
    gate.set(false);
    let mut held: Vec<_> = (0..CEILING).map(|_| hold(server, gate)).collect();
    assert_eq!(server.running().workers(), CEILING);
    gate.set(true);
    answer_all(&mut held);
    drop(held);
    server.wait_until("those of the start are left", |stats| stats.workers == 2);
}

fn requests_are_served_while_all_workers_of_the_start_are_held(setup: Setup) {
    let (server, gate) = gated(growing(setup));
    let mut held: Vec<_> = (0..2).map(|_| hold(&server, &gate.0)).collect();
    for _ in 0..20 {
        assert_eq!(server.get("/word").body, b"one");
    }
    assert_eq!(gate.0.held(), 2, "all were answered while two were held");
    let stats = server.stats();
    assert!(stats.workers_grown >= 1 && stats.workers_failed == 0, "{stats:?}");
    gate.0.set(true);
    for client in &mut held {
        assert_eq!(client.read_answer().body, b"slow");
        assert_eq!(client.get("/word").body, b"one", "a connection outlives who was added");
    }
}

fn no_request_fails_while_workers_come_and_go(setup: Setup) {
    for cache_workers in [true, false] {
        let grow_after = Duration::from_millis(1);
        let shrink_period = Duration::from_millis(10);
        let config = Config { grow_after, shrink_period, cache_workers, ..growing(setup) };
        let (server, gate) = gated(config);
        let (ends, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        let visit = || {
            while !ends.load(Ordering::SeqCst) {
                let mut client = server.connect();
                for _ in 0..4 {
                    assert_eq!(client.get("/word").body, b"one");
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(visit);
            }
            for _ in 0..6 {
                gate.0.set(false);
                let mut held: Vec<_> = (0..CEILING).map(|_| hold(&server, &gate.0)).collect();
                gate.0.set(true);
                answer_all(&mut held);
                drop(held);
                thread::sleep(Duration::from_millis(40));
            }
            ends.store(true, Ordering::SeqCst);
        });
        server.wait_until_empty();
        let stats = server.stats();
        let held = 6 * CEILING;
        assert_eq!(stats.answers_2xx, (asked.load(Ordering::SeqCst) + held) as u64, "{stats:?}");
        assert_eq!(stats.answers_2xx, stats.requests);
        assert!(stats.workers_grown > 2 && stats.workers_shrunk > 2, "{stats:?}");
    }
}

fn a_drain_ends_while_workers_come_and_go(setup: Setup) {
    for round in 0..4 {
        let (server, gate) = gated(growing(setup));
        let mut held: Vec<_> = (0..3).map(|_| hold(&server, &gate.0)).collect();
        let mut late = server.connect();
        late.send(get("/slow"));
        if round % 2 == 0 {
            thread::sleep(Duration::from_millis(6));
        }
        thread::scope(|scope| {
            let drain = scope.spawn(|| server.running().drain(PATIENCE));
            thread::sleep(Duration::from_millis(20));
            gate.0.set(true);
            for client in &mut held {
                assert_eq!(client.read_answer().body, b"slow", "what was begun is finished");
            }
            let report = drain.join().expect("a drain ends");
            assert_eq!(report.cut, 0, "round {round}");
            assert!(report.took < PATIENCE, "round {round}: {report:?}");
        });
    }
}

fn routes_swapped_while_workers_wait_count_when_they_come_back(setup: Setup) {
    let (server, gate) = gated(growing(setup));
    come_and_go(&server, &gate.0);
    server.running().swap_routes(&routes(&gate.0, "two")).expect("they can be served");
    gate.0.set(false);
    let _held: Vec<_> = (0..2).map(|_| hold(&server, &gate.0)).collect();
    for _ in 0..8 {
        assert_eq!(server.get("/word").body, b"two");
    }
}

fn files_are_served_by_whoever_comes(setup: Setup) {
    let folder = Folder::new();
    folder.file("note", b"a note");
    let gate = OpenAtEnd(Arc::new(Gate::default()));
    let routes = routes(&gate.0, "one").files("/files", folder.root());
    let server = Server::routes(growing(setup), routes);
    for _ in 0..2 {
        come_and_go(&server, &gate.0);
        gate.0.set(false);
        let mut held: Vec<_> = (0..2).map(|_| hold(&server, &gate.0)).collect();
        for _ in 0..4 {
            assert_eq!(server.get("/files/note").body, b"a note");
        }
        gate.0.set(true);
        answer_all(&mut held);
    }
}

fn what_may_come_is_said_once(setup: Setup) {
    let said = |config| {
        let server = Server::start(config);
        let notes: HashSet<_> = server.running().notes().iter().cloned().collect();
        (notes.iter().any(|note| note.contains("from 2 up to 4")), server.stats().workers)
    };
    assert_eq!(said(growing(setup)), (true, 2));
    assert_eq!(said(setup.config()), (false, 2));
    assert_eq!(said(Config { workers_max: 2, ..setup.config() }), (false, 2));
}
