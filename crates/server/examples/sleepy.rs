//! Sleeps before it answers, and holds no thread while it does: a thousand may sleep at once on one
//! worker.
//!
//! ```text
//! cargo run --release --example sleepy -- 127.0.0.1:3456
//! curl http://127.0.0.1:3456/sleepy
//! ab -n 1000 -c 1000 http://127.0.0.1:3456/sleepy
//! ```

use std::env;
use std::time::Duration;

use gustnado::task::sleep;
use gustnado::{Request, Server};

/// How long each request sleeps.
const NAP: Duration = Duration::from_millis(100);

/// The server, before it listens.
pub(crate) fn server() -> Server {
    Server::new().get("/sleepy", async |_: Request| {
        sleep(NAP).await;
        "slept well\n"
    })
}

fn main() -> gustnado::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl http://{address}/sleepy");
    server().listen(&address)?.run()
}
