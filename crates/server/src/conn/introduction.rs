//! The PROXY header that a connection begins with, where that is demanded.
//!
//! It is waited for as the first request's head is, in the same time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use gustnado_http::head::Decoded;
use gustnado_http::proxy::{self, Ends};
use gustnado_http::status::Status;
use gustnado_tasks::{ConnectionError, Endpoint, SocketAddrs};

use super::{Conn, Next};
use crate::stats::{Added, Fault};

impl Conn {
    /// What a connection begins with.
    #[inline]
    pub(super) fn first_step(&self) -> Next {
        if self.app.introducers.is_some() { Next::Introduction } else { Next::Receive }
    }

    /// Waits for the header, and takes over what it says. What came behind it is on hold then.
    pub(super) async fn introduce(&mut self) -> Next {
        if !self.may_be_introduced() {
            return self.refuse_introduction(Status::FORBIDDEN);
        }
        let first_until_ms = self.socket.deadline_ms();
        loop {
            let idle = self.unread.is_none();
            match self.socket.recv(idle).await {
                Ok(piece) if piece.bytes().is_empty() => return Next::Close,
                Ok(piece) => self.hold(&piece),
                Err(ConnectionError::TimedOut) => match self.miss_request() {
                    Next::Receive => continue,
                    next => return next,
                },
                Err(error) => return self.give_up(&error),
            }
            if idle {
                // The first bytes of the header start the clock of the head behind it, too.
                self.expect_request();
            }
            match self.read_header() {
                Ok(Some(Next::Receive)) => {
                    let until_ms = self.socket.deadline_ms().max(first_until_ms);
                    self.socket.set_deadline(until_ms);
                    return Next::Receive;
                }
                Ok(Some(next)) => return next,
                Ok(None) => {}
                Err(_) => return self.refuse_introduction(Status::BAD_REQUEST),
            }
        }
    }

    /// Reads the header if all of it is on hold. Returns what comes next, then.
    fn read_header(&mut self) -> Result<Option<Next>, proxy::ProxyError> {
        let Some(unread) = &mut self.unread else { return Ok(None) };
        let Decoded::Done((len, ends)) = proxy::decode(&unread.bytes)? else { return Ok(None) };
        if let Some(names) = names_of(ends) {
            self.socket.override_addrs(names);
        }
        unread.bytes.drain(..len);
        if unread.bytes.is_empty() {
            self.unread = None;
            return Ok(Some(Next::Receive));
        }
        Ok(Some(Next::Again))
    }

    fn may_be_introduced(&self) -> bool {
        let Some(introducers) = &self.app.introducers else { return true };
        introducers.is_all() || self.socket.peer().is_ok_and(|peer| introducers.has(&peer))
    }

    fn refuse_introduction(&mut self, status: Status) -> Next {
        let fault = Some(Fault::NotIntroduced);
        self.app.count(&Added { fault, ..Added::default() });
        self.refuse(status, None)
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
