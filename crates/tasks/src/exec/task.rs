//! Light tasks: starting one, naming one, giving way.
//!
//! The result of a spawned task goes to a [`JoinHandle`] or a [`Group`].
//! Both are a [`Report`]; the task carries it along and never ends without making it.

pub(crate) mod blocking;
mod group;
mod join;
pub(crate) mod select;
pub(crate) mod spawner;

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use group::Group;
pub use join::{Attached, JoinError, JoinHandle, spawn};

use crate::exec::contained::contained;
use crate::exec::error::SpawnError;
use crate::exec::executor::context;
use crate::exec::schedule::BoxTask;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::workers_shared::{WorkersShared, count};

/// Spawns a task whose end is not awaited. It needs one allocation, where [`spawn`] needs two.
///
/// # Errors
/// As [`spawn`].
///
/// # Panics
/// Outside a task.
pub fn spawn_detached<F>(future: F) -> Result<(), SpawnError>
where
    F: Future<Output = ()> + Send + 'static,
{
    start(Box::pin(future)).map(drop)
}

/// Spawns a task as [`spawn`] does, with a name for the dump, from its first run on, until its end.
/// Names are kept in a table that all workers share, so they are for tasks that live long.
///
/// # Errors
/// As [`spawn`].
///
/// # Panics
/// Outside a task.
pub fn spawn_named<F>(
    name: impl Into<Cow<'static, str>>,
    future: F,
) -> Result<JoinHandle<F::Output>, SpawnError>
where
    F: Future<Output: Send> + Send + 'static,
{
    let name = name.into();
    let future = Box::pin(future);
    spawn(async move {
        let _name = NameGuard::enter(name);
        future.await
    })
}

/// Names the future that goes on in place of the running task, which has to end in this run. The
/// slot and the wakers stay: the rest of a connection can be a future of its own, and nothing of
/// the first one is kept.
///
/// Dropped unrun if the task panics.
///
/// # Panics
/// Outside a task.
#[cold]
pub fn continue_as(task: BoxTask) {
    context::with(|ctx| drop(ctx.successor.replace(Some((ctx.current(), task)))));
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

/// Keeps a task on this worker and queues it.
fn start(task: BoxTask) -> Result<TaskId, SpawnError> {
    // What is refused is dropped here, where nothing is borrowed.
    context::with(|ctx| ctx.insert(task)).map_err(|_| SpawnError::Full)
}

/// Starts a task that tells what it comes to.
fn start_reporting<F, R>(future: F, report: R) -> Result<TaskId, SpawnError>
where
    F: Future<Output: Send> + Send + 'static,
    R: Report<F::Output> + Send + Unpin + 'static,
{
    let future = Some(Box::pin(future));
    start(Box::pin(TaskRun { future, report, has_waited: false, has_told: false }))
}

/// To whom a task tells what it came to.
trait Report<T> {
    /// Returns whether the task is to be dropped where it waits.
    fn is_cancelled(&self) -> bool;

    /// The task waits, for the first time.
    fn waits(&mut self, _task: &Context<'_>) {}

    /// The task has ended, and its future is dropped.
    fn tell(&mut self, outcome: Result<T, JoinError>);
}

/// The body of a spawned task: it runs its future to the end, drops it, and reports its result;
/// also if it is itself dropped before.
///
/// The future has a box of its own. Without `unsafe` it could only lie inside of a coroutine, which
/// keeps room both for what it was given and for where it moved that; measured, that took half as
/// much memory again for a task that sleeps, and was no faster.
struct TaskRun<F: Future, R: Report<F::Output>> {
    future: Option<Pin<Box<F>>>,
    report: R,
    has_waited: bool,
    has_told: bool,
}

impl<F: Future, R: Report<F::Output>> TaskRun<F, R> {
    fn end(&mut self, outcome: Result<F::Output, JoinError>) {
        // Its destructor may panic too, and a task may still wait for the result.
        let dropped = contained(|| self.future = None);
        let outcome = if dropped.is_some() { outcome } else { Err(JoinError::Panicked) };
        if matches!(outcome, Err(JoinError::Panicked)) {
            context::try_with(|ctx| count(&ctx.shared.counts.panics));
        }
        self.has_told = true;
        self.report.tell(outcome);
    }
}

impl<F: Future, R: Report<F::Output> + Unpin> Future for TaskRun<F, R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(future) = &mut this.future else { return Poll::Ready(()) };
        let outcome = if this.report.is_cancelled() {
            Err(JoinError::Cancelled)
        } else {
            match contained(|| future.as_mut().poll(context)) {
                Some(Poll::Ready(output)) => Ok(output),
                None => Err(JoinError::Panicked),
                Some(Poll::Pending) => {
                    if !this.has_waited {
                        this.has_waited = true;
                        this.report.waits(context);
                    }
                    return Poll::Pending;
                }
            }
        };
        this.end(outcome);
        Poll::Ready(())
    }
}

impl<F: Future, R: Report<F::Output>> Drop for TaskRun<F, R> {
    fn drop(&mut self) {
        if !self.has_told {
            self.end(Err(JoinError::Cancelled));
        }
    }
}

/// The entry of a named task.
struct NameGuard {
    shared: Arc<WorkersShared>,
    task: TaskId,
}

impl NameGuard {
    /// Enters the running task.
    fn enter(name: Cow<'static, str>) -> Self {
        let (shared, task) = context::with(|ctx| (Arc::clone(&ctx.shared), ctx.current()));
        shared.names.lock().insert(task, name);
        Self { shared, task }
    }
}

impl Drop for NameGuard {
    fn drop(&mut self) {
        self.shared.names.lock().remove(&self.task);
    }
}
