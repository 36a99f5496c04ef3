//! Settings of a single route.

use std::num::NonZeroU32;

use gustnado_config::BodyPolicy;
use gustnado_tasks::{ProgressTimeout, Rate};

/// What may be set for a route alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteOptions {
    pub body_ms: Option<NonZeroU32>,
    pub write_ms: Option<NonZeroU32>,
    pub idle_ms: Option<NonZeroU32>,
    pub limit_body_bytes: Option<u64>,
    /// Where whole bodies are kept.
    pub body_policy: Option<BodyPolicy>,
    /// Rate at which bodies are received.
    pub read: Option<Rate>,
    /// Its rest keeps empty segments.
    pub keeps_empty: bool,
    /// How long a handler may continue once its client has shut its sending side.
    pub half_close_ms: Option<u32>,
    /// As a fallback, it handles `OPTIONS *` in place of the server.
    pub takes_asterisk: bool,
    /// As a fallback, it handles CONNECT.
    pub takes_connect: bool,
    /// Names the route where a worker that it holds is reported: see [`Tables::path_of`]. 0: none.
    ///
    /// [`Tables::path_of`]: crate::routes::Tables::path_of
    pub label: u32,
}

impl RouteOptions {
    /// Returns whether whole bodies may go to the disk.
    pub fn spools_bodies(&self) -> bool {
        self.body_policy == Some(BodyPolicy::Spool)
    }

    /// Returns those of a handler whose route has the path of another one: it keeps its own limit
    /// of bodies and its time-outs, and has the rest in common.
    pub fn beside(&self, own: &Self) -> Self {
        Self {
            body_ms: own.body_ms,
            write_ms: own.write_ms,
            idle_ms: own.idle_ms,
            limit_body_bytes: own.limit_body_bytes,
            half_close_ms: own.half_close_ms,
            ..*self
        }
    }

    /// Returns whether the route's responses have time-outs of their own.
    pub fn has_timeouts(self) -> bool {
        self.write_ms.is_some() || self.idle_ms.is_some()
    }

    /// Returns how slow a body may be: the route's own limit of silence, or the usual one.
    pub fn body_timeout(self, usual: ProgressTimeout) -> ProgressTimeout {
        with_silence(self.body_ms, usual)
    }

    /// Returns how slow a reader may be.
    pub fn write_timeout(self, usual: ProgressTimeout) -> ProgressTimeout {
        with_silence(self.write_ms, usual)
    }
}

fn with_silence(own_ms: Option<NonZeroU32>, usual: ProgressTimeout) -> ProgressTimeout {
    ProgressTimeout {
        silence_ms: own_ms.map_or(usual.silence_ms, |ms| u64::from(ms.get())),
        ..usual
    }
}
