//! A WebSocket as axum's applications have it: its two halves in tasks of their own, a peer's
//! address, a ping at the begin, and the server's close at the end.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use axum::routing::any;
use futures_util::stream::StreamExt as _;
use futures_util::SinkExt as _;
use tokio::time::sleep;

/// Messages that the server sends by itself.
const TICKS: u32 = 3;

pub(super) fn app() -> Router {
    Router::new().route("/ws", any(open))
}

async fn open(upgrade: WebSocketUpgrade, ConnectInfo(peer): ConnectInfo<SocketAddr>) -> Response {
    upgrade.protocols(["ticks"]).on_upgrade(move |socket| talk(socket, peer))
}

async fn talk(mut socket: WebSocket, peer: SocketAddr) {
    if socket.send(Message::Ping("alive?".into())).await.is_err() {
        return;
    }
    let (mut sender, mut receiver) = socket.split();
    let (heard, mut to_send) = tokio::sync::mpsc::channel::<String>(8);
    let mut sending = tokio::spawn(async move {
        for tick in 0..TICKS {
            sender.send(Message::Text(format!("tick {tick} for {}", peer.ip()).into())).await?;
            sleep(Duration::from_millis(20)).await;
        }
        while let Some(text) = to_send.recv().await {
            sender.send(Message::Text(text.into())).await?;
        }
        let close = CloseFrame { code: close_code::NORMAL, reason: "that is all".into() };
        sender.send(Message::Close(Some(close))).await
    });
    let mut receiving = tokio::spawn(async move {
        while let Some(Ok(message)) = receiver.next().await {
            let text = match message {
                Message::Text(text) if text == "end" => return,
                Message::Text(text) => format!("heard {text}"),
                Message::Pong(payload) => format!("pong of {} bytes", payload.len()),
                Message::Close(_) => return,
                _ => continue,
            };
            if heard.send(text).await.is_err() {
                return;
            }
        }
    });
    tokio::select! {
        _ = &mut sending => receiving.abort(),
        // The sender ends once it has sent what was heard.
        _ = &mut receiving => {
            _ = sending.await;
        }
    }
}
