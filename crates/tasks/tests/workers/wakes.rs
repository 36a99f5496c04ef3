//! Wakers in other hands: foreign threads, other servers, after the end.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use gustnado_tasks::{IoChoice, SchedulerKind, sleep, spawn, timeout, yield_now};

use crate::setup::{Setup, connect, echo, echo_once, in_task, start};

on_every_setup!(
    a_foreign_thread_wakes_a_task_in_its_sleep,
    no_wake_up_of_a_fast_thread_is_lost,
    more_wake_ups_at_once_than_a_letter_box_holds_all_arrive,
    a_waker_that_outlives_its_server_is_harmless,
);

/// Something to wait for that any thread can fulfil.
#[derive(Default)]
struct Signal {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    /// The plain flag first, then the waker: what a wake-up must make visible is the flag.
    fn give(&self) {
        self.set.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|context| {
            *self.waker.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(context.waker().clone());
            if self.set.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

fn a_foreign_thread_wakes_a_task_in_its_sleep(setup: Setup) {
    in_task(&setup.plan(2), async {
        for round in 0..30 {
            let signal = Arc::new(Signal::default());
            let giver = Arc::clone(&signal);
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(round % 4));
                giver.give();
            });
            let waited = timeout(Duration::from_secs(5), signal.wait()).await;
            assert!(waited.is_some(), "round {round}: the wake-up was lost");
        }
    });
}

fn no_wake_up_of_a_fast_thread_is_lost(setup: Setup) {
    in_task(&setup.plan(4), async {
        let (order, orders) = mpsc::channel::<Arc<Signal>>();
        thread::spawn(move || orders.into_iter().for_each(|signal| signal.give()));
        for round in 0..3_000 {
            let signal = Arc::new(Signal::default());
            order.send(Arc::clone(&signal)).expect("the thread lives");
            if round % 3 == 0 {
                yield_now().await;
            }
            let waited = timeout(Duration::from_secs(5), signal.wait()).await;
            assert!(waited.is_some(), "round {round}: the wake-up was lost");
        }
    });
}

fn more_wake_ups_at_once_than_a_letter_box_holds_all_arrive(setup: Setup) {
    let mut plan = setup.plan(2);
    plan.connections_max = 4_000;
    in_task(&plan, async {
        let signals: Arc<Vec<Signal>> =
            Arc::new(std::iter::repeat_with(Signal::default).take(3_000).collect());
        let woken = Arc::new(AtomicU64::new(0));
        for at in 0..signals.len() {
            let (signals, woken) = (Arc::clone(&signals), Arc::clone(&woken));
            let handle = spawn(async move {
                signals[at].wait().await;
                woken.fetch_add(1, Ordering::Relaxed);
            });
            drop(handle.expect("a slot is free"));
        }
        sleep(Duration::from_millis(20)).await;
        let all = Arc::clone(&signals);
        thread::spawn(move || all.iter().for_each(Signal::give));
        let count = async {
            while woken.load(Ordering::Relaxed) < 3_000 {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let counted = timeout(Duration::from_secs(5), count).await;
        assert!(counted.is_some(), "only {} woke", woken.load(Ordering::Relaxed));
    });
}

fn a_waker_that_outlives_its_server_is_harmless(setup: Setup) {
    let (kept, wakers) = mpsc::channel::<Waker>();
    let workers = start(&setup.plan(2), move |connection| {
        let kept = kept.clone();
        async move {
            poll_fn(|context| {
                // The test may have all it wants already.
                let _ = kept.send(context.waker().clone());
                Poll::Ready(())
            })
            .await;
            echo(connection).await;
        }
    });
    let mut client = connect(&workers);
    echo_once(&mut client);
    let waker = wakers.recv().expect("the connection has sent one");
    workers.stop(Duration::from_secs(5));
    drop(workers);
    waker.wake_by_ref();
    // Another server may have the same numbers now: at worst a task of it is woken once more.
    let workers = start(&setup.plan(2), echo);
    let mut client = connect(&workers);
    for _ in 0..100 {
        waker.wake_by_ref();
        echo_once(&mut client);
    }
    drop(client);
    thread::spawn(move || waker.wake()).join().expect("a stale waker does not panic");
}

#[test]
fn a_task_wakes_a_task_of_another_server() {
    for scheduler in SchedulerKind::ALL {
        let plan = Setup { io: IoChoice::Auto, scheduler }.plan(2);
        let (order, orders) = mpsc::channel::<Arc<Signal>>();
        let orders = Mutex::new(Some(orders));
        let other = start(&plan, move |_link| {
            let orders = orders.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move {
                for signal in orders.into_iter().flatten() {
                    signal.give();
                }
            }
        });
        let client = connect(&other);
        in_task(&plan, async move {
            for round in 0..200 {
                let signal = Arc::new(Signal::default());
                order.send(Arc::clone(&signal)).expect("the other server's task lives");
                let waited = timeout(Duration::from_secs(5), signal.wait()).await;
                assert!(waited.is_some(), "{scheduler:?}, round {round}: the wake-up was lost");
            }
        });
        drop(client);
    }
}
