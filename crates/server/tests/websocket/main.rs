//! `WebSocket`s as clients see them, frame by frame (RFC 6455, RFC 7692, RFC 8441).

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod chat;
mod closing;
mod compression;
mod failures;
mod halves;
mod handshakes;
mod memory;
mod messages;
mod peer;
mod restarts;
mod senders;
mod settings;
mod streams;

use gustnado::Routes;
use gustnado::websocket::{WebSocket, WebSocketEndpoint, WebSocketMessage, websocket};
use harness::{Server, Setup};

/// Sends each message back.
async fn echo(mut socket: WebSocket) {
    while let Ok(Some(message)) = socket.recv().await {
        assert_ne!(message, WebSocketMessage::Text("panic".to_owned()), "asked to");
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

/// A server with one endpoint at `/echo`, and what is to be changed about it.
fn serving(
    setup: Setup,
    change: impl FnOnce(WebSocketEndpoint<Echo>) -> WebSocketEndpoint<Echo>,
) -> Server {
    let endpoint = change(websocket(echo_boxed as Echo));
    Server::routes(setup.patient_config(), Routes::new().get("/echo", endpoint))
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
type Echo = fn(WebSocket) -> Boxed;

fn echo_boxed(socket: WebSocket) -> Boxed {
    Box::pin(echo(socket))
}
