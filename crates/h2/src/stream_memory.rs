//! The memory of a stream, as it is kept with it.

use gustnado_app::bodies::{BodyHold, BodyProgress};
use gustnado_tasks::Charge;

/// The memory of a stream.
#[derive(Default)]
pub(super) struct StreamMemory {
    /// Of its body.
    pub(super) hold: BodyHold,
    /// Of its head, if it is charged.
    pub(super) head: Option<Charge>,
    /// Bytes of the body that the client was not given back.
    pub(super) owed: usize,
    /// When more is asked for again; 0: that is not waited for.
    pub(super) retry_ms: u64,
}

impl StreamMemory {
    /// Notes bytes that the client may send again, once there is memory for them.
    pub(super) fn owe(&mut self, bytes: usize) {
        self.owed += bytes;
    }

    /// Returns whether the client has to wait until there is memory.
    pub(super) fn is_waiting(&self) -> bool {
        self.retry_ms > 0
    }

    /// Returns when more is asked for again.
    pub(super) fn retry_ms(&self) -> u64 {
        if self.retry_ms > 0 { self.retry_ms } else { u64::MAX }
    }

    pub(super) fn is_due(&self, progress: &BodyProgress, now_ms: u64) -> bool {
        if self.is_waiting() && self.retry_ms <= now_ms {
            return true;
        }
        let is_granted = self.hold.is_waiting() && self.hold.is_decided(progress);
        is_granted || self.hold.cut().is_some() || self.hold.is_to_spill()
    }
}
