//! What a handler may know of its server when it is made.

use std::fmt;
use std::sync::Arc;

use gustnado_config::WebSocketSettings;
use gustnado_observe::server_stats::ServerStats;

/// What a handler may know of its server when it is made.
#[derive(Clone)]
pub struct ServerContext {
    /// What `WebSocket`s keep to, if their endpoint says nothing else.
    pub websockets: WebSocketSettings,
    /// The server's counters; `None` without a server.
    pub server: Option<Arc<dyn ServerStats>>,
}

impl fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerContext")
            .field("websockets", &self.websockets)
            .finish_non_exhaustive()
    }
}
