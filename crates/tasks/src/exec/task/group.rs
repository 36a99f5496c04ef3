//! Tasks that belong together: their results come in the order in which they finish, and whoever
//! drops the group cancels what is left of it.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::{JoinError, Report, start_reporting};
use crate::exec::error::SpawnError;
use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;
use crate::exec::wakers::replace;
use crate::sync::lock::Lock;

/// A bounded set of tasks of one kind, on the worker (or group of workers) that spawned them.
///
/// It is a [`Stream`] of their results too. Dropping it cancels the tasks that have not ended.
pub struct Group<T> {
    shared: Arc<GroupShared<T>>,
    limit: usize,
    /// Tasks whose results were not taken yet.
    outstanding: usize,
    /// Tasks that were ever to be started.
    asked: u64,
}

impl<T: Send + 'static> Group<T> {
    /// Creates an empty group.
    ///
    /// - `limit`: how many tasks may run, or have ended without their result being taken; at
    ///   least 1.
    pub fn new(limit: usize) -> Self {
        let (results, waiting, free) = (VecDeque::new(), Vec::new(), Vec::new());
        let state = Lock::new(GroupState { results, waiter: None, waiting, free });
        let shared = GroupShared { cancelled: AtomicBool::new(false), state };
        Self { shared: Arc::new(shared), limit: limit.max(1), outstanding: 0, asked: 0 }
    }

    /// Starts a task that belongs to the group.
    ///
    /// # Errors
    /// [`SpawnError::Full`]: take a result first ([`Group::next`]); or as [`crate::spawn`].
    ///
    /// # Panics
    /// Outside a task.
    pub fn spawn<F>(&mut self, future: F) -> Result<(), SpawnError>
    where
        F: Future<Output = T> + Send + 'static,
    {
        if self.outstanding == self.limit {
            return Err(SpawnError::Full);
        }
        self.asked += 1;
        let number = self.asked;
        let member = GroupMember { shared: Arc::clone(&self.shared), number, seat: None };
        if let Err(error) = start_reporting(future, member) {
            // It has reported its end like any other, but no task is to hear of it.
            self.shared.state.lock().results.retain(|(task, _)| *task != number);
            return Err(error);
        }
        self.outstanding += 1;
        Ok(())
    }
}

impl<T> Group<T> {
    /// Returns the result of the task that ended first among those left. `None`: there are no more.
    pub async fn next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|context| self.poll_result(context)).await
    }

    /// Cancels all tasks where they wait. Those that have not ended give
    /// [`JoinError::Cancelled`]; and so will those that are spawned after this.
    pub fn cancel(&mut self) {
        let waiting: Vec<_> = {
            let mut state = self.shared.state.lock();
            // Under the lock: a task that begins to wait either sees it or is woken for it.
            self.shared.cancelled.store(true, Ordering::Release);
            state.waiting.iter_mut().filter_map(Option::take).collect()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns how many tasks run, or have ended without their result being taken.
    pub fn len(&self) -> usize {
        self.outstanding
    }

    /// Returns whether all results were taken.
    pub fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    fn poll_result(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        if self.outstanding == 0 {
            return Poll::Ready(None);
        }
        let mut state = self.shared.state.lock();
        if let Some((_, result)) = state.results.pop_front() {
            self.outstanding -= 1;
            return Poll::Ready(Some(result));
        }
        let outdated = replace(&mut state.waiter, context.waker());
        drop(state);
        drop(outdated);
        context::waits_on(WaitsOn::Group);
        Poll::Pending
    }
}

impl<T> Stream for Group<T> {
    type Item = Result<T, JoinError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_result(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.outstanding, Some(self.outstanding))
    }
}

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("len", &self.outstanding)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// State that a group and its tasks share.
struct GroupShared<T> {
    cancelled: AtomicBool,
    state: Lock<GroupState<T>>,
}

struct GroupState<T> {
    /// With the tasks' numbers.
    results: VecDeque<(u64, Result<T, JoinError>)>,
    waiter: Option<Waker>,
    /// The tasks that wait, by their places: to be woken when the group is dropped. A task that has
    /// never waited is queued or runs, and sees that by itself.
    waiting: Vec<Option<Waker>>,
    free: Vec<u32>,
}

/// A task's side of its group.
struct GroupMember<T> {
    shared: Arc<GroupShared<T>>,
    number: u64,
    seat: Option<u32>,
}

impl<T> Report<T> for GroupMember<T> {
    fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    fn waits(&mut self, task: &Context<'_>) {
        let mut state = self.shared.state.lock();
        if self.is_cancelled() {
            drop(state);
            // The cancelling thread found no task to wake.
            return task.waker().wake_by_ref();
        }
        let waker = Some(task.waker().clone());
        if let Some(seat) = state.free.pop() {
            state.waiting[seat as usize] = waker;
            self.seat = Some(seat);
        } else {
            self.seat = u32::try_from(state.waiting.len()).ok();
            state.waiting.push(waker);
        }
    }

    fn tell(&mut self, outcome: Result<T, JoinError>) {
        let mut state = self.shared.state.lock();
        let own = self.seat.and_then(|seat| {
            state.free.push(seat);
            state.waiting[seat as usize].take()
        });
        state.results.push_back((self.number, outcome));
        let waiter = state.waiter.take();
        drop(state);
        drop(own);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}
