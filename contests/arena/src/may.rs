//! The profiles but upload on may_minihttp, files from memory: PORT FOLDER CPUS.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::{env, fs};

use may_minihttp::{HttpServer, HttpService, Request, Response};

#[path = "data.rs"]
mod data;

use data::Item;

#[derive(Clone)]
struct Arena {
    items: Arc<Vec<Item>>,
    files: Arc<HashMap<String, Vec<u8>>>,
}

fn number(query: &str, name: &str) -> Option<i64> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name)?.1.parse().ok()
}

fn sum(query: &str, request: Request) -> Option<Vec<u8>> {
    let mut sum = number(query, "a")? + number(query, "b")?;
    if request.method() == "POST" {
        let mut body = request.body();
        let text = std::str::from_utf8(body.fill_buf().ok()?).ok()?;
        sum += text.trim().parse::<i64>().ok()?;
    }
    Some(sum.to_string().into_bytes())
}

impl Arena {
    fn list(&self, count: &str, query: &str) -> Option<Vec<u8>> {
        let (count, factor) = (count.parse().ok()?, number(query, "m")?);
        serde_json::to_vec(&data::listing(&self.items, count, factor)).ok()
    }
}

impl HttpService for Arena {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        let target = request.path().to_owned();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut kind = "Content-Type: text/plain";
        let content = if path == "/pipeline" {
            Some(b"ok".to_vec())
        } else if path == "/baseline11" {
            sum(query, request)
        } else if let Some(count) = path.strip_prefix("/json/") {
            kind = "Content-Type: application/json";
            self.list(count, query)
        } else {
            path.strip_prefix("/static/").and_then(|name| self.files.get(name).cloned())
        };
        response.header(kind);
        match content {
            Some(content) => response.body_vec(content),
            None => {
                response.status_code(404, "Not Found");
            }
        }
        Ok(())
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    may::config().set_workers(words[3].parse().unwrap());
    let entries = fs::read_dir(format!("{}/static", words[2])).unwrap().flatten();
    let files = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    let items = data::items(&words[2]).unwrap();
    let arena = Arena { items: Arc::new(items), files: Arc::new(files) };
    let server = HttpServer(arena).start(format!("127.0.0.1:{}", words[1])).unwrap();
    server.join().unwrap();
}
