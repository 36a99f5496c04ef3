//! Connections by TLS: what they need, and how they begin.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gustnado_tasks::ConnectionError;
use gustnado_tls::{ConnectTlsError, Socket, TlsConnector};

use super::ClientShared;
use super::error::ClientError;
use super::http2_use::{H2, Http2Use};

impl ClientShared {
    /// Returns what takes up connections by TLS. The first one reads files, on another thread.
    ///
    /// - `is_old`: HTTP/1.1 alone is offered where the server could choose.
    pub(super) async fn connector(&self, is_old: bool) -> Result<Arc<TlsConnector>, ClientError> {
        let is_old = is_old && self.options.http2 == Http2Use::ByAlpn;
        let kept = if is_old { &self.old_connector } else { &self.connector };
        if let Some(connector) = &*kept.lock() {
            return Ok(Arc::clone(connector));
        }
        let mut settings = self.options.tls.clone();
        if settings.protocols.is_empty() {
            let offered: &[&[u8]] = match self.options.http2 {
                Http2Use::Never => &[],
                Http2Use::ByAlpn if is_old => &[b"http/1.1"],
                Http2Use::ByAlpn => &[H2, b"http/1.1"],
                Http2Use::Always => &[H2],
            };
            settings.protocols = offered.iter().map(|name| name.to_vec()).collect();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let read = self.resolver.run(move || TlsConnector::new(&settings, now_s));
        let Ok(Some(made)) = read.await else { return Err(ClientError::Ending) };
        let made = Arc::new(made.map_err(ClientError::TlsSettings)?);
        // Another task may have made one meanwhile; one of them keeps the sessions.
        Ok(Arc::clone(kept.lock().get_or_insert(made)))
    }
}

/// Begins TLS on a connection, within its deadline. Returns whether it goes on by HTTP/2, and what
/// has come behind the handshake. `None`: the time is over.
///
/// - `name`: what the host is called in an error.
/// - `host`: an IPv6 address without brackets.
pub(super) async fn begin(
    socket: &mut Socket,
    connector: &TlsConnector,
    name: &Arc<str>,
    host: &str,
) -> Option<Result<(bool, Vec<u8>), ClientError>> {
    let failed = |error| ClientError::Tls { host: Arc::clone(name), error };
    match socket.connect_tls(connector, host).await {
        Ok(content) => {
            let is_http2 = socket.tls().is_some_and(|tls| tls.alpn.as_deref() == Some(H2));
            if is_http2 || content.is_empty() {
                return Some(Ok((is_http2, content)));
            }
            // A response before any request.
            Some(Err(failed(ConnectTlsError::Closed)))
        }
        Err(ConnectTlsError::Lost(ConnectionError::TimedOut)) => None,
        Err(error) if error.is_protocol_refused() => {
            Some(Err(ClientError::NoHttp2 { host: Arc::clone(name) }))
        }
        Err(error) => Some(Err(failed(error))),
    }
}
