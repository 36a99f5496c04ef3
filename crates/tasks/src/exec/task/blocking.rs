//! The blocking pool: threads for calls that would hold a worker up, fed by a bounded lock-free
//! queue.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::lock::Lock;
use crate::sync::queue::TokenQueue;

type BlockingJob = Box<dyn FnOnce() + Send>;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

/// Threads that run blocking calls. They are started when needed and end when idle.
///
/// Jobs lie in cells; the queue carries the numbers of filled ones, another the free ones, so that
/// handing a job over takes no lock that anyone waits for.
#[derive(Clone)]
pub struct BlockingPool {
    shared: Arc<BlockingShared>,
}

struct BlockingShared {
    cells: Box<[Lock<Option<BlockingJob>>]>,
    filled: TokenQueue,
    free: TokenQueue,
    threads_max: usize,
    threads: AtomicUsize,
    sleeping: AtomicUsize,
    ended: AtomicBool,
    bed: Lock<()>,
    bell: Condvar,
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
        let jobs_max = jobs_max.max(2).next_power_of_two();
        let free = TokenQueue::new(jobs_max);
        for cell in 0..jobs_max {
            free.push(cell as u64).expect("the queue has room for every cell");
        }
        Self {
            shared: Arc::new(BlockingShared {
                cells: (0..jobs_max).map(|_| Lock::new(None)).collect(),
                filled: TokenQueue::new(jobs_max),
                free,
                threads_max: threads_max.max(1),
                threads: AtomicUsize::new(0),
                sleeping: AtomicUsize::new(0),
                ended: AtomicBool::new(false),
                bed: Lock::new(()),
                bell: Condvar::new(),
            }),
        }
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
        let answer = Arc::clone(&shared);
        self.submit(Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(call)).map_err(drop);
            let waiter = {
                let mut answer = answer.lock();
                answer.outcome = Some(outcome);
                answer.waiter.take()
            };
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }))?;
        let outcome = poll_fn(|context| {
            let mut answer = shared.lock();
            if let Some(outcome) = answer.outcome.take() {
                return Poll::Ready(outcome.ok());
            }
            answer.waiter = Some(context.waker().clone());
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
            _ = catch_unwind(AssertUnwindSafe(call));
        }))
    }

    fn submit(&self, job: BlockingJob) -> Result<(), PoolFull> {
        let shared = &self.shared;
        let cell = shared.free.pop().ok_or(PoolFull)?;
        *shared.cell(cell) = Some(job);
        shared.filled.push(cell).expect("the queue has room for every cell");
        fence(Ordering::SeqCst);
        shared.wake_worker();
        Ok(())
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        // The last handle but those of the threads: they end once the queue is empty.
        if Arc::strong_count(&self.shared) <= 1 + self.shared.threads.load(Ordering::SeqCst) {
            self.shared.ended.store(true, Ordering::SeqCst);
            drop(self.shared.bed.lock());
            self.shared.bell.notify_all();
        }
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.shared.threads.load(Ordering::Relaxed);
        f.debug_struct("BlockingPool").field("threads", &threads).finish_non_exhaustive()
    }
}

struct JobResult<T> {
    outcome: Option<Result<T, ()>>,
    waiter: Option<Waker>,
}

impl BlockingShared {
    /// Sees to it that a thread takes the job that was just queued, as far as there may be one.
    fn wake_worker(self: &Arc<Self>) {
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            drop(self.bed.lock());
            self.bell.notify_one();
        } else if self.threads.load(Ordering::SeqCst) < self.threads_max {
            self.add_thread();
        }
    }

    fn add_thread(self: &Arc<Self>) {
        if self.threads.fetch_add(1, Ordering::SeqCst) >= self.threads_max {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let shared = Arc::clone(self);
        let name = "gust-block".to_owned();
        if thread::Builder::new().name(name).spawn(move || shared.work()).is_err() {
            // The threads there are take the job, or the next submission tries again.
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn work(self: &Arc<Self>) {
        loop {
            while let Some(cell) = self.filled.pop() {
                let job = self.cell(cell).take();
                let returned = self.free.push(cell);
                debug_assert!(returned.is_ok(), "the queue has room for every cell");
                fence(Ordering::SeqCst);
                // Several jobs may have counted on this one sleeper, and the first may hold it.
                if !self.filled.is_empty() {
                    self.wake_worker();
                }
                if let Some(job) = job {
                    job();
                }
            }
            if !self.sleep() {
                return;
            }
        }
    }

    /// Waits for a job. Returns whether the thread stays.
    fn sleep(&self) -> bool {
        let bed = self.bed.lock();
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let nothing = || self.filled.is_empty() && !self.ended.load(Ordering::SeqCst);
        if nothing() {
            drop(self.bell.wait_timeout(bed, IDLE));
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        let stays = !self.filled.is_empty();
        if !stays {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            // A job submitted meanwhile may have counted on this thread.
            if !self.filled.is_empty() {
                self.threads.fetch_add(1, Ordering::SeqCst);
                return true;
            }
        }
        stays
    }

    fn cell(&self, cell: u64) -> std::sync::MutexGuard<'_, Option<BlockingJob>> {
        let cell = usize::try_from(cell).expect("cells are few");
        self.cells[cell].lock()
    }
}
