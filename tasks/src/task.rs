//! Light tasks: spawn, join, yield.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::crew::count;
use crate::here;

/// Starts a task beside the running one, on the same worker (or group of workers). It runs when the
/// running one next waits, or at once on a worker of the group that is free; and it goes on by
/// itself if the handle is dropped.
///
/// # Errors
/// [`SpawnError`] where tasks have a fixed number of slots and all are taken.
///
/// # Panics
/// Outside a task.
pub fn spawn<F>(future: F) -> Result<JoinHandle<F::Output>, SpawnError>
where
    F: Future<Output: Send> + Send + 'static,
{
    let shared =
        Arc::new(Mutex::new(Join { outcome: None, waiter: None, task: None, given_up: false }));
    let join = Arc::clone(&shared);
    let mut future = Some(Box::pin(future));
    let task = poll_fn(move |context| {
        let given_up = join.lock().unwrap_or_else(PoisonError::into_inner).given_up;
        let Some(inner) = future.as_mut().filter(|_| !given_up) else { return Poll::Ready(()) };
        let outcome = match catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(context))) {
            Ok(Poll::Pending) => {
                let mut join = join.lock().unwrap_or_else(PoisonError::into_inner);
                // Whoever gave up during the poll found nobody to wake.
                if join.given_up {
                    return Poll::Ready(());
                }
                join.task = Some(context.waker().clone());
                return Poll::Pending;
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(_) => Err(JoinError),
        };
        // Its destructor may panic too, and still somebody waits for the outcome.
        let dropped = catch_unwind(AssertUnwindSafe(|| future = None));
        let outcome = dropped.map_err(|_| JoinError).and(outcome);
        if outcome.is_err() {
            here::with(|here| count(&here.crew.counts.panics));
        }
        let waiter = {
            let mut join = join.lock().unwrap_or_else(PoisonError::into_inner);
            join.outcome = Some(outcome);
            join.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        Poll::Ready(())
    });
    match here::with(|here| here.insert(Box::pin(task))) {
        Ok(_) => Ok(JoinHandle { shared }),
        Err(_) => Err(SpawnError),
    }
}

/// Lets all other ready tasks run first.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct Join<T> {
    outcome: Option<Result<T, JoinError>>,
    waiter: Option<Waker>,
    task: Option<Waker>,
    given_up: bool,
}

/// Waits for a task's result, as a future. Dropping it lets the task go on.
pub struct JoinHandle<T> {
    shared: Arc<Mutex<Join<T>>>,
}

impl<T> JoinHandle<T> {
    /// Drops the task where it waits. Its destructors run before its next poll would have.
    pub fn cancel(self) {
        let task = {
            let mut join = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            join.given_up = true;
            join.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut join = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = join.outcome.take() {
            return Poll::Ready(outcome);
        }
        join.waiter = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}

/// The task panicked; the panic is contained, and its message is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinError;

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task panicked")
    }
}

impl std::error::Error for JoinError {}

/// All task slots are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnError;

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all task slots of the scheduler are taken")
    }
}

impl std::error::Error for SpawnError {}
