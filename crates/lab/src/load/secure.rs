//! TLS of the load's connections.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use gustnado_tasks::ConnectionError;
use gustnado_tls::{ConnectTlsError, ConnectorError, Socket, TlsConnector, TlsVersion};

use super::counts::FailureKind;
use crate::outcome::TlsSummary;
use crate::plan::{HttpVersion, LoadPlan};

/// What all connections by TLS share, and what is known of them.
#[derive(Debug)]
pub(super) struct LoadTls {
    connector: TlsConnector,
    handshakes: AtomicU64,
    resumed: AtomicU64,
    /// Version, cipher and group of the first one.
    agreed: OnceLock<[String; 3]>,
    /// Why the first one that failed did.
    failure: OnceLock<String>,
    /// It offers HTTP/2 alone.
    is_http2: bool,
}

/// Why a handshake fails with a server of HTTP/1 alone.
pub(super) const NO_HTTP2: &str = "it has not chosen h2 by ALPN";

/// The name of HTTP/2 in ALPN (RFC 9113 §3.2).
const H2: &[u8] = b"h2";

impl LoadTls {
    /// Reads the authorities and the client's certificate.
    pub(super) fn new(plan: &LoadPlan) -> Result<Self, ConnectorError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut settings = plan.tls.clone();
        if plan.http == HttpVersion::Http2 {
            settings.protocols = vec![H2.to_vec()];
        }
        let connector =
            TlsConnector::new(&settings, i64::try_from(now.as_secs()).unwrap_or(i64::MAX))?;
        let (handshakes, resumed) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self {
            connector,
            handshakes,
            resumed,
            agreed: OnceLock::new(),
            failure: OnceLock::new(),
            is_http2: plan.http == HttpVersion::Http2,
        })
    }

    /// Begins TLS on a connection, within its deadline. Returns what has come behind the handshake:
    /// nothing, or the first frames of HTTP/2.
    pub(super) async fn begin(
        &self,
        socket: &mut Socket,
        host: &str,
    ) -> Result<Vec<u8>, FailureKind> {
        match socket.connect_tls(&self.connector, host).await {
            Ok(_)
                if self.is_http2
                    && socket.tls().is_none_or(|tls| tls.alpn.as_deref() != Some(H2)) =>
            {
                _ = self.failure.set(NO_HTTP2.to_owned());
                Err(FailureKind::Handshake)
            }
            Ok(content) if content.is_empty() || self.is_http2 => {
                self.note(socket);
                Ok(content)
            }
            Ok(_) => Err(FailureKind::Handshake),
            Err(ConnectTlsError::Lost(ConnectionError::TimedOut)) => Err(FailureKind::TimedOut),
            Err(error) => {
                let is_known = self.is_http2 && error.is_protocol_refused();
                let why = if is_known { NO_HTTP2.to_owned() } else { error.to_string() };
                _ = self.failure.set(why);
                Err(FailureKind::Handshake)
            }
        }
    }

    fn note(&self, socket: &Socket) {
        let Some(info) = socket.tls() else { return };
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        if info.is_resumed {
            self.resumed.fetch_add(1, Ordering::Relaxed);
        }
        self.agreed.get_or_init(|| {
            let version = if info.version == TlsVersion::V13 { "TLSv1.3" } else { "TLSv1.2" };
            [version, info.cipher, info.group.unwrap_or("none")].map(str::to_owned)
        });
    }

    /// Returns why the first handshake that failed did.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Returns what was agreed on. `None` if nothing was.
    pub(super) fn summary(&self) -> Option<TlsSummary> {
        let [version, cipher, group] = self.agreed.get()?.clone();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some(TlsSummary {
            version,
            cipher,
            group,
            handshakes: count(&self.handshakes),
            resumed: count(&self.resumed),
        })
    }
}
