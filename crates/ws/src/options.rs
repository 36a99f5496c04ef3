//! What the `WebSocket`s of an endpoint may do, and for how long.

use std::time::Duration;

use gustnado_http::websocket::ReadLimits;
use gustnado_http::websocket::deflate::{DeflateWishes, WINDOW_BITS_MAX};

/// Pages of which origins may open a WebSocket (RFC 6455 §10.2). A browser names the page's origin;
/// other clients name none, and are not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origins {
    /// Those of the host that is asked.
    #[default]
    SameHost,
    /// Those of the host that is asked, and these, such as `https://example.org`.
    Also(Vec<String>),
    /// All: the handler checks for itself.
    Any,
}

/// What the `WebSocket`s of an endpoint may do, and for how long.
#[derive(Clone, Debug)]
pub struct WebSocketOptions {
    pub(crate) frame_bytes_max: u64,
    pub(crate) message_bytes_max: u64,
    pub(crate) fragments_max: u32,
    pub(crate) unsent_bytes_max: usize,
    pub(crate) ping: Option<Duration>,
    pub(crate) close_time: Duration,
    pub(crate) origins: Origins,
    pub(crate) subprotocols: Vec<String>,
    pub(crate) deflate: Option<DeflateWishes>,
    pub(crate) deflate_bytes_min: usize,
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self {
            frame_bytes_max: 1 << 20,
            message_bytes_max: 16 << 20,
            fragments_max: 1_024,
            unsent_bytes_max: 1 << 20,
            ping: Some(Duration::from_secs(30)),
            close_time: Duration::from_secs(5),
            origins: Origins::SameHost,
            subprotocols: Vec::new(),
            deflate: Some(DeflateWishes { keeps_context: false, window_bits_max: WINDOW_BITS_MAX }),
            deflate_bytes_min: 860,
        }
    }
}

impl WebSocketOptions {
    pub(crate) fn read_limits(&self, may_be_compressed: bool) -> ReadLimits {
        ReadLimits {
            frame_bytes_max: self.frame_bytes_max.min(self.message_bytes_max),
            message_bytes_max: self.message_bytes_max,
            fragments_max: self.fragments_max,
            may_be_compressed,
        }
    }
}
