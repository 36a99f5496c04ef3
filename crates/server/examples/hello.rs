//! The three kinds of handler, in a server of a few lines.
//!
//! Run it with `cargo run --release --example hello -- 127.0.0.1:3456`, and ask
//! `curl http://127.0.0.1:3456/hello`.

use std::time::Duration;

use gustnado::task::sleep;
use gustnado::{Request, Server, blocking};

fn main() -> gustnado::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl http://{address}/hello");
    Server::new()
        .get("/hello", |_: &Request| "Hello, world!")
        .get("/hello/{name}", |request: &Request| format!("Hello, {}!", request.param("name")))
        .get("/task", async |_: Request| "Hello from a task!")
        .get("/late", async |_: Request| {
            sleep(Duration::from_secs(1)).await;
            "Hello, a second later!"
        })
        .get("/blocking", blocking(|_| "Hello from a thread!"))
        .listen(&address)?
        .run()
}
