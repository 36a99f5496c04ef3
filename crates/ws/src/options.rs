//! What the `WebSocket`s of an endpoint may do, and for how long.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gustnado_config::{Config, WebSocketDeflate, WebSocketSettings};
use gustnado_http::websocket::ReadLimits;
use gustnado_http::websocket::deflate::{DeflateOptions, WINDOW_BITS_MAX};
use gustnado_observe::server_stats::ServerStats;
use gustnado_observe::stats::WebSocketCount;
use gustnado_tasks::Rate;
use gustnado_web::server_context::ServerContext;

/// Pages of which origins may open a WebSocket (RFC 6455 §10.2). A browser names the page's origin;
/// other clients name none, and are not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origins {
    /// Those of the host that is asked. Behind a trusted proxy it is the host that the proxy was
    /// asked for: see [`Request::public_host`](gustnado_web::request::Request::public_host).
    #[default]
    SameHost,
    /// Those of the host that is asked, and these, such as `https://example.org`.
    Also(Vec<String>),
    /// All: the handler checks for itself.
    Any,
}

/// Declares the options, as they are in force and as an endpoint sets them.
macro_rules! options {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)+) => {
        /// What the `WebSocket`s of an endpoint may do, and for how long.
        #[derive(Clone)]
        pub struct WebSocketOptions {
            $($(#[$doc])* pub(crate) $field: $type,)+
            /// The server's counters, and whether it starts again; `None` without a server.
            server: Option<Arc<dyn ServerStats>>,
        }

        /// What an endpoint sets: the rest is the server's.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct OwnOptions {
            $(pub(crate) $field: Option<$type>,)+
        }

        impl OwnOptions {
            /// Returns what is in force where the rest is `usual`.
            pub(crate) fn or(&self, usual: WebSocketOptions) -> WebSocketOptions {
                WebSocketOptions {
                    $($field: self.$field.clone().unwrap_or(usual.$field),)+
                    server: usual.server,
                }
            }
        }

        impl fmt::Debug for WebSocketOptions {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct("WebSocketOptions");
                $(shown.field(stringify!($field), &self.$field);)+
                shown.finish_non_exhaustive()
            }
        }
    };
}

options! {
    frame_bytes_max: u64,
    message_bytes_max: u64,
    fragments_max: u32,
    /// How often a peer may send something; `None` is no limit.
    rate: Option<Rate>,
    unsent_bytes_max: usize,
    ping: Option<Duration>,
    ping_timeout: Duration,
    close_timeout: Duration,
    origins: Origins,
    subprotocols: Vec<String>,
    deflate: Option<DeflateOptions>,
    deflate_bytes_min: usize,
}

/// Those of a server with default settings.
impl Default for WebSocketOptions {
    fn default() -> Self {
        Self::of_settings(&WebSocketSettings::of(&Config::default()), None)
    }
}

impl WebSocketOptions {
    /// Returns those of a server.
    #[doc(hidden)]
    pub fn of(context: &ServerContext) -> Self {
        Self::of_settings(&context.websockets, context.server.clone())
    }

    fn of_settings(settings: &WebSocketSettings, server: Option<Arc<dyn ServerStats>>) -> Self {
        let keeps_context = settings.deflate == WebSocketDeflate::Context;
        let wanted = DeflateOptions { keeps_context, window_bits_max: WINDOW_BITS_MAX };
        Self {
            frame_bytes_max: settings.frame_bytes_max,
            message_bytes_max: settings.message_bytes_max,
            fragments_max: settings.fragments_max,
            rate: per_second(settings.messages_per_second_max),
            unsent_bytes_max: settings.unsent_bytes_max,
            ping: settings.ping,
            ping_timeout: settings.ping_timeout,
            close_timeout: settings.close_timeout,
            origins: Origins::SameHost,
            subprotocols: Vec::new(),
            deflate: (settings.deflate != WebSocketDeflate::Off).then_some(wanted),
            deflate_bytes_min: settings.deflate_bytes_min,
            server,
        }
    }

    pub(crate) fn read_limits(&self, may_be_compressed: bool) -> ReadLimits {
        ReadLimits {
            frame_bytes_max: self.frame_bytes_max.min(self.message_bytes_max),
            message_bytes_max: self.message_bytes_max,
            fragments_max: self.fragments_max,
            may_be_compressed,
        }
    }

    /// Adds to the server's counters.
    pub(crate) fn count(&self, count: WebSocketCount) {
        if let Some(server) = &self.server {
            server.count_websocket(count);
        }
    }

    /// Returns whether the server that ends is started again.
    pub(crate) fn is_restarting(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.is_restarting())
    }
}

/// Returns the rate of a number per second, of which a second's worth may come at once; 0 is no
/// limit.
pub(crate) fn per_second(number: u32) -> Option<Rate> {
    Rate::new(number.into(), number.into())
}
