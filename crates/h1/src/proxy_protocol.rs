//! The PROXY header at the start of a connection, where one is required.
//!
//! It shares the time-out of the first request's head.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use gustnado_config::Networks;
use gustnado_http::head::Decoded;
use gustnado_http::proxy::{self, Ends, ProxyHeader};
use gustnado_http::status::Status;
use gustnado_tasks::{ConnectionError, Endpoint, SocketAddrs};

use super::Conn;
use super::limit::RequestTimeout;
use gustnado_observe::stats::{Added, Fault};

/// Why a connection has no PROXY header.
pub(super) enum NoProxyHeader {
    /// It is malformed, or its sender may not send one.
    Refused(Status),
    /// It did not arrive in time.
    RequestTimeout(RequestTimeout),
    /// The peer has closed.
    Closed,
    /// The connection failed.
    Lost(ConnectionError),
}

impl Conn {
    /// Waits for the header and applies it. Bytes behind it become the unread ones.
    pub(super) async fn read_proxy_header(
        &mut self,
        proxies: &Networks,
    ) -> Result<(), NoProxyHeader> {
        if !self.may_send_proxy_header(proxies) {
            return Err(self.reject_proxy_header(Status::FORBIDDEN));
        }
        let first_until_ms = self.socket.deadline_ms();
        loop {
            let idle = self.unread.is_none();
            match self.socket.recv(idle).await {
                Ok(piece) if piece.bytes().is_empty() => return Err(NoProxyHeader::Closed),
                Ok(piece) => self.keep_unread(&piece),
                Err(ConnectionError::TimedOut) => match self.request_timeout() {
                    RequestTimeout::Extended => continue,
                    timeout => return Err(NoProxyHeader::RequestTimeout(timeout)),
                },
                Err(error) => return Err(NoProxyHeader::Lost(error)),
            }
            if idle {
                // The first bytes start the head timeout, which covers the request's head behind
                // them too.
                self.expect_request();
            }
            match self.read_header() {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => return Err(self.reject_proxy_header(Status::BAD_REQUEST)),
            }
        }
        // The header is no request yet: the client keeps its time for the first byte of one.
        if self.unread.is_none() {
            self.socket.set_deadline(self.socket.deadline_ms().max(first_until_ms));
        }
        Ok(())
    }

    /// Parses the header if it is complete. Returns whether it was.
    fn read_header(&mut self) -> Result<bool, proxy::ProxyError> {
        let Some(unread) = &mut self.unread else { return Ok(false) };
        let Decoded::Done(header) = proxy::decode(&unread.bytes)? else { return Ok(false) };
        let ProxyHeader { len, ends, info } = header;
        if let Some(addrs) = addrs_of(ends) {
            self.socket.override_addrs(addrs);
        }
        if let Some(info) = info {
            self.socket.set_proxy_info(info.into());
        }
        unread.bytes.drain(..len);
        if unread.bytes.is_empty() {
            self.unread = None;
        }
        Ok(true)
    }

    fn may_send_proxy_header(&self, proxies: &Networks) -> bool {
        proxies.is_all() || self.socket.peer().is_ok_and(|peer| proxies.has(&peer))
    }

    fn reject_proxy_header(&self, status: Status) -> NoProxyHeader {
        let fault = Some(Fault::NoProxyHeader);
        self.app.count(&Added { fault, ..Added::default() });
        NoProxyHeader::Refused(status)
    }
}

/// Returns the addresses that the header states; `None` if the connection's own apply.
fn addrs_of(ends: Ends<'_>) -> Option<SocketAddrs> {
    let path = |bytes: &[u8]| Endpoint::Unix(OsStr::from_bytes(bytes).into());
    let (peer, local) = match ends {
        Ends::Own => return None,
        Ends::Inet { source, destination } => (Endpoint::Tcp(source), Endpoint::Tcp(destination)),
        Ends::Unix { source, destination } => (path(source), path(destination)),
    };
    Some(SocketAddrs { peer: Some(peer), local })
}
