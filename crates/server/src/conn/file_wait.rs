//! Waiting for a disk: a thread of the folder's pool does, and meanwhile the worker serves others.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gustnado_tasks::{BlockingPool, Connection, ConnectionError, Patience, PoolFull, sleep};

use super::after::after_rest;
use super::body_end::Ending;
use super::{Conn, Next};
use crate::files::warmth::{WINDOW_BYTES, is_window_warm, warm};
use crate::files::{Looked, Lookup, OpenFile, Segment};
use crate::status_page::Turn;

/// How long a disk may take to say whether what is held is still good. After that it is taken to
/// be for another second: so a file that was hot stays so when its disk is frozen.
const HELD_WAIT_MS: u64 = 250;
/// How often a file is looked up: once more where another worker's cache was compared.
const LOOKS_MAX: usize = 3;
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
    /// Finds the file of the last request, and answers it.
    pub(super) async fn look_up(&mut self, segments: VecDeque<Segment>, ending: Ending) -> Next {
        let lookup = segments.into_iter().find_map(|segment| match segment {
            Segment::Lookup(lookup) => Some(lookup),
            _ => None,
        });
        let lookup = lookup.expect("the caller has looked");
        let mut looks = 0;
        loop {
            looks += 1;
            let looked = match self.await_lookup(&lookup).await {
                Ok(looked) => looked.filter(|_| looks <= LOOKS_MAX),
                Err(error) => return self.give_up(&error),
            };
            if let Some(next) = self.answer_looked_up(&lookup, looked, ending) {
                return next;
            }
        }
    }

    async fn await_lookup(&mut self, lookup: &Lookup) -> Result<Option<Looked>, ConnectionError> {
        let Some(pool) = lookup.pool() else { return Ok(None) };
        let silence_ms = self.app.times.write.silence_ms;
        let wait_ms = if lookup.is_held() { HELD_WAIT_MS } else { silence_ms };
        self.socket.refresh_now();
        let job = lookup.job(self.socket.now());
        Ok(match self.await_job(&pool, job, wait_ms).await? {
            Waited::Done(looked) => Some(looked),
            Waited::Late | Waited::Full => None,
        })
    }

    /// Writes the answer and starts to send it; `None` if the file is to be looked up again.
    fn answer_looked_up(
        &mut self,
        lookup: &Lookup,
        looked: Option<Looked>,
        ending: Ending,
    ) -> Option<Next> {
        self.socket.refresh_now();
        let is_last = self.app.has_notice() && self.app.is_draining();
        let ending = if is_last { ending.ended() } else { ending };
        let (mut out, moment) = (Connection::outgoing(), self.moment());
        let turn = Turn { common: &moment.common.opening, persist: ending.persist() };
        let Some(replied) = lookup.answer(looked, moment.time, &turn, &mut out.bytes) else {
            Connection::put_back(out);
            return None;
        };
        let response = self.count_response(replied.written, 0, &out.bytes);
        let next = after_rest(replied.rest, ending, &lookup.request(), &mut out);
        if self.journal.is_some() {
            self.log_answer(&out.bytes, response, &next);
        }
        self.start_send(out);
        Some(match next {
            // Closing on what is unread would reset the connection.
            Next::Close if self.unread.is_some() => Next::Linger,
            Next::Receive if self.unread.is_some() => Next::Again,
            next => next,
        })
    }

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
