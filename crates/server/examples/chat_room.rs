//! A chat over `WebSocket`s, with its page. A visitor gives a name, and all visitors get what each
//! says.
//!
//! ```text
//! cargo run --release -p gustnado --example chat_room -- 127.0.0.1:3456
//! ```
//!
//! Settings are taken from the environment: `GUSTNADO_TLS_CERT` and others.
//!
//! End the server and start it again: the pages come back by themselves, with their names.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gustnado::config::Settings;
use gustnado::websocket::{CloseCode, SlowPeer, Subscription, Topic, WebSocket, websocket};
use gustnado::{Request, Response, Routes, Server};

const PAGE: &str = include_str!("chat_room.html");

/// Lines that a later visitor gets.
const HISTORY_LINES: usize = 50;

/// Bytes of a line. A longer one closes with 1009.
const LINE_BYTES_MAX: u64 = 2_000;

/// A room. Clones are the same one.
#[derive(Clone)]
struct Room(Arc<RoomState>);

struct RoomState {
    topic: Topic,
    history: Mutex<VecDeque<String>>,
}

impl Room {
    fn new() -> Self {
        // A browser that takes lines too slowly is closed, comes back, and gets the last ones.
        let topic = Topic::with(SlowPeer::Close);
        Self(Arc::new(RoomState { topic, history: Mutex::default() }))
    }

    fn history(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a socket get what is said from now on. Returns what was said before: behind the same
    /// lock as `say`, so that no line is missed and none comes twice.
    fn enter(&self, socket: &WebSocket) -> (Subscription, Vec<String>) {
        let history = self.history();
        (self.0.topic.subscribe(socket), history.iter().cloned().collect())
    }

    fn say(&self, line: String) {
        let mut history = self.history();
        if history.len() == HISTORY_LINES {
            history.pop_front();
        }
        self.0.topic.publish(&*line);
        history.push_back(line);
    }
}

/// One visitor: the first message is the name, each other one a line.
async fn visit(mut socket: WebSocket, room: Room) {
    let name = match socket.recv().await {
        Ok(Some(message)) if message.text().is_some_and(is_name) => message,
        _ => return socket.close(CloseCode::POLICY_VIOLATION, "a name comes first"),
    };
    let name = name.text().unwrap_or_default();
    let (_subscription, before) = room.enter(&socket);
    for line in before {
        if socket.send(line).await.is_err() {
            return;
        }
    }
    room.say(format!("{name} is here."));
    while let Ok(Some(message)) = socket.recv().await {
        if let Some(text) = message.text() {
            room.say(format!("{name}: {text}"));
        }
    }
    room.say(format!("{name} has left."));
}

fn is_name(name: &str) -> bool {
    (1..=40).contains(&name.len()) && !name.contains(char::is_control)
}

/// The page, and its WebSocket.
pub(crate) fn routes() -> Routes {
    let room = Room::new();
    let visit = websocket(move |socket| visit(socket, room.clone()));
    Routes::new()
        .get("/", |_: &Request| Response::html(PAGE))
        .get("/room", visit.message_bytes_max(LINE_BYTES_MAX))
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    let settings = Settings::layered(&[], std::env::vars_os(), None)?;
    Ok(Server::new().config(settings.config).routes(routes()).listen(&address)?.run()?)
}
