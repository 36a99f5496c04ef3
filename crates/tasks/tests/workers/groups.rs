//! Groups: results in the order of finishing, limits, cancelling.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_core::Stream;
use gustnado_tasks::{Group, JoinError, SpawnError, mailbox, sleep, timeout, yield_now};

use crate::setup::{Alive, PATIENCE, Setup, in_task};

on_every_setup!(
    results_come_in_the_order_of_finishing,
    a_full_group_refuses_until_a_result_is_taken,
    dropping_a_group_drops_its_tasks_where_they_wait,
    a_group_dropped_while_its_tasks_begin_leaves_none_behind,
    a_cancelled_group_says_so_of_each_task,
    a_panic_is_one_of_the_results,
);
on_every_setup!(shared: what_was_refused_for_want_of_slots_is_not_in_the_group);

async fn until_none_lives(count: &AtomicUsize) {
    let none = async {
        while count.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    let left = timeout(PATIENCE, none).await;
    assert!(left.is_some(), "{} tasks were left behind", count.load(Ordering::SeqCst));
}

fn results_come_in_the_order_of_finishing(setup: Setup) {
    in_task(&setup.plan(2), async {
        let mut group = Group::new(10);
        let mut keys = Vec::new();
        for n in 0..5 {
            let (key, mut lock) = mailbox::<()>(1);
            keys.push(key);
            let started = group.spawn(async move {
                lock.recv().await;
                n
            });
            started.expect("ten fit");
        }
        assert_eq!(group.len(), 5);
        for n in [3, 0, 4, 1, 2] {
            assert!(timeout(Duration::from_millis(2), group.next()).await.is_none());
            keys[n].try_send(()).expect("it waits for that");
            assert_eq!(timeout(PATIENCE, group.next()).await, Some(Some(Ok(n))));
        }
        assert!(group.is_empty());
        assert_eq!(group.next().await, None);
        // As a stream it is the same.
        group.spawn(async { 9 }).expect("ten fit");
        let mut from_stream =
            async || poll_fn(|context| Pin::new(&mut group).poll_next(context)).await;
        assert_eq!((from_stream().await, from_stream().await), (Some(Ok(9)), None));
    });
}

fn a_full_group_refuses_until_a_result_is_taken(setup: Setup) {
    in_task(&setup.plan(2), async {
        let mut group = Group::new(3);
        let mut sum = 0;
        for n in 0..200_u32 {
            while let Err(error) = group.spawn(async move {
                yield_now().await;
                n
            }) {
                assert_eq!((error, group.len()), (SpawnError::Full, 3));
                let result = timeout(PATIENCE, group.next()).await.expect("one ends");
                sum += result.expect("there are three").expect("it ends well");
            }
        }
        while let Some(result) = group.next().await {
            sum += result.expect("it ends well");
        }
        assert_eq!(sum, (0..200).sum());
    });
}

fn dropping_a_group_drops_its_tasks_where_they_wait(setup: Setup) {
    in_task(&setup.plan(2), async {
        let alive = Arc::new(AtomicUsize::new(0));
        let mut group = Group::new(100);
        for _ in 0..100 {
            let own = Alive::new(&alive);
            let started = group.spawn(async move {
                let _own = own;
                pending::<()>().await;
            });
            started.expect("a hundred fit");
        }
        sleep(Duration::from_millis(5)).await;
        assert_eq!(alive.load(Ordering::SeqCst), 100);
        drop(group);
        until_none_lives(&alive).await;
    });
}

fn a_group_dropped_while_its_tasks_begin_leaves_none_behind(setup: Setup) {
    in_task(&setup.plan(4), async {
        let alive = Arc::new(AtomicUsize::new(0));
        for round in 0..500 {
            let mut group = Group::new(4);
            for _ in 0..4 {
                let own = Alive::new(&alive);
                let started = group.spawn(async move {
                    let _own = own;
                    pending::<()>().await;
                });
                started.expect("four fit");
            }
            if round % 3 == 0 {
                yield_now().await;
            }
        }
        until_none_lives(&alive).await;
    });
}

fn a_cancelled_group_says_so_of_each_task(setup: Setup) {
    in_task(&setup.plan(2), async {
        let mut group = Group::new(8);
        group.spawn(async { 1 }).expect("eight fit");
        assert_eq!(group.next().await, Some(Ok(1)));
        for _ in 0..5 {
            group.spawn(pending::<i32>()).expect("eight fit");
        }
        yield_now().await;
        group.cancel();
        for _ in 0..5 {
            let result = timeout(PATIENCE, group.next()).await;
            assert_eq!(result, Some(Some(Err(JoinError::Cancelled))));
        }
        group.spawn(async { 2 }).expect("eight fit");
        assert_eq!(group.next().await, Some(Err(JoinError::Cancelled)));
        assert_eq!(group.next().await, None);
    });
}

fn a_panic_is_one_of_the_results(setup: Setup) {
    in_task(&setup.plan(2), async {
        let mut group = Group::new(2);
        group.spawn(async { panic!("meant to be contained") }).expect("two fit");
        let result: Option<Result<(), JoinError>> = group.next().await;
        assert_eq!(result, Some(Err(JoinError::Panicked)));
    });
}

fn what_was_refused_for_want_of_slots_is_not_in_the_group(setup: Setup) {
    let mut plan = setup.plan(2);
    plan.connections_max = 4;
    plan.slots = 2;
    in_task(&plan, async {
        let mut group = Group::new(10_000);
        let mut started = 0;
        while group.spawn(pending::<()>()).is_ok() {
            started += 1;
            assert!(started < 10_000, "no limit in sight");
        }
        assert_eq!(group.len(), started);
        let nothing = timeout(Duration::from_millis(5), group.next()).await;
        assert_eq!(nothing, None, "none of them has ended");
        group.cancel();
        let mut ended = 0;
        while let Some(result) = timeout(PATIENCE, group.next()).await.expect("all end") {
            assert_eq!(result, Err(JoinError::Cancelled));
            ended += 1;
        }
        assert_eq!(ended, started);
    });
}
