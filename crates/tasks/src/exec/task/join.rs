//! Waiting for one task: its handle, and the slot of its result.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use super::{Report, start_reporting};
use crate::exec::error::SpawnError;
use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;
use crate::exec::wakers::replace;
use crate::exec::wakers::task_id::TaskId;
use crate::sync::lock::Lock;

/// Waits for a task's result, as a future. Dropping it lets the task go on.
#[must_use = "dropping it lets the task go on alone; say so with `drop`"]
pub struct JoinHandle<T> {
    place: Arc<ResultSlot<T>>,
    task: TaskId,
}

impl<T> JoinHandle<T> {
    /// Cancels the task where it waits: its destructors run before its next poll would have.
    /// The handle then gives [`JoinError::Cancelled`], unless the task was done already.
    pub fn cancel(&self) {
        // Written before the wake-up, so the poll that follows it sees it.
        self.place.cancelled.store(true, Ordering::Release);
        self.task.waker().wake();
    }

    /// Returns whether the task has ended.
    pub fn is_finished(&self) -> bool {
        !matches!(*self.place.outcome.lock(), TaskResult::Awaited(_))
    }

    /// Returns the task's number, as a dump shows it.
    pub fn id(&self) -> u64 {
        self.task.token()
    }

    /// Returns a handle that cancels the task when it is dropped.
    pub fn attach(self) -> Attached<T> {
        Attached { handle: self }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut outcome = self.place.outcome.lock();
        if let TaskResult::Awaited(waiter) = &mut *outcome {
            let outdated = replace(waiter, context.waker());
            drop(outcome);
            drop(outdated);
            context::waits_on(WaitsOn::Join);
            return Poll::Pending;
        }
        match mem::replace(&mut *outcome, TaskResult::Taken) {
            TaskResult::There(result) => Poll::Ready(result),
            _ => panic!("a handle that gave its task's result was polled again"),
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("task", &self.task).finish_non_exhaustive()
    }
}

/// A [`JoinHandle`] that cancels its task when it is dropped: [`JoinHandle::attach`].
#[must_use = "dropping it cancels the task"]
pub struct Attached<T> {
    handle: JoinHandle<T>,
}

impl<T> Attached<T> {
    /// Returns the task's number, as a dump shows it.
    pub fn id(&self) -> u64 {
        self.handle.id()
    }
}

impl<T> Future for Attached<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(context)
    }
}

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        if !self.handle.is_finished() {
            self.handle.cancel();
        }
    }
}

impl<T> fmt::Debug for Attached<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached").field("task", &self.handle.task).finish_non_exhaustive()
    }
}

/// Starts a task on the worker (or group of workers) of the running one. It runs when the
/// running one next waits, or at once on a worker of the group that is free; and it goes on by
/// itself if the handle is dropped.
///
/// A panic in it is contained: it comes to the handle, and the worker lives.
///
/// # Errors
/// [`SpawnError::Full`] where tasks have a fixed number of slots and all are taken.
///
/// # Panics
/// Outside a task.
pub fn spawn<F>(future: F) -> Result<JoinHandle<F::Output>, SpawnError>
where
    F: Future<Output: Send> + Send + 'static,
{
    let outcome = Lock::new(TaskResult::Awaited(None));
    let place = Arc::new(ResultSlot { cancelled: AtomicBool::new(false), outcome });
    let task = start_reporting(future, Arc::clone(&place))?;
    Ok(JoinHandle { place, task })
}

/// The slot of a task's result.
struct ResultSlot<T> {
    cancelled: AtomicBool,
    outcome: Lock<TaskResult<T>>,
}

enum TaskResult<T> {
    /// A task may wait for it.
    Awaited(Option<Waker>),
    There(Result<T, JoinError>),
    Taken,
}

impl<T> Report<T> for Arc<ResultSlot<T>> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn tell(&mut self, outcome: Result<T, JoinError>) {
        let before = mem::replace(&mut *self.outcome.lock(), TaskResult::There(outcome));
        if let TaskResult::Awaited(Some(waiter)) = before {
            waiter.wake();
        }
    }
}

/// The error of a task that gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// It panicked. The panic is contained, and its message is in the log.
    Panicked,
    /// It was dropped before its end: it was cancelled, or its workers ended.
    Cancelled,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panicked => "the task panicked",
            Self::Cancelled => "the task was cancelled",
        })
    }
}

impl std::error::Error for JoinError {}
