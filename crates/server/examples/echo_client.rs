//! Sends lines to an echo server, and prints what comes back. If the server is not there, or goes
//! away before everything has come back, it tries again: later and later.
//!
//! ```text
//! cargo run --example echo_client 127.0.0.1:7000 hello world
//! ```

use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use gustnado::Endpoint;
use gustnado::config::Config;
use gustnado::protocol::{
    ConnectError, ConnectOptions, Connector, Engine, Factory, LineProtocol, LineReceiver, Lines,
    Protocol, Reason, ReconnectingClientFactory, Retry,
};

/// What is to be sent, and what is done with what comes back.
struct Talk {
    unanswered: Mutex<VecDeque<String>>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    retry: Retry,
}

impl Talk {
    /// The line whose echo is due.
    fn current(&self) -> Option<String> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).front().cloned()
    }

    fn answered(&self) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    }
}

/// One connection: a line, its echo, the next line.
struct Client(Arc<Talk>);

impl Client {
    fn send_next(&self, lines: &mut Lines<'_>) {
        if let Some(line) = self.0.current() {
            lines.send_line(line);
        } else {
            self.0.retry.stop_trying();
            lines.transport.lose_connection();
        }
    }
}

impl LineProtocol for Client {
    fn connection_made(&mut self, lines: &mut Lines<'_>) {
        self.send_next(lines);
    }

    fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]) {
        // The server is of use: if it goes away, it is worth looking for it soon.
        self.0.retry.reset_delay();
        (self.0.tell)(&String::from_utf8_lossy(line));
        self.0.answered();
        self.send_next(lines);
    }
}

/// Makes the connections, and ends the engine after the last one.
struct Clients(Arc<Talk>);

impl Factory for Clients {
    fn build_protocol(&self, _peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        Some(Box::new(LineReceiver::new(Client(Arc::clone(&self.0)))))
    }

    fn connection_failed(&self, connector: &Connector, error: &ConnectError) {
        (self.0.tell)(&format!("{}: {error}", connector.destination()));
    }

    fn connection_lost(&self, connector: &Connector, reason: Reason) {
        match self.0.current() {
            Some(_) => (self.0.tell)(&reason.to_string()),
            None => connector.engine().stop(),
        }
    }
}

/// Sends lines one after the other, and tells what comes back. The engine stops after that.
pub(crate) fn talk(
    engine: &Engine,
    address: &str,
    lines: impl IntoIterator<Item = String>,
    retry: Retry,
    tell: impl Fn(&str) + Send + Sync + 'static,
) -> io::Result<Connector> {
    let unanswered = Mutex::new(lines.into_iter().collect());
    let talk = Arc::new(Talk { unanswered, tell: Box::new(tell), retry: retry.clone() });
    let factory = ReconnectingClientFactory::with(retry, Clients(talk));
    engine.connect_tcp(address, ConnectOptions::default(), factory)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    let engine = Engine::start(&Config::default())?;
    talk(&engine, &address, arguments, Retry::default(), |line| println!("{line}"))?;
    engine.run();
    Ok(())
}
