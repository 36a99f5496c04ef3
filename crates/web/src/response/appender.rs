//! A response that another task or thread writes over time.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use gustnado_tasks::{Receiver, SendTimeoutError, Sender, TrySendError, mailbox};
use thiserror::Error;

/// Writes a response over time: from a task, or from a thread that is no worker.
///
/// The response ends when the last clone is dropped. Each piece is sent at once.
#[derive(Clone)]
pub struct Appender(Sender<Bytes>);

/// Error of an append.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppendError {
    /// The connection is lost, or the response was never sent.
    #[error("the connection is lost")]
    Lost,
    /// The client does not read, and the most pieces already wait.
    #[error("the client does not read, and the most pieces already wait")]
    Full,
}

impl Appender {
    pub(super) fn new(pieces_max: usize) -> (Self, Receiver<Bytes>) {
        let (sender, receiver) = mailbox(pieces_max);
        (Self(sender), receiver)
    }

    /// Appends a piece, and waits while too many wait already. For tasks.
    ///
    /// # Errors
    /// [`AppendError::Lost`]: the connection is lost, or the response was never sent.
    pub async fn append(&self, piece: impl Into<Bytes>) -> Result<(), AppendError> {
        self.0.send(piece.into()).await.map_err(|_| AppendError::Lost)
    }

    /// Appends a piece without waiting.
    ///
    /// # Errors
    /// [`AppendError`]: too many pieces wait, or the connection is lost.
    pub fn try_append(&self, piece: impl Into<Bytes>) -> Result<(), AppendError> {
        self.0.try_send(piece.into()).map_err(|error| match error {
            TrySendError::Full(_) => AppendError::Full,
            _ => AppendError::Lost,
        })
    }

    /// Appends a piece, and holds the thread while too many wait already. Not for workers.
    ///
    /// # Errors
    /// [`AppendError`]: `Full` after `timeout`.
    pub fn blocking_append(
        &self,
        piece: impl Into<Bytes>,
        timeout: Option<Duration>,
    ) -> Result<(), AppendError> {
        self.0.blocking_send(piece.into(), timeout).map_err(|error| match error {
            SendTimeoutError::TimedOut(_) => AppendError::Full,
            _ => AppendError::Lost,
        })
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Appender")
    }
}
