//! A handler that responds with a file's content, compressed for each request that accepts it, for
//! measuring what that costs: nothing that a handler responds is cached.
//!
//! ```text
//! cargo run --release --example compressed -- 127.0.0.1:3456 items.json
//! curl --compressed http://127.0.0.1:3456/items.json
//! ```
//!
//! A third argument, `uring` or `epoll`, chooses the kernel interface, as `contests/hosting.toml`
//! does.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use gustnado::config::{Compress, Io};
use gustnado::{Request, Response, Server, route};

/// The server, before it listens.
///
/// - `name`: the name of its only page.
pub(crate) fn server(name: &str, content: &'static str) -> Server {
    let respond =
        move |_: &Request| Response::text(content).header("Content-Type", "application/json");
    let page = route().get(respond).tune(|settings| {
        settings.compress = Compress::On;
        settings.compress_gzip_level = 5;
    });
    Server::new().workers(1).route(&format!("/{name}"), page)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    let path = arguments.next().ok_or("expected an address and a file, found no file")?;
    let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let content: &'static str = fs::read_to_string(&path)?.leak();
    let io = arguments.next().and_then(|name| Io::NAMES.iter().position(|known| *known == name));
    let server = server(&name, content).io(io.map_or(Io::Auto, |place| Io::ALL[place]));
    Ok(server.listen(&address)?.run()?)
}
