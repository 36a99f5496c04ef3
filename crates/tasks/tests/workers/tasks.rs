//! Spawning, joining, cancelling, yielding; panics.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use gustnado_tasks::{
    Connection, JoinError, charge, continue_as, sleep, spawn, spawn_detached, timeout, yield_now,
};

use crate::setup::{Setup, connect, echo, echo_once, in_task, is_ended, start, wait_until};

on_every_setup!(
    spawned_tasks_are_joined_with_their_results,
    a_cancelled_task_is_dropped_where_it_waits,
    a_task_cancelled_at_once_is_dropped_too,
    a_task_whose_handle_is_dropped_goes_on,
    a_panic_comes_to_the_joiner_and_is_counted,
    a_panicking_destructor_does_not_leave_the_joiner_waiting,
    a_panicking_connection_ends_alone,
    tasks_that_yield_take_turns,
    who_uses_up_each_turn_has_no_more_of_them,
    a_connection_goes_on_as_another_future,
    a_future_that_goes_on_does_so_once_and_not_after_a_panic,
);
on_every_setup!(shared: spawning_past_the_last_slot_is_refused);

/// Tells when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn dropped_flag() -> (Dropped, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(false));
    (Dropped(Arc::clone(&flag)), flag)
}

async fn until_set(flag: &AtomicBool) -> bool {
    let set = async {
        while !flag.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(5), set).await.is_some()
}

fn spawned_tasks_are_joined_with_their_results(setup: Setup) {
    let sum = in_task(&setup.plan(2), async {
        let mut handles = Vec::new();
        for n in 0..50_u64 {
            let handle = spawn(async move {
                yield_now().await;
                n
            });
            handles.push(handle.expect("a slot is free"));
        }
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.expect("the task ends well");
        }
        sum
    });
    assert_eq!(sum, (0..50).sum::<u64>());
}

fn a_cancelled_task_is_dropped_where_it_waits(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (dropped, flag) = dropped_flag();
        let handle = spawn(async move {
            let _dropped = dropped;
            pending::<()>().await;
        });
        sleep(Duration::from_millis(10)).await;
        assert!(!flag.load(Ordering::SeqCst));
        handle.expect("a slot is free").cancel();
        assert!(until_set(&flag).await, "the cancelled task was never dropped");
    });
}

fn a_task_cancelled_at_once_is_dropped_too(setup: Setup) {
    in_task(&setup.plan(4), async {
        let mut flags = Vec::new();
        for _ in 0..2_000 {
            let (dropped, flag) = dropped_flag();
            let handle = spawn(async move {
                let _dropped = dropped;
                pending::<()>().await;
            });
            handle.expect("a slot is free").cancel();
            flags.push(flag);
            if flags.len().is_multiple_of(20) {
                yield_now().await;
            }
        }
        for flag in flags {
            assert!(until_set(&flag).await, "a cancelled task was never dropped");
        }
    });
}

fn a_task_whose_handle_is_dropped_goes_on(setup: Setup) {
    in_task(&setup.plan(2), async {
        let flag = Arc::new(AtomicBool::new(false));
        let inner = Arc::clone(&flag);
        let handle = spawn(async move {
            sleep(Duration::from_millis(5)).await;
            inner.store(true, Ordering::SeqCst);
        });
        drop(handle);
        assert!(until_set(&flag).await, "the task did not go on");
    });
}

fn a_panic_comes_to_the_joiner_and_is_counted(setup: Setup) {
    let workers = start(&setup.plan(2), |connection| async move {
        let handle = spawn(async {
            yield_now().await;
            panic!("meant to be contained");
        });
        let outcome: Result<(), JoinError> = handle.expect("a slot is free").await;
        assert_eq!(outcome, Err(JoinError::Panicked));
        echo(connection).await;
    });
    let mut client = connect(&workers);
    echo_once(&mut client);
    assert_eq!(workers.counts().panics.load(Ordering::SeqCst), 1);
}

fn a_panicking_destructor_does_not_leave_the_joiner_waiting(setup: Setup) {
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("meant to be contained");
        }
    }
    let outcome = in_task(&setup.plan(2), async {
        let fragile = Fragile;
        let mut ready = false;
        // The future owns it and is ready without having dropped it.
        let handle = spawn(poll_fn(move |context| {
            let _owned = &fragile;
            if ready {
                return Poll::Ready(());
            }
            ready = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        timeout(Duration::from_secs(5), handle.expect("a slot is free")).await
    });
    assert_eq!(outcome, Some(Err(JoinError::Panicked)));
}

fn a_panicking_connection_ends_alone(setup: Setup) {
    let workers = start(&setup.plan(1), |mut connection| async move {
        let mut out = Connection::outgoing();
        let fatal = connection.recv(true).await.is_ok_and(|piece| piece.bytes() == b"!");
        assert!(!fatal, "meant to be contained");
        out.bytes.push(b'.');
        connection.send(out).await.expect("the client is there");
        echo(connection).await;
    });
    let mut others = [connect(&workers), connect(&workers)];
    for other in &mut others {
        echo_once(other);
    }
    let mut client = connect(&workers);
    std::io::Write::write_all(&mut client, b"!").expect("the server is there");
    assert!(is_ended(&mut client));
    for other in &mut others {
        echo_once(other);
    }
    assert_eq!(workers.counts().panics.load(Ordering::SeqCst), 1);
    wait_until("its place is free", || workers.connections_open() == 2);
}

fn tasks_that_yield_take_turns(setup: Setup) {
    in_task(&setup.plan(1), async {
        let turns = Arc::new([AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]);
        let mut handles = Vec::new();
        for me in 0..3 {
            let turns = Arc::clone(&turns);
            let handle = spawn(async move {
                for _ in 0..1_000 {
                    yield_now().await;
                    let own = turns[me].fetch_add(1, Ordering::SeqCst) + 1;
                    for other in &*turns {
                        let apart = own.abs_diff(other.load(Ordering::SeqCst));
                        assert!(apart <= 2, "{apart} turns apart");
                    }
                }
            });
            handles.push(handle.expect("a slot is free"));
        }
        for handle in handles {
            handle.await.expect("turns are fair");
        }
    });
}

/// Tasks that use up their budget have a queue of their own. It must not be the shorter one.
fn who_uses_up_each_turn_has_no_more_of_them(setup: Setup) {
    let turns = in_task(&setup.plan(1), async {
        let (ends, turns) =
            (Arc::new(AtomicBool::new(false)), Arc::new([const { AtomicU64::new(0) }; 21]));
        let handles: Vec<_> = (0..turns.len())
            .map(|at| {
                let (ends, turns) = (Arc::clone(&ends), Arc::clone(&turns));
                let units = if at == 0 { 1_000 } else { 200 };
                spawn(async move {
                    while !ends.load(Ordering::Relaxed) {
                        charge(units);
                        turns[at].fetch_add(1, Ordering::Relaxed);
                        yield_now().await;
                    }
                })
            })
            .collect();
        while turns[20].load(Ordering::Relaxed) < 1_000 {
            sleep(Duration::from_millis(1)).await;
        }
        ends.store(true, Ordering::Relaxed);
        for handle in handles {
            handle.expect("a slot is free").await.expect("it does not panic");
        }
        turns.each_ref().map(|turns| turns.load(Ordering::Relaxed))
    });
    let [heavy, light @ ..] = turns;
    let most = light.iter().max().expect("there are some");
    assert!(heavy <= most * 2, "{turns:?}");
}

fn a_connection_goes_on_as_another_future(setup: Setup) {
    let (dropped, flag) = dropped_flag();
    let dropped = std::sync::Mutex::new(Some(dropped));
    let workers = start(&setup.plan(2), move |mut connection| {
        let dropped = dropped.lock().expect("no test panics here").take();
        async move {
            let mut out = Connection::outgoing();
            let first = connection.recv(true).await.map(|piece| piece.bytes().to_vec());
            out.bytes.extend(first.unwrap_or_default());
            connection.set_deadline(connection.now().mono_ms + 5_000);
            continue_as(Box::pin(async move {
                connection.send(out).await.expect("the client is there");
                echo(connection).await;
            }));
            drop(dropped);
        }
    });
    let others = workers.tasks_live();
    let mut clients = [connect(&workers), connect(&workers)];
    for client in &mut clients {
        echo_once(client);
        echo_once(client);
    }
    assert!(flag.load(Ordering::SeqCst), "the first future was kept");
    assert_eq!(workers.tasks_live(), others + 2, "each is one task still");
    drop(clients);
    wait_until("both are over", || workers.tasks_live() == others);
    assert_eq!(workers.counts().panics.load(Ordering::SeqCst), 0);
}

fn a_future_that_goes_on_does_so_once_and_not_after_a_panic(setup: Setup) {
    let workers = start(&setup.plan(1), |connection| async move {
        let (first, ran) = dropped_flag();
        spawn_detached(async move { continue_as(Box::pin(async move { drop(first) })) })
            .expect("a slot is free");
        assert!(until_set(&ran).await, "it did not go on");
        let (second, dropped) = dropped_flag();
        let has_run = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&has_run);
        spawn_detached(async move {
            continue_as(Box::pin(async move {
                let _second = second;
                runs.store(true, Ordering::SeqCst);
            }));
            panic!("meant to be contained");
        })
        .expect("a slot is free");
        assert!(until_set(&dropped).await, "it was kept");
        sleep(Duration::from_millis(5)).await;
        assert!(!has_run.load(Ordering::SeqCst), "it went on behind a panic");
        echo(connection).await;
    });
    echo_once(&mut connect(&workers));
    assert_eq!(workers.counts().panics.load(Ordering::SeqCst), 1);
}

fn spawning_past_the_last_slot_is_refused(setup: Setup) {
    let mut plan = setup.plan(2);
    plan.connections_max = 4;
    plan.slots = 2;
    let (most, again) = in_task(&plan, async {
        let mut handles = Vec::new();
        while let Ok(handle) = spawn(pending::<()>()) {
            handles.push(handle);
            assert!(handles.len() < 10_000, "no limit in sight");
        }
        let most = handles.len();
        for handle in handles {
            handle.cancel();
        }
        sleep(Duration::from_millis(50)).await;
        let again = (0..most).filter_map(|_| spawn(async {}).ok()).count();
        (most, again)
    });
    assert!(most >= 32, "only {most} tasks beside the connections");
    assert_eq!(again, most, "slots of cancelled tasks were not given back");
}
