//! What happens when a limit strikes: the program is asked, if it wishes, and the fault is counted.

use std::future::poll_fn;

use gustnado_config::millis;
use gustnado_http::head::HeadError;
use gustnado_http::status::Status;
use gustnado_tasks::{ConnectionError, ProgressTimeout, SendBuf, SendWatch};

use super::arrived::{HeadAt, Moment};
use super::flight::Flight;
use super::{Conn, Next};
use crate::contained::contained;
use crate::hooks::{Limit, Struck, Verdict};
use crate::stats::{Added, Fault};

/// A send that was given up.
pub(super) struct SendFailed {
    pub(super) error: ConnectionError,
    /// Bytes of it that have not left.
    pub(super) unsent: u64,
}

impl From<SendFailed> for ConnectionError {
    fn from(failed: SendFailed) -> Self {
        failed.error
    }
}

impl Conn {
    /// Tells the program, if it wishes, that a limit has struck.
    #[cold]
    fn judge(&self, limit: Limit, (configured, reached): (u64, u64), target: &[u8]) -> Verdict {
        let Some(hook) = &self.app.hooks.limit else { return Verdict::Close };
        let target = std::str::from_utf8(target).ok().filter(|target| !target.is_empty());
        let struck = Struck { limit, configured, reached, target, requests: self.requests };
        // A panic in it is its own.
        contained(|| hook(&struck)).unwrap_or_default()
    }

    /// A size has struck.
    pub(super) fn note_size(&self, limit: Limit, numbers: (u64, u64), target: &[u8]) {
        _ = self.judge(limit, numbers, target);
    }

    /// A time has struck. Returns until when there is more of it, if the program grants some; the
    /// connection's deadline is set to that.
    ///
    /// - `configured_ms`, `reached`: as in [`Struck`].
    /// - `target`: the request's, or empty.
    pub(super) fn more_time(
        &mut self,
        limit: Limit,
        configured_ms: u64,
        reached: u64,
        target: &[u8],
    ) -> Option<u64> {
        match self.judge(limit, (configured_ms, reached), target) {
            Verdict::Wait(more) => {
                let until_ms = self.socket.now().mono_ms.saturating_add(millis(more).max(1));
                self.socket.set_deadline(until_ms);
                Some(until_ms)
            }
            Verdict::Close => None,
        }
    }

    /// The time for a request has come while it was waited for.
    #[cold]
    pub(super) fn miss_request(&mut self) -> Next {
        let (times, held) = (&self.app.times, self.unread.as_ref());
        let (limit, ms) = match (held, self.requests) {
            (Some(_), _) => (Limit::Head, times.header_ms),
            (None, 0) => (Limit::FirstRequest, times.first_ms),
            (None, _) => (Limit::KeepAlive, times.keep_alive_ms),
        };
        let bytes = held.map_or(0, |unread| unread.bytes.len() as u64);
        if self.more_time(limit, ms, bytes, b"").is_some() {
            return Next::Receive;
        }
        let fault = match limit {
            Limit::Head => return self.refuse(Status::REQUEST_TIMEOUT, None),
            Limit::FirstRequest => Fault::NeverAsked,
            _ => Fault::Idle,
        };
        self.app.count(&Added { fault: Some(fault), ..Added::default() });
        Next::Close
    }

    /// A head was refused: says so to the program if that was for its size.
    #[cold]
    pub(super) fn refuse_head(
        &self,
        error: HeadError,
        input: &[u8],
        moment: &Moment,
        out: &mut SendBuf,
    ) -> HeadAt {
        let size = |limit: usize, reached: usize| (limit as u64, reached as u64);
        match error {
            HeadError::TooLarge { limit_bytes } => {
                self.note_size(Limit::HeadBytes, size(limit_bytes, input.len()), b"");
            }
            HeadError::TargetTooLong { limit_bytes } => {
                self.note_size(Limit::TargetBytes, size(limit_bytes, input.len()), b"");
            }
            HeadError::TooManyFields { limit } => {
                self.note_size(Limit::HeaderFields, size(limit, limit + 1), b"");
            }
            _ => {}
        }
        self.write_refusal(error.status(), None, moment, out)
    }

    /// A send has failed: the end, unless that was for its time, of which there may be more.
    #[cold]
    pub(super) fn fail_send(&mut self, error: &ConnectionError, next: Next) -> Next {
        match error {
            ConnectionError::TimedOut => Next::Delayed(Box::new(next)),
            error => {
                let unsent = self.take_back_unsent();
                self.log_unsent(unsent);
                self.give_up(error)
            }
        }
    }

    /// Ends a connection whose send has failed: the log takes back what has not left.
    pub(super) fn give_up_send(&mut self, failed: &SendFailed) -> Next {
        self.log_unsent(failed.unsent);
        self.give_up(&failed.error)
    }

    /// Takes back of what was counted what the kernel has not taken. Returns how much that is.
    fn take_back_unsent(&self) -> u64 {
        let unsent = self.socket.unsent_bytes();
        self.app.take_back(unsent);
        unsent
    }

    /// Sends bytes now. They have been counted.
    ///
    /// - `target`: of the request that is answered, or empty.
    pub(super) async fn send_within(
        &mut self,
        out: Box<SendBuf>,
        patience: ProgressTimeout,
        target: &[u8],
    ) -> Result<(), SendFailed> {
        // What is sent may have been long in coming.
        self.socket.refresh_now();
        self.socket.set_deadline(self.socket.now().mono_ms + patience.first_look_ms());
        let watch = SendWatch::new(self.socket.now().mono_ms);
        self.socket.start_send(out);
        self.sent(watch, patience, target).await
    }

    /// Waits until what was taken over has been sent. The deadline is set.
    pub(super) async fn sent(
        &mut self,
        mut watch: SendWatch,
        patience: ProgressTimeout,
        target: &[u8],
    ) -> Result<(), SendFailed> {
        loop {
            match poll_fn(|_| self.socket.poll_sent()).await {
                Err(ConnectionError::TimedOut)
                    if self.socket.look_at_send(&mut watch, patience, None)
                        || self.has_more_send_time(patience, target) => {}
                Err(error) => {
                    return Err(SendFailed { error, unsent: self.take_back_unsent() });
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Goes on waiting after the first deadline of a usual send.
    pub(super) async fn sent_late(&mut self) -> Result<(), SendFailed> {
        let patience = self.app.times.write;
        let began_ms = self.socket.deadline_ms().saturating_sub(patience.first_look_ms());
        self.sent(SendWatch::new(began_ms), patience, b"").await
    }

    fn has_more_send_time(&mut self, patience: ProgressTimeout, target: &[u8]) -> bool {
        self.more_time(Limit::Write, patience.silence_ms, 0, target).is_some()
    }

    /// A client that waits for a handler has waited long enough: whether it may wait on.
    #[cold]
    pub(super) fn may_wait_on(&mut self, flight: &mut Flight) -> bool {
        let is_idle = flight.idle_until_ms <= self.socket.now().mono_ms;
        let (limit, ms) = if is_idle {
            (Limit::Idle, flight.terms.map_or(0, |terms| terms.idle_ms))
        } else {
            (Limit::HalfClose, self.app.times.half_close_ms)
        };
        let received = flight.incoming.decoder.received();
        let until_ms = self.more_time(limit, ms, received, flight.parts.view().target());
        match until_ms {
            Some(until_ms) if is_idle => flight.idle_until_ms = until_ms,
            Some(until_ms) => flight.gone_ms = Some(until_ms),
            None => flight.is_overdue = is_idle,
        }
        until_ms.is_some()
    }
}
