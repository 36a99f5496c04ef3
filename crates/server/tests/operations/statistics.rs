//! Counters: in sum, by worker, and as a page of JSON.

use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::{sleep, spawn_detached};
use gustnado::{Request, Routes, stats_page};

use crate::harness::client::get;
use crate::harness::{Server, Setup, wait_until};

on_every_server!(
    workers_add_up_to_the_sum,
    connections_that_were_idle_are_told_apart,
    live_tasks_are_counted,
    a_worker_that_sleeps_is_seen_to_wait,
    a_page_tells_all_counters,
    the_page_stays_when_routes_are_swapped,
);

fn workers_add_up_to_the_sum(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| "hello");
    let server = Server::routes(setup.config(), routes);
    let mut open: Vec<_> = (0..6).map(|_| server.connect()).collect();
    for (place, client) in open.iter_mut().enumerate() {
        for _ in 0..=place {
            assert_eq!(client.get("/").status, 200);
        }
    }
    drop(open.split_off(4));
    assert_eq!(server.ask("nonsense\r\n\r\n").status, 400);
    server.wait_until("three have ended", |stats| stats.connections_removed == 3);
    let (stats, workers) = (server.stats(), server.running().stats_by_worker());
    assert_eq!((stats.connections_added, stats.connections_open), (7, 4));
    assert_eq!((stats.requests, stats.bad_requests), (1 + 2 + 3 + 4 + 5 + 6 + 1, 1));
    assert_eq!(workers.iter().map(|worker| worker.worker).collect::<Vec<_>>(), [0, 1]);
    let sum = |of: fn(&gustnado::WorkerStats) -> u64| workers.iter().map(of).sum::<u64>();
    assert_eq!(sum(|worker| worker.connections_added), stats.connections_added);
    assert_eq!(sum(|worker| worker.connections_removed), stats.connections_removed);
    assert_eq!(sum(|worker| worker.requests), stats.requests);
    assert_eq!(sum(|worker| worker.bytes_sent), stats.bytes_sent);
    assert_eq!(sum(|worker| worker.bad_requests), stats.bad_requests);
    assert_eq!(sum(|worker| worker.answers_4xx), stats.answers_4xx);
    if !setup.is_shared() {
        let live = server.running().connections_by_worker();
        for (worker, live) in workers.iter().zip(live) {
            let counted = worker.connections_added - worker.connections_removed;
            assert_eq!(counted, live as u64, "{worker:?}");
        }
    }
}

fn connections_that_were_idle_are_told_apart(setup: Setup) {
    let short = Duration::from_millis(300);
    let server = Server::start(Config {
        timeout_keep_alive: short,
        header_timeout: short,
        defer_accept: false,
        ..setup.config()
    });
    let mut idle = [server.connect(), server.connect()];
    for client in &mut idle {
        assert_eq!(client.get("/").status, 200);
    }
    let mut silent = [server.connect(), server.connect(), server.connect()];
    let mut slow = server.connect();
    slow.send("GET /");
    for client in idle.iter_mut().chain(&mut silent) {
        client.expect_end("too long a pause");
    }
    assert_eq!(slow.read_answer().status, 408);
    server.wait_until("all are counted", |stats| {
        (stats.idle_closed, stats.never_asked, stats.timeouts) == (2, 3, 6)
    });
}

fn live_tasks_are_counted(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        for _ in 0..10 {
            spawn_detached(sleep(Duration::from_millis(300))).expect("a slot");
        }
        ""
    });
    let server = Server::routes(setup.config(), routes);
    let at_first = if setup.is_shared() { 1 } else { 2 };
    server.wait_until("accepting is a task", |stats| stats.tasks_live == at_first);
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(server.stats().tasks_live, at_first + 11, "a connection and what it started");
    server.wait_until("those have ended", |stats| stats.tasks_live == at_first + 1);
    drop(client);
    server.wait_until("all have ended", |stats| stats.tasks_live == at_first);
}

fn a_worker_that_sleeps_is_seen_to_wait(setup: Setup) {
    let server = setup.default_site();
    let before = server.stats().waits;
    for _ in 0..20 {
        assert_eq!(server.get("/").status, 200);
    }
    wait_until("workers have slept in between", || server.stats().waits >= before + 10);
    let workers = server.running().stats_by_worker();
    assert!(workers.iter().all(|worker| worker.waits > 0), "{workers:?}");
    // A sleep is no tick: a server that nobody asks does not wake up.
    std::thread::sleep(Duration::from_millis(100));
    let quiet = server.stats().waits;
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.stats().waits <= quiet + 2, "it woke up without a reason");
}

/// All values of a name in a page, in their order.
fn numbers(json: &str, name: &str) -> Vec<u64> {
    let digits = |rest: &str| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().expect("a number")
    };
    json.split(&format!("\"{name}\":")).skip(1).map(digits).collect()
}

fn a_page_tells_all_counters(setup: Setup) {
    let routes = Routes::new().get("/stats", stats_page()).get("/", |_: &Request| "hello");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").status, 200);
    }
    let answer = client.get("/stats");
    assert_eq!(answer.expect_field("content-type"), "application/json");
    assert_eq!(answer.expect_field("cache-control"), "no-store");
    let json = answer.text();
    assert!(json.starts_with("{\"version\":\"") && json.ends_with("]}\n"), "{json}");
    assert_eq!(json.matches('{').count(), json.matches('}').count(), "{json}");
    assert!(json.contains(&format!("\"backend\":\"{}\"", server.running().backend())), "{json}");
    assert!(json.contains(&format!("\"scheduler\":\"{}\"", setup.scheduler.as_str())), "{json}");
    for name in ["requests", "connections_added", "bytes_sent", "waits", "idle_closed", "panics"] {
        let found = numbers(&json, name);
        assert_eq!(found.len(), 3, "{name}: in sum, and for both workers: {json}");
    }
    for name in ["requests", "connections_added", "connections_removed", "bytes_sent"] {
        let found = numbers(&json, name);
        assert_eq!(found[0], found[1] + found[2], "{name}: {json}");
    }
    assert_eq!(numbers(&json, "requests")[0], 5, "{json}");
    assert_eq!(numbers(&json, "connections_open"), [1], "{json}");
    assert!(numbers(&json, "memory_bytes")[0] > 100_000, "{json}");
    client.send(crate::harness::client::request("HEAD", "/stats", ""));
    assert_eq!(client.read_head().status, 200);
}

fn the_page_stays_when_routes_are_swapped(setup: Setup) {
    let server = Server::routes(setup.config(), Routes::new().get("/one", stats_page()));
    let mut client = server.connect();
    client.send(get("/one"));
    assert_eq!(client.read_answer().status, 200);
    let nested = Routes::new().nest("/two", Routes::new().get("/stats", stats_page()));
    server.running().swap_routes(&nested).expect("good routes");
    assert_eq!(client.get("/one").status, 404);
    assert_eq!(numbers(&client.get("/two/stats").text(), "requests")[0], 2);
}
