//! Waiting for the first of several; and futures that are polled with a waker of their own, as
//! whatever looks after many of them does.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use gustnado_tasks::{
    Either, Either3, Sleep, Spawner, mailbox, select_all, select2, select3, sleep, spawn,
    spawn_detached, timeout, yield_now,
};

use crate::setup::{PATIENCE, Setup, in_task};

on_every_setup!(
    the_first_of_several_wins_and_the_others_are_dropped,
    of_many_handles_each_is_waited_for_in_the_order_of_their_ends,
    a_sleep_wakes_whoever_polled_it_through_a_waker_of_its_own,
    sleeps_that_are_given_up_leave_nothing_behind,
    a_sleep_that_moves_to_another_task_wakes_that_one,
    a_sleep_that_moves_to_another_worker_harms_nobody,
);

fn the_first_of_several_wins_and_the_others_are_dropped(setup: Setup) {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    in_task(&setup.plan(2), async {
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = Flag(Arc::clone(&dropped));
        let loser = async move {
            let _flag = flag;
            pending::<u8>().await
        };
        let won = select2(loser, sleep(Duration::from_millis(5))).await;
        assert_eq!(won, Either::Second(()));
        assert!(dropped.load(Ordering::SeqCst));
        let (sender, mut receiver) = mailbox(1);
        spawn_detached(async move { sender.send(5).await.expect("somebody receives") })
            .expect("a slot is free");
        let won = select3(sleep(PATIENCE), pending::<u8>(), receiver.recv()).await;
        assert_eq!(won, Either3::Third(Some(5)));
    });
}

fn of_many_handles_each_is_waited_for_in_the_order_of_their_ends(setup: Setup) {
    in_task(&setup.plan(2), async {
        let mut keys = Vec::new();
        let mut handles = Vec::new();
        for n in 0..4 {
            let (key, mut lock) = mailbox::<()>(1);
            keys.push((n, key));
            let handle = spawn(async move {
                lock.recv().await;
                n
            });
            handles.push(handle.expect("a slot is free"));
        }
        for at in [2, 0, 1, 0] {
            let (n, key) = keys.remove(at);
            key.try_send(()).expect("it waits for that");
            let first = timeout(PATIENCE, select_all(&mut handles)).await;
            assert_eq!(first, Some((at, Ok(n))));
            drop(handles.remove(at));
        }
    });
}

/// Looks after one future as those do that have many: it polls it only when its waker was woken.
struct Kept<F> {
    future: F,
    woken: Arc<Own>,
}

#[derive(Default)]
struct Own {
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<F> Kept<F> {
    fn new(future: F) -> Self {
        let woken = Arc::new(Own::default());
        woken.woken.store(true, Ordering::SeqCst);
        Self { future, woken }
    }
}

impl<F: Future + Unpin> Future for Kept<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        *this.woken.task.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(context.waker().clone());
        if !this.woken.woken.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&this.woken));
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&waker))
    }
}

fn a_sleep_wakes_whoever_polled_it_through_a_waker_of_its_own(setup: Setup) {
    in_task(&setup.plan(2), async {
        for _ in 0..5 {
            let start = Instant::now();
            let mut slow = Kept::new(sleep(Duration::from_millis(30)));
            let mut fast = Kept::new(sleep(Duration::from_millis(10)));
            let limited = pin!(timeout(Duration::from_millis(5), pending::<()>()));
            let mut limited = Kept::new(limited);
            // (In the order of their ends: on a busy machine they may all be due at once.)
            let all = async {
                let first =
                    select3(Pin::new(&mut limited), Pin::new(&mut fast), Pin::new(&mut slow)).await;
                assert_eq!(first, Either3::First(None));
                let second = select2(Pin::new(&mut fast), Pin::new(&mut slow)).await;
                assert_eq!(second, Either::First(()));
                Pin::new(&mut slow).await;
            };
            assert!(timeout(PATIENCE, all).await.is_some(), "nobody was woken");
            assert!(start.elapsed() >= Duration::from_millis(29));
        }
    });
}

fn sleeps_that_are_given_up_leave_nothing_behind(setup: Setup) {
    in_task(&setup.plan(2), async {
        let own = Arc::new(Own::default());
        for _ in 0..1_000 {
            let waker = Waker::from(Arc::clone(&own));
            let mut own_sleep = sleep(Duration::from_hours(1));
            let polled = Pin::new(&mut own_sleep).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            let mut plain = sleep(Duration::from_hours(1));
            poll_fn(|context| {
                assert!(Pin::new(&mut plain).poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        assert_eq!(Arc::strong_count(&own), 1, "wakers were kept");
        // And the wheel still goes.
        sleep(Duration::from_millis(2)).await;
    });
}

/// A sleep of 20 ms that this task has polled already.
async fn begun() -> Sleep {
    let mut begun = sleep(Duration::from_millis(20));
    poll_fn(|context| {
        assert!(Pin::new(&mut begun).poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    begun
}

fn a_sleep_that_moves_to_another_task_wakes_that_one(setup: Setup) {
    in_task(&setup.plan(2), async {
        let moved = begun().await;
        let handle = spawn(async move {
            moved.await;
            7
        });
        let joined = timeout(PATIENCE, handle.expect("a slot is free")).await;
        assert_eq!(joined, Some(Ok(7)));
    });
}

fn a_sleep_that_moves_to_another_worker_harms_nobody(setup: Setup) {
    in_task(&setup.plan(3), async {
        let (done, mut all_done) = mailbox(64);
        for round in 0..10 {
            // First in their wheel, as those below are in theirs: the keys are the same.
            let moved = [begun().await, begun().await, begun().await];
            for (at, moved) in moved.into_iter().enumerate() {
                let done = done.clone();
                let started = Spawner::current().spawn(async move {
                    let own = [(); 3].map(|()| spawn(async { begun().await.await }));
                    yield_now().await;
                    if (at + round) % 3 == 0 {
                        moved.await;
                    } else {
                        drop(moved);
                    }
                    for own in own {
                        own.expect("a slot is free").await.expect("it ends well");
                    }
                    done.send(()).await.expect("somebody counts");
                });
                started.expect("there is room");
            }
            for _ in 0..3 {
                let told = timeout(PATIENCE, all_done.recv()).await;
                assert!(told.is_some(), "round {round}: somebody was not woken");
            }
        }
    });
}
