//! Connections that turn out to speak HTTP/2: by their handshake, or by their first bytes.

use gustnado_http::h2::frame::PREFACE;
use gustnado_tasks::BoxTask;
use gustnado_tls::TlsProperty;

use super::serving::Serving;
use super::{Conn, HANDED_OVER};

/// The name of HTTP/2 in handshakes (RFC 9113 §3.2).
const ALPN: &[u8] = b"h2";

impl Conn {
    /// Returns whether a handshake, which has just ended, has agreed on HTTP/2.
    pub(super) fn is_http2_agreed(&self) -> bool {
        let agreed = self.socket.tls().and_then(|tls| tls.property(TlsProperty::Alpn));
        agreed == Some(ALPN) && self.app.http2.is_some()
    }

    /// Returns whether bytes that are no request begin a connection in HTTP/2, in clear (RFC 9113
    /// §3.3).
    #[cold]
    pub(super) fn is_http2_in_clear(&self, input: &[u8]) -> bool {
        let begins = input.len().min(PREFACE.len());
        self.requests == 0
            && self.app.http2.is_some_and(|http2| http2.in_clear)
            && !self.socket.is_sealed()
            && input[..begins] == PREFACE[..begins]
    }

    /// Hands the connection over.
    pub(super) fn into_http2(mut self) -> Serving {
        let Some(http2) = self.app.http2 else { return Serving::Closed };
        let received = self.unread.take().map_or_else(Vec::new, |unread| unread.bytes);
        self.requests = HANDED_OVER;
        let (socket, app) = (self.socket.take(), self.app.clone());
        let is_limited = app.connections_per_client > 0;
        let other = (http2.serve)(socket, app, received, self.began);
        if !is_limited {
            return Serving::Other(other);
        }
        // Its task holds the slot of its client besides: see `serve_limited`. No request came yet,
        // so the app is still that of the accept.
        Serving::Rare(Box::pin(serve_within(other)))
    }
}

/// Serves a connection in another protocol, within its own task.
async fn serve_within(other: BoxTask) -> Serving {
    other.await;
    Serving::Closed
}
