//! A connection that goes on in another protocol: `GET /echo` with `Upgrade: echo`.
//!
//! ```console
//! $ cargo run --example upgrade
//! $ printf 'GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi\n' |
//!       nc -q 1 127.0.0.1 3456
//! ```

use gustnado::protocol::{Protocol, Transport};
use gustnado::{Request, Response, Server, Tunnel};

/// Sends back what comes.
struct Echo;

impl Protocol for Echo {
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        transport.write(data);
    }
}

fn main() -> gustnado::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    Server::new()
        // A protocol, as of `gustnado::protocol`.
        .get("/echo", |_: &Request| {
            Response::upgrade("echo", async |tunnel: Tunnel| _ = tunnel.run(Echo).await)
        })
        // A function of a tunnel; clients that do not ask for the protocol get a page.
        .get("/shout", |_: &Request| {
            Response::html("<p>This is for clients that speak shout.").on_upgrade("shout", shout)
        })
        .listen(&address)?
        .run()
}

async fn shout(mut tunnel: Tunnel) {
    while let Ok(bytes) = tunnel.recv().await {
        if bytes.is_empty() || tunnel.send(bytes.to_ascii_uppercase()).await.is_err() {
            return;
        }
    }
}
