//! Mailboxes: task to task, thread to task, task to thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use gustnado_tasks::{
    Receiver, Sender, charge, mailbox, sleep, spawn, spawn_detached, timeout, yield_now,
};

use crate::setup::{PATIENCE, Setup, in_task};

on_every_setup!(
    two_tasks_play_ping_pong,
    a_token_goes_round_a_ring_of_tasks,
    what_tasks_and_threads_send_arrives_once_and_in_their_order,
    a_thread_receives_what_a_task_sends,
    a_receive_that_times_out_loses_nothing,
    a_task_cancelled_while_it_sends_leaves_its_turn_to_the_next,
    a_mailbox_that_is_never_empty_lets_others_run,
    a_task_that_ends_closes_its_end,
);
on_every_setup!(pinned: a_new_task_does_not_wait_behind_those_that_never_wait);

fn two_tasks_play_ping_pong(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (to_other, mut balls) = mailbox(1);
        let (to_main, mut answers) = mailbox(1);
        spawn_detached(async move {
            while let Some(n) = balls.recv().await {
                to_main.send(n + 1).await.expect("the other one listens");
            }
        })
        .expect("a slot is free");
        for n in 0..3_000 {
            to_other.send(n).await.expect("the other one listens");
            let answer = timeout(PATIENCE, answers.recv()).await;
            assert_eq!(answer, Some(Some(n + 1)), "round {n}");
        }
        drop(to_other);
        assert_eq!(timeout(PATIENCE, answers.recv()).await, Some(None), "the other one has ended");
    });
}

fn a_token_goes_round_a_ring_of_tasks(setup: Setup) {
    const TASKS: u64 = 50;
    const ROUNDS: u64 = 20;
    in_task(&setup.plan(3), async {
        let (first, mut before) = mailbox::<u64>(1);
        for _ in 1..TASKS {
            let (sender, receiver) = mailbox(1);
            let mut from = std::mem::replace(&mut before, receiver);
            spawn_detached(async move {
                while let Some(token) = from.recv().await {
                    if sender.send(token + 1).await.is_err() {
                        return;
                    }
                }
            })
            .expect("a slot is free");
        }
        let mut token = 0;
        for _ in 0..ROUNDS {
            first.send(token + 1).await.expect("the ring is whole");
            let back = timeout(PATIENCE, before.recv()).await;
            token = back.flatten().expect("the token comes back");
        }
        assert_eq!(token, TASKS * ROUNDS);
    });
}

fn what_tasks_and_threads_send_arrives_once_and_in_their_order(setup: Setup) {
    const EACH: u32 = 400;
    in_task(&setup.plan(4), async {
        let (sender, mut receiver) = mailbox(3);
        for me in 0..6 {
            let sender = sender.clone();
            spawn_detached(async move {
                for n in 0..EACH {
                    sender.send((me, n)).await.expect("somebody receives");
                    if n % 7 == 0 {
                        yield_now().await;
                    }
                }
            })
            .expect("a slot is free");
        }
        for me in 6..8 {
            let sender = sender.clone();
            thread::spawn(move || {
                for n in 0..EACH {
                    sender.blocking_send((me, n), Some(PATIENCE)).expect("somebody receives");
                }
            });
        }
        drop(sender);
        let mut next = [0; 8];
        while let Some((me, n)) = timeout(PATIENCE, receiver.recv()).await.expect("more comes") {
            assert_eq!(n, next[me], "of sender {me}");
            next[me] += 1;
        }
        assert_eq!(next, [EACH; 8]);
    });
}

fn a_thread_receives_what_a_task_sends(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (sender, mut receiver) = mailbox(2);
        let (answer, mut answers) = mailbox(1);
        let far = thread::spawn(move || {
            let mut sum = 0;
            while let Ok(n) = receiver.blocking_recv(Some(PATIENCE)) {
                sum += n;
            }
            answer.try_send(sum).expect("there is room");
        });
        for n in 1..=1_000_u32 {
            sender.send(n).await.expect("the thread listens");
        }
        drop(sender);
        assert_eq!(timeout(PATIENCE, answers.recv()).await, Some(Some(500_500)));
        far.join().expect("the thread ends");
    });
}

fn a_receive_that_times_out_loses_nothing(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (sender, mut receiver) = mailbox(1);
        for round in 0..10 {
            assert_eq!(timeout(Duration::from_millis(3), receiver.recv()).await, None);
            let sender: Sender<u32> = sender.clone();
            spawn_detached(async move {
                sleep(Duration::from_millis(2)).await;
                sender.send(round).await.expect("somebody receives");
            })
            .expect("a slot is free");
            let mut got = None;
            // It may come while nobody waits, or while somebody does.
            while got.is_none() {
                got = timeout(Duration::from_millis(1), receiver.recv()).await;
            }
            assert_eq!(got, Some(Some(round)));
        }
        // The same for sending.
        sender.try_send(1).expect("there is room");
        assert!(timeout(Duration::from_millis(3), sender.send(2)).await.is_none());
        assert_eq!(receiver.try_recv(), Ok(1));
        assert!(receiver.try_recv().is_err(), "a send that timed out has sent");
    });
}

fn a_task_cancelled_while_it_sends_leaves_its_turn_to_the_next(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (sender, mut receiver) = mailbox(1);
        sender.try_send(0).expect("there is room");
        let mut handles = Vec::new();
        for n in 1..=3 {
            let sender = sender.clone();
            let handle = spawn(async move { sender.send(n).await.is_ok() });
            handles.push(handle.expect("a slot is free"));
            sleep(Duration::from_millis(10)).await;
        }
        handles.remove(1).cancel();
        drop(sender);
        sleep(Duration::from_millis(10)).await;
        let mut taken = Vec::new();
        while let Some(n) = timeout(PATIENCE, receiver.recv()).await.expect("more comes") {
            taken.push(n);
        }
        assert_eq!(taken, [0, 1, 3]);
        for handle in handles {
            assert_eq!(handle.await, Ok(true));
        }
    });
}

fn a_mailbox_that_is_never_empty_lets_others_run(setup: Setup) {
    in_task(&setup.plan(1), async {
        let (sender, mut receiver) = mailbox(5_000);
        for n in 0..5_000 {
            sender.try_send(n).expect("all fit");
        }
        let ran = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&ran);
        spawn_detached(async move { other.store(true, Ordering::SeqCst) }).expect("a slot is free");
        for n in 0..5_000 {
            assert_eq!(receiver.recv().await, Some(n));
        }
        assert!(ran.load(Ordering::SeqCst), "the other task had no turn");
    });
}

/// (Workers that share their tasks have one line for all.)
fn a_new_task_does_not_wait_behind_those_that_never_wait(setup: Setup) {
    const GREEDY: u64 = 100;
    in_task(&setup.plan(1), async {
        let runs = Arc::new(AtomicU64::new(0));
        for _ in 0..GREEDY {
            let runs = Arc::clone(&runs);
            spawn_detached(async move {
                let (sender, mut receiver) = mailbox(1);
                loop {
                    runs.fetch_add(1, Ordering::SeqCst);
                    sender.try_send(()).expect("it was empty");
                    // More than a run has: it ends where it would receive.
                    charge(1_000);
                    receiver.recv().await;
                }
            })
            .expect("a slot is free");
        }
        while runs.load(Ordering::SeqCst) < 10 * GREEDY {
            sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..20 {
            let before = runs.load(Ordering::SeqCst);
            let later = Arc::clone(&runs);
            let new = spawn(async move { later.load(Ordering::SeqCst) }).expect("a slot is free");
            let after = new.await.expect("it ends well");
            assert!(after - before <= 2, "{} runs of others came first", after - before);
            sleep(Duration::from_millis(1)).await;
        }
    });
}

fn a_task_that_ends_closes_its_end(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (sender, receiver): (Sender<u8>, Receiver<u8>) = mailbox(1);
        sender.try_send(1).expect("there is room");
        let waits = {
            let sender = sender.clone();
            spawn(async move { sender.send(2).await }).expect("a slot is free")
        };
        sleep(Duration::from_millis(5)).await;
        let holder = spawn(async move {
            let _receiver = receiver;
            assert!(!sender.is_closed());
        });
        holder.expect("a slot is free").await.expect("it ends well");
        let refused = waits.await.expect("it ends well").expect_err("nobody receives any more");
        assert_eq!(refused.0, 2);
    });
}
