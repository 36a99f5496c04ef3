//! What may be set for a route alone.

use std::num::NonZeroU32;

use gustnado_tasks::{ProgressTimeout, Rate};

/// What may be set for a route alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteOptions {
    pub body_ms: Option<NonZeroU32>,
    pub write_ms: Option<NonZeroU32>,
    pub idle_ms: Option<NonZeroU32>,
    pub limit_body_bytes: Option<u64>,
    /// How fast a body may come.
    pub read: Option<Rate>,
    /// Whether its rest keeps empty segments.
    pub keeps_empty: bool,
    /// How long a handler may go on once its client has sent its last byte.
    pub half_close_ms: Option<u32>,
    /// Whether, as a fallback, it handles `OPTIONS *` in place of the server.
    pub takes_asterisk: bool,
    /// The same of CONNECT.
    pub takes_connect: bool,
}

impl RouteOptions {
    /// Returns whether the route's responses have time-outs of their own.
    pub fn has_timeouts(self) -> bool {
        self.write_ms.is_some() || self.idle_ms.is_some()
    }

    /// How slow a body may be: with a silence of its own, or the usual one.
    pub fn body_patience(self, usual: ProgressTimeout) -> ProgressTimeout {
        with_silence(self.body_ms, usual)
    }

    /// How slow a reader may be.
    pub fn write_patience(self, usual: ProgressTimeout) -> ProgressTimeout {
        with_silence(self.write_ms, usual)
    }
}

fn with_silence(own_ms: Option<NonZeroU32>, usual: ProgressTimeout) -> ProgressTimeout {
    ProgressTimeout {
        silence_ms: own_ms.map_or(usual.silence_ms, |ms| u64::from(ms.get())),
        ..usual
    }
}
