//! The beginning of a connection, before its first request: a PROXY header, a handshake.

use gustnado_app::app::ConnectionOpening;
use gustnado_config::Networks;
use gustnado_http::status::Status;
use gustnado_observe::stats::{Added, Fault};
use gustnado_tls::{HandshakeFailure, TlsAcceptor};

use super::proxy_protocol::NoProxyHeader;
use super::unread::Unread;
use super::{Conn, NextStep};

impl Conn {
    /// Reads what a connection begins with. Returns what comes next.
    pub(super) async fn open(&mut self, opening: ConnectionOpening) -> NextStep {
        let ConnectionOpening { proxies, tls } = opening;
        let next = if let Some(proxies) = &proxies {
            self.begin_with_proxy_header(proxies).await
        } else {
            self.set_pace();
            NextStep::Receive
        };
        match (next, tls) {
            (NextStep::Receive | NextStep::Again, Some(tls)) => self.begin_tls(&tls).await,
            (next, _) => next,
        }
    }

    /// Reads the PROXY header that a connection must begin with.
    pub(super) async fn begin_with_proxy_header(&mut self, proxies: &Networks) -> NextStep {
        let header = self.read_proxy_header(proxies).await;
        // Only now: the client's address, which selects its buckets, comes from the header.
        self.set_pace();
        match header {
            Ok(()) if self.unread.is_some() => NextStep::Again,
            Ok(()) => NextStep::Receive,
            Err(NoProxyHeader::Refused(status)) => self.refuse_and_end(status, None),
            Err(NoProxyHeader::RequestTimeout(timeout)) => self.after_request_timeout(timeout),
            Err(NoProxyHeader::Closed) => NextStep::Close,
            Err(NoProxyHeader::Lost(error)) => self.give_up(&error),
        }
    }

    /// Takes the handshake of TLS. The first request has its own time behind it.
    async fn begin_tls(&mut self, tls: &TlsAcceptor) -> NextStep {
        let received = self.unread.take().map_or(Vec::new(), |unread| unread.bytes);
        let error = match self.socket.accept_tls(tls, &received).await {
            Ok(content) => {
                let now_ms = self.socket.now().mono_ms;
                self.socket.set_deadline(now_ms + self.app.times.first_ms);
                if self.socket.tls().is_some_and(|tls| tls.is_challenge()) {
                    // The handshake was all that an authority wants (RFC 8737 §3).
                    return NextStep::Linger;
                }
                self.socket.tls().into_iter().for_each(|tls| self.app.count_handshake(tls));
                let next = self.begin_with(content);
                return if self.is_http2_agreed() { NextStep::Http2 } else { next };
            }
            Err(error) => error,
        };
        let failure = error.failure();
        let fault = Some(Fault::Handshake(failure));
        self.app.count(&Added { fault, ..Added::default() });
        match failure {
            // The one answer that such a client understands.
            HandshakeFailure::Plain => self.refuse_and_end(Status::BAD_REQUEST, None),
            HandshakeFailure::Refused(_) => NextStep::Linger,
            HandshakeFailure::Slow | HandshakeFailure::Evicted => {
                self.socket.reset_on_drop();
                NextStep::Close
            }
            HandshakeFailure::Lost => NextStep::Close,
        }
    }

    /// Begins with bytes of requests that are here already.
    fn begin_with(&mut self, bytes: Vec<u8>) -> NextStep {
        if bytes.is_empty() {
            return NextStep::Receive;
        }
        self.unread = Some(Box::new(Unread::new(bytes)));
        NextStep::Again
    }
}
