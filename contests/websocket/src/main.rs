//! WebSockets by Gustnado and by other libraries in Rust: what `contests/websocket.toml` measures.
//!
//! ```text
//! gustnado-bench-websocket epoll|uring|actix|fastwebsockets|tungstenite ADDRESS
//! ```
//!
//! `/echo` sends each message back. Gustnado's `/chat` sends each to all. One thread serves.

mod actix;
mod fast;
mod own;
mod tungstenite;

use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_default();
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let served = match &*server {
        "epoll" => own::serve(gustnado::config::Io::Epoll, &address),
        "uring" => own::serve(gustnado::config::Io::Uring, &address),
        "actix" => actix::serve(&address),
        "fastwebsockets" => on_tokio(fast::serve(address)),
        "tungstenite" => on_tokio(tungstenite::serve(address)),
        _ => Err("expected: epoll|uring|actix|fastwebsockets|tungstenite ADDRESS".into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn on_tokio(serving: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, serving)
}
