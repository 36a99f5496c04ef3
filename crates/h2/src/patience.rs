//! How long a stream waits: for the next bytes of a body, for room to send, for its handler.

use gustnado_tasks::{ProgressTimeout, ProgressWindow};
use gustnado_web::routes::RouteOptions;

/// One direction of a stream, as far as its client was waited for.
#[derive(Default)]
pub(super) struct Patience {
    /// In a box: most streams are never waited for.
    window: Option<Box<ProgressWindow>>,
    bytes: u64,
    /// Until when the next byte has to come; 0: that is not known yet, or nothing is waited for.
    until_ms: u64,
    /// Until then it was given time.
    granted_ms: u64,
}

impl Patience {
    /// Notes bytes that the client has sent, or has made room for.
    pub(super) fn note(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.until_ms = 0;
    }

    /// The client is waited for. Returns until when.
    pub(super) fn wait(&mut self, limit: ProgressTimeout, now_ms: u64) -> u64 {
        let window = self.window.get_or_insert_with(|| ProgressWindow::new(limit, now_ms).into());
        window.resume(now_ms);
        if self.until_ms == 0 {
            self.until_ms = window.deadline_ms(limit, now_ms, self.bytes).max(self.granted_ms);
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

    /// Returns how many bytes the client has sent, or made room for.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the client time until then.
    pub(super) fn grant(&mut self, until_ms: u64) {
        (self.until_ms, self.granted_ms) = (until_ms, until_ms);
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

/// How long a handler, or the stream that it makes, may be silent.
#[derive(Default)]
pub(super) struct HandlerTime {
    /// 0: there is no limit.
    idle_ms: u64,
    until_ms: u64,
}

impl HandlerTime {
    /// The handler of a route begins.
    pub(super) fn begin(&mut self, options: RouteOptions, now_ms: u64) {
        self.idle_ms = options.idle_ms.map_or(0, |ms| u64::from(ms.get()));
        self.note_progress(now_ms);
    }

    /// It was not silent, or could not help it.
    pub(super) fn note_progress(&mut self, now_ms: u64) {
        self.until_ms = now_ms + self.idle_ms;
    }

    /// Returns until when it may be silent.
    pub(super) fn until_ms(&self) -> u64 {
        if self.idle_ms > 0 { self.until_ms } else { u64::MAX }
    }

    /// Returns how long it may be, in milliseconds.
    pub(super) fn idle_ms(&self) -> u64 {
        self.idle_ms
    }

    /// Gives it time until then.
    pub(super) fn grant(&mut self, until_ms: u64) {
        self.until_ms = until_ms;
    }
}
