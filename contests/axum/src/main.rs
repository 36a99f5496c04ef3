//! One axum app, served by Gustnado or by axum's own server: what `contests/axum.toml` measures.
//!
//! ```text
//! gustnado-bench-axum epoll|uring|axum [THREADS [ADDRESS]]
//! ```
//!
//! Without an address it takes a free port of 127.0.0.1. It prints the port, and serves until it is
//! killed.

use std::process::ExitCode;

use axum::extract::Path;
use axum::routing::{get, post};
use axum::{Json, Router};
use gustnado::config::Io;
use gustnado::{Server, tower};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct User {
    id: u32,
    name: String,
}

fn app() -> Router {
    Router::new()
        .route("/", get(async || "Hello, World!"))
        .route("/user/{id}", get(async |Path(id): Path<u32>| format!("user {id}")))
        .route("/echo", post(async |Json(user): Json<User>| Json(user)))
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_default();
    let threads = arguments.next().map_or(Ok(1), |threads| threads.parse());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let served = match (&*server, threads) {
        ("epoll", Ok(threads)) => on_gustnado(Io::Epoll, threads, &address),
        ("uring", Ok(threads)) => on_gustnado(Io::Uring, threads, &address),
        ("axum", Ok(threads)) => on_axum(threads, &address),
        _ => Err("expected: epoll|uring|axum [THREADS [ADDRESS]]".into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn on_gustnado(io: Io, threads: usize, address: &str) -> Result<(), Failure> {
    let server = Server::new().io(io).workers(threads).fallback(tower(app()));
    let running = server.listen(address)?;
    eprintln!("{} {:?}", running.backend(), running.notes());
    println!("{}", running.addresses()[0].to_string().rsplit(':').next().unwrap_or_default());
    Ok(running.run()?)
}

fn on_axum(threads: usize, address: &str) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        println!("{}", listener.local_addr()?.port());
        // The answers are small, and axum's own default is to let them wait for more.
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            stream.set_nodelay(true).expect("a TCP socket has it");
        });
        axum::serve(listener, app()).await?;
        Ok(())
    })
}
