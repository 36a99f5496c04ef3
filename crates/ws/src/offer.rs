//! Handshakes that a program answers later, once it has decided about them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use gustnado_http::websocket::Role;
use gustnado_http::websocket::deflate::DeflateAgreed;
use gustnado_web::request::Request;
use gustnado_web::response::Response;
use gustnado_web::tunnel::Tunnel;

use crate::core::{Core, WebSocketTerms};
use crate::deflate::Deflate;
use crate::handshake::{PROTOCOL, WebSocketHandshake};
use crate::options::WebSocketOptions;
use crate::run::SocketRun;
use crate::socket::WebSocket;

/// Checks handshakes by the options of an endpoint, and leaves their answers to the program: see
/// [`WebSocketEndpoint::with_acceptor`](crate::WebSocketEndpoint::with_acceptor).
#[derive(Clone, Debug)]
pub struct WebSocketAcceptor(Arc<WebSocketOptions>);

/// A handshake that is in order, and that is not answered yet.
pub struct WebSocketOffer {
    handshake: WebSocketHandshake,
    options: Arc<WebSocketOptions>,
}

impl WebSocketAcceptor {
    pub(crate) fn new(options: WebSocketOptions) -> Self {
        Self(Arc::new(options))
    }

    /// Checks a request.
    ///
    /// # Errors
    /// The response to a request that gets no WebSocket: 426 to one that asks for none.
    pub fn offer(&self, request: &Request) -> Result<WebSocketOffer, Response> {
        if !request.wants_protocol(PROTOCOL) {
            return Err(Response::upgrade(PROTOCOL, |_| async {}));
        }
        let options = Arc::clone(&self.0);
        WebSocketHandshake::of(request, &options)
            .map(|handshake| WebSocketOffer { handshake, options })
    }
}

impl WebSocketOffer {
    /// Returns the first subprotocol of the options that the client offers.
    pub fn subprotocol(&self) -> Option<&str> {
        self.handshake.subprotocol.as_deref()
    }

    /// Chooses another subprotocol, or none.
    #[must_use]
    pub fn speaking(mut self, subprotocol: Option<&str>) -> Self {
        self.handshake.subprotocol = subprotocol.map(Box::from);
        self
    }

    /// Returns the response that opens the WebSocket, which then belongs to `handler`.
    ///
    /// - `base`: its fields are sent, too, and it is what the client gets if the WebSocket cannot
    ///   be opened any more, as during a drain. Its status is usually 426.
    ///
    /// # Panics
    /// If a subprotocol was chosen that cannot be the value of a field.
    pub fn accept<F, A>(self, base: Response, handler: F) -> Response
    where
        F: FnOnce(WebSocket) -> A + Send + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let WebSocketHandshake { accept, subprotocol, deflate } = self.handshake;
        let (options, chosen) = (self.options, subprotocol.clone());
        let mut response = base.on_upgrade(PROTOCOL, move |tunnel: Tunnel| {
            let deflate = deflate.map(|agreed: DeflateAgreed| {
                Deflate::new(agreed, Role::Server, options.deflate_bytes_min)
            });
            let terms = WebSocketTerms { subprotocol: chosen, deflate };
            SocketRun::new(Core::new((tunnel, Role::Server), options, terms), handler)
        });
        if let Some(accept) = accept {
            response = response.header("Sec-WebSocket-Accept", &accept);
        }
        if let Some(subprotocol) = subprotocol {
            response = response.header("Sec-WebSocket-Protocol", &*subprotocol);
        }
        if let Some(deflate) = deflate {
            response = response.header("Sec-WebSocket-Extensions", deflate.to_string());
        }
        response
    }
}

impl fmt::Debug for WebSocketOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subprotocol = &self.handshake.subprotocol;
        f.debug_struct("WebSocketOffer").field("subprotocol", subprotocol).finish_non_exhaustive()
    }
}
