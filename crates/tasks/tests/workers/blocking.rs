//! The blocking pool.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use gustnado_tasks::{BlockingPool, PoolFull};

use crate::setup::{PATIENCE, Setup, in_task, wait_until};

on_every_setup!(a_task_gets_its_call_s_result_and_its_worker_goes_on);

/// Unparks the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on a thread that is no worker.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Runs `call` in the pool from a thread of its own. The result comes through the channel.
fn run_beside<T: Send + 'static>(
    pool: &BlockingPool,
    call: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<Result<Option<T>, PoolFull>> {
    let (result, results) = mpsc::channel();
    let pool = pool.clone();
    thread::spawn(move || {
        // Nobody may be interested any more.
        let _ = result.send(wait_for(pool.run(call)));
    });
    results
}

fn a_task_gets_its_call_s_result_and_its_worker_goes_on(setup: Setup) {
    let pool = BlockingPool::new(2, 16);
    let order = in_task(&setup.plan(1), async move {
        let (release, held) = mpsc::channel();
        let call = {
            let pool = pool.clone();
            gustnado_tasks::spawn(async move {
                pool.run(move || held.recv_timeout(PATIENCE).map_err(drop)).await
            })
        };
        // The only worker is free while the call waits.
        gustnado_tasks::sleep(Duration::from_millis(20)).await;
        release.send(42).expect("the call still waits");
        call.expect("a slot is free").await
    });
    assert_eq!(order, Ok(Ok(Some(Ok(42)))));
}

#[test]
fn calls_run_in_parallel_also_after_a_quiet_time() {
    let pool = BlockingPool::new(4, 64);
    for round in 0..20 {
        assert_eq!(wait_for(pool.run(|| 1)), Ok(Some(1)), "one thread is warm now, and idle");
        thread::sleep(Duration::from_millis(5));
        // Each waits for the three others: they only end if all four run at once.
        let together = Arc::new(Barrier::new(4));
        let calls = [(); 4].map(|()| {
            let together = Arc::clone(&together);
            run_beside(&pool, move || _ = together.wait())
        });
        for call in calls {
            let outcome = call.recv_timeout(PATIENCE);
            assert_eq!(outcome, Ok(Ok(Some(()))), "round {round}: held up behind another");
        }
    }
}

#[test]
fn a_full_queue_refuses_at_once_and_takes_more_later() {
    let pool = BlockingPool::new(1, 2);
    let (started, start) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let running = run_beside(&pool, move || {
        started.send(()).expect("the test waits");
        // The sender's end is the sign.
        let _ = held.recv();
    });
    start.recv_timeout(PATIENCE).expect("the first call runs");
    let mut waiting = Vec::new();
    let mut refused = 0;
    for n in 0..5 {
        let call = run_beside(&pool, move || n);
        match call.recv_timeout(Duration::from_millis(200)) {
            Ok(outcome) => {
                assert_eq!(outcome, Err(PoolFull));
                refused += 1;
            }
            Err(_) => waiting.push((n, call)),
        }
    }
    assert_eq!((waiting.len(), refused), (2, 3));
    drop(release);
    assert_eq!(running.recv_timeout(PATIENCE), Ok(Ok(Some(()))));
    for (n, call) in waiting {
        assert_eq!(call.recv_timeout(PATIENCE), Ok(Ok(Some(n))));
    }
    assert_eq!(wait_for(pool.run(|| 9)), Ok(Some(9)));
}

#[test]
fn a_panic_is_contained_and_the_thread_goes_on() {
    let pool = BlockingPool::new(1, 4);
    let thread = || thread::current().id();
    let before = wait_for(pool.run(thread));
    let panicked: Result<Option<()>, _> = wait_for(pool.run(|| panic!("meant to be contained")));
    assert_eq!(panicked, Ok(None));
    assert_eq!(wait_for(pool.run(thread)), before, "the same thread");
}

#[test]
fn threads_end_with_the_last_handle_and_what_was_queued_still_runs() {
    let pool = BlockingPool::new(2, 16);
    let ran = Arc::new(AtomicU64::new(0));
    let id = || rustix::thread::gettid().as_raw_nonzero().get();
    let thread = wait_for(pool.run(id)).expect("there is room").expect("it does not panic");
    for _ in 0..10 {
        let ran = Arc::clone(&ran);
        // Polled once, which submits it, then dropped.
        let mut call = Box::pin(pool.run(move || _ = ran.fetch_add(1, Ordering::SeqCst)));
        let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    drop(pool);
    wait_until("all ten run", || ran.load(Ordering::SeqCst) == 10);
    let path = format!("/proc/self/task/{thread}");
    wait_until("the thread ends", || !Path::new(&path).exists());
}

#[test]
fn no_call_is_lost_in_a_crowd_with_hardly_any_room() {
    const EACH: u64 = 3_000;
    let pool = BlockingPool::new(3, 2);
    let ran = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    loop {
                        let ran = Arc::clone(&ran);
                        let call = pool.run(move || _ = ran.fetch_add(1, Ordering::Relaxed));
                        if wait_for(call) == Ok(Some(())) {
                            break;
                        }
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(ran.load(Ordering::Relaxed), 4 * EACH);
}
