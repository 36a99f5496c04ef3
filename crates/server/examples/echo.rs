//! Sends back what it is sent, as it comes; without a body it says something short. It stands for
//! Qurricane's own echo: see `docs/qurricane.md`.
//!
//! ```text
//! cargo run --release --example echo -- 127.0.0.1:3456
//! curl http://127.0.0.1:3456/echo
//! curl --data 'hello there' http://127.0.0.1:3456/echo
//! ```
//!
//! A second argument, `uring` or `epoll`, chooses the kernel interface, as
//! `contests/qurricane.toml` does.

use std::env;

use gustnado::config::Io;
use gustnado::{Request, Response, Server, route};

/// 19 bytes, as many as Qurricane's example answered in its benchmark.
const GREETING: &str = "Hello from Gustnado";

/// The server, before it listens.
pub(crate) fn server() -> Server {
    let greet = |_: &Request| GREETING;
    let echo = async |request: Request| Response::stream(request.into_body());
    Server::new().route("/echo", route().get(greet).post(echo))
}

fn main() -> gustnado::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl http://{address}/echo");
    let io = arguments.next().and_then(|name| Io::NAMES.iter().position(|known| *known == name));
    server().io(io.map_or(Io::Auto, |place| Io::ALL[place])).listen(&address)?.run()
}
