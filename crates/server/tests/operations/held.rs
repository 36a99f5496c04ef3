//! Workers that a handler holds: they are counted, the server is not ready meanwhile, and the
//! process ends if that is wished.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Request, Routes};

use crate::harness::client::get;
use crate::harness::{PATIENCE, Server, Setup};

on_every_server!(
    a_held_worker_makes_the_server_unready_until_it_is_free,
    a_busy_worker_is_not_held,
    a_held_worker_ends_the_process_if_that_is_wished,
);

/// Set in the process that is to end.
const ENDING: &str = "GUSTNADO_TEST_ENDING";

/// Routes of a handler that blocks until `is_free`.
fn routes(is_free: &Arc<AtomicBool>) -> Routes {
    let is_free = Arc::clone(is_free);
    let hold = move |_: &Request| {
        let start = Instant::now();
        while !is_free.load(Ordering::SeqCst) && start.elapsed() < PATIENCE * 2 {
            thread::sleep(Duration::from_millis(5));
        }
        "done"
    };
    let later = {
        let hold = hold.clone();
        move |request: Request| {
            let hold = hold.clone();
            async move {
                // Held in a later run of its task.
                gustnado::task::yield_now().await;
                hold(&request)
            }
        }
    };
    Routes::new()
        .get("/hold/{how}", hold)
        .get("/later/{how}", later)
        .get("/", |_: &Request| "served")
}

fn a_held_worker_makes_the_server_unready_until_it_is_free(setup: Setup) {
    let is_free = Arc::new(AtomicBool::new(false));
    let server = Server::routes(setup.config(), routes(&is_free));
    assert!(server.running().ready());
    let mut client = server.connect();
    client.send(get("/hold/here"));
    server.wait_until("a worker is held", |stats| stats.workers_held == 1);
    assert!(!server.running().ready());
    is_free.store(true, Ordering::SeqCst);
    assert_eq!(client.read_answer().body, b"done");
    server.wait_until("it is free again", |stats| stats.workers_held == 0 && stats.ready);
}

fn a_busy_worker_is_not_held(setup: Setup) {
    let config = Config { restart_hung: Duration::from_secs(1), ..setup.config() };
    let server = Server::routes(config, routes(&Arc::default()));
    let start = Instant::now();
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    while start.elapsed() < Duration::from_secs(3) {
        for client in &mut clients {
            assert_eq!(client.get("/").body, b"served");
        }
    }
    // Idle for longer than is allowed to a handler.
    thread::sleep(Duration::from_secs(3));
    assert_eq!((server.stats().workers_held, server.running().ready()), (0, true));
}

fn a_held_worker_ends_the_process_if_that_is_wished(setup: Setup) {
    if std::env::var_os(ENDING).is_some() {
        return end(setup);
    }
    let binary = std::env::current_exe().expect("the path of this test binary");
    let scheduler = setup.scheduler.as_str().replace('-', "_");
    let io = if setup.io == gustnado::config::Io::Uring { "uring" } else { "epoll" };
    let name = format!("held::{io}_{scheduler}::a_held_worker_ends_the_process_if_that_is_wished");
    let output = Command::new(binary)
        .args([&*name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ENDING, "1")
        .output()
        .expect("this test binary runs once more");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{text}");
    assert!(text.contains("by a handler of the route /later/{how}, so its other"), "{text}");
    assert!(text.contains("the process ends with 70"), "{text}");
    assert!(text.contains("running"), "the report has no table of tasks: {text}");
}

/// Ends this process.
fn end(setup: Setup) {
    let config = Config { restart_hung: Duration::from_secs(1), ..setup.config() };
    let server = Server::routes(config, routes(&Arc::default()));
    let mut client = server.connect();
    client.send(get("/later/here"));
    thread::sleep(PATIENCE);
    panic!("the process goes on after {PATIENCE:?}");
}
