//! Content that is made piece by piece, off the worker.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gustnado_tasks::{BlockingPool, timeout};

use super::error::Failure;

/// Makes content in steps. Each of them may wait for the disk.
pub(super) trait Produce: Send {
    /// Returns the next piece, which is empty if the step took its time and made nothing yet;
    /// `None` at the end.
    ///
    /// # Errors
    /// The content cannot be completed.
    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure>;
}

/// Content that is made while it is sent. A step begins when the piece before it was taken, so a
/// slow client holds one piece at most.
pub struct Pieces {
    state: PieceState,
    /// The first piece, if it was made in advance.
    first: Option<Vec<u8>>,
    pool: Option<BlockingPool>,
    wait: Duration,
}

/// Content that cannot be completed: the disk failed, or did not respond in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiecesFailed;

type PieceStep = (Box<dyn Produce>, Result<Option<Vec<u8>>, Failure>);

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
        Self { state: PieceState::Idle(Box::new(producer)), first: None, pool, wait }
    }

    /// Makes the first piece, so that a failure is known before anything is sent.
    ///
    /// # Errors
    /// The content cannot be made.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        if self.first.is_none() {
            self.first = poll_fn(|context| self.poll_piece(context)).await.transpose()?;
        }
        Ok(())
    }

    /// Does the same on this thread, if it is the one that makes all pieces.
    ///
    /// # Errors
    /// As [`Pieces::begin`].
    pub(super) fn begin_here(&mut self) -> Result<(), Failure> {
        let mut context = Context::from_waker(Waker::noop());
        if self.pool.is_none()
            && let Poll::Ready(piece) = self.poll_piece(&mut context)
        {
            self.first = piece.transpose()?;
        }
        Ok(())
    }

    /// Returns the next piece, at least one byte; `None` at the end.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Vec<u8>, PiecesFailed>>> {
        if let Some(piece) = self.first.take() {
            return Poll::Ready(Some(Ok(piece)));
        }
        self.poll_piece(context).map(|piece| piece.map(|made| made.map_err(|_| PiecesFailed)))
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Failure>>> {
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
                    if piece.is_empty() {
                        continue;
                    }
                    Some(Ok(piece))
                }
                Some((_, Ok(None))) => None,
                Some((_, Err(failure))) => Some(Err(failure)),
                None => Some(Err(Failure::WouldWait)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// Fails after some pieces.
    struct Failing(usize);

    impl Produce for Failing {
        fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
            self.0 = self.0.checked_sub(1).ok_or(Failure::Disk(Errno::IO))?;
            // Every other step makes nothing yet.
            Ok(Some(if self.0.is_multiple_of(2) { vec![1] } else { Vec::new() }))
        }
    }

    fn pieces(count: usize) -> Pieces {
        Pieces::new(Failing(count), None, Duration::MAX)
    }

    #[test]
    fn a_failure_at_the_beginning_is_known_before_anything_is_sent() {
        assert_eq!(pieces(0).begin_here(), Err(Failure::Disk(Errno::IO)));
        assert_eq!(pieces(4).begin_here(), Ok(()));
    }

    #[test]
    fn a_piece_that_was_made_in_advance_comes_first_and_none_is_empty() {
        for begins in [false, true] {
            let mut pieces = pieces(6);
            if begins {
                pieces.begin_here().expect("it can be made");
            }
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..3 {
                assert_eq!(pieces.poll_next(&mut context), Poll::Ready(Some(Ok(vec![1]))));
            }
            assert_eq!(pieces.poll_next(&mut context), Poll::Ready(Some(Err(PiecesFailed))));
            assert_eq!(pieces.poll_next(&mut context), Poll::Ready(None));
        }
    }
}
