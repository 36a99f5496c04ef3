//! Peer and client of a request. They are looked up when a handler first reads them.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;

use gustnado_access::GateRequest;
use gustnado_http::credentials::Credentials;
use gustnado_http::proxy::ProxyInfo;
use gustnado_http::request::RequestView;
use gustnado_tasks::{ConnectionId, Endpoint, SocketAddrs, TaskMark};
use gustnado_tls::{Socket, TlsInfo};

use super::Request;
use crate::trusted_proxies::TrustedProxies;

/// Where a request came from, as its handler may ask. Most files are sent without a look at it.
#[derive(Clone, Copy)]
pub struct RequestSource<'a> {
    /// Its connection; `None` for one that came by none.
    pub socket: Option<&'a Socket>,
    /// The proxies that are trusted to report the client.
    pub trusted_proxies: Option<&'a Arc<TrustedProxies>>,
}

impl RequestSource<'_> {
    #[inline]
    fn connection(&self) -> ConnectionId {
        self.socket.map_or(ConnectionId::NONE, Socket::id)
    }

    #[inline]
    fn tls(&self) -> Option<&Arc<TlsInfo>> {
        self.socket?.tls()
    }

    #[inline]
    fn proxy_info(&self) -> Option<&Arc<ProxyInfo>> {
        self.socket?.proxy_info()
    }
}

/// Connection of a request, the task that may query it, and the trusted proxies.
#[derive(Clone)]
pub struct RequestPeer {
    connection: ConnectionId,
    /// The connection's task. `ANY` for a request that is lent to a function, which cannot take it
    /// anywhere.
    task: TaskMark,
    trusted_proxies: Option<Arc<TrustedProxies>>,
    tls: Option<Arc<TlsInfo>>,
    proxy_info: Option<Arc<ProxyInfo>>,
}

impl RequestPeer {
    /// Creates the value for a request that is lent to a call and does not leave it.
    pub fn lent(origin: RequestSource<'_>) -> Self {
        let (connection, tls) = (origin.connection(), origin.tls().cloned());
        let trusted_proxies = origin.trusted_proxies.cloned();
        let proxy_info = origin.proxy_info().cloned();
        Self { connection, task: TaskMark::ANY, trusted_proxies, tls, proxy_info }
    }

    /// Does the same for a reused request of the same server.
    #[inline]
    pub(super) fn lend(&mut self, origin: RequestSource<'_>) {
        (self.connection, self.task) = (origin.connection(), TaskMark::ANY);
        let tls = origin.tls();
        if self.tls.is_some() || tls.is_some() {
            self.tls = tls.cloned();
        }
        let proxy_info = origin.proxy_info();
        if self.proxy_info.is_some() || proxy_info.is_some() {
            self.proxy_info = proxy_info.cloned();
        }
    }

    /// Binds the request to the connection's task: its owner may take it anywhere from now on.
    ///
    /// - `waker`: of the connection's task.
    #[inline]
    pub(super) fn give_to(&mut self, waker: &Waker) {
        self.task = TaskMark::of(waker);
    }

    fn addrs(&self) -> Option<SocketAddrs> {
        if self.task.is_here() { self.connection.addrs().ok() } else { None }
    }
}

/// The peer, and the client as trusted proxies report it.
impl Request {
    /// Returns the address of the connection's peer, which may be a proxy. With `proxy-protocol` it
    /// is the address in the PROXY header. For the client's address see [`Request::client`].
    ///
    /// Over a Unix socket it is usually an empty path. The first call on a connection queries the
    /// kernel; without a call it costs nothing.
    ///
    /// `None` if the address is unknown:
    ///
    /// - The connection was accepted by `io_uring`, and the kernel is older than Linux 6.8.
    /// - The client has reset the connection by now.
    /// - The request was moved to another task or thread before the first call. Call it once in the
    ///   handler: the address stays with the request. For [`crate::blocking`] handlers that is
    ///   done.
    pub fn peer(&self) -> Option<Endpoint> {
        self.with_addrs(|addrs| addrs.peer.clone())?
    }

    /// Returns the IP address of [`Request::peer`]; an IPv4 address mapped to IPv6 is returned as
    /// IPv4. `None` over a Unix socket, too.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        ip_of(&self.peer()?)
    }

    /// Returns the address of the client as reported by the proxies that `forwarded-allow-ips`
    /// names; otherwise the peer's, with `None` as in [`Request::peer`]. `X-Forwarded-For` and
    /// `Forwarded` from other peers are ignored.
    ///
    /// Without a port in the field, which is usual, it is 0.
    pub fn client(&self) -> Option<Endpoint> {
        let peer = self.peer()?;
        Some(match &self.peer.trusted_proxies {
            Some(trusted_proxies) => trusted_proxies.client(self.view(), peer),
            None => peer,
        })
    }

    /// Returns the user whose password `basic-auth` has verified; `None` on routes without it. What
    /// is not UTF-8 in its name is U+FFFD.
    ///
    /// ```
    /// use gustnado::{Request, Routes};
    ///
    /// let routes = Routes::new().get("/me", |request: &Request| match request.user() {
    ///     Some(user) => format!("You are {user}."),
    ///     None => "Nobody knows you.".to_owned(),
    /// });
    /// # drop(routes);
    /// ```
    pub fn user(&self) -> Option<String> {
        if !self.parts.head().has_verified_user() {
            return None;
        }
        let credentials = Credentials::of(self.view())?;
        Some(String::from_utf8_lossy(credentials.user()).into_owned())
    }

    /// Returns whether it has fields of a proxy that is not trusted: its client may be anyone.
    #[doc(hidden)]
    pub fn comes_through_stranger(&self) -> bool {
        let is_forwarded = ["forwarded", "x-forwarded-for", "x-real-ip", "via"]
            .iter()
            .any(|name| self.header_bytes(name).is_some());
        let trusts = |peer: Endpoint| {
            self.peer.trusted_proxies.as_ref().is_some_and(|proxies| proxies.trusts(&peer))
        };
        is_forwarded && !self.peer().is_some_and(trusts)
    }

    /// Returns the IP address of [`Request::client`]; an IPv4 address mapped to IPv6 is returned as
    /// IPv4. `None` over a Unix socket, too.
    pub fn client_ip(&self) -> Option<IpAddr> {
        ip_of(&self.client()?)
    }

    /// Returns the scheme of the client's request, `https` or `http`, as a trusted proxy reports
    /// it in a field, or by the client's TLS in a PROXY header; otherwise that of the connection.
    pub fn scheme(&self) -> &'static str {
        let is_by_tls = || {
            let proxy_info = self.peer.proxy_info.as_ref();
            self.peer.tls.is_some() || proxy_info.is_some_and(|info| info.tls.is_some())
        };
        self.reported_by_proxies(|trusted_proxies, peer| trusted_proxies.scheme(self.view(), peer))
            .unwrap_or_else(|| if is_by_tls() { "https" } else { "http" })
    }

    /// Returns what the handshake of the connection has agreed on: version, cipher, names. `None`
    /// without TLS.
    pub fn tls(&self) -> Option<&TlsInfo> {
        self.peer.tls.as_deref()
    }

    /// Returns what the PROXY header of the connection says besides addresses, in version 2: the
    /// client's TLS at the proxy, the name that it asked for, an id. `None` if it says nothing, and
    /// on listeners without `proxy-protocol`.
    pub fn proxy_info(&self) -> Option<&ProxyInfo> {
        self.peer.proxy_info.as_deref()
    }

    /// Returns the host of the client's request, with its port if that is not the scheme's default,
    /// as a trusted proxy reports it; otherwise [`Request::host`].
    pub fn public_host(&self) -> Option<Cow<'_, str>> {
        let reported = self
            .reported_by_proxies(|trusted_proxies, peer| trusted_proxies.host(self.view(), peer));
        reported.or_else(|| self.host().map(Cow::Borrowed))
    }

    fn reported_by_proxies<T>(
        &self,
        read: impl FnOnce(&TrustedProxies, &Endpoint) -> Option<T>,
    ) -> Option<T> {
        let trusted_proxies = self.peer.trusted_proxies.as_ref()?;
        read(trusted_proxies, &self.peer()?)
    }

    /// Returns the address of this end of the connection. With `proxy-protocol` it is the
    /// destination in the PROXY header. `None` as in [`Request::peer`], except after a reset.
    pub fn local(&self) -> Option<Endpoint> {
        self.with_addrs(|addrs| addrs.local.clone())
    }

    /// Looks the addresses up before the request moves to another thread.
    #[doc(hidden)]
    pub fn keep_addrs(&self) {
        self.with_addrs(|_| ());
    }

    fn with_addrs<T>(&self, read: impl FnOnce(&SocketAddrs) -> T) -> Option<T> {
        self.parts.channel().with_addrs(|| self.peer.addrs(), read)
    }
}

fn ip_of(end: &Endpoint) -> Option<IpAddr> {
    match end {
        Endpoint::Tcp(address) => Some(address.ip().to_canonical()),
        Endpoint::Unix(_) | Endpoint::Inherited(_) => None,
    }
}

impl GateRequest for Request {
    fn view(&self) -> RequestView<'_> {
        Request::view(self)
    }

    fn with_sent_target(&self, read: &mut dyn FnMut(&str, &[u8])) {
        self.parts.with_sent_target(read);
    }

    fn client(&self) -> Option<Endpoint> {
        let peer = self.peer()?;
        match &self.peer.trusted_proxies {
            Some(trusted_proxies) => trusted_proxies.known_client(self.view(), peer),
            None => Some(peer),
        }
    }

    fn is_through_stranger(&self) -> bool {
        let is_local = |peer: Endpoint| match peer {
            Endpoint::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Endpoint::Unix(_) | Endpoint::Inherited(_) => true,
        };
        self.peer().is_some_and(is_local) && self.comes_through_stranger()
    }
}
