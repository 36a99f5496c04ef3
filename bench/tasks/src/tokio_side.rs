//! tokio's tasks, on its current-thread runtime.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{spawn, yield_now};
use tokio::time::sleep;

use crate::contender::{BATCH, Contender, RING_TASKS, STREAM_CAPACITY};

pub(crate) const CONTENDER: Contender =
    Contender { name: "tokio", one_by_one, in_batches, ping_pong, ring, stream, sleepers };

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be had")
}

/// Runs a measurement as a task, as all that it measures is.
fn in_task(measurement: impl Future<Output = Duration> + Send + 'static) -> Duration {
    runtime().block_on(async { spawn(measurement).await.expect("the measurement ends well") })
}

fn one_by_one(steps: u64) -> Duration {
    in_task(async move {
        let start = Instant::now();
        let mut sum = 0;
        for n in 0..steps {
            let handle = spawn(async move { n });
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
                handles.push(spawn(async move { n }));
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
        let (to_other, mut balls) = mpsc::channel(1);
        let (to_main, mut answers) = mpsc::channel(1);
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
        other.await.expect("it ends well");
        took
    })
}

fn ring(steps: u64) -> Duration {
    in_task(async move {
        let (first, mut before) = mpsc::channel::<u64>(1);
        for _ in 1..RING_TASKS {
            let (sender, receiver) = mpsc::channel(1);
            let mut from = std::mem::replace(&mut before, receiver);
            let task = async move {
                while let Some(token) = from.recv().await {
                    sender.send(token + 1).await.expect("the ring is whole");
                }
            };
            drop(spawn(task));
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
        let (sender, mut receiver) = mpsc::channel(STREAM_CAPACITY);
        let start = Instant::now();
        let task = async move {
            for n in 0..steps {
                sender.send(n).await.expect("somebody receives");
            }
        };
        drop(spawn(task));
        let mut sum = 0;
        while let Some(n) = receiver.recv().await {
            sum += n;
        }
        assert_eq!(sum, (0..steps).sum());
        start.elapsed()
    })
}

// (There is no other way to spawn.)
fn sleepers(count: usize, _detached: bool, asleep: &mut dyn FnMut()) {
    let begun = Arc::new(AtomicUsize::new(0));
    let all = async {
        for n in 0..count {
            let begun = Arc::clone(&begun);
            let task = async move {
                begun.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_hours(1)).await;
            };
            drop(spawn(task));
            if n % 1_000 == 0 {
                yield_now().await;
            }
        }
        while begun.load(Ordering::Relaxed) < count {
            yield_now().await;
        }
        asleep();
    };
    runtime().block_on(all);
}
