//! An axum app on Gustnado: routing, extractors and middleware are axum's own, and beside it a
//! route of Gustnado's.
//!
//! Run it with `cargo run --release -p gustnado --features tower --example axum_app`, and ask
//! `curl http://127.0.0.1:3456/api/user/7`.

use std::time::Duration;

use axum::extract::Path;
use axum::routing::{get, post};
use axum::{Json, Router};
use gustnado::{Request, Server, tower};
use serde::{Deserialize, Serialize};
use tower_http::compression::CompressionLayer;
use tower_http::trace::TraceLayer;

#[derive(Deserialize, Serialize)]
struct User {
    id: u32,
    name: String,
}

fn app() -> Router {
    let api = Router::new()
        .route("/user/{id}", get(find_user))
        .route("/user", post(async |Json(user): Json<User>| Json(user)))
        .route("/long", get(async || "A long text. ".repeat(1_000)))
        .route("/later", get(say_later));
    // (The app sees whole paths, so what stands beneath a path is nested there.)
    Router::new().nest("/api", api).layer(CompressionLayer::new()).layer(TraceLayer::new_for_http())
}

async fn find_user(Path(id): Path<u32>) -> Json<User> {
    Json(User { id, name: format!("user {id}") })
}

/// tokio's timers, `tokio::spawn` and what is built on them work here.
async fn say_later() -> &'static str {
    tokio::time::sleep(Duration::from_millis(10)).await;
    "Hello, a little later!"
}

pub(crate) fn server() -> Server {
    Server::new().get("/", |_: &Request| "Hello from Gustnado!").service("/api", tower(app()))
}

fn main() -> gustnado::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl http://{address}/api/user/7");
    server().listen(&address)?.run()
}
