//! How long one route's client and handler may take.

use gustnado_tasks::ProgressTimeout;

use gustnado_web::routes::RouteOptions;

/// How slow the client of one route may be, and how quiet its handler, where that is the route's
/// own.
#[derive(Clone, Copy)]
pub(super) struct RouteTimeouts {
    pub(super) write: ProgressTimeout,
    /// Milliseconds that a handler or a stream may have nothing to say; `u64::MAX` is no limit.
    pub(super) idle_ms: u64,
}

impl RouteTimeouts {
    /// `None` where a route has none of its own.
    pub(super) fn of(options: RouteOptions, usual: ProgressTimeout) -> Option<Self> {
        options.has_timeouts().then(|| Self {
            write: options.write_patience(usual),
            idle_ms: options.idle_ms.map_or(u64::MAX, |ms| u64::from(ms.get())),
        })
    }

    /// When idling since `now_ms` is over.
    pub(super) fn idle_from(self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.idle_ms)
    }
}
