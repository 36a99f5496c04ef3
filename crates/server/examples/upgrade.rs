//! A connection that goes on in another protocol than HTTP: `echo` is one of `gustnado::protocol`,
//! `shout` a function.
//!
//! ```text
//! cargo run --release --example upgrade -- 127.0.0.1:3456
//! printf 'GET /shout HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nhi\n' |
//!     nc -q 1 127.0.0.1 3456
//! ```

use std::env;

use gustnado::protocol::{Protocol, Transport};
use gustnado::{Request, Response, Server, Tunnel};

/// Sends back what comes.
struct Echo;

impl Protocol for Echo {
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        transport.write(data);
    }
}

/// Sends back what comes, in capitals.
async fn shout(mut tunnel: Tunnel) {
    while let Ok(bytes) = tunnel.recv().await {
        if bytes.is_empty() || tunnel.send(bytes.to_ascii_uppercase()).await.is_err() {
            return;
        }
    }
}

/// The server, before it listens.
pub(crate) fn server() -> Server {
    Server::new()
        // Clients that do not ask for `echo` get 426.
        .get("/echo", |_: &Request| {
            Response::upgrade("echo", async |tunnel: Tunnel| _ = tunnel.run(Echo).await)
        })
        // Clients that do not ask for `shout` get a page.
        .get("/shout", |_: &Request| {
            Response::html("<p>For clients that speak shout.").on_upgrade("shout", shout)
        })
}

fn main() -> gustnado::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try the second command at the top of this example, at {address}");
    server().listen(&address)?.run()
}
