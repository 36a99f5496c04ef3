//! Where a request came from. Nobody is asked before a handler wants to know.

use std::net::IpAddr;
use std::task::Waker;

use gustnado_tasks::{Endpoint, LinkId, Names, TaskMark};

use super::Request;

/// A request's connection, and who may ask about it.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(super) link: LinkId,
    /// The connection's task. Any, in what is lent to a function that it calls: that cannot be
    /// anywhere else.
    task: TaskMark,
}

impl Origin {
    /// For a request that does not leave the call it is lent to.
    #[inline]
    pub(crate) fn lent(link: LinkId) -> Self {
        Self { link, task: TaskMark::ANY }
    }

    /// For a request that its owner may take anywhere.
    ///
    /// - `waker`: of the connection's task.
    #[inline]
    pub(crate) fn owned(link: LinkId, waker: &Waker) -> Self {
        Self { link, task: TaskMark::of(waker) }
    }

    fn names(self) -> Option<Names> {
        if self.task.is_here() { self.link.names().ok() } else { None }
    }
}

/// Where it came from.
impl Request {
    /// The address of the client's end of the connection: a proxy's, where one stands between.
    ///
    /// Over a Unix socket it is mostly an empty path. The first question of a request asks the
    /// kernel; a request that nobody asks costs nothing.
    ///
    /// `None` where nobody can know:
    ///
    /// - The connection was accepted by `io_uring`, and the kernel is older than Linux 6.8.
    /// - The client has reset the connection by now.
    /// - The request was taken to another task or thread before it was first asked. Ask once in the
    ///   handler: the answer stays with the request. (For [`crate::blocking`] handlers that is
    ///   done.)
    pub fn peer(&self) -> Option<Endpoint> {
        self.names()?.peer
    }

    /// The client's IP address, as [`Request::peer`] has it; an IPv4 address that came over IPv6 is
    /// told as what it is. `None` over a Unix socket, too.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        match self.peer()? {
            Endpoint::Tcp(address) => Some(address.ip().to_canonical()),
            Endpoint::Unix(_) | Endpoint::Inherited(_) => None,
        }
    }

    /// The address of this end of the connection: which one of the server's it came in by. `None`
    /// as with [`Request::peer`], but for the reset.
    pub fn local(&self) -> Option<Endpoint> {
        Some(self.names()?.local)
    }

    /// Has it remembered before the request goes to another thread.
    pub(crate) fn keep_names(&self) {
        _ = self.names();
    }

    fn names(&self) -> Option<Names> {
        let exchange = self.parts.exchange();
        exchange.names().or_else(|| {
            let names = self.origin.names()?;
            exchange.keep_names(&names);
            Some(names)
        })
    }
}
