//! The times of a request: the total one, and what it waits for now.

use std::sync::Arc;
use std::time::Duration;

use super::error::{ClientError, TimeoutPhase};
use super::upload::BodyUpload;
use super::{ClientOptions, millis};

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

    /// Returns when the present wait has lasted too long, and what it is for.
    ///
    /// - `moved_ms`: when something last moved.
    /// - `is_sending`: bytes wait to be sent.
    /// - `head_read`: the response's head has come.
    pub(super) fn wait(
        self,
        options: &ClientOptions,
        upload: &BodyUpload,
        moved_ms: u64,
        (is_sending, head_read): (bool, bool),
    ) -> (u64, TimeoutPhase) {
        let after = |timeout| moved_ms.saturating_add(millis(timeout));
        let (at_ms, waiting) = if is_sending {
            (after(options.idle_timeout), TimeoutPhase::Bytes)
        } else if upload.is_starving() {
            (u64::MAX, TimeoutPhase::Bytes)
        } else if upload.is_held() {
            (after(options.continue_timeout), TimeoutPhase::Head)
        } else if head_read {
            (after(options.idle_timeout), TimeoutPhase::Bytes)
        } else {
            (after(options.head_timeout), TimeoutPhase::Head)
        };
        if self.at_ms < at_ms {
            return (self.at_ms, TimeoutPhase::Total);
        }
        (at_ms, waiting)
    }

    /// Returns the error of a wait that has lasted too long.
    pub(super) fn timed_out(
        self,
        options: &ClientOptions,
        waiting: TimeoutPhase,
        host: Arc<str>,
    ) -> ClientError {
        let after = match waiting {
            TimeoutPhase::Connect => options.connect_timeout,
            TimeoutPhase::Head => options.head_timeout,
            TimeoutPhase::Bytes => options.idle_timeout,
            TimeoutPhase::Total => self.timeout.unwrap_or_default(),
        };
        ClientError::Timeout { waiting, host, after }
    }
}
