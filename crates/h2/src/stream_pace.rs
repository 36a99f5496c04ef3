//! The pace of a stream, as it is kept with it.

use std::sync::Arc;

use gustnado_tasks::Rate;
use gustnado_tls::{BodyPacer, ResponsePace};
use gustnado_web::response::Response;

/// A stream's part of its route's pace.
pub(super) struct StreamPace {
    pub(super) pace: Arc<ResponsePace>,
    /// Content that may be sent at that time.
    pub(super) bytes: usize,
    pub(super) at_ms: u64,
}

/// A response that may not begin yet.
pub(super) struct HeldResponse {
    pub(super) response: Response,
    pub(super) head_only: bool,
    pub(super) has_pieces: bool,
    pub(super) until_ms: u64,
}

impl HeldResponse {
    pub(super) fn until_ms(&self) -> u64 {
        self.until_ms
    }
}

/// The pace at which the body of a stream comes, from its route.
pub(super) struct StreamRead {
    pacer: BodyPacer,
    pub(super) at_ms: u64,
}

impl StreamRead {
    pub(super) fn new(rate: Rate) -> Self {
        Self { pacer: BodyPacer::new(rate), at_ms: 0 }
    }

    /// Counts bytes that have come.
    pub(super) fn note(&mut self, bytes: usize, now_ms: u64) {
        self.at_ms = self.pacer.charge(now_ms, bytes as u64);
    }

    /// Returns until when the client is given no more window, if it is not.
    pub(super) fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        (self.at_ms > now_ms).then_some(self.at_ms)
    }
}

impl StreamPace {
    /// Notes content that has left.
    pub(super) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Returns when more may leave.
    pub(super) fn at_ms(&self) -> u64 {
        self.at_ms
    }
}
