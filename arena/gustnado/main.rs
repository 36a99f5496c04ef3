//! The entry for `HttpArena` (<https://www.http-arena.com>): its HTTP/1.1 profiles without TLS.
//!
//! It is in the category *production*: routes and handlers of the public API, default settings.
//!
//! ```text
//! cargo run --release --features json --example arena -- 127.0.0.1:8080 /data
//! curl 'http://127.0.0.1:8080/baseline11?a=13&b=42'
//! ```

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use gustnado::{BodyError, QueryError, Request, Response, Server, Status, route};
use serde::{Deserialize, Serialize};

/// The longest upload of the profile is 20 MiB; the server's own limit is 1 MiB.
const UPLOAD_BYTES_MAX: u64 = 32 << 20;

/// The query of `/baseline11`.
#[derive(Deserialize)]
struct Terms {
    a: i64,
    b: i64,
}

/// The query of `/json/{count}`.
#[derive(Deserialize)]
struct Multiplier {
    m: i64,
}

/// One entry of `dataset.json`.
#[derive(Deserialize)]
struct Item {
    id: u64,
    name: String,
    category: String,
    price: i64,
    quantity: i64,
    active: bool,
    tags: Vec<String>,
    rating: Rating,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
struct Rating {
    score: i64,
    count: i64,
}

/// The same in a response, with its total.
#[derive(Serialize)]
struct PricedItem<'a> {
    id: u64,
    name: &'a str,
    category: &'a str,
    price: i64,
    quantity: i64,
    active: bool,
    tags: &'a [String],
    rating: Rating,
    total: i64,
}

#[derive(Serialize)]
struct Listing<'a> {
    items: Vec<PricedItem<'a>>,
    count: usize,
}

/// The server, before it listens.
///
/// - `data`: the folder with `dataset.json` and `static`.
pub(crate) fn server(data: &Path) -> io::Result<Server> {
    let items: Vec<Item> = serde_json::from_slice(&fs::read(data.join("dataset.json"))?)?;
    let server = Server::new()
        .route("/baseline11", route().get(sum).post(sum_with_body))
        .get("/pipeline", |_: &Request| "ok")
        .get("/json/{count}", move |request: &Request| list(request, &items))
        .route("/upload", route().post(count).limit_body_bytes(UPLOAD_BYTES_MAX))
        .files("/static", data.join("static"))
        // The category's rule: each file is read from the disk for each request.
        .cache_bytes(0);
    Ok(server)
}

fn sum(request: &Request) -> Result<String, QueryError> {
    let Terms { a, b } = request.query_as()?;
    Ok((a + b).to_string())
}

fn sum_with_body(request: &Request) -> Result<String, Status> {
    let Terms { a, b } = request.query_as().map_err(|_| Status::BAD_REQUEST)?;
    let text = request.text().map_err(BodyError::status)?;
    let number: i64 = text.trim().parse().map_err(|_| Status::BAD_REQUEST)?;
    Ok((a + b + number).to_string())
}

/// The first items, each with its total.
fn list(request: &Request, items: &[Item]) -> Result<Response, Status> {
    let count: usize = request.param_as("count").map_err(|error| error.status())?;
    let Multiplier { m } = request.query_as().map_err(|_| Status::BAD_REQUEST)?;
    let items: Vec<PricedItem<'_>> = items
        .iter()
        .take(count)
        .map(|item| PricedItem {
            id: item.id,
            name: &item.name,
            category: &item.category,
            price: item.price,
            quantity: item.quantity,
            active: item.active,
            tags: &item.tags,
            rating: item.rating,
            total: item.price * item.quantity * m,
        })
        .collect();
    Ok(Response::json(&Listing { count: items.len(), items }))
}

/// Counts the bytes of a body as they come.
async fn count(mut request: Request) -> Result<String, BodyError> {
    let mut bytes = 0;
    while let Some(piece) = request.body_mut().next().await {
        bytes += piece?.len();
    }
    Ok(bytes.to_string())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "0.0.0.0:8080".to_owned());
    let data = arguments.next().map_or_else(|| PathBuf::from("/data"), PathBuf::from);
    Ok(server(&data)?.listen(&address)?.run()?)
}
