//! How long the peer's answer to a close frame is waited for.

use std::mem;

use gustnado_config::millis;
use gustnado_tasks::now;

use super::Core;

/// The wait for the peer's answer to a close frame.
#[derive(Clone, Copy, Default)]
pub(super) enum CloseWait {
    /// No close frame was sent, or the time of a drain counts.
    #[default]
    No,
    /// It begins when something is received next: other threads that close have no clock.
    Due,
    /// Until this time of the clock.
    Until(u64),
    /// The time is over, and something was received since.
    Late,
}

impl CloseWait {
    fn until_ms(self) -> u64 {
        match self {
            Self::No | Self::Due => u64::MAX,
            Self::Until(at_ms) => at_ms,
            Self::Late => 0,
        }
    }
}

impl Core {
    /// Returns when the peer is looked at, if nothing comes.
    pub(super) fn look_at_ms(&mut self) -> u64 {
        let silent_until_ms = self.tunnel.silent_until_ms();
        let Some(extras) = self.extras.as_mut().filter(|_| self.has_closed) else {
            return silent_until_ms;
        };
        if matches!(extras.close_wait, CloseWait::Due) {
            let time_ms = millis(self.options.close_timeout);
            extras.close_wait = CloseWait::Until(now().mono_ms.saturating_add(time_ms));
        }
        silent_until_ms.min(extras.close_wait.until_ms())
    }

    /// Returns whether the peer has had its time to answer the close frame.
    pub(super) fn is_past_close(&self) -> bool {
        let until_ms = self.extras.as_ref().map(|extras| extras.close_wait.until_ms());
        until_ms.is_some_and(|until_ms| until_ms <= now().mono_ms)
    }

    /// Returns whether the peer goes on sending when it has had that time. What is received first
    /// after it may have come before: the handler has its pauses.
    pub(super) fn ignores_close(&mut self) -> bool {
        if !self.is_past_close() {
            return false;
        }
        let before = mem::replace(&mut self.extras().close_wait, CloseWait::Late);
        matches!(before, CloseWait::Late)
    }
}
