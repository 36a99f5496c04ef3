//! Handlers that get long bodies as one slice: the server keeps those beyond 1 MiB on the disk, so
//! that many at a time take little memory.
//!
//! ```text
//! cargo run --example long_bodies
//! head -c 50M /dev/urandom | curl --data-binary @- http://127.0.0.1:8080/lines
//! ```

use gustnado::config::BodyPolicy;
use gustnado::{Request, Server, blocking, route};

const LIMIT: u64 = 200 << 20;

/// The server, before it listens.
pub(crate) fn server() -> Server {
    Server::new()
        .limit_body_memory(16 << 20)
        .body_spool(std::env::temp_dir())
        .body_spool_bytes(1 << 30)
        .route(
            "/lines",
            route().post(blocking(|request: Request| lines(&request))).limit_body_bytes(LIMIT),
        )
        // Short ones that should never touch the disk.
        .route("/note", route().post(note).body_policy(BodyPolicy::Memory))
        // Nothing is collected: a handler that needs the body whole would be refused at the start.
        .route("/count", route().post(count).body_policy(BodyPolicy::Stream))
}

fn lines(request: &Request) -> String {
    let lines = request.bytes().split_inclusive(|byte| *byte == b'\n').count();
    format!("{lines} lines in {} bytes\n", request.bytes().len())
}

fn note(request: &Request) -> String {
    format!("a note of {} bytes\n", request.bytes().len())
}

async fn count(mut request: Request) -> Result<String, gustnado::BodyError> {
    let mut bytes = 0;
    while let Some(piece) = request.body_mut().next().await {
        bytes += piece?.len();
    }
    Ok(format!("{bytes} bytes\n"))
}

fn main() -> gustnado::Result<()> {
    println!("try: head -c 50M /dev/urandom | curl --data-binary @- http://127.0.0.1:8080/lines");
    server().listen("127.0.0.1:8080")?.run()
}
