//! A request from the permission to send it to its response.

use std::time::Duration;

use super::counts::FailureKind;
use super::schedule::Due;

/// Reason to leave a connection's loop.
#[derive(Debug)]
pub(super) enum LeaveReason {
    /// No further request will be sent.
    Over,
    /// The connection is closed; all its requests have ended, or will be sent on the next one.
    Closed,
    /// The connection failed, and with it all its requests.
    Failed(FailureKind),
    /// A deliberate pause.
    Pause(Duration),
}

/// Permission to send one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SendPermit {
    /// When it was due; `None` on a closed loop.
    pub(super) due: Option<Due>,
    /// Whether it is measured.
    pub(super) counted: bool,
}

/// A request that was sent, or is about to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRequest {
    pub(super) permit: SendPermit,
    pub(super) kind: u32,
    pub(super) hashes: bool,
    pub(super) sent: u64,
    /// Time to connect in nanoseconds, if it is the first on its connection; else 0.
    pub(super) connect: u64,
    /// Whether connecting is part of its latency.
    pub(super) churns: bool,
}

impl PendingRequest {
    /// When its latency begins, by its load model.
    pub(super) fn began(&self) -> u64 {
        let start = if self.churns { self.sent - self.connect.min(self.sent) } else { self.sent };
        self.permit.due.map_or(start, |due| due.at)
    }
}
