//! Gustnado's tasks.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gustnado_tasks::{block_on, mailbox, sleep, spawn, spawn_detached, yield_now};

use crate::contender::{BATCH, Contender, RING_TASKS, STREAM_CAPACITY};

pub(crate) const CONTENDER: Contender =
    Contender { name: "gustnado", one_by_one, in_batches, ping_pong, ring, stream, sleepers };

/// Runs a measurement as a task, as all that it measures is.
fn in_task(measurement: impl Future<Output = Duration> + Send + 'static) -> Duration {
    let task = async { spawn(measurement).expect("the queue grows").await };
    block_on(task).expect("a reactor can be had").expect("the measurement ends well")
}

fn one_by_one(steps: u64) -> Duration {
    in_task(async move {
        let start = Instant::now();
        let mut sum = 0;
        for n in 0..steps {
            let handle = spawn(async move { n }).expect("the queue grows");
            sum += handle.await.expect("it ends well");
        }
        assert_eq!(sum, (0..steps).sum());
        start.elapsed()
    })
}

fn in_batches(steps: u64) -> Duration {
    in_task(async move {
        let start = Instant::now();
        let mut sum = 0;
        let mut handles = Vec::new();
        for batch in 0..steps.div_ceil(BATCH) {
            let first = batch * BATCH;
            for n in first..steps.min(first + BATCH) {
                handles.push(spawn(async move { n }).expect("the queue grows"));
            }
            for handle in handles.drain(..) {
                sum += handle.await.expect("it ends well");
            }
        }
        assert_eq!(sum, (0..steps).sum());
        start.elapsed()
    })
}

fn ping_pong(steps: u64) -> Duration {
    in_task(async move {
        let (to_other, mut balls) = mailbox(1);
        let (to_main, mut answers) = mailbox(1);
        let other = spawn(async move {
            while let Some(ball) = balls.recv().await {
                to_main.send(ball + 1).await.expect("the other one listens");
            }
        });
        let start = Instant::now();
        let mut ball = 0;
        while ball < steps {
            to_other.send(ball + 1).await.expect("the other one listens");
            ball = answers.recv().await.expect("the other one answers");
        }
        let took = start.elapsed();
        drop(to_other);
        other.expect("the queue grows").await.expect("it ends well");
        took
    })
}

fn ring(steps: u64) -> Duration {
    in_task(async move {
        let (first, mut before) = mailbox::<u64>(1);
        for _ in 1..RING_TASKS {
            let (sender, receiver) = mailbox(1);
            let mut from = std::mem::replace(&mut before, receiver);
            let task = async move {
                while let Some(token) = from.recv().await {
                    sender.send(token + 1).await.expect("the ring is whole");
                }
            };
            spawn_detached(task).expect("the queue grows");
        }
        yield_now().await;
        let start = Instant::now();
        let mut token = 0;
        while token < steps {
            first.send(token + 1).await.expect("the ring is whole");
            token = before.recv().await.expect("the ring is whole");
        }
        start.elapsed()
    })
}

fn stream(steps: u64) -> Duration {
    in_task(async move {
        let (sender, mut receiver) = mailbox(STREAM_CAPACITY);
        let start = Instant::now();
        let task = async move {
            for n in 0..steps {
                sender.send(n).await.expect("somebody receives");
            }
        };
        spawn_detached(task).expect("the queue grows");
        let mut sum = 0;
        while let Some(n) = receiver.recv().await {
            sum += n;
        }
        assert_eq!(sum, (0..steps).sum());
        start.elapsed()
    })
}

fn sleepers(count: usize, detached: bool, asleep: &mut dyn FnMut()) {
    let begun = Arc::new(AtomicUsize::new(0));
    let all = async {
        for n in 0..count {
            let begun = Arc::clone(&begun);
            let task = async move {
                begun.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_hours(1)).await;
            };
            if detached {
                spawn_detached(task).expect("the queue grows");
            } else {
                drop(spawn(task).expect("the queue grows"));
            }
            if n % 1_000 == 0 {
                yield_now().await;
            }
        }
        while begun.load(Ordering::Relaxed) < count {
            yield_now().await;
        }
        asleep();
    };
    block_on(all).expect("a reactor can be had");
}
