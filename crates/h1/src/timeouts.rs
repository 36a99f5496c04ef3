//! Time-outs of one route.

use gustnado_tasks::ProgressTimeout;

use gustnado_web::routes::RouteOptions;

/// How slow a route's client and how silent its handler may be, where the route has its own limits.
#[derive(Clone, Copy)]
pub(super) struct RouteTimeouts {
    pub(super) write: ProgressTimeout,
    /// How long a handler or a stream may be silent; `u64::MAX` is no limit.
    pub(super) idle_ms: u64,
}

impl RouteTimeouts {
    /// Returns `None` if a route has none of its own.
    pub(super) fn of(options: RouteOptions, usual: ProgressTimeout) -> Option<Self> {
        options.has_timeouts().then(|| Self {
            write: options.write_timeout(usual),
            idle_ms: options.idle_ms.map_or(u64::MAX, |ms| u64::from(ms.get())),
        })
    }

    /// Returns when an idle time that began at `now_ms` ends.
    pub(super) fn idle_from(self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.idle_ms)
    }
}
