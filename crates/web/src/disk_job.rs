//! Jobs that may wait for the disk, on a pool of threads, so that no worker waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gustnado_tasks::{BlockingPool, sleep};

/// How often a full thread pool is tried, and the time between two tries.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFailure {
    /// The queue of the pool was full for a second.
    Busy,
    /// The job panicked.
    Panicked,
}

/// Runs `call` on a pool, and tries again for a second while its queue is full.
///
/// # Errors
/// [`JobFailure`]: then `call` was dropped.
pub async fn run_on<T: Send + 'static>(
    pool: &BlockingPool,
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JobFailure> {
    // A full pool drops the function that it is given, and what that holds. So it gets a shared
    // one.
    let call = Arc::new(Mutex::new(Some(call)));
    for _ in 0..TRIES {
        let shared = Arc::clone(&call);
        let run = move || {
            let call = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
            call.map(|call| call())
        };
        match pool.run(run).await {
            Ok(done) => return done.flatten().ok_or(JobFailure::Panicked),
            // Only a worker has timers.
            Err(_) if gustnado_tasks::worker().is_none() => return Err(JobFailure::Busy),
            Err(_) => sleep(PAUSE).await,
        }
    }
    Err(JobFailure::Busy)
}
