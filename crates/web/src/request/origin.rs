//! Origin of a request. It is looked up when a handler first reads it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;

use gustnado_tasks::{ConnectionId, Endpoint, SocketAddrs, TaskMark};

use super::Request;
use crate::trusted_proxies::TrustedProxies;

/// Connection of a request, the task that may query it, and the trusted proxies.
#[derive(Clone)]
pub struct Origin {
    connection: ConnectionId,
    /// The connection's task. Any, in what is lent to a function that it calls: that cannot be
    /// anywhere else.
    task: TaskMark,
    trusted_proxies: Option<Arc<TrustedProxies>>,
}

impl Origin {
    /// For a request that does not leave the call it is lent to.
    pub fn lent(connection: ConnectionId, trusted_proxies: Option<&Arc<TrustedProxies>>) -> Self {
        Self { connection, task: TaskMark::ANY, trusted_proxies: trusted_proxies.cloned() }
    }

    /// The same for another request of the same server.
    #[inline]
    pub(super) fn lend(&mut self, connection: ConnectionId) {
        (self.connection, self.task) = (connection, TaskMark::ANY);
    }

    /// From now on the request's owner may take it anywhere.
    ///
    /// - `waker`: of the connection's task.
    #[inline]
    pub(super) fn give_to(&mut self, waker: &Waker) {
        self.task = TaskMark::of(waker);
    }

    fn names(&self) -> Option<SocketAddrs> {
        if self.task.is_here() { self.connection.addrs().ok() } else { None }
    }
}

/// Addresses of a request.
impl Request {
    /// Returns the peer address of the connection: a proxy's, where one is between. Where
    /// `proxy-protocol` demands a PROXY header, it is that header's. For the client's address see
    /// [`Request::client`].
    ///
    /// Over a Unix socket it is mostly an empty path. The first call on a connection queries the
    /// kernel; without a call there is no cost.
    ///
    /// `None` if the address is unknown:
    ///
    /// - The connection was accepted by `io_uring`, and the kernel is older than Linux 6.8.
    /// - The client has reset the connection by now.
    /// - The request was moved to another task or thread before the first call. Call it once in the
    ///   handler: the address stays with the request. For [`crate::blocking`] handlers the server
    ///   does that.
    pub fn peer(&self) -> Option<Endpoint> {
        self.look_at_names(|names| names.peer.clone())?
    }

    /// Returns the IP address of [`Request::peer`]; an IPv4-mapped IPv6 address becomes IPv4.
    /// `None` over a Unix socket, too.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        ip_of(&self.peer()?)
    }

    /// Returns the address of the client, as the proxies that `forwarded-allow-ips` trusts report
    /// it; else the peer address, with `None` where [`Request::peer`] has it. What other peers send
    /// in `X-Forwarded-For` or `Forwarded` is ignored.
    ///
    /// Proxies mostly report no port: then it is 0.
    pub fn client(&self) -> Option<Endpoint> {
        let peer = self.peer()?;
        Some(match &self.origin.trusted_proxies {
            Some(trusted_proxies) => trusted_proxies.client(self.view(), peer),
            None => peer,
        })
    }

    /// Returns the IP address of [`Request::client`]; an IPv4-mapped IPv6 address becomes IPv4.
    /// `None` over a Unix socket, too.
    pub fn client_ip(&self) -> Option<IpAddr> {
        ip_of(&self.client()?)
    }

    /// Returns the scheme that the client used, `https` or `http`: as a trusted proxy reports it,
    /// else `http`.
    pub fn scheme(&self) -> &'static str {
        self.told_by_proxies(|trusted_proxies, peer| trusted_proxies.scheme(self.view(), peer))
            .unwrap_or("http")
    }

    /// Returns the host that the client requested, with its port where that is not the scheme's
    /// default: as a trusted proxy reports it, else [`Request::host`].
    pub fn public_host(&self) -> Option<Cow<'_, str>> {
        let told =
            self.told_by_proxies(|trusted_proxies, peer| trusted_proxies.host(self.view(), peer));
        told.or_else(|| self.host().map(Cow::Borrowed))
    }

    fn told_by_proxies<T>(
        &self,
        ask: impl FnOnce(&TrustedProxies, &Endpoint) -> Option<T>,
    ) -> Option<T> {
        let trusted_proxies = self.origin.trusted_proxies.as_ref()?;
        ask(trusted_proxies, &self.peer()?)
    }

    /// Returns the local address of the connection. Where `proxy-protocol` demands a PROXY header,
    /// it is the destination in that header. `None` as with [`Request::peer`], except after a
    /// reset.
    pub fn local(&self) -> Option<Endpoint> {
        self.look_at_names(|names| names.local.clone())
    }

    /// Has it remembered before the request goes to another thread.
    #[doc(hidden)]
    pub fn keep_names(&self) {
        self.look_at_names(|_| ());
    }

    fn look_at_names<T>(&self, look: impl FnOnce(&SocketAddrs) -> T) -> Option<T> {
        self.parts.channel().look_at_names(|| self.origin.names(), look)
    }
}

fn ip_of(end: &Endpoint) -> Option<IpAddr> {
    match end {
        Endpoint::Tcp(address) => Some(address.ip().to_canonical()),
        Endpoint::Unix(_) | Endpoint::Inherited(_) => None,
    }
}
