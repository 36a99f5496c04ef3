//! Waits for a disk on a thread of the folder's pool, while the worker serves other connections.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gustnado_tasks::{BlockingPool, ConnectionError, PoolFull, ProgressTimeout, sleep};

use super::Conn;
use gustnado_files::OpenFile;
use gustnado_files::warmth::{WINDOW_BYTES, is_window_warm, warm};

/// How long to wait before the pool is tried again after it was full.
const RETRY_MS: u64 = 10;

/// The outcome of waiting for a thread.
enum Waited<T> {
    Done(T),
    /// The disk did not respond in time.
    Late,
    /// The pool accepts no more jobs for now.
    Full,
}

impl Conn {
    /// Brings the next bytes of a file into memory, so that sending them does not wait for the
    /// disk. Returns up to where.
    ///
    /// - `cold`: the pool that reads it, if it may not be in memory.
    ///
    /// # Errors
    /// The disk was slower than a client may be, which counts as a truncated file.
    pub(super) async fn warm(
        &mut self,
        file: &Arc<OpenFile>,
        (at, end): (u64, u64),
        cold: Option<&BlockingPool>,
        patience: ProgressTimeout,
    ) -> Result<u64, ConnectionError> {
        let Some(pool) = cold else { return Ok(end) };
        let until = end.min(at.saturating_add(WINDOW_BYTES));
        if is_window_warm(file, at, until) {
            return Ok(until);
        }
        let mut left_ms = patience.silence_ms;
        loop {
            let file = Arc::clone(file);
            let job = move || warm(&file, at, until);
            match self.await_job(pool, job, left_ms).await? {
                Waited::Done(()) => return Ok(until),
                Waited::Full if left_ms > RETRY_MS => {
                    left_ms -= RETRY_MS;
                    sleep(Duration::from_millis(RETRY_MS)).await;
                }
                Waited::Full | Waited::Late => return Err(ConnectionError::FileTruncated),
            }
        }
    }

    /// Waits for a job of a pool, up to a bound.
    ///
    /// # Errors
    /// The server ends.
    async fn await_job<T: Send + 'static>(
        &mut self,
        pool: &BlockingPool,
        job: impl FnOnce() -> T + Send + 'static,
        wait_ms: u64,
    ) -> Result<Waited<T>, ConnectionError> {
        self.socket.refresh_now();
        self.socket.set_deadline(self.socket.now().mono_ms.saturating_add(wait_ms));
        let mut running = pin!(pool.run(job));
        let waited = poll_fn(|context| {
            if let Poll::Ready(done) = running.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            self.socket.poll_deadline(false).map(Err)
        });
        match waited.await {
            Ok(Ok(Some(done))) => Ok(Waited::Done(done)),
            Ok(Err(PoolFull)) => Ok(Waited::Full),
            // A job that panicked has already reported why.
            Ok(Ok(None)) | Err(ConnectionError::TimedOut) => Ok(Waited::Late),
            Err(error) => Err(error),
        }
    }
}
