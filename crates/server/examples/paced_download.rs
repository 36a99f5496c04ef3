//! A download at a pace: each connection to `/slow` is sent 8 KiB per second, while `/fast` sends
//! the same as fast as it can.
//!
//! Run it with `cargo run --release --example paced_download -- 127.0.0.1:3456`, and compare
//! `curl -o /dev/null http://127.0.0.1:3456/slow` with the same for `/fast`.

use gustnado::{Bytes, Request, Response, Routes, Server, route};

/// Bytes of the download.
const LENGTH: usize = 1 << 20;

/// The site.
///
/// - `rate`: bytes per second on each connection to `/slow`.
pub(crate) fn site(rate: u64) -> Routes {
    let content = Bytes::from(vec![b'.'; LENGTH]);
    let download = move |_: &Request| Response::bytes(content.clone());
    Routes::new()
        .route("/slow", route().get(download.clone()).bytes_per_second(rate))
        .get("/fast", download)
        .get("/hello", |_: &Request| "Hello, world!")
}

fn main() -> gustnado::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    let rate = arguments.next().and_then(|rate| rate.parse().ok()).unwrap_or(8 << 10);
    let running = Server::new().routes(site(rate)).listen(&address)?;
    println!("over {}; try: curl -o /dev/null http://{address}/slow", running.backend());
    running.run()
}
