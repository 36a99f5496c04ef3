//! Sends back whatever it receives.
//!
//! ```text
//! cargo run --example echo_server 127.0.0.1:7000
//! ```

use std::env;
use std::error::Error;

use gustnado::config::Config;
use gustnado::protocol::{Engine, ListenError, Port, Protocol, Transport};

/// One connection. If its peer does not read, reading from it rests, so nothing piles up.
struct Echo;

impl Protocol for Echo {
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        transport.write(data);
    }
}

/// Listens on an address.
pub(crate) fn serve(engine: &Engine, address: &str) -> Result<Port, ListenError> {
    engine.listen_tcp(address, |_| Echo)
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    let engine = Engine::start(&Config::default())?;
    let port = serve(&engine, &address)?;
    println!("echoing at {}", port.address());
    engine.run();
    Ok(())
}
