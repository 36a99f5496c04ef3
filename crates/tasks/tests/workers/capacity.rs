//! Room for connections: pausing, resuming, placement, who accepts.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gustnado_tasks::{Acceptor, Placement};

use crate::setup::{Setup, connect, cpu_time, echo, echo_once, start, wait_until};

on_every_setup!(
    a_full_server_pauses_and_serves_everybody_in_the_end,
    a_dedicated_acceptor_pauses_and_resumes_too,
    waiting_for_room_costs_no_processor_time,
);
on_every_setup!(pinned:
    spread_by_a_dedicated_acceptor_is_even,
    fill_takes_the_first_worker_with_room,
    spread_goes_elsewhere_when_a_worker_is_full,
);

/// Sends a byte; an echo says that the connection is served.
fn ask(client: &mut TcpStream) {
    client.write_all(b"x").expect("the server is there");
    client.set_nonblocking(true).expect("a socket can be made so");
}

/// Whether the echo has come.
fn is_served(client: &TcpStream) -> bool {
    match client.peek(&mut [0]) {
        Ok(len) => len > 0,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            false
        }
    }
}

fn a_full_server_pauses_and_serves_everybody_in_the_end(setup: Setup) {
    pauses_and_resumes(setup, Acceptor::PerWorker);
}

fn a_dedicated_acceptor_pauses_and_resumes_too(setup: Setup) {
    pauses_and_resumes(setup, Acceptor::Dedicated);
}

fn pauses_and_resumes(setup: Setup, acceptor: Acceptor) {
    const MAX: usize = 4;
    let mut plan = setup.plan(2);
    plan.connections_max = MAX;
    plan.acceptor = acceptor;
    let workers = start(&plan, echo);
    let mut clients: Vec<_> = (0..3 * MAX).map(|_| connect(&workers)).collect();
    clients.iter_mut().for_each(ask);
    for left in (1..=3).rev() {
        wait_until("as many as fit are served", || {
            clients.iter().filter(|client| is_served(client)).count() == MAX
        });
        thread::sleep(Duration::from_millis(50));
        let served = clients.iter().filter(|client| is_served(client)).count();
        assert_eq!((served, workers.connections_open()), (MAX, MAX), "{left} rounds left");
        // All are told apart before the first one goes, for the next takes its place at once.
        let (served, waiting): (Vec<_>, Vec<_>) = clients.into_iter().partition(is_served);
        drop(served);
        clients = waiting;
    }
    assert!(clients.is_empty());
    wait_until("all places are free", || workers.connections_open() == 0);
    assert!(workers.counts().accept_paused.load(Ordering::SeqCst) > 0);
    assert_eq!(workers.counts().accepted.load(Ordering::SeqCst), 12);
}

/// With more accepted than there is room for, as happens when several accept at once.
fn waiting_for_room_costs_no_processor_time(setup: Setup) {
    let (seen, threads) = mpsc::channel();
    let mut plan = setup.plan(2);
    plan.connections_max = 3;
    let workers = start(&plan, move |connection| {
        // The test may have ended.
        let _ = seen.send(rustix::thread::gettid().as_raw_nonzero().get());
        echo(connection)
    });
    let mut clients: Vec<_> = (0..16).map(|_| connect(&workers)).collect();
    clients.iter_mut().for_each(ask);
    wait_until("three are served", || {
        clients.iter().filter(|client| is_served(client)).count() == 3
    });
    thread::sleep(Duration::from_millis(50));
    let mut threads: Vec<i32> = threads.try_iter().collect();
    threads.sort_unstable();
    threads.dedup();
    let used = || threads.iter().map(|thread| cpu_time(*thread)).sum::<Duration>();
    let before = used();
    thread::sleep(Duration::from_millis(500));
    let spent = used().checked_sub(before).expect("processor time only grows");
    assert!(spent < Duration::from_millis(20), "{spent:?} of processor time while full");
}

fn spread_by_a_dedicated_acceptor_is_even(setup: Setup) {
    let mut plan = setup.plan(3);
    plan.acceptor = Acceptor::Dedicated;
    let workers = start(&plan, echo);
    let mut clients = Vec::new();
    for count in 1..=9 {
        let mut client = connect(&workers);
        echo_once(&mut client);
        clients.push(client);
        let open = workers.connections_by_place();
        assert_eq!(open.iter().sum::<usize>(), count);
        let (least, most) = (open.iter().min(), open.iter().max());
        assert!(most <= least.map(|least| least + 1).as_ref(), "uneven: {open:?}");
    }
}

fn fill_takes_the_first_worker_with_room(setup: Setup) {
    for acceptor in Acceptor::ALL {
        let mut plan = setup.plan(3);
        plan.acceptor = acceptor;
        plan.placement = Placement::Fill;
        // (The queues have no slots: there the total bounds each worker.)
        plan.slots = 2;
        plan.connections_max = 6;
        let has_slots = setup.scheduler.as_str().starts_with("pool");
        let workers = start(&plan, echo);
        let mut clients = Vec::new();
        for _ in 0..5 {
            let mut client = connect(&workers);
            echo_once(&mut client);
            clients.push(client);
        }
        let wanted = if has_slots { [2, 2, 1] } else { [5, 0, 0] };
        assert_eq!(workers.connections_by_place(), wanted, "{acceptor:?}");
    }
}

fn spread_goes_elsewhere_when_a_worker_is_full(setup: Setup) {
    let mut plan = setup.plan(2);
    plan.slots = 3;
    plan.connections_max = 6;
    let workers = start(&plan, echo);
    let mut clients: Vec<_> = (0..6).map(|_| connect(&workers)).collect();
    for client in &mut clients {
        client.write_all(b"x").expect("the server is there");
    }
    for client in &mut clients {
        client.read_exact(&mut [0]).expect("all six fit, wherever the kernel put them");
    }
    assert_eq!(workers.connections_open(), 6);
}
