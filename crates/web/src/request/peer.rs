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
pub struct RequestPeer {
    connection: ConnectionId,
    /// The connection's task. Any, in what is lent to a function that it calls: that cannot be
    /// anywhere else.
    task: TaskMark,
    trusted_proxies: Option<Arc<TrustedProxies>>,
}

impl RequestPeer {
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

/// Where it came from.
impl Request {
    /// The address of the connection's other end: a proxy's, where one stands between. (That of
    /// the PROXY header, where `proxy-protocol` demands one.) For the client's see
    /// [`Request::client`].
    ///
    /// Over a Unix socket it is mostly an empty path. The first question on a connection asks the
    /// kernel; who never asks pays nothing.
    ///
    /// `None` if the address is unknown:
    ///
    /// - The connection was accepted by `io_uring`, and the kernel is older than Linux 6.8.
    /// - The client has reset the connection by now.
    /// - The request was taken to another task or thread before it was first asked. Ask once in the
    ///   handler: the response stays with the request. (For [`crate::blocking`] handlers that is
    ///   done.)
    pub fn peer(&self) -> Option<Endpoint> {
        self.look_at_names(|names| names.peer.clone())?
    }

    /// The client's IP address, as [`Request::peer`] has it; an IPv4 address that came over IPv6 is
    /// told as what it is. `None` over a Unix socket, too.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        ip_of(&self.peer()?)
    }

    /// The address of the client, as the proxies in front tell it whom `forwarded-allow-ips` names;
    /// else that of the connection's other end, with `None` where [`Request::peer`] has it. What
    /// other peers send in `X-Forwarded-For` or `Forwarded` is ignored.
    ///
    /// Proxies mostly tell no port: then it is 0.
    pub fn client(&self) -> Option<Endpoint> {
        let peer = self.peer()?;
        Some(match &self.peer.trusted_proxies {
            Some(trusted_proxies) => trusted_proxies.client(self.view(), peer),
            None => peer,
        })
    }

    /// The client's IP address, as [`Request::client`] has it; an IPv4 address that came over IPv6
    /// is told as what it is. `None` over a Unix socket, too.
    pub fn client_ip(&self) -> Option<IpAddr> {
        ip_of(&self.client()?)
    }

    /// How the client has asked, `https` or `http`: as a proxy says that is believed, else `http`.
    pub fn scheme(&self) -> &'static str {
        self.told_by_proxies(|trusted_proxies, peer| trusted_proxies.scheme(self.view(), peer))
            .unwrap_or("http")
    }

    /// The host that the client has asked for, with its port where that is not the scheme's own: as
    /// a proxy says that is believed, else [`Request::host`].
    pub fn public_host(&self) -> Option<Cow<'_, str>> {
        let told =
            self.told_by_proxies(|trusted_proxies, peer| trusted_proxies.host(self.view(), peer));
        told.or_else(|| self.host().map(Cow::Borrowed))
    }

    fn told_by_proxies<T>(
        &self,
        ask: impl FnOnce(&TrustedProxies, &Endpoint) -> Option<T>,
    ) -> Option<T> {
        let trusted_proxies = self.peer.trusted_proxies.as_ref()?;
        ask(trusted_proxies, &self.peer()?)
    }

    /// The address of this end of the connection: which one of the server's it came in by. (That of
    /// the proxy, as the PROXY header says it, where one is demanded.) `None` as with
    /// [`Request::peer`], but for the reset.
    pub fn local(&self) -> Option<Endpoint> {
        self.look_at_names(|names| names.local.clone())
    }

    /// Has it remembered before the request goes to another thread.
    #[doc(hidden)]
    pub fn keep_names(&self) {
        self.look_at_names(|_| ());
    }

    fn look_at_names<T>(&self, look: impl FnOnce(&SocketAddrs) -> T) -> Option<T> {
        self.parts.channel().look_at_names(|| self.peer.names(), look)
    }
}

fn ip_of(end: &Endpoint) -> Option<IpAddr> {
    match end {
        Endpoint::Tcp(address) => Some(address.ip().to_canonical()),
        Endpoint::Unix(_) | Endpoint::Inherited(_) => None,
    }
}
