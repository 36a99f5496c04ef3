//! Starting tasks from other threads; handles that cancel.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use gustnado_tasks::{
    JoinError, SpawnError, Spawner, block_on, mailbox, sleep, spawn, spawn_detached, spawn_named,
    timeout, worker, yield_now,
};

use crate::setup::{Alive, PATIENCE, Setup, connect, echo, echo_once, in_task, start, wait_until};

on_every_setup!(
    threads_start_tasks_that_run_on_workers,
    a_task_starts_tasks_through_the_spawner,
    a_panic_in_a_task_from_outside_is_contained_and_counted,
    workers_that_have_ended_take_no_tasks_and_drop_theirs,
    a_handle_says_when_its_task_has_ended_and_how,
    a_handle_hears_of_a_task_whose_workers_have_ended,
    an_attached_task_goes_with_its_handle,
    a_large_future_and_a_small_one_are_both_run,
);
on_every_setup!(pinned:
    tasks_from_outside_go_to_the_workers_in_turn,
    a_worker_that_takes_no_more_is_said_to_be_full,
);
on_every_setup!(shared: tasks_from_outside_are_refused_when_all_slots_are_taken);

fn threads_start_tasks_that_run_on_workers(setup: Setup) {
    let workers = start(&setup.plan(3), echo);
    let (done, mut all_done) = mailbox(16);
    for thread in 0..3 {
        let (spawner, done) = (workers.spawner(), done.clone());
        thread::spawn(move || {
            for n in 0..100 {
                let done = done.clone();
                let started = spawner.spawn(async move {
                    sleep(Duration::from_millis(1)).await;
                    done.send((thread, n, worker())).await.expect("somebody counts");
                });
                started.expect("there is room");
            }
        });
    }
    drop(done);
    let mut seen = BTreeSet::new();
    while let Ok((thread, n, worker)) = all_done.blocking_recv(Some(PATIENCE)) {
        assert!(worker.is_some(), "it did not run on a worker");
        assert!(seen.insert((thread, n)));
    }
    assert_eq!(seen.len(), 300);
    echo_once(&mut connect(&workers));
}

fn a_task_starts_tasks_through_the_spawner(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (done, mut all_done) = mailbox(4);
        let spawner = Spawner::current();
        for n in 0..20 {
            let done = done.clone();
            let started = spawner.spawn(async move { done.send(n).await.expect("it is awaited") });
            started.expect("there is room");
        }
        let mut sum = 0;
        for _ in 0..20 {
            sum += timeout(PATIENCE, all_done.recv()).await.flatten().expect("all are run");
        }
        assert_eq!(sum, (0..20).sum::<i32>());
    });
}

fn a_panic_in_a_task_from_outside_is_contained_and_counted(setup: Setup) {
    let workers = start(&setup.plan(1), echo);
    let started = workers.spawner().spawn(async { panic!("meant to be contained") });
    started.expect("there is room");
    wait_until("it is counted", || workers.counts().panics.load(Ordering::SeqCst) == 1);
    echo_once(&mut connect(&workers));
}

fn workers_that_have_ended_take_no_tasks_and_drop_theirs(setup: Setup) {
    let workers = start(&setup.plan(2), echo);
    let alive = Arc::new(AtomicUsize::new(0));
    let spawner = workers.spawner();
    for _ in 0..50 {
        let own = Alive::new(&alive);
        let started = spawner.spawn(async move {
            let _own = own;
            pending::<()>().await;
        });
        started.expect("there is room");
    }
    assert_eq!(alive.load(Ordering::SeqCst), 50);
    workers.stop(PATIENCE);
    assert_eq!(spawner.spawn(async {}), Err(SpawnError::Stopped));
    drop(workers);
    assert_eq!(spawner.spawn(async {}), Err(SpawnError::Stopped));
    wait_until("all were dropped", || alive.load(Ordering::SeqCst) == 0);
}

fn a_handle_says_when_its_task_has_ended_and_how(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (key, mut lock) = mailbox::<()>(1);
        let handle = spawn_named("locked", async move {
            lock.recv().await;
            3
        })
        .expect("a slot is free");
        sleep(Duration::from_millis(2)).await;
        assert!(!handle.is_finished());
        key.try_send(()).expect("it waits for that");
        while !handle.is_finished() {
            yield_now().await;
        }
        // Too late to be cancelled.
        handle.cancel();
        assert_eq!(handle.await, Ok(3));
        let handle = spawn(pending::<()>()).expect("a slot is free");
        handle.cancel();
        assert_eq!(timeout(PATIENCE, handle).await, Some(Err(JoinError::Cancelled)));
    });
}

fn a_handle_hears_of_a_task_whose_workers_have_ended(setup: Setup) {
    let workers = start(&setup.plan(2), echo);
    let (handles, mut all_handles) = mailbox(2);
    let started = workers.spawner().spawn(async move {
        let handle = spawn(pending::<()>()).expect("a slot is free");
        yield_now().await;
        let unborn = spawn(pending::<()>()).expect("a slot is free");
        handles.try_send([handle, unborn]).expect("there is room");
    });
    started.expect("there is room");
    let handles = all_handles.blocking_recv(Some(PATIENCE)).expect("they are sent");
    let joined = thread::spawn(move || {
        let [first, second] = handles;
        let both = async { (first.await, second.await) };
        block_on(async { timeout(PATIENCE, both).await }).expect("a reactor can be had")
    });
    thread::sleep(Duration::from_millis(20));
    workers.stop(PATIENCE);
    let joined = joined.join().expect("the thread ends");
    assert_eq!(joined, Some((Err(JoinError::Cancelled), Err(JoinError::Cancelled))));
}

fn an_attached_task_goes_with_its_handle(setup: Setup) {
    in_task(&setup.plan(2), async {
        let alive = Arc::new(AtomicUsize::new(0));
        for attached in [true, false] {
            let own = Alive::new(&alive);
            let handle = spawn(async move {
                let _own = own;
                pending::<()>().await;
            });
            let handle = handle.expect("a slot is free");
            sleep(Duration::from_millis(2)).await;
            if attached { drop(handle.attach()) } else { drop(handle) }
        }
        let one_left = async {
            while alive.load(Ordering::SeqCst) != 1 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        assert!(timeout(PATIENCE, one_left).await.is_some());
        let handle = spawn(async { 8 }).expect("a slot is free").attach();
        assert_eq!(handle.await, Ok(8));
    });
}

fn a_large_future_and_a_small_one_are_both_run(setup: Setup) {
    in_task(&setup.plan(2), async {
        let large = [7_u8; 10_000];
        let large = spawn(async move {
            yield_now().await;
            large.iter().map(|&n| u64::from(n)).sum::<u64>()
        });
        let small = spawn(async {
            yield_now().await;
            1_u64
        });
        let (large, small) = (large.expect("a slot is free"), small.expect("a slot is free"));
        assert_eq!((large.await, small.await), (Ok(70_000), Ok(1)));
    });
}

fn tasks_from_outside_go_to_the_workers_in_turn(setup: Setup) {
    let workers = start(&setup.plan(3), echo);
    let (seen, mut all_seen) = mailbox(30);
    for _ in 0..30 {
        let seen = seen.clone();
        let started = workers.spawner().spawn(async move {
            seen.try_send(worker()).expect("all fit");
        });
        started.expect("there is room");
    }
    let mut counts = [0; 3];
    for _ in 0..30 {
        let worker = all_seen.blocking_recv(Some(PATIENCE)).expect("all are run");
        counts[worker.expect("it runs on a worker")] += 1;
    }
    assert_eq!(counts, [10; 3]);
}

fn a_worker_that_takes_no_more_is_said_to_be_full(setup: Setup) {
    let workers = start(&setup.plan(1), echo);
    let spawner = workers.spawner();
    let (open, close_flag) = mpsc::channel::<()>();
    let (held, is_held) = mpsc::channel();
    let close_flag = Mutex::new(close_flag);
    let started = spawner.spawn(async move {
        held.send(()).expect("the test waits");
        // Holds the worker, on purpose.
        let _ = close_flag.lock().map(|close_flag| close_flag.recv());
    });
    started.expect("there is room");
    is_held.recv_timeout(PATIENCE).expect("the worker runs it");
    let ran = Arc::new(AtomicUsize::new(0));
    let mut taken = 0;
    let refused = loop {
        let ran = Arc::clone(&ran);
        match spawner.spawn(async move { _ = ran.fetch_add(1, Ordering::SeqCst) }) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 100_000, "no limit in sight");
    };
    assert_eq!(refused, SpawnError::Full);
    drop(open);
    wait_until("all that were taken are run", || ran.load(Ordering::SeqCst) == taken);
    assert!(spawner.spawn(async {}).is_ok());
}

fn tasks_from_outside_are_refused_when_all_slots_are_taken(setup: Setup) {
    let mut plan = setup.plan(2);
    plan.connections_max = 4;
    plan.slots = 2;
    let workers = start(&plan, echo);
    let spawner = workers.spawner();
    let stop = Arc::new(AtomicBool::new(false));
    let mut taken = 0;
    let refused = loop {
        let stop = Arc::clone(&stop);
        let started = spawner.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1)).await;
            }
        });
        match started {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 10_000, "no limit in sight");
    };
    assert_eq!(refused, SpawnError::Full);
    stop.store(true, Ordering::SeqCst);
    wait_until("slots are free again", || spawner.spawn(async {}).is_ok());
}

#[test]
#[should_panic(expected = "belong into a worker's tasks")]
fn spawning_outside_of_a_task_panics() {
    let _ = spawn_detached(async {});
}
