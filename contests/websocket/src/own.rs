//! Gustnado, by its public API and with its defaults, but for texts that no one inflates.

use gustnado::config::Io;
use gustnado::websocket::{Topic, WebSocket};
use gustnado::{Server, websocket::websocket};

use crate::Failure;

async fn echo(mut socket: WebSocket) {
    while let Ok(Some(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

pub fn serve(io: Io, address: &str) -> Result<(), Failure> {
    let room = Topic::new();
    let chat = move |mut socket: WebSocket| {
        let room = room.clone();
        async move {
            let _subscription = room.subscribe(&socket);
            while let Ok(Some(message)) = socket.recv().await {
                room.publish(message);
            }
        }
    };
    let server = Server::new().io(io).workers(1).quiet(true);
    server.websocket("/echo", echo).get("/chat", websocket(chat)).listen(address)?.run()?;
    Ok(())
}
