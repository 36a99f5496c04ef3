//! The total time of a request.

use std::time::Duration;

use super::millis;

/// When a request ends, at the latest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    /// How long it may take; `None` for as long as it likes.
    pub(super) timeout: Option<Duration>,
    /// The workers' time at which that has passed.
    pub(super) at_ms: u64,
}

impl Total {
    /// Counts from now on.
    pub(super) fn start(timeout: Option<Duration>) -> Self {
        let now_ms = gustnado_tasks::now().mono_ms;
        let at_ms = timeout.map_or(u64::MAX, |timeout| now_ms.saturating_add(millis(timeout)));
        Self { timeout, at_ms }
    }
}
