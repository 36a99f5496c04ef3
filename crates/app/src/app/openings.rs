//! What connections of each listener begin with: a PROXY header, and from whom; TLS.

use std::pin::Pin;
use std::sync::Arc;

use gustnado_config::Networks;
use gustnado_tasks::Endpoint;
use gustnado_tls::{Socket, TlsAcceptor};

use super::{App, ConnectionStart};

/// What connections begin with, for each listener.
#[derive(Clone, Debug, Default)]
pub struct Openings {
    /// Of listeners without one of their own.
    pub usual: ConnectionOpening,
    /// Of the others.
    pub own: Vec<(ListenerKey, ConnectionOpening)>,
    /// How those go on that speak HTTP/2, if any may.
    pub http2: Option<Http2Opening>,
}

/// How a connection goes on that turns out to speak HTTP/2.
#[derive(Clone, Copy, Debug)]
pub struct Http2Opening {
    /// Serves it to its end.
    pub serve: ServeHttp2,
    /// It may be in clear.
    pub in_clear: bool,
}

/// Serves a connection in HTTP/2, of which these bytes have come, and which began at this time.
pub type ServeHttp2 =
    fn(Socket, Arc<App>, Vec<u8>, ConnectionStart) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a connection begins with, before its first request. The PROXY header comes first.
#[derive(Clone, Debug, Default)]
pub struct ConnectionOpening {
    /// The networks that may send the PROXY header; `None` where there is none.
    pub proxies: Option<Arc<Networks>>,
    /// Takes the handshake; `None` for plain HTTP.
    pub tls: Option<Arc<TlsAcceptor>>,
}

/// A listener's endpoint as it is configured, and its place among those with the same: several may
/// be on port 0.
pub type ListenerKey = (Endpoint, usize);

impl Openings {
    /// Returns what connections of a listener begin with.
    #[inline]
    pub fn of(&self, listener: &ListenerKey) -> ConnectionOpening {
        if self.own.is_empty() {
            return self.usual.clone();
        }
        let own = self.own.iter().find(|(key, _)| key == listener);
        own.map_or(&self.usual, |(_, opening)| opening).clone()
    }
}

impl Openings {
    /// Returns what takes handshakes, if a listener has TLS.
    pub fn tls(&self) -> Option<&Arc<TlsAcceptor>> {
        let own = self.own.iter().map(|(_, opening)| opening);
        own.chain([&self.usual]).find_map(|opening| opening.tls.as_ref())
    }
}

impl ConnectionOpening {
    /// Returns whether it is nothing: the first bytes are those of a request.
    pub fn is_none(&self) -> bool {
        self.proxies.is_none() && self.tls.is_none()
    }
}
