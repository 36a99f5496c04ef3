//! The profiles on hyper 1, a runtime for each CPU, files from memory: PORT FOLDER CPUS.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{env, fs, thread};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

#[path = "data.rs"]
mod data;

use data::Item;

struct Data {
    items: Vec<Item>,
    files: HashMap<String, Bytes>,
}

type Page = Response<Full<Bytes>>;

fn page(kind: &'static str, content: impl Into<Bytes>) -> Page {
    let mut page = Response::new(Full::new(content.into()));
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}

fn status(status: StatusCode) -> Page {
    let mut page = page("text/plain", "");
    *page.status_mut() = status;
    page
}

fn number(query: Option<&str>, name: &str) -> Option<i64> {
    let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name)?.1.parse().ok()
}

async fn whole(request: Request<Incoming>) -> Option<i64> {
    let body = request.into_body().collect().await.ok()?.to_bytes();
    std::str::from_utf8(&body).ok()?.trim().parse().ok()
}

async fn sum(request: Request<Incoming>) -> Option<Page> {
    let query = request.uri().query();
    let mut sum = number(query, "a")? + number(query, "b")?;
    if request.method() == Method::POST {
        sum += whole(request).await?;
    }
    Some(page("text/plain", sum.to_string()))
}

async fn count(request: Request<Incoming>) -> Option<Page> {
    let (mut body, mut bytes) = (request.into_body(), 0);
    while let Some(frame) = body.frame().await {
        bytes += frame.ok()?.data_ref().map_or(0, Bytes::len);
    }
    Some(page("text/plain", bytes.to_string()))
}

fn list(path: &str, query: Option<&str>, items: &[Item]) -> Option<Page> {
    let (count, factor) = (path.parse().ok()?, number(query, "m")?);
    let listing = data::listing(items, count, factor);
    Some(page("application/json", serde_json::to_vec(&listing).ok()?))
}

async fn respond(request: Request<Incoming>, data: Arc<Data>) -> Result<Page, Infallible> {
    let path = request.uri().path();
    let found = if path == "/baseline11" {
        sum(request).await
    } else if path == "/pipeline" {
        Some(page("text/plain", "ok"))
    } else if path == "/upload" {
        count(request).await
    } else if let Some(count) = path.strip_prefix("/json/") {
        list(count, request.uri().query(), &data.items)
    } else if let Some(name) = path.strip_prefix("/static/") {
        let found = data.files.get(name).cloned();
        Some(found.map_or_else(|| status(StatusCode::NOT_FOUND), |file| page("text/plain", file)))
    } else {
        Some(status(StatusCode::NOT_FOUND))
    };
    Ok(found.unwrap_or_else(|| status(StatusCode::BAD_REQUEST)))
}

fn listen(port: u16) -> std::io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], port)).into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

async fn serve(port: u16, data: Arc<Data>) {
    let listener = TcpListener::from_std(listen(port).unwrap()).unwrap();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let data = Arc::clone(&data);
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| respond(request, Arc::clone(&data)));
            let io = TokioIo::new(stream);
            let _ = http1::Builder::new().pipeline_flush(true).serve_connection(io, service).await;
        });
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let (port, threads): (u16, usize) = (words[1].parse().unwrap(), words[3].parse().unwrap());
    let entries = fs::read_dir(format!("{}/static", words[2])).unwrap().flatten();
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name, Bytes::from(fs::read(entry.path()).unwrap()))
    });
    let data = Arc::new(Data { items: data::items(&words[2]).unwrap(), files: files.collect() });
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                tokio::task::LocalSet::new().block_on(&runtime.unwrap(), serve(port, data));
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
