//! Sends that wait: until the bytes have left, or the peer has had its time.

use std::fs::File;
use std::future::poll_fn;

use gustnado_tasks::{Connection, ConnectionError, Patience, SendBuf, SendWatch, now};

use super::Socket;

/// Most bytes that are sent in one step at a pace, however fast it is.
const STEP_BYTES_MAX: u64 = 64 << 10;

/// Gives a peer whose time is over more of it, where a program grants some.
///
/// The argument is how many bytes the peer has taken of a file; the result is how many
/// milliseconds more it has.
pub type MoreTime<'a> = &'a mut (dyn FnMut(u64) -> Option<u64> + Send);

/// A send that was given up.
#[derive(Debug)]
pub struct SendFailed {
    /// The reason.
    pub error: ConnectionError,
    /// Bytes of it that have not left.
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
        patience: Patience,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        if self.is_paced() {
            // Boxed, as most connections have no pace: it would make every future larger.
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
        patience: Patience,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        // What is sent may have been long in coming.
        self.refresh_now();
        self.start_send_within(out, patience);
        self.sent(SendWatch::new(self.now().mono_ms), patience, more).await
    }

    /// Goes on with a send whose first deadline has come.
    ///
    /// # Errors
    /// [`SendFailed`].
    pub async fn send_on(
        &mut self,
        patience: Patience,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        let began_ms = self.deadline_ms().saturating_sub(patience.first_look_ms());
        self.sent(SendWatch::new(began_ms), patience, more).await
    }

    /// Sends bytes of a file from `at` to `end`. `at` moves along.
    ///
    /// At a pace, [`Socket::await_turn`] has to have granted them.
    ///
    /// # Errors
    /// As [`Connection::send_file`].
    pub async fn send_file(
        &mut self,
        file: &File,
        at: &mut u64,
        end: u64,
        patience: Patience,
        more: MoreTime<'_>,
    ) -> Result<(), ConnectionError> {
        let (began_ms, before) = (now().mono_ms, *at);
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

    /// Takes over bytes to send, and sets when to look at them first.
    fn start_send_within(&mut self, out: Box<SendBuf>, patience: Patience) {
        self.set_deadline(self.now().mono_ms.saturating_add(patience.first_look_ms()));
        self.start_send(out);
    }

    /// Waits until what was taken over has been sent. The deadline is set.
    async fn sent(
        &mut self,
        mut watch: SendWatch,
        patience: Patience,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        loop {
            match poll_fn(|_| self.poll_sent()).await {
                Ok(()) => return Ok(()),
                Err(ConnectionError::TimedOut)
                    if self.connection.look_at_send(&mut watch, patience, None) => {}
                Err(ConnectionError::TimedOut) if self.extend_deadline(more(0)) => {}
                Err(error) => {
                    let unsent = self.unsent_bytes();
                    return Err(SendFailed { error, unsent });
                }
            }
        }
    }

    /// Sets the deadline to so many milliseconds from now. Returns whether there are any.
    fn extend_deadline(&mut self, more_ms: Option<u64>) -> bool {
        if let Some(more_ms) = more_ms {
            self.set_deadline(self.now().mono_ms.saturating_add(more_ms));
        }
        more_ms.is_some()
    }

    async fn send_at_pace(
        &mut self,
        mut out: Box<SendBuf>,
        patience: Patience,
        more: MoreTime<'_>,
    ) -> Result<(), SendFailed> {
        if out.is_empty() {
            Connection::put_back(out);
            return Ok(());
        }
        // (What follows has a turn of its own, which the kernel is not to wait for.)
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
