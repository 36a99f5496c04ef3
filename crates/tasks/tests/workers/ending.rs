//! Phases and the end.

use std::future::pending;
use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{Acceptor, Endpoint, Phase, Workers, sleep, spawn};

use crate::setup::{
    Alive, PATIENCE, Setup, address, connect, echo, echo_once, is_ended, start, wait_until,
};

on_every_setup!(
    stop_joins_in_time_whatever_the_tasks_wait_for,
    stop_does_not_wait_for_a_handler_that_never_returns,
    draining_closes_idle_connections_and_lets_busy_ones_finish,
    cutting_ends_the_rest,
    the_port_is_free_after_the_end,
    a_port_in_use_is_an_error_of_listening,
);

fn stop_joins_in_time_whatever_the_tasks_wait_for(setup: Setup) {
    for acceptor in Acceptor::ALL {
        let alive = Arc::new(AtomicUsize::new(0));
        let inner = Arc::clone(&alive);
        let mut plan = setup.plan(3);
        plan.acceptor = acceptor;
        let workers = start(&plan, move |connection| {
            let (own, spawned) = (Alive::new(&inner), Alive::new(&inner));
            async move {
                let handle = spawn(async move {
                    let _spawned = spawned;
                    sleep(Duration::from_hours(1)).await;
                });
                drop(handle.expect("a slot is free"));
                echo(connection).await;
                let _own = own;
                pending::<()>().await;
            }
        });
        let mut clients: Vec<_> = (0..30).map(|_| connect(&workers)).collect();
        clients.iter_mut().for_each(echo_once);
        // Some wait for bytes, some have ended and wait for nothing at all.
        clients.truncate(20);
        assert_eq!(alive.load(Ordering::SeqCst), 60);
        let began = Instant::now();
        workers.stop(Duration::from_secs(10));
        let took = began.elapsed();
        assert!(took < Duration::from_secs(3), "{took:?} to stop");
        assert_eq!(alive.load(Ordering::SeqCst), 0, "tasks outlive their workers");
        assert!(clients.iter_mut().all(is_ended));
    }
}

fn stop_does_not_wait_for_a_handler_that_never_returns(setup: Setup) {
    let workers = start(&setup.plan(2), |connection| async move {
        // Longer than the test looks.
        thread::sleep(Duration::from_secs(4));
        drop(connection);
    });
    let _client = connect(&workers);
    wait_until("it is being served", || workers.connections_open() == 1);
    let began = Instant::now();
    workers.stop(Duration::from_millis(200));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?} to stop", began.elapsed());
}

fn draining_closes_idle_connections_and_lets_busy_ones_finish(setup: Setup) {
    let (heard, is_heard) = mpsc::channel();
    let workers = start(&setup.plan(2), move |mut connection| {
        let heard = heard.clone();
        async move {
            if connection.recv(true).await.is_ok_and(|piece| piece.bytes() == b"b") {
                heard.send(()).expect("the test waits");
                sleep(Duration::from_millis(300)).await;
                let mut out = gustnado_tasks::Connection::outgoing();
                out.bytes.extend_from_slice(b"done");
                let _ = connection.send(out).await;
            }
        }
    });
    let mut idle: Vec<_> = (0..5).map(|_| connect(&workers)).collect();
    let mut busy = connect(&workers);
    std::io::Write::write_all(&mut busy, b"b").expect("the server is there");
    wait_until("all are served", || workers.connections_open() == 6);
    is_heard.recv_timeout(PATIENCE).expect("the request is read");
    workers.advance(Phase::Draining);
    assert!(idle.iter_mut().all(is_ended));
    let mut answer = String::new();
    busy.read_to_string(&mut answer).expect("the answer ends");
    assert_eq!(answer, "done");
    wait_until("all have gone", || workers.connections_open() == 0);
    assert_eq!(workers.phase(), Phase::Draining);
}

fn cutting_ends_the_rest(setup: Setup) {
    let workers = start(&setup.plan(2), |mut connection| async move {
        // Owed to the peer, so draining lets it wait on.
        let _ = connection.recv(false).await.map(drop);
    });
    let mut clients: Vec<_> = (0..8).map(|_| connect(&workers)).collect();
    wait_until("all are served", || workers.connections_open() == 8);
    workers.advance(Phase::Draining);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(workers.connections_open(), 8);
    workers.advance(Phase::Cutting);
    assert!(clients.iter_mut().all(is_ended));
    wait_until("all have gone", || workers.connections_open() == 0);
    workers.advance(Phase::Draining);
    assert_eq!(workers.phase(), Phase::Cutting, "never back");
}

fn the_port_is_free_after_the_end(setup: Setup) {
    let workers = start(&setup.plan(2), echo);
    let address = address(&workers);
    let mut client = connect(&workers);
    echo_once(&mut client);
    drop(workers);
    assert!(std::net::TcpStream::connect(address).is_err(), "somebody still listens");
    drop(client);
    let again = TcpListener::bind(address);
    assert!(again.is_ok(), "{again:?}");
}

fn a_port_in_use_is_an_error_of_listening(setup: Setup) {
    let first = start(&setup.plan(2), echo);
    let taken = Endpoint::Tcp(address(&first));
    let second = Workers::start(&setup.plan(2)).expect("workers start");
    let listening = second.listen(&taken, false, Box::new(|_| Box::pin(async {})));
    let error = listening.expect_err("a second server shares the port");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    echo_once(&mut connect(&first));
}
