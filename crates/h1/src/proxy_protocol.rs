//! The PROXY header that a connection begins with, where that is demanded.
//!
//! It is waited for as the first request's head is, in the same time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use gustnado_http::head::Decoded;
use gustnado_http::proxy::{self, Ends};
use gustnado_http::status::Status;
use gustnado_tasks::{ConnectionError, Endpoint, SocketAddrs};

use super::Conn;
use super::limit::Missed;
use gustnado_observe::stats::{Added, Fault};

/// Why a connection has no PROXY header.
pub(super) enum NoProxyHeader {
    /// It came from where none may come from, or is none.
    Refused(Status),
    /// It has not come in time.
    Missed(Missed),
    /// The peer has closed.
    Closed,
    /// The connection failed.
    Lost(ConnectionError),
}

impl Conn {
    /// Waits for the header, and takes over what it says. What came behind it is on hold then.
    pub(super) async fn read_proxy_header(&mut self) -> Result<(), NoProxyHeader> {
        if !self.may_be_introduced() {
            return Err(self.not_introduced(Status::FORBIDDEN));
        }
        let first_until_ms = self.socket.deadline_ms();
        loop {
            let idle = self.unread.is_none();
            match self.socket.recv(idle).await {
                Ok(piece) if piece.bytes().is_empty() => return Err(NoProxyHeader::Closed),
                Ok(piece) => self.hold(&piece),
                Err(ConnectionError::TimedOut) => match self.miss_request() {
                    Missed::Extended => continue,
                    missed => return Err(NoProxyHeader::Missed(missed)),
                },
                Err(error) => return Err(NoProxyHeader::Lost(error)),
            }
            if idle {
                // The first bytes of the header start the clock of the head behind it, too.
                self.expect_request();
            }
            match self.read_header() {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => return Err(self.not_introduced(Status::BAD_REQUEST)),
            }
        }
        if self.unread.is_none() {
            self.socket.set_deadline(self.socket.deadline_ms().max(first_until_ms));
        }
        Ok(())
    }

    /// Reads the header if all of it is on hold. Returns whether it was.
    fn read_header(&mut self) -> Result<bool, proxy::ProxyError> {
        let Some(unread) = &mut self.unread else { return Ok(false) };
        let Decoded::Done((len, ends)) = proxy::decode(&unread.bytes)? else { return Ok(false) };
        if let Some(names) = names_of(ends) {
            self.socket.override_addrs(names);
        }
        unread.bytes.drain(..len);
        if unread.bytes.is_empty() {
            self.unread = None;
        }
        Ok(true)
    }

    fn may_be_introduced(&self) -> bool {
        let Some(proxy_allow) = &self.app.proxy_allow else { return true };
        proxy_allow.is_all() || self.socket.peer().is_ok_and(|peer| proxy_allow.has(&peer))
    }

    fn not_introduced(&self, status: Status) -> NoProxyHeader {
        let fault = Some(Fault::NoProxyHeader);
        self.app.count(&Added { fault, ..Added::default() });
        NoProxyHeader::Refused(status)
    }
}

/// What the two ends are called from now on; `None` if as before.
fn names_of(ends: Ends<'_>) -> Option<SocketAddrs> {
    let path = |bytes: &[u8]| Endpoint::Unix(OsStr::from_bytes(bytes).into());
    let (peer, local) = match ends {
        Ends::Own => return None,
        Ends::Inet { source, destination } => (Endpoint::Tcp(source), Endpoint::Tcp(destination)),
        Ends::Unix { source, destination } => (path(source), path(destination)),
    };
    Some(SocketAddrs { peer: Some(peer), local })
}
