//! The shared schedulers share: who is held by a slow handler holds nobody else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{Connection, sleep, spawn};

use crate::setup::{Served, Setup, connect, in_task, start};

on_every_setup!(shared:
    three_held_workers_of_four_leave_the_fourth_to_all_others,
    a_connection_held_in_its_first_step_does_not_hold_the_next_one,
    a_task_spawned_by_one_that_holds_its_worker_runs_elsewhere,
    many_sleepers_share_all_workers,
);

/// Holds threads until it is opened.
#[derive(Default)]
struct CloseFlag {
    open: Mutex<bool>,
    bell: Condvar,
    held: AtomicUsize,
}

impl CloseFlag {
    fn pass(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.bell.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }
}

/// Opens the gate whichever way a test ends, or its workers would never end.
struct Opener(Arc<CloseFlag>);

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Answers each byte with a byte; a `!` first waits at the gate, with its thread.
fn gated(setup: Setup, workers: usize) -> (Served, Arc<CloseFlag>) {
    let close_flag = Arc::new(CloseFlag::default());
    let inner = Arc::clone(&close_flag);
    let workers = start(&setup.plan(workers), move |mut connection: Connection| {
        let close_flag = Arc::clone(&inner);
        async move {
            loop {
                let holds = match connection.recv(true).await {
                    Ok(piece) if !piece.bytes().is_empty() => piece.bytes().contains(&b'!'),
                    _ => return,
                };
                if holds {
                    close_flag.pass();
                }
                let mut out = Connection::outgoing();
                out.bytes.push(b'.');
                if connection.send(out).await.is_err() {
                    return;
                }
            }
        }
    });
    (workers, close_flag)
}

/// Sends a byte and waits for the answer, but not for long.
fn answered(client: &mut TcpStream) -> bool {
    client.write_all(b"?").expect("the server is there");
    client.set_read_timeout(Some(Duration::from_secs(3))).expect("three seconds are valid");
    client.read_exact(&mut [0]).is_ok()
}

fn three_held_workers_of_four_leave_the_fourth_to_all_others(setup: Setup) {
    for round in 0..15 {
        let (workers, close_flag) = gated(setup, 4);
        let _opener = Opener(Arc::clone(&close_flag));
        let mut clients: Vec<_> = (0..6).map(|_| connect(&workers)).collect();
        for client in &mut clients {
            assert!(answered(client), "round {round}: before anyone is held");
        }
        // As nearly at once as can be, so that one poller collects several.
        let (held, free) = clients.split_at_mut(3);
        for client in &mut *held {
            client.write_all(b"!").expect("the server is there");
        }
        for client in free {
            assert!(answered(client), "round {round}: a free worker sleeps on");
        }
        close_flag.open();
        for client in held {
            client.read_exact(&mut [0]).expect("held ones are answered in the end");
        }
    }
}

fn a_connection_held_in_its_first_step_does_not_hold_the_next_one(setup: Setup) {
    for round in 0..15 {
        let close_flag = Arc::new(CloseFlag::default());
        let _opener = Opener(Arc::clone(&close_flag));
        let inner = Arc::clone(&close_flag);
        let first = AtomicUsize::new(0);
        let workers = start(&setup.plan(2), move |mut connection: Connection| {
            let close_flag = Arc::clone(&inner);
            let holds = first.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if holds {
                    close_flag.pass();
                }
                let mut out = Connection::outgoing();
                out.bytes.push(b'.');
                let _ = connection.send(out).await;
            }
        });
        // Both wait in the backlog when the acceptor comes to it, if it is not too quick.
        let clients = [connect(&workers), connect(&workers), connect(&workers)];
        let start = Instant::now();
        let mut answers = 0;
        while answers < 2 && start.elapsed() < Duration::from_secs(3) {
            answers = clients
                .iter()
                .filter(|client| {
                    client.set_nonblocking(true).expect("a socket can be made so");
                    client.peek(&mut [0]).is_ok_and(|len| len > 0)
                })
                .count();
            thread::sleep(Duration::from_millis(1));
        }
        close_flag.open();
        assert_eq!(answers, 2, "round {round}: a fresh connection waits while a worker sleeps");
    }
}

fn a_task_spawned_by_one_that_holds_its_worker_runs_elsewhere(setup: Setup) {
    in_task(&setup.plan(2), async {
        for round in 0..10 {
            let ran = Arc::new(AtomicUsize::new(0));
            let inner = Arc::clone(&ran);
            let handle = spawn(async move {
                inner.store(1, Ordering::SeqCst);
            });
            let start = Instant::now();
            while ran.load(Ordering::SeqCst) == 0 && start.elapsed() < Duration::from_secs(3) {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(ran.load(Ordering::SeqCst), 1, "round {round}: the other worker sleeps on");
            handle.expect("a slot is free").await.expect("it ends well");
            sleep(Duration::from_millis(2)).await;
        }
    });
}

fn many_sleepers_share_all_workers(setup: Setup) {
    let seen = in_task(&setup.plan(4), async {
        let mut handles = Vec::new();
        for _ in 0..100 {
            let handle = spawn(async {
                sleep(Duration::from_millis(20)).await;
                thread::sleep(Duration::from_millis(2));
                gustnado_tasks::worker().expect("a task runs on a worker")
            });
            handles.push(handle.expect("a slot is free"));
        }
        let mut seen = [false; 4];
        for handle in handles {
            seen[handle.await.expect("it ends well")] = true;
        }
        seen
    });
    assert_eq!(seen, [true; 4], "which workers ran something");
}
