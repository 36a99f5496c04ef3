//! Content that is made piece by piece, off the worker.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use gustnado_tasks::{BlockingPool, timeout};
use rustix::io::Errno;

/// Makes content in steps. Each of them may wait for the disk.
pub(super) trait Produce: Send {
    /// Returns the next piece, at least one byte; `None` at the end.
    ///
    /// # Errors
    /// The content cannot be completed.
    fn next(&mut self) -> Result<Option<Vec<u8>>, Errno>;
}

/// Content that is made while it is sent. A step begins when the piece before it was taken, so a
/// slow client holds one piece at most.
pub struct Pieces {
    state: PieceState,
    pool: Option<BlockingPool>,
    wait: Duration,
}

/// Content that cannot be completed: the disk failed, or did not respond in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiecesFailed;

type PieceStep = (Box<dyn Produce>, Result<Option<Vec<u8>>, Errno>);

enum PieceState {
    Idle(Box<dyn Produce>),
    /// `None` if no thread took the step, or it did not end in time.
    Running(Pin<Box<dyn Future<Output = Option<PieceStep>> + Send>>),
    Ended,
}

impl Pieces {
    /// - `pool`: the threads that the steps run on; without them, a step holds the worker.
    /// - `wait`: how long a step may take.
    pub(super) fn new(
        producer: impl Produce + 'static,
        pool: Option<BlockingPool>,
        wait: Duration,
    ) -> Self {
        Self { state: PieceState::Idle(Box::new(producer)), pool, wait }
    }

    /// Returns the next piece, at least one byte; `None` at the end.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Vec<u8>, PiecesFailed>>> {
        loop {
            let step = match mem::replace(&mut self.state, PieceState::Ended) {
                PieceState::Ended => return Poll::Ready(None),
                PieceState::Idle(mut producer) => match &self.pool {
                    None => {
                        let next = producer.next();
                        Some((producer, next))
                    }
                    Some(pool) => {
                        self.state = PieceState::Running(start(producer, pool.clone(), self.wait));
                        continue;
                    }
                },
                PieceState::Running(mut running) => match running.as_mut().poll(context) {
                    Poll::Ready(step) => step,
                    Poll::Pending => {
                        self.state = PieceState::Running(running);
                        return Poll::Pending;
                    }
                },
            };
            return Poll::Ready(match step {
                Some((producer, Ok(Some(piece)))) => {
                    self.state = PieceState::Idle(producer);
                    Some(Ok(piece))
                }
                Some((_, Ok(None))) => None,
                Some((_, Err(_))) | None => Some(Err(PiecesFailed)),
            });
        }
    }
}

/// Starts a step on a thread of the pool.
fn start(
    mut producer: Box<dyn Produce>,
    pool: BlockingPool,
    wait: Duration,
) -> Pin<Box<dyn Future<Output = Option<PieceStep>> + Send>> {
    Box::pin(async move {
        let step = pool.run(move || {
            let next = producer.next();
            (producer, next)
        });
        // A step that panicked has already reported why.
        timeout(wait, step).await?.ok().flatten()
    })
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("wait", &self.wait).finish_non_exhaustive()
    }
}
