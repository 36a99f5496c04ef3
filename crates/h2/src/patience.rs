//! How long a stream waits for its client: for the next bytes of a body, or for room to send.

use gustnado_tasks::{ProgressTimeout, ProgressWindow};

/// One direction of a stream, as far as its client was waited for.
#[derive(Default)]
pub(super) struct Patience {
    window: Option<ProgressWindow>,
    bytes: u64,
    /// Until when the next byte has to come; 0: that is not known yet, or nothing is waited for.
    until_ms: u64,
}

impl Patience {
    /// Notes bytes that the client has sent, or has made room for.
    pub(super) fn note(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.until_ms = 0;
    }

    /// The client is waited for. Returns until when.
    pub(super) fn wait(&mut self, limit: ProgressTimeout, now_ms: u64) -> u64 {
        let window = self.window.get_or_insert_with(|| ProgressWindow::new(limit, now_ms));
        window.resume(now_ms);
        if self.until_ms == 0 {
            self.until_ms = window.deadline_ms(limit, now_ms, self.bytes);
        }
        self.until_ms
    }

    /// The client is not waited for.
    pub(super) fn pause(&mut self, now_ms: u64) {
        self.until_ms = 0;
        if let Some(window) = &mut self.window {
            window.stop(now_ms);
        }
    }

    /// Returns whether it has had its time, of which it gets a new one then.
    pub(super) fn is_over(&mut self, now_ms: u64) -> bool {
        let is_over = (1..=now_ms).contains(&self.until_ms);
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}
