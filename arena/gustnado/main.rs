//! The entry for `HttpArena` (<https://www.http-arena.com>): its profiles of HTTP/1.1, HTTP/2 and
//! WebSocket.
//!
//! It is in the category *production*: routes and handlers of the public API.
//!
//! ```text
//! cargo run --release --features json,tls --example arena -- 127.0.0.1:8080 /data
//! curl 'http://127.0.0.1:8080/baseline11?a=13&b=42'
//! ```
//!
//! Other addresses may come before the folder: `https://127.0.0.1:8443`, with `TLS_CERT` and
//! `TLS_KEY` in the environment, and `h2c://127.0.0.1:8082`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use gustnado::config::{Compress, Precompressed};
use gustnado::websocket::WebSocket;
use gustnado::{BodyError, Request, Response, Server, Status, route};
use serde::{Deserialize, Serialize};

/// Where a container listens: HTTP/1.1, the same by TLS, HTTP/2 by TLS, and HTTP/2 alone in clear.
const ADDRESSES: [&str; 4] =
    ["http://0.0.0.0:8080", "https://0.0.0.0:8081", "https://0.0.0.0:8443", "h2c://0.0.0.0:8082"];

/// Where the arena mounts a certificate and its key.
const CERTIFICATE: [&str; 2] = ["/certs/server.crt", "/certs/server.key"];

/// The longest upload of the profile is 20 MiB; the server's own limit is 1 MiB.
const UPLOAD_BYTES_MAX: u64 = 32 << 20;

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
    let json = route()
        .get(move |request: &Request| list(request, &items))
        .tune(|settings| settings.compress = Compress::On)
        // Each response is compressed once, for one client.
        .tune(|settings| settings.compress_gzip_level = 1);
    let server = Server::new()
        .route("/baseline11", route().get(sum).post(sum_with_body))
        .get("/baseline2", sum)
        .get("/pipeline", |_: &Request| "ok")
        .route("/json/{count}", json)
        .websocket("/ws", echo)
        .route("/upload", route().post(count).limit_body_bytes(UPLOAD_BYTES_MAX))
        .files("/static", data.join("static"))
        .tune(|config| config.routes.precompressed = Precompressed::On)
        // The category's rule: no file is kept in memory, each is read for each request.
        .tune(|config| config.routes.small_file_bytes_max = 0);
    Ok(server)
}

fn sum(request: &Request) -> Result<String, Status> {
    Ok(sum_of_query(request)?.to_string())
}

fn sum_with_body(request: &Request) -> Result<String, Status> {
    let text = request.text().map_err(BodyError::status)?;
    let number: i64 = text.trim().parse().map_err(|_| Status::BAD_REQUEST)?;
    let sum = sum_of_query(request)?.checked_add(number).ok_or(Status::BAD_REQUEST)?;
    Ok(sum.to_string())
}

/// Adds up the values of the query.
fn sum_of_query(request: &Request) -> Result<i64, Status> {
    let sum =
        request.query().try_fold(0_i64, |sum, (_, value)| sum.checked_add(value.parse().ok()?));
    sum.ok_or(Status::BAD_REQUEST)
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

/// Sends each message back.
async fn echo(mut socket: WebSocket) {
    while let Ok(Some(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut addresses: Vec<String> = env::args().skip(1).collect();
    let data = addresses.pop().map_or_else(|| PathBuf::from("/data"), PathBuf::from);
    if addresses.is_empty() {
        addresses.extend(ADDRESSES.map(str::to_owned));
    }
    let [cert, key] = [("TLS_CERT", CERTIFICATE[0]), ("TLS_KEY", CERTIFICATE[1])]
        .map(|(name, usual)| env::var(name).unwrap_or_else(|_| usual.to_owned()));
    // The arena mounts a certificate for the profiles that need one.
    let has_cert = Path::new(&cert).exists();
    addresses.retain(|address| has_cert || !address.starts_with("https://"));
    let in_clear: Vec<_> = addresses.iter().filter_map(|at| at.strip_prefix("h2c://")).collect();
    let others: Vec<_> =
        addresses.iter().map(String::as_str).filter(|at| !at.starts_with("h2c://")).collect();

    let mut running = Vec::new();
    if !in_clear.is_empty() {
        // A server of its own: no HTTP/1.1 may be spoken beside it.
        running.push(server(&data)?.listen_on(&in_clear).h2c(true).http1(false).start()?);
    }
    if !others.is_empty() {
        let server = server(&data)?.listen_on(&others);
        let server = if has_cert { server.tls_cert(cert).tls_key(key) } else { server };
        running.push(server.start()?);
    }
    // The signals that end one of them end the process.
    let last = running.pop().ok_or("expected at least one address, found none")?;
    Ok(last.run()?)
}
