//! Responses that give the connection to another protocol.

use std::future::Future;
use std::pin::Pin;

use gustnado_http::fields::check_field;
use gustnado_http::status::Status;

use super::{Content, Response};
use crate::tunnel::Tunnel;

/// What takes the connection over.
pub struct OnUpgrade(Box<dyn FnOnce(Tunnel) -> TunnelFuture + Send>);

/// A connection in the hands of another protocol.
pub(super) type TunnelFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl OnUpgrade {
    /// Gives the connection to what takes it over.
    pub fn call(self, tunnel: Tunnel) -> TunnelFuture {
        (self.0)(tunnel)
    }
}

/// The upgrade that a response offers.
pub struct Upgrade {
    /// The protocol's name, as in the request's `Upgrade`; `None`: it is for CONNECT.
    pub protocol: Option<Box<str>>,
    /// `None`: it cannot come about.
    pub on_upgrade: Option<Box<OnUpgrade>>,
}

impl Response {
    /// Gives the connection to another protocol, if the request has the fields for it: it is of
    /// HTTP/1.1, its `Upgrade` names the protocol, and its `Connection` has `upgrade` (RFC 9110
    /// §7.8). Then the client gets 101, and `on_upgrade` the connection. Else the client gets 426,
    /// with the protocol's name.
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
    /// No request is read after it. One whose body was not read to its end is not upgraded, nor is
    /// one while the server ends. When the future that `on_upgrade` returns is done, the connection
    /// is closed.
    ///
    /// # Panics
    /// If `protocol` cannot be the value of a field. (The server contains that: the client gets
    /// 500.)
    pub fn upgrade<F, T>(protocol: &str, on_upgrade: F) -> Self
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        Self::new(Status::UPGRADE_REQUIRED).on_upgrade(protocol, on_upgrade)
    }

    /// Offers the upgrade, for a response that clients get as it is if they do not request the
    /// protocol. In 101 its fields are kept, but not its content.
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

    /// Gives the connection to what tunnels it, in response to CONNECT: the client gets 200 (RFC
    /// 9110 §9.3.6). With any other method it gets 405.
    ///
    /// Only a [fallback](crate::Routes::fallback_route) that
    /// [takes CONNECT](crate::Route::takes_connect) gets such a request.
    pub fn tunnel<F, T>(on_upgrade: F) -> Self
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let mut response = Self::new(Status::METHOD_NOT_ALLOWED).header("Allow", "CONNECT");
        response.set_upgrade(None, on_upgrade);
        response
    }

    fn set_upgrade<F, T>(&mut self, protocol: Option<Box<str>>, on_upgrade: F)
    where
        F: FnOnce(Tunnel) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let on_upgrade = OnUpgrade(Box::new(|tunnel| Box::pin(on_upgrade(tunnel))));
        let upgrade = Upgrade { protocol, on_upgrade: Some(Box::new(on_upgrade)) };
        self.extras().upgrade = Some(Box::new(upgrade));
    }

    /// Makes the upgrade that it offers impossible.
    #[doc(hidden)]
    pub fn decline_upgrade(&mut self) {
        if let Some(upgrade) = self.extras.as_mut().and_then(|extras| extras.upgrade.as_mut()) {
            upgrade.on_upgrade = None;
        }
    }

    /// Becomes the response to the request whose connection changes hands: nothing of it comes
    /// behind its head.
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

    /// Names the protocol of an upgrade. (These two fields are the server's own: no handler's.)
    #[doc(hidden)]
    pub fn name_protocol(&mut self, protocol: &str) {
        let fields = self.fields.to_mut();
        fields.add_trusted("Connection", b"Upgrade");
        fields.add_trusted("Upgrade", protocol.as_bytes());
    }
}
