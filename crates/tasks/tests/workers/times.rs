//! Sleeping, deadlines and the time that tasks see.

use std::future::pending;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{
    Connection, ConnectionError, IoChoice, SchedulerKind, now, sleep, spawn, timeout, yield_now,
};

use crate::setup::{Setup, connect, in_task, is_ended, run, start};

on_every_setup!(
    a_sleep_lasts_as_long_as_asked_and_hardly_longer,
    a_timeout_drops_what_is_late_and_passes_on_what_is_not,
    a_thousand_sleepers_of_four_workers_all_wake,
    a_deadline_ends_a_receive,
    the_time_is_right_on_a_worker_that_has_slept,
);

/// How late a timer may be on a busy machine.
const LATE_MAX: Duration = Duration::from_secs(1);

#[test]
fn a_hundred_thousand_sleepers_of_one_task_all_wake_under_epoll() {
    run(
        "times::a_hundred_thousand_sleepers_of_one_task_all_wake_under_epoll",
        Setup { io: IoChoice::Epoll, scheduler: SchedulerKind::Queue },
        a_hundred_thousand_sleepers_all_wake,
    );
}

#[test]
fn a_hundred_thousand_sleepers_of_one_task_all_wake_under_io_uring() {
    run(
        "times::a_hundred_thousand_sleepers_of_one_task_all_wake_under_io_uring",
        Setup { io: IoChoice::Uring, scheduler: SchedulerKind::Queue },
        a_hundred_thousand_sleepers_all_wake,
    );
}

fn a_hundred_thousand_sleepers_all_wake(setup: Setup) {
    let woken = in_task(&setup.plan(1), async {
        let woken = Arc::new(AtomicU64::new(0));
        for n in 0..100_000_u64 {
            let woken = Arc::clone(&woken);
            let handle = spawn(async move {
                sleep(Duration::from_millis(300 + n % 200)).await;
                woken.fetch_add(1, Ordering::Relaxed);
            });
            drop(handle.expect("the queue grows"));
            if n.is_multiple_of(1_000) {
                yield_now().await;
            }
        }
        let all = async {
            while woken.load(Ordering::Relaxed) < 100_000 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(15), all).await;
        woken.load(Ordering::Relaxed)
    });
    assert_eq!(woken, 100_000);
}

fn a_sleep_lasts_as_long_as_asked_and_hardly_longer(setup: Setup) {
    in_task(&setup.plan(2), async {
        for micros in [0, 1, 999, 1_000, 5_500, 20_000, 70_000, 130_000] {
            let asked = Duration::from_micros(micros);
            let start = Instant::now();
            sleep(asked).await;
            let took = start.elapsed();
            assert!(took + Duration::from_millis(1) > asked, "{took:?} instead of {asked:?}");
            assert!(took < asked + LATE_MAX, "{took:?} instead of {asked:?}");
        }
    });
}

fn a_timeout_drops_what_is_late_and_passes_on_what_is_not(setup: Setup) {
    in_task(&setup.plan(2), async {
        let start = Instant::now();
        assert_eq!(timeout(Duration::from_millis(30), pending::<()>()).await, None);
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(29) && took < LATE_MAX, "{took:?}");
        let early = async {
            sleep(Duration::from_millis(2)).await;
            7
        };
        assert_eq!(timeout(Duration::from_mins(1), early).await, Some(7));
        assert_eq!(timeout(Duration::ZERO, async { 8 }).await, Some(8));
        // What was armed for the first two does no harm later.
        sleep(Duration::from_millis(40)).await;
    });
}

fn a_thousand_sleepers_of_four_workers_all_wake(setup: Setup) {
    let mut plan = setup.plan(4);
    plan.connections_max = 2_000;
    in_task(&plan, async {
        for round in 0..5 {
            let mut handles = Vec::new();
            for n in 0..1_000_u64 {
                let handle = spawn(sleep(Duration::from_millis(5 + n % 25)));
                handles.push(handle.expect("a slot is free"));
            }
            for (at, handle) in handles.into_iter().enumerate() {
                let outcome = timeout(Duration::from_secs(3), handle).await;
                assert_eq!(outcome, Some(Ok(())), "sleeper {at} of round {round} never woke");
            }
        }
    });
}

fn a_deadline_ends_a_receive(setup: Setup) {
    let workers = start(&setup.plan(2), |mut connection: Connection| async move {
        connection.set_deadline(now().mono_ms + 50);
        let late = matches!(connection.recv(false).await, Err(ConnectionError::TimedOut));
        // A later deadline lets the same link receive again.
        connection.set_deadline(now().mono_ms + 60_000);
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(if late { b"late" } else { b"????" });
        let _ = connection.send(out).await;
        let _ = connection.recv(false).await.map(drop);
    });
    let mut client = connect(&workers);
    let start = Instant::now();
    let mut answer = [0; 4];
    client.read_exact(&mut answer).expect("an answer comes");
    let took = start.elapsed();
    assert_eq!(&answer, b"late");
    assert!(took >= Duration::from_millis(40) && took < LATE_MAX, "{took:?}");
    client.write_all(b"x").expect("the server is there");
    assert!(is_ended(&mut client));
}

/// Who polls keeps the time; who is woken to run a task must not live in the past.
fn the_time_is_right_on_a_worker_that_has_slept(setup: Setup) {
    let workers = start(&setup.plan(4), |mut connection: Connection| async move {
        while connection.recv(true).await.is_ok_and(|piece| !piece.bytes().is_empty()) {
            let mut out = Connection::outgoing();
            out.bytes.extend_from_slice(&now().mono_ms.to_ne_bytes());
            // Holds this worker, so that the others have to run what comes next.
            thread::sleep(Duration::from_millis(5));
            if connection.send(out).await.is_err() {
                return;
            }
        }
    });
    let mut clients: Vec<_> = (0..4).map(|_| connect(&workers)).collect();
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(300));
        let asked_ms = workers.uptime_ms();
        for client in &mut clients {
            client.write_all(b"?").expect("the server is there");
        }
        for client in &mut clients {
            let mut answer = [0; 8];
            client.read_exact(&mut answer).expect("an answer comes");
            let seen_ms = u64::from_ne_bytes(answer);
            assert!(seen_ms >= asked_ms, "{} ms in the past", asked_ms - seen_ms);
        }
    }
}
