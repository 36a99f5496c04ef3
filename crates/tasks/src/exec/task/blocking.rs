//! The blocking pool: threads for calls that would hold a worker up, fed by a bounded queue.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::exec::contained::contained;
use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;
use crate::sync::lock::Lock;

type BlockingJob = Box<dyn FnOnce() + Send>;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

/// Threads that run blocking calls. They are started when needed and end when idle.
#[derive(Clone)]
pub struct BlockingPool {
    shared: Arc<BlockingShared>,
}

struct BlockingShared {
    threads_max: usize,
    jobs_max: usize,
    state: Lock<BlockingState>,
    /// Rung for a job, and at the end.
    bell: Condvar,
}

/// The lock is held for a few instructions at a time: no job runs or is dropped, and no thread is
/// started under it.
#[derive(Default)]
struct BlockingState {
    jobs: VecDeque<BlockingJob>,
    threads: usize,
    sleeping: usize,
    /// No handle is left: threads end once the queue is empty.
    has_ended: bool,
}

/// The pool's queue is full: shed load, or try later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolFull;

impl fmt::Display for PoolFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the blocking pool's queue is full")
    }
}

impl std::error::Error for PoolFull {}

impl BlockingPool {
    /// - `threads_max`: threads at most, at least 1.
    /// - `jobs_max`: jobs that may wait, at least 2; rounded up to a power of two.
    pub fn new(threads_max: usize, jobs_max: usize) -> Self {
        let (threads_max, jobs_max) = (threads_max.max(1), jobs_max.max(2).next_power_of_two());
        let (state, bell) = (Lock::default(), Condvar::new());
        Self { shared: Arc::new(BlockingShared { threads_max, jobs_max, state, bell }) }
    }

    /// Runs `call` on a thread of the pool and waits for its result; `None` if it panicked. If the
    /// waiting task is dropped, the call still runs to its end.
    ///
    /// # Errors
    /// [`PoolFull`], at once.
    pub async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, PoolFull> {
        let shared = Arc::new(Lock::new(JobResult { outcome: None, waiter: None }));
        let reply = Arc::clone(&shared);
        self.submit(Box::new(move || {
            let outcome = contained(call).ok_or(());
            let waiter = {
                let mut reply = reply.lock();
                reply.outcome = Some(outcome);
                reply.waiter.take()
            };
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }))?;
        let outcome = poll_fn(|context| {
            let mut reply = shared.lock();
            if let Some(outcome) = reply.outcome.take() {
                return Poll::Ready(outcome.ok());
            }
            reply.waiter = Some(context.waker().clone());
            context::waits_on(WaitsOn::Blocking);
            Poll::Pending
        });
        Ok(outcome.await)
    }

    /// Runs `call` on a thread of the pool, and does not wait for it.
    ///
    /// # Errors
    /// [`PoolFull`], at once: the call is dropped.
    pub fn start(&self, call: impl FnOnce() + Send + 'static) -> Result<(), PoolFull> {
        self.submit(Box::new(move || {
            // A panic in it is its own.
            _ = contained(call);
        }))
    }

    fn submit(&self, job: BlockingJob) -> Result<(), PoolFull> {
        let mut state = self.shared.state.lock();
        if state.jobs.len() >= self.shared.jobs_max {
            return Err(PoolFull);
        }
        state.jobs.push_back(job);
        self.shared.wake_worker(state);
        Ok(())
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        // The last handle but those of the threads: they end once the queue is empty.
        if Arc::strong_count(&self.shared) <= 1 + state.threads {
            state.has_ended = true;
            self.shared.bell.notify_all();
        }
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.shared.state.lock().threads;
        f.debug_struct("BlockingPool").field("threads", &threads).finish_non_exhaustive()
    }
}

struct JobResult<T> {
    outcome: Option<Result<T, ()>>,
    waiter: Option<Waker>,
}

impl BlockingShared {
    /// Sees to it that a thread takes a job that is queued, as far as there may be one. Gives the
    /// lock back.
    fn wake_worker(self: &Arc<Self>, mut state: MutexGuard<'_, BlockingState>) {
        if state.sleeping > 0 {
            drop(state);
            self.bell.notify_one();
        } else if state.threads < self.threads_max {
            state.threads += 1;
            // Made under the lock: a handle that is dropped counts threads and references.
            let shared = Arc::clone(self);
            drop(state);
            let thread = thread::Builder::new().name("gust-block".to_owned());
            if thread.spawn(move || shared.work()).is_err() {
                // The threads there are take the job, or the next submission tries again.
                self.state.lock().threads -= 1;
            }
        }
    }

    fn work(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                // Several jobs may have counted on this one sleeper, and the first may hold it.
                if state.jobs.is_empty() {
                    drop(state);
                } else {
                    self.wake_worker(state);
                }
                job();
                state = self.state.lock();
            } else if state.has_ended {
                break;
            } else {
                state.sleeping += 1;
                let slept = self.bell.wait_timeout(state, IDLE);
                let (woken, is_over) = slept.unwrap_or_else(PoisonError::into_inner);
                state = woken;
                state.sleeping -= 1;
                if is_over.timed_out() && state.jobs.is_empty() {
                    break;
                }
            }
        }
        state.threads -= 1;
    }
}
