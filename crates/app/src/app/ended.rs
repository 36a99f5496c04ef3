//! The end of a connection, as a program may want to know of it.

use std::time::Duration;

use gustnado_tasks::contained;

use super::App;
use crate::hooks::ClosedConnection;

/// When a connection began, in milliseconds that wrap after 49 days.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStart(u32);

impl ConnectionStart {
    /// - `now_ms`: the workers' time.
    #[inline]
    pub fn at(now_ms: u64) -> Self {
        Self(low_half(now_ms))
    }
}

fn low_half(ms: u64) -> u32 {
    u32::try_from(ms & u64::from(u32::MAX)).expect("the low half")
}

impl App {
    /// Notes that a connection has ended: after a burst, memory goes back. Calls the program's
    /// hook.
    ///
    /// - `requests`: with a complete head.
    /// - `now_ms`: returns the workers' time.
    #[inline]
    pub fn note_closed(&self, start: ConnectionStart, requests: u32, now_ms: impl FnOnce() -> u64) {
        self.shared.heap_trim.note_closed(self.shared.workers.get());
        let Some(hook) = &self.hooks.closed else { return };
        let lasted = Duration::from_millis(low_half(now_ms()).wrapping_sub(start.0).into());
        let closed = ClosedConnection::new(requests, lasted, gustnado_tasks::worker());
        // A hook that panics must not end the worker, and a second panic in a drop would abort.
        _ = contained(|| hook(&closed));
    }
}
