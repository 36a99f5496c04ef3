//! The ends of an upload, for measuring what each costs: `/count` reads the body in pieces and
//! responds with its length, `/memory` and `/spool` have all of it in memory or on the disk,
//! `/unread` is a task that responds without reading it, and `/fixed` is a fixed response.
//!
//! ```text
//! cargo run --release --example body_count -- 127.0.0.1:3456
//! curl --data-binary @Cargo.lock http://127.0.0.1:3456/count
//! ```
//!
//! A second argument, `uring` or `epoll`, chooses the kernel interface, as
//! `contests/uploads.toml` does.

use std::env;
use std::path::Path;

use gustnado::config::{BodyPolicy, Io};
use gustnado::site::SiteFile;
use gustnado::{BodyError, Request, Server, route};

const FIXED: &str = r#"
limit-body-bytes = "1g"
max-memory = "8g"
limit-body-memory = "2g"
[[route]]
path = "/fixed"
answer = "fixed"
methods = ["POST"]
"#;

/// The server, before it listens.
pub(crate) fn server() -> Server {
    let fixed = SiteFile::parse(Path::new("fixed.toml"), FIXED).expect("nothing is wrong with it");
    let length = |request: &Request| request.bytes().len().to_string();
    fixed
        .server()
        .workers(1)
        .route("/count", route().post(count))
        .route("/memory", route().body_policy(BodyPolicy::Memory).post(length))
        .route("/spool", route().body_policy(BodyPolicy::Spool).post(length))
        .route("/unread", route().post(async |_: Request| "unread"))
}

async fn count(mut request: Request) -> Result<String, BodyError> {
    let mut bytes = 0;
    while let Some(piece) = request.body_mut().next().await {
        bytes += piece?.len();
    }
    Ok(bytes.to_string())
}

fn main() -> gustnado::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl --data-binary @Cargo.lock http://{address}/count");
    let io = arguments.next().and_then(|name| Io::NAMES.iter().position(|known| *known == name));
    server().io(io.map_or(Io::Auto, |place| Io::ALL[place])).listen(&address)?.run()
}
