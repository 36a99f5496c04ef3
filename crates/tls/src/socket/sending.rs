//! Sends that wait until the bytes have left, or the peer's time is over.

use std::fs::File;
use std::future::poll_fn;

use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, SendBuf, SendWatch, now};

use super::Socket;

/// The most bytes in one step at a pace, however fast it is: a larger one would be a burst.
const STEP_BYTES_MAX: u64 = 64 << 10;

/// Extends the time of a peer, if a program grants that.
///
/// The argument is how many bytes of a file the peer has taken; the result is by how many
/// milliseconds its time is extended.
pub type MoreTime<'a> = &'a mut (dyn FnMut(u64) -> Option<u64> + Send);

/// A send that was given up.
#[derive(Debug)]
pub struct SendFailed {
    /// The reason.
    pub error: ConnectionError,
    /// Bytes of it that did not leave.
    pub unsent: u64,
}

impl From<SendFailed> for ConnectionError {
    fn from(failed: SendFailed) -> Self {
        failed.error
    }
}

impl Socket {
    /// Sends bytes: at once, or at the connection's pace.
    ///
    /// # Errors
    /// [`SendFailed`].
    pub async fn send(
        &mut self,
        out: Box<SendBuf>,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        if self.is_paced() {
            // Boxed, as most connections have no pace: its state would enlarge every connection's
            // future.
            return Box::pin(self.send_at_pace(out, patience, more)).await;
        }
        self.send_at_once(out, patience, more).await
    }

    /// Sends bytes at once, whatever the pace.
    ///
    /// # Errors
    /// [`SendFailed`].
    pub async fn send_at_once(
        &mut self,
        out: Box<SendBuf>,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        // The clock of the last operation may be old: a handler may have taken long to make these
        // bytes.
        self.refresh_now();
        self.start_send_within(out, patience);
        self.sent(SendWatch::new(self.now().mono_ms), patience, more).await
    }

    /// Continues a send whose first deadline has passed.
    ///
    /// # Errors
    /// [`SendFailed`].
    pub async fn send_on(
        &mut self,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        // The send began when its first deadline was set, so that is where its time is counted
        // from.
        let began_ms = self.deadline_ms().saturating_sub(patience.first_look_ms());
        self.sent(SendWatch::new(began_ms), patience, more).await
    }

    /// Sends bytes of a file from `at` to `end`, and moves `at` along.
    ///
    /// At a pace, [`Socket::await_turn`] must have granted them.
    ///
    /// # Errors
    /// As [`Connection::send_file`].
    pub async fn send_file(
        &mut self,
        file: &File,
        at: &mut u64,
        end: u64,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), ConnectionError> {
        let (began_ms, before) = (now().mono_ms, *at);
        if self.is_sealed() {
            let patience = self.step_patience(patience, began_ms);
            // Boxed, as this future is part of every connection's.
            Box::pin(self.send_file_sealed(file, at, end, patience, more)).await?;
            self.note_sent(began_ms, end - before);
            return Ok(());
        }
        let mut patience = self.step_patience(patience, began_ms);
        loop {
            match self.connection.send_file(file, at, end, patience).await {
                Ok(()) => break,
                Err(ConnectionError::TimedOut) => {
                    let more_ms = more(*at - before).ok_or(ConnectionError::TimedOut)?;
                    patience.silence_ms = more_ms;
                }
                Err(error) => return Err(error),
            }
        }
        self.note_sent(began_ms, end - before);
        Ok(())
    }

    /// Takes over bytes to send, and sets when their progress is first checked.
    fn start_send_within(&mut self, out: Box<SendBuf>, patience: ProgressTimeout) {
        self.set_deadline(self.now().mono_ms.saturating_add(patience.first_look_ms()));
        self.start_send(out);
    }

    /// Waits until the bytes that were taken over have left. The deadline is set already.
    pub(super) async fn sent(
        &mut self,
        mut watch: SendWatch,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        loop {
            match poll_fn(|_| self.poll_sent()).await {
                Ok(()) => return Ok(()),
                Err(ConnectionError::TimedOut) if self.look_at_send(&mut watch, patience) => {}
                Err(ConnectionError::TimedOut) if self.extend_deadline(more(0)) => {}
                Err(error) => {
                    let unsent = self.unsent_bytes();
                    return Err(SendFailed { error, unsent });
                }
            }
        }
    }

    /// Looks at how far a send has come, and sets the next deadline. Returns false if the peer has
    /// had its time. As [`Connection::look_at_send`].
    pub fn look_at_send(&mut self, watch: &mut SendWatch, patience: ProgressTimeout) -> bool {
        // Of sealed bytes the connection knows one step alone.
        let whole = self.is_sealed().then(|| (0, self.left_sealed()));
        self.connection.look_at_send(watch, patience, whole)
    }

    /// Extends the deadline from now. Returns whether there was time to add.
    fn extend_deadline(&mut self, more_ms: Option<u64>) -> bool {
        if let Some(more_ms) = more_ms {
            self.set_deadline(self.now().mono_ms.saturating_add(more_ms));
        }
        more_ms.is_some()
    }

    async fn send_at_pace(
        &mut self,
        mut out: Box<SendBuf>,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        if out.is_empty() {
            Connection::put_back(out);
            return Ok(());
        }
        // Copied out, as each step gets a turn and a buffer of its own, without a hint that more
        // follows: the kernel must not hold a step back.
        let bytes = out.take_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let left = (bytes.len() - at) as u64;
            let granted = match self.await_turn(left.min(STEP_BYTES_MAX)).await {
                Ok(granted) => granted,
                Err(error) => return Err(SendFailed { error, unsent: left }),
            };
            let end = at + usize::try_from(granted).expect("not more than was wanted");
            out.bytes.extend_from_slice(&bytes[at..end]);
            self.refresh_now();
            let began_ms = self.now().mono_ms;
            let patience = self.step_patience(patience, began_ms);
            self.start_send_within(out, patience);
            // Only the time that the peer takes counts against it.
            if let Err(failed) = self.sent(SendWatch::new(began_ms), patience, more).await {
                let unsent = failed.unsent + (left - granted);
                return Err(SendFailed { unsent, ..failed });
            }
            self.note_sent(began_ms, granted);
            out = Connection::outgoing();
            at = end;
        }
        Connection::put_back(out);
        Ok(())
    }
}
