//! tokio's co-operative budget for futures that are polled outside of its own scheduler.
//!
//! Without it, a future that is always ready never yields: a time-out around it never fires,
//! and its worker's other connections wait. tokio sets a budget for each turn of its own tasks
//! only. But it gives out the right to restore one: [`RestoreOnPending`]. Each thread
//! gets the right to a full budget once, from a task of tokio's, and renews it at every turn.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::task::LocalSet;
use tokio::task::coop::{RestoreOnPending, poll_proceed, unconstrained};

thread_local! {
    /// The right to a full budget; nothing before the first turn.
    static FULL: Cell<Option<RestoreOnPending>> = const { Cell::new(None) };
}

/// Polls with a full budget of its own, whatever is left of the surrounding one. Once it is used
/// up, tokio's resources are pending until the next turn, which is requested at once.
pub(super) fn with_budget<T>(
    waking: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let mut poll = Some(poll);
    let turn = poll_fn(|waking| {
        renew(waking);
        poll.take().expect("polled once")(waking)
    });
    // The state before is restored afterwards: code outside of services has no budget.
    pin!(unconstrained(turn)).poll(waking)
}

/// Gives the thread a full budget.
fn renew(waking: &mut Context<'_>) {
    // Dropping the right makes use of it.
    drop(FULL.take().or_else(first));
    if let Poll::Ready(full) = poll_proceed(waking) {
        FULL.set(Some(full));
    }
}

/// Returns the thread's first right to a full budget, taken from a task of tokio's.
fn first() -> Option<RestoreOnPending> {
    let found = Rc::new(RefCell::new(None));
    let given = Rc::clone(&found);
    let tasks = LocalSet::new();
    tasks.spawn_local(poll_fn(move |waking| {
        poll_proceed(waking).map(|full| *given.borrow_mut() = Some(full))
    }));
    _ = pin!(tasks).poll(&mut Context::from_waker(Waker::noop()));
    found.take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use tokio::sync::Semaphore;
    use tokio::task::coop::has_budget_remaining;

    /// Takes and gives back a permit until it has to wait. Returns how often it did not.
    fn busy(waking: &mut Context<'_>) -> Poll<u32> {
        let permits = Semaphore::new(1);
        for count in 0..10_000 {
            if pin!(permits.acquire()).poll(waking).is_pending() {
                return Poll::Ready(count);
            }
        }
        Poll::Ready(u32::MAX)
    }

    #[test]
    fn each_turn_has_a_budget_and_nothing_outside_of_them() {
        let mut waking = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            let Poll::Ready(count) = with_budget(&mut waking, busy) else { panic!("it is ready") };
            assert!((64..1_000).contains(&count), "{count}");
            assert!(has_budget_remaining());
            assert_eq!(busy(&mut waking), Poll::Ready(u32::MAX));
        }
    }

    #[test]
    fn it_works_inside_of_a_runtime_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let inner = poll_fn(|waking| with_budget(waking, busy)).await;
            assert!((64..1_000).contains(&inner), "{inner}");
            assert!(has_budget_remaining());
        });
    }

    /// `cargo test --release --all-features --workspace --lib -- --ignored --nocapture one_turn`
    #[test]
    #[ignore = "it measures: no test asserts a time"]
    fn how_long_one_turn_takes() {
        const TURNS: u32 = 10_000_000;
        let measured = thread::spawn(|| {
            let mut waking = Context::from_waker(Waker::noop());
            let began = std::time::Instant::now();
            for _ in 0..TURNS {
                _ = std::hint::black_box(with_budget(&mut waking, |_| Poll::Ready(())));
            }
            began.elapsed() / TURNS
        });
        println!("{:?}", measured.join().expect("it ends"));
    }
}
