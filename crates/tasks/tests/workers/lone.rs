//! A future on the current thread: `block_on`, and with a reactor of one's choice.

use std::cell::Cell;
use std::future::pending;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{
    BlockOnOptions, Connection, Endpoint, Group, IoChoice, Outbound, PreciseTimer, SchedulerKind,
    SpawnError, Spawner, WorkersStartError, block_on, block_on_with, dump, mailbox, now, sleep,
    spawn, spawn_detached, timeout, worker, yield_now,
};

use crate::setup::{PATIENCE, Setup, address, echo, has_uring, in_task, start};

/// [`block_on`], where a reactor can be had.
fn run<T>(future: impl Future<Output = T>) -> T {
    block_on(future).expect("a reactor can be had")
}

#[test]
fn a_future_that_borrows_gives_its_output() {
    let count = Cell::new(0);
    let text = String::from("lone");
    let output = run(async {
        count.set(count.get() + 1);
        yield_now().await;
        count.set(count.get() + 1);
        text.as_str()
    });
    assert_eq!((output, count.get()), ("lone", 2));
}

#[test]
fn it_may_be_called_again_on_the_same_thread() {
    assert_eq!(worker(), None);
    for n in 0..100 {
        assert_eq!(run(async move { n }), n);
    }
    let start = Instant::now();
    run(sleep(Duration::from_millis(20)));
    thread::sleep(Duration::from_millis(30));
    let meanwhile_ms = run(async { now().mono_ms });
    run(sleep(Duration::from_millis(20)));
    assert!(start.elapsed() >= Duration::from_millis(69));
    thread::sleep(Duration::from_millis(50));
    let later_ms = run(async { now().mono_ms });
    assert!(later_ms >= meanwhile_ms + 69, "the clock has stood still");
    assert_eq!(run(async { worker() }), Some(0));
}

#[test]
fn tasks_run_beside_it_and_are_dropped_with_it() {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let sum = run(async {
        let flag = Flag(Arc::clone(&dropped));
        drop(spawn(async move {
            let _flag = flag;
            pending::<()>().await;
        }));
        let mut group = Group::new(1_000);
        for n in 0..1_000_u64 {
            group
                .spawn(async move {
                    sleep(Duration::from_millis(n % 5)).await;
                    n
                })
                .expect("a thousand fit");
        }
        let mut sum = 0;
        while let Some(n) = group.next().await {
            sum += n.expect("it ends well");
        }
        sum
    });
    assert_eq!(sum, (0..1_000).sum());
    assert!(dropped.load(Ordering::SeqCst));
}

#[test]
fn a_future_that_wakes_itself_does_not_keep_tasks_from_running() {
    run(async {
        let ran = Arc::new(AtomicU64::new(0));
        let other = Arc::clone(&ran);
        let handle = spawn(async move {
            for _ in 0..100 {
                other.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
        });
        let handle = handle.expect("the queue grows");
        let mut looks = 0;
        while !handle.is_finished() {
            yield_now().await;
            looks += 1;
            assert!(looks < 1_000, "{} turns of the other one", ran.load(Ordering::SeqCst));
        }
    });
}

/// Whatever is the last that a round of the worker has time for.
#[test]
fn it_is_polled_again_after_any_number_of_tasks() {
    for tasks in 1..600 {
        run(async {
            let (last, mut lasts) = mailbox(1);
            for n in 1..=tasks {
                let last = last.clone();
                let started = spawn_detached(async move {
                    if n == tasks {
                        last.try_send(()).expect("there is room");
                    }
                });
                started.expect("the queue grows");
            }
            let asked = Instant::now();
            // The time-out, too, would have it polled.
            timeout(PATIENCE, lasts.recv()).await.flatten().expect("the last task says so");
            assert!(asked.elapsed() < PATIENCE / 2, "after {tasks} tasks it was not polled");
        });
    }
}

#[test]
fn a_thread_that_runs_tasks_cannot_be_blocked() {
    let nested = run(async { block_on(async {}).map_err(|error| error.to_string()) });
    assert!(nested.expect_err("it is nested").contains("runs tasks already"));
    let setup = Setup { io: IoChoice::Epoll, scheduler: SchedulerKind::Queue };
    let nested = in_task(&setup.plan(1), async { block_on(async {}) });
    assert!(matches!(nested, Err(WorkersStartError::Nested)));
}

#[test]
fn a_panic_comes_to_the_caller_and_does_no_harm() {
    let result = catch_unwind(AssertUnwindSafe(|| {
        run(async {
            drop(spawn(pending::<()>()));
            yield_now().await;
            panic!("meant to come through");
        });
    }));
    assert!(result.is_err());
    assert_eq!(run(async { dump(PATIENCE).await.tasks.len() }), 1, "only its own task is left");
}

#[test]
fn other_threads_wake_it_and_give_it_tasks() {
    let (to_main, mut from_threads) = mailbox(4);
    let (to_thread, mut from_main) = mailbox::<Spawner>(1);
    thread::spawn(move || {
        let spawner = from_main.blocking_recv(Some(PATIENCE)).expect("it is sent");
        for n in 0..50 {
            let to_main = to_main.clone();
            let started = spawner.spawn(async move {
                sleep(Duration::from_millis(1)).await;
                to_main.send(n).await.expect("it is awaited");
            });
            started.expect("there is room");
        }
    });
    let sum = run(async {
        to_thread.try_send(Spawner::current()).expect("there is room");
        let mut sum = 0;
        while let Some(n) = timeout(PATIENCE, from_threads.recv()).await.expect("all are run") {
            sum += n;
        }
        sum
    });
    assert_eq!(sum, (0..50).sum::<i32>());
}

#[test]
fn its_spawner_says_when_the_thread_has_ended() {
    let thread = thread::spawn(|| run(async { Spawner::current() }));
    let spawner = thread.join().expect("the thread ends");
    assert_eq!(spawner.spawn(async {}), Err(SpawnError::Stopped));
}

#[test]
fn two_threads_talk_to_each_other() {
    let (to_other, mut balls) = mailbox(1);
    let (to_main, mut answers) = mailbox(1);
    let other = thread::spawn(move || {
        run(async {
            while let Some(n) = balls.recv().await {
                to_main.send(n + 1).await.expect("the other one listens");
            }
        });
    });
    run(async {
        for n in 0..2_000 {
            to_other.send(n).await.expect("the other one listens");
            assert_eq!(timeout(PATIENCE, answers.recv()).await, Some(Some(n + 1)));
        }
    });
    drop(to_other);
    other.join().expect("the other one ends");
}

#[test]
fn a_client_connects_from_it() {
    let setup = Setup { io: IoChoice::Auto, scheduler: SchedulerKind::Pool };
    let workers = start(&setup.plan(1), echo);
    let to = Endpoint::Tcp(address(&workers));
    let answer = run(async {
        let mut connection = Connection::connect(&to, &Outbound::default(), 5_000)
            .await
            .expect("the server listens");
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(b"from a lone thread");
        connection.send(out).await.expect("it is sent");
        let mut answer = Vec::new();
        while answer.len() < 18 {
            answer.extend_from_slice(connection.recv(false).await.expect("it comes back").bytes());
        }
        answer
    });
    assert_eq!(answer, b"from a lone thread");
}

#[test]
fn a_connection_that_is_refused_is_said_to_be() {
    // Of an address that no other test listens on: they would take a port that was just given up.
    let free = TcpListener::bind("127.0.0.77:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port is free");
    let refused = run(Connection::connect(&Endpoint::Tcp(free), &Outbound::default(), 5_000));
    assert!(refused.is_err());
}

/// A thread that has what it asks for, or none.
fn with_io<T: Send>(io: IoChoice, work: impl Future<Output = T> + Send) -> T {
    let lone = BlockOnOptions { io, direct_max: 64, buffers: 16 };
    thread::scope(|scope| {
        let run = scope.spawn(|| block_on_with(&lone, work).expect("a reactor can be had"));
        run.join().expect("it does not panic")
    })
}

fn backends() -> Vec<IoChoice> {
    let mut backends = vec![IoChoice::Epoll];
    if has_uring("lone") {
        backends.push(IoChoice::Uring);
    }
    backends
}

#[test]
fn a_ring_of_its_own_takes_connections_in() {
    let setup = Setup { io: IoChoice::Auto, scheduler: SchedulerKind::Pool };
    let workers = start(&setup.plan(1), echo);
    let to = Endpoint::Tcp(address(&workers));
    for io in backends() {
        let came = with_io(io, async {
            let mut came = 0;
            // More than the table holds, one after the other.
            for _ in 0..100 {
                let outbound = Outbound { recv_bytes: 4096, ..Outbound::default() };
                let connection = Connection::connect(&to, &outbound, 5_000).await;
                let mut connection = connection.expect("the server listens");
                connection.make_direct().expect("nothing is under way yet");
                let mut out = Connection::outgoing();
                out.bytes.extend_from_slice(b"hello");
                connection.send(out).await.expect("it is sent");
                came += connection.recv(false).await.expect("it comes back").bytes().len();
            }
            came
        });
        assert_eq!(came, 500, "{io:?}");
    }
}

#[test]
fn a_pulse_waits_for_less_than_a_millisecond_again_and_again() {
    for io in backends() {
        let waited = with_io(io, async {
            let mut pulse = PreciseTimer::new().expect("a descriptor is left");
            let began = Instant::now();
            for _ in 0..50 {
                pulse.wait(Duration::from_micros(200)).await.expect("the timer is open");
            }
            pulse.wait(Duration::ZERO).await.expect("the timer is open");
            began.elapsed()
        });
        assert!(waited >= Duration::from_millis(10), "{waited:?}");
        assert!(waited < Duration::from_secs(5), "{waited:?}");
    }
}
