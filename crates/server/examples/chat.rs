//! A chat by lines: whoever connects gives a name, and then all hear what each says.
//!
//! ```text
//! cargo run --example chat 127.0.0.1:7001
//! nc 127.0.0.1 7001
//! ```

use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gustnado::config::Config;
use gustnado::protocol::{
    Engine, LineProtocol, LineReceiver, Lines, ListenError, Port, Reason, TransportHandle,
    WriteError,
};

/// Who is there.
#[derive(Default)]
struct Room {
    members: Mutex<Vec<Member>>,
}

struct Member {
    name: String,
    connection: TransportHandle,
}

impl Room {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a member in, if nobody else has its name. Returns whether that was so.
    fn enter(&self, name: &str, connection: TransportHandle) -> bool {
        let mut members = self.members();
        let is_free = members.iter().all(|member| member.name != name);
        if is_free {
            members.push(Member { name: name.to_owned(), connection });
        }
        is_free
    }

    fn leave(&self, name: &str) {
        self.members().retain(|member| member.name != name);
    }

    /// Says something to all. Their connections may belong to any worker.
    fn say(&self, text: &str) {
        let line = format!("{text}\r\n");
        for Member { connection, .. } in &*self.members() {
            // Who does not read what is said is not waited for.
            if let Err(WriteError::Full { .. }) = connection.write(line.as_bytes()) {
                connection.abort_connection();
            }
        }
    }
}

/// One connection.
struct Talker {
    room: Arc<Room>,
    name: Option<String>,
}

impl LineProtocol for Talker {
    fn connection_made(&mut self, lines: &mut Lines<'_>) {
        lines.send_line("What is your name?");
    }

    fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let Some(name) = &self.name else {
            if line.is_empty() || !self.room.enter(&line, lines.transport.handle()) {
                lines.send_line("Another name, please.");
                return;
            }
            self.name = Some(line.clone().into_owned());
            self.room.say(&format!("{line} is here."));
            return;
        };
        self.room.say(&format!("{name}: {line}"));
    }

    fn connection_lost(&mut self, _reason: Reason) {
        if let Some(name) = self.name.take() {
            self.room.leave(&name);
            self.room.say(&format!("{name} has left."));
        }
    }
}

/// Opens a room at an address. Lines have 1,000 bytes at most.
pub(crate) fn serve(engine: &Engine, address: &str) -> Result<Port, ListenError> {
    let room = Arc::<Room>::default();
    engine.listen_tcp(address, move |_| {
        let talker = Talker { room: Arc::clone(&room), name: None };
        LineReceiver::new(talker).max_length(1_000)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7001".to_owned());
    let engine = Engine::start(&Config::default())?;
    let port = serve(&engine, &address)?;
    println!("chatting at {}", port.address());
    engine.run();
    Ok(())
}
