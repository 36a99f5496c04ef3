//! What the README shows under "Embed it", to the letter.
//!
//! Run it with `cargo run --release --example embed`, and ask `curl http://127.0.0.1:3456/hello`.

use gustnado::{Request, Server};

fn main() -> gustnado::Result<()> {
    Server::new()
        .get("/hello", |_: &Request| "Hello, world!")
        .get("/hello/{name}", |request: &Request| format!("Hello, {}!", request.param("name")))
        .listen("127.0.0.1:3456")?
        .run()
}
