//! An endpoint that opens `WebSocket`s.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use gustnado_http::status::Status;
use gustnado_http::websocket::deflate::DeflateOptions;
use gustnado_web::handler::{Handler, IntoHandler, form};
use gustnado_web::request::Request;
use gustnado_web::response::Response;
use gustnado_web::server_context::ServerContext;

use crate::offer::WebSocketAcceptor;
use crate::options::{Origins, OwnOptions, WebSocketOptions, per_second};
use crate::socket::WebSocket;

/// An endpoint that opens `WebSocket`s: see [`websocket`].
#[derive(Clone)]
pub struct WebSocketEndpoint<F> {
    handler: F,
    options: OwnOptions,
}

/// Makes an endpoint that opens a WebSocket for each request, and hands it to `handler`. It is a
/// handler of GET: middleware, limits and logs see the handshake.
///
/// Pages of other hosts may not open one, unless [`WebSocketEndpoint::origins`] says otherwise.
pub fn websocket<F, A>(handler: F) -> WebSocketEndpoint<F>
where
    F: Fn(WebSocket) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    WebSocketEndpoint { handler, options: OwnOptions::default() }
}

impl WebSocketEndpoint<()> {
    /// Makes an endpoint without a handler, for programs that answer handshakes themselves: see
    /// [`WebSocketEndpoint::with_acceptor`].
    #[must_use]
    pub fn undecided() -> Self {
        Self { handler: (), options: OwnOptions::default() }
    }

    /// Makes a handler that decides about handshakes: the one that `make` returns, which is called
    /// once the server and its settings are known.
    pub fn with_acceptor<F, H, K>(self, make: F) -> Handler
    where
        F: Fn(WebSocketAcceptor) -> H + Send + Sync + 'static,
        H: IntoHandler<K>,
    {
        let options = self.options;
        Handler::of_server(move |context: &ServerContext| {
            let options = options.or(WebSocketOptions::of(context));
            make(WebSocketAcceptor::new(options)).into_handler()
        })
    }
}

/// Declares setters.
macro_rules! setters {
    ($($(#[$doc:meta])+ $name:ident: $type:ty => $field:ident = $value:expr;)+) => {
        impl<F> WebSocketEndpoint<F> {
            $(
                $(#[$doc])+
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.options.$field = Some($value);
                    self
                }
            )+
        }
    };
}

setters! {
    /// Sets how long a message may be, in bytes (`--ws-message-bytes-max`, 16 MiB); a longer one
    /// closes with 1009. It counts after a message is inflated, too.
    message_bytes_max: u64 => message_bytes_max = message_bytes_max;
    /// Sets how long a frame may be, in bytes (`--ws-frame-bytes-max`, 1 MiB).
    frame_bytes_max: u64 => frame_bytes_max = frame_bytes_max;
    /// Sets of how many frames a message may be (`--ws-fragments-max`, 1,024).
    fragments_max: u32 => fragments_max = fragments_max.max(1);
    /// Sets how many messages, pings and pongs a peer may send per second
    /// (`--ws-messages-per-second-max`, no limit); one that sends more is closed with 1008. A
    /// second's worth may come at once. 0 is no limit.
    messages_per_second_max: u32 => rate = per_second(messages_per_second_max);
    /// Sets how many bytes may wait to be sent before senders in other tasks wait
    /// (`--ws-unsent-bytes-max`, 1 MiB).
    unsent_bytes_max: usize => unsent_bytes_max = unsent_bytes_max.max(1);
    /// Sets how long a peer may be silent before it is pinged (`--ws-ping`, 30 s). `None`: it is
    /// not pinged.
    ping: Option<Duration> => ping = ping;
    /// Sets how long it may be silent then before it is lost (`--ws-ping-timeout`, 20 s).
    ping_timeout: Duration => ping_timeout = ping_timeout;
    /// Sets how long a peer has to answer a close frame (`--ws-close-timeout`, 5 s).
    close_timeout: Duration => close_timeout = close_timeout;
    /// Sets which pages may open a WebSocket.
    origins: Origins => origins = origins;
    /// Sets the subprotocols that are spoken, the best one first.
    subprotocols: &[&str] => subprotocols =
        subprotocols.iter().map(|name| (*name).to_owned()).collect();
    /// Sets whether messages may be compressed (permessage-deflate), and how; `None`: not
    /// (`--ws-deflate`, without contexts).
    deflate: Option<DeflateOptions> => deflate = deflate;
    /// Sets from how many bytes on a message is compressed (`--ws-deflate-bytes-min`, 860).
    deflate_bytes_min: usize => deflate_bytes_min = deflate_bytes_min;
}

impl<F, A> IntoHandler<form::ReadyForm> for WebSocketEndpoint<F>
where
    F: Fn(WebSocket) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    fn into_handler(self) -> Handler {
        let Self { handler, options } = self;
        // What it does not set itself is known once the server is.
        Handler::of_server(move |context: &ServerContext| {
            let acceptor = WebSocketAcceptor::new(options.or(WebSocketOptions::of(context)));
            let handler = handler.clone();
            let respond = move |request: &Request| respond(request, &acceptor, handler.clone());
            IntoHandler::<form::InlineForm>::into_handler(respond)
        })
    }
}

impl<F> fmt::Debug for WebSocketEndpoint<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketEndpoint").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Answers a handshake.
fn respond<F, A>(request: &Request, acceptor: &WebSocketAcceptor, handler: F) -> Response
where
    F: FnOnce(WebSocket) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    match acceptor.offer(request) {
        Ok(offer) => offer.accept(Response::new(Status::UPGRADE_REQUIRED), handler),
        Err(response) => response,
    }
}
