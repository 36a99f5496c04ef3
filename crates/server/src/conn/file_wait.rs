//! Waiting for a disk: a thread of the folder's pool does, and meanwhile the worker serves others.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gustnado_tasks::{BlockingPool, ConnectionError, Patience, PoolFull, sleep};

use super::Conn;
use gustnado_files::OpenFile;
use gustnado_files::warmth::{WINDOW_BYTES, is_window_warm, warm};

/// After how long a thread is asked for again where none was free.
const RETRY_MS: u64 = 10;

/// What came of waiting for a thread.
enum Waited<T> {
    Done(T),
    /// The disk has not answered in time, or too many requests wait for it.
    Late,
    /// No more jobs are taken for now.
    Full,
}

impl Conn {
    /// Sees to it that the next bytes of a file can be sent without waiting for the disk. Returns
    /// how far that goes.
    ///
    /// - `cold`: who reads it, if it is not known to be in memory.
    ///
    /// # Errors
    /// The disk takes longer than a client might, which is as if the file were cut.
    pub(super) async fn warm(
        &mut self,
        file: &Arc<OpenFile>,
        (at, end): (u64, u64),
        cold: Option<&BlockingPool>,
        patience: Patience,
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

    /// Waits for a job of a pool, for so long at most.
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
            // (A job that panicked has said why.)
            Ok(Ok(None)) | Err(ConnectionError::TimedOut) => Ok(Waited::Late),
            Err(error) => Err(error),
        }
    }
}
