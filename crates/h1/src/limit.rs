//! Limits that are reached: the program's hook decides, if there is one, and the fault is counted.

use gustnado_http::head::HeadError;
use gustnado_http::status::Status;
use gustnado_tasks::{ConnectionError, SendBuf};

use super::Conn;
use super::in_flight::InFlight;
use super::received::{Responded, TurnContext};
use gustnado_app::hooks::Limit;
use gustnado_observe::stats::{Added, Fault};

/// The outcome of a request's time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestTimeout {
    /// The program has granted more time.
    Extended,
    /// A part of the request arrived, so the peer gets a response.
    Refused(Status),
    /// Nothing arrived: the connection closes without a response.
    Idle,
}

impl Conn {
    /// Reports that a size limit was reached. Sizes cannot be extended.
    pub(super) fn note_size(&self, limit: Limit, numbers: (u64, u64), target: &[u8]) {
        self.app.note_size(self.requests, limit, numbers, target);
    }

    /// Reports a time-out. Returns the extended deadline if the program grants time; it is already
    /// set on the connection.
    ///
    /// - `configured_ms`, `reached`: as in [`LimitEvent`](gustnado_app::hooks::LimitEvent).
    /// - `target`: the request's, or empty.
    pub(super) fn more_time(
        &mut self,
        limit: Limit,
        configured_ms: u64,
        reached: u64,
        target: &[u8],
    ) -> Option<u64> {
        let numbers = (configured_ms, reached);
        let more_ms = self.app.more_ms(self.requests, limit, numbers, target)?;
        let until_ms = self.socket.now().mono_ms.saturating_add(more_ms);
        self.socket.set_deadline(until_ms);
        Some(until_ms)
    }

    /// Handles the time-out of a request that was awaited.
    #[cold]
    pub(super) fn request_timeout(&mut self) -> RequestTimeout {
        let (times, partial) = (&self.app.times, self.unread.as_ref());
        let (limit, ms) = match (partial, self.requests) {
            (Some(_), _) => (Limit::Head, times.header_ms),
            (None, 0) => (Limit::FirstRequest, times.first_ms),
            (None, _) => (Limit::KeepAlive, times.keep_alive_ms),
        };
        let bytes = partial.map_or(0, |unread| unread.bytes.len() as u64);
        if self.more_time(limit, ms, bytes, b"").is_some() {
            return RequestTimeout::Extended;
        }
        let fault = match limit {
            Limit::Head => return RequestTimeout::Refused(Status::REQUEST_TIMEOUT),
            Limit::FirstRequest => Fault::NeverAsked,
            _ => Fault::Idle,
        };
        self.app.count(&Added { fault: Some(fault), ..Added::default() });
        RequestTimeout::Idle
    }

    /// Writes the refusal of a head, and reports it to the program if a size limit was the reason.
    #[cold]
    pub(super) fn refuse_head(
        &self,
        error: HeadError,
        input: &[u8],
        turn: &mut TurnContext,
        out: &mut SendBuf,
    ) -> Responded {
        self.choose_prefix(turn, None);
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
        self.write_refusal(error.status(), None, turn, out)
    }

    /// Handles the time-out of a client that waits for a handler. Returns whether it may wait on.
    #[cold]
    pub(super) fn may_wait_on(&mut self, in_flight: &mut InFlight) -> bool {
        let is_idle = in_flight.idle_until_ms <= self.socket.now().mono_ms;
        let (limit, ms) = if is_idle {
            (Limit::Idle, in_flight.timeouts.map_or(0, |timeouts| timeouts.idle_ms))
        } else {
            (Limit::HalfClose, self.app.times.half_close_ms)
        };
        let received = in_flight.incoming.decoder.received();
        let until_ms = self.more_time(limit, ms, received, in_flight.parts.view().target());
        match until_ms {
            Some(until_ms) if is_idle => in_flight.idle_until_ms = until_ms,
            Some(until_ms) => in_flight.gone_ms = Some(until_ms),
            None => in_flight.is_overdue = is_idle,
        }
        until_ms.is_some()
    }

    /// Counts the fault that ended the connection, if it was one.
    pub(super) fn note(&self, error: &ConnectionError) {
        let fault = match error {
            ConnectionError::TimedOut => Fault::TooSlow,
            ConnectionError::FileTruncated => Fault::FileCut,
            ConnectionError::Cut => {
                // What the kernel holds for it is memory too.
                self.socket.reset_on_drop();
                Fault::SendCut
            }
            _ => return,
        };
        self.app.count(&Added { fault: Some(fault), ..Added::default() });
    }
}
