//! Responses that hand the connection to another protocol.

use std::future::Future;
use std::pin::Pin;

use gustnado_http::fields::check_field;
use gustnado_http::status::Status;

use super::{Content, Response};
use crate::tunnel::Tunnel;

/// Function that takes the connection over.
pub struct OnUpgrade(Box<dyn FnOnce(Tunnel) -> TunnelFuture + Send>);

/// Future of the protocol that has taken a connection over.
pub(super) type TunnelFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl OnUpgrade {
    /// Hands the connection over.
    pub fn call(self, tunnel: Tunnel) -> TunnelFuture {
        (self.0)(tunnel)
    }
}

/// The upgrade that a response offers.
pub struct Upgrade {
    /// The protocol's name, as in the request's `Upgrade`; `None` for CONNECT.
    pub protocol: Option<Box<str>>,
    /// `None` if the upgrade is no longer possible.
    pub on_upgrade: Option<Box<OnUpgrade>>,
}

impl Response {
    /// Hands the connection to another protocol, if the request offers that: in HTTP/1.1 its
    /// `Upgrade` names the protocol, and its `Connection` lists `upgrade` (RFC 9110 §7.8). The
    /// client then gets 101, and `on_upgrade` the connection. Otherwise the client gets 426 with
    /// the protocol's name.
    ///
    /// In HTTP/2 the request is a CONNECT whose `:protocol` is that protocol (RFC 8441), which
    /// routes take for a GET. The client then gets 200, and `on_upgrade` its stream; 501 if it has
    /// asked for another protocol.
    ///
    /// ```no_run
    /// use gustnado::{Request, Response, Server, Tunnel};
    ///
    /// # fn main() -> gustnado::Result<()> {
    /// async fn echo(mut tunnel: Tunnel) {
    ///     while let Ok(bytes) = tunnel.recv().await {
    ///         if bytes.is_empty() || tunnel.send(bytes).await.is_err() {
    ///             return;
    ///         }
    ///     }
    /// }
    ///
    /// Server::new()
    ///     .get("/echo", |_: &Request| Response::upgrade("echo", echo))
    ///     .listen("127.0.0.1:3456")?
    ///     .run()
    /// # }
    /// ```
    ///
    /// No request is read after it. A request whose body was not read to its end is not upgraded,
    /// nor is one during a drain. When the future that `on_upgrade` returns ends, the connection is
    /// closed, or the stream.
    ///
    /// # Panics
    /// If `protocol` cannot be the value of a field. The server contains the panic: the client gets
    /// 500.
    pub fn upgrade<F, T>(protocol: &str, on_upgrade: F) -> Self
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        Self::new(Status::UPGRADE_REQUIRED).on_upgrade(protocol, on_upgrade)
    }

    /// Offers the same on top of a response for clients that do not ask for the protocol: they get
    /// that response unchanged. In 101 its fields are kept, but not its content.
    ///
    /// # Panics
    /// As [`Response::upgrade`].
    #[must_use]
    pub fn on_upgrade<F, T>(mut self, protocol: &str, on_upgrade: F) -> Self
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        if let Err(error) = check_field("Upgrade-To", protocol.as_bytes()) {
            panic!("no protocol is called {protocol:?}: {error}");
        }
        self.set_upgrade(Some(protocol.into()), on_upgrade);
        self
    }

    /// Hands the connection over in response to CONNECT: the client gets 200 (RFC 9110 §9.3.6).
    /// With any other method it gets 405.
    ///
    /// Only a [fallback](crate::Routes::fallback_route) that [takes
    /// CONNECT](crate::Route::takes_connect) receives such requests.
    pub fn tunnel<F, T>(on_upgrade: F) -> Self
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let mut response = Self::new(Status::METHOD_NOT_ALLOWED).header("Allow", "CONNECT");
        response.set_upgrade(None, on_upgrade);
        response
    }

    pub(crate) fn set_upgrade<F, T>(&mut self, protocol: Option<Box<str>>, on_upgrade: F)
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let on_upgrade = OnUpgrade(Box::new(|tunnel| Box::pin(on_upgrade(tunnel))));
        let upgrade = Upgrade { protocol, on_upgrade: Some(Box::new(on_upgrade)) };
        self.extras().upgrade = Some(Box::new(upgrade));
    }

    /// Withdraws the upgrade that it offers.
    #[doc(hidden)]
    pub fn decline_upgrade(&mut self) {
        if let Some(upgrade) = self.extras.as_mut().and_then(|extras| extras.upgrade.as_mut()) {
            upgrade.on_upgrade = None;
        }
    }

    /// Turns into the response before the switch, which is a head without content.
    #[doc(hidden)]
    pub fn switch(&mut self, protocol: Option<&str>) {
        self.status = match protocol {
            Some(_) => Status::SWITCHING_PROTOCOLS,
            None => Status::OK,
        };
        self.remove_header("content-type");
        self.remove_header("allow");
        self.content = Content::Unsent(None);
        if let Some(extras) = &mut self.extras {
            extras.status_line = None;
            extras.trailers = None;
            extras.close = false;
        }
        if let Some(protocol) = protocol {
            self.name_protocol(protocol);
        }
    }

    /// Adds the fields that name the protocol of an upgrade; handlers cannot set them.
    #[doc(hidden)]
    pub fn name_protocol(&mut self, protocol: &str) {
        let fields = self.fields.to_mut();
        fields.add_trusted("Connection", b"Upgrade");
        fields.add_trusted("Upgrade", protocol.as_bytes());
    }
}
