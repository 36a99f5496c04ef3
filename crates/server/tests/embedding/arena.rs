//! The entry for `HttpArena` does what each of its profiles asks for, as `arena/README.md` says.

#[expect(dead_code, reason = "an entry's `main` is for its container")]
#[path = "../../../../arena/gustnado/main.rs"]
mod entry;

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::harness::client::{get, post_chunked, post_of, request};
use crate::harness::folder::noise;
use crate::harness::{Folder, Server, Setup, TransportKind};

on_every_server!(
    baseline_adds_the_query_and_the_body,
    pipelined_requests_get_their_responses_in_order,
    json_has_a_total_for_each_item,
    json_is_compressed_for_those_who_accept_it,
    uploads_are_counted_as_they_come,
    files_come_from_the_disk_each_time,
    compressed_files_are_taken_where_they_are_accepted,
    messages_come_back,
);

const PROFILES: [&str; 6] = ["baseline", "pipelined", "limited-conn", "json", "upload", "static"];

/// What the entry in Rust has more.
const MORE_PROFILES: [&str; 6] =
    ["json-comp", "json-tls", "baseline-h2", "static-h2", "baseline-h2c", "json-h2c"];

/// What all have but WSGI.
const WEBSOCKET: &str = "echo-ws";

/// The entry, with a data set of 25 items and a file.
fn start(setup: Setup) -> (Server, Folder) {
    let folder = Folder::new();
    let items: Vec<Value> = (1..=25).map(item).collect();
    folder.file("dataset.json", json!(items).to_string());
    folder.file("static/reset.css", "a { color: red }");
    let server = entry::server(&folder.root()).expect("the data set is there");
    let server = server.host_name("127.0.0.1").port(0).workers(2).quiet(true);
    let server = server.io(setup.io).scheduler(setup.scheduler);
    let server = server.tune(|config| TransportKind::chosen().configure(config));
    (Server::built(server), folder)
}

fn item(id: u64) -> Value {
    json!({
        "id": id, "name": format!("Item {id}"), "category": "tools", "price": 100 * id,
        "quantity": 7, "active": id != 2, "tags": ["new", "heavy"],
        "rating": { "score": 40, "count": id },
    })
}

fn baseline_adds_the_query_and_the_body(setup: Setup) {
    let (server, _folder) = start(setup);
    let target = "/baseline11?a=13&b=42";
    let answer = server.get(target);
    assert_eq!((answer.status, &*answer.text()), (200, "55"));
    assert!(answer.expect_field("content-type").starts_with("text/plain"), "{answer:?}");
    assert_eq!(server.get("/baseline11?b=-2&a=900").text(), "898");
    let mut client = server.connect();
    for (body, sum) in [("20", "75"), ("981", "1036")] {
        let answer = client.ask(post_of(target, "text/plain", body.as_bytes()));
        assert_eq!(answer.text(), sum);
        assert!(answer.expect_field("content-type").starts_with("text/plain"), "{answer:?}");
        assert_eq!(client.ask(post_chunked(target, "text/plain", body.as_bytes())).text(), sum);
    }
    let cut = post_of(target, "text/plain", b"20");
    for at in [4, 9, cut.len() - 2, cut.len() - 1] {
        client.send_cut(&cut, at);
        assert_eq!(client.read_answer().text(), "75", "cut at {at}");
    }
    assert_eq!(server.get("/baseline11?a=1&b=many").status, 400);
    assert_eq!(server.ask(post_of(target, "text/plain", b"many")).status, 400);
}

fn pipelined_requests_get_their_responses_in_order(setup: Setup) {
    let (server, _folder) = start(setup);
    let mut client = server.connect();
    client.send(get("/pipeline").repeat(15) + &get("/baseline11?a=1&b=1"));
    for _ in 0..15 {
        let answer = client.read_answer();
        assert_eq!((answer.status, &*answer.text()), (200, "ok"));
        assert!(answer.expect_field("content-type").starts_with("text/plain"), "{answer:?}");
    }
    assert_eq!(client.read_answer().text(), "2");
}

fn json_has_a_total_for_each_item(setup: Setup) {
    let (server, _folder) = start(setup);
    for (count, factor) in [(1, 3_u64), (2, 7), (3, 1)] {
        let answer = server.get(&format!("/json/{count}?m={factor}"));
        assert_eq!(answer.expect_field("content-type"), "application/json");
        let items: Vec<Value> = (1..=count)
            .map(|id| {
                let mut item = item(id);
                item["total"] = json!(100 * id * 7 * factor);
                item
            })
            .collect();
        let found: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(found, json!({ "items": items, "count": count }));
    }
    assert_eq!(server.get("/json/x?m=1").status, 404);
    assert_eq!(server.get("/json/1").status, 400);
}

fn json_is_compressed_for_those_who_accept_it(setup: Setup) {
    let (server, _folder) = start(setup);
    let target = "/json/25?m=4";
    let plain = server.get(target);
    assert_eq!(plain.field("content-encoding"), None);
    // As the profile asks.
    let answer = server.ask(request("GET", target, "Accept-Encoding: gzip, br\r\n"));
    assert_eq!(answer.expect_field("content-encoding"), "gzip");
    assert_eq!(answer.expect_field("content-type"), "application/json");
    let mut found = Vec::new();
    GzDecoder::new(&*answer.body).read_to_end(&mut found).expect("gzip");
    assert_eq!(found, plain.body);
}

fn uploads_are_counted_as_they_come(setup: Setup) {
    let (server, _folder) = start(setup);
    let kind = "application/octet-stream";
    let mut client = server.connect();
    for length in [0, 17, 512_000, 2 << 20] {
        let body = noise(7, length);
        let answer = client.ask(post_of("/upload", kind, &body));
        assert_eq!((answer.status, answer.text()), (200, length.to_string()));
    }
    let body = noise(8, 100_000);
    assert_eq!(client.ask(post_chunked("/upload", kind, &body)).text(), "100000");
    assert_eq!(server.stats().bodies_spooled, 0);
}

fn files_come_from_the_disk_each_time(setup: Setup) {
    let (server, folder) = start(setup);
    let answer = server.get("/static/reset.css");
    assert_eq!((answer.status, &*answer.text()), (200, "a { color: red }"));
    assert!(answer.expect_field("content-type").starts_with("text/css"), "{answer:?}");
    folder.file("static/reset.css", "b { color: tan }");
    assert_eq!(server.get("/static/reset.css").text(), "b { color: tan }");
    assert_eq!(server.get("/static/nonexistent.txt").status, 404);
}

fn compressed_files_are_taken_where_they_are_accepted(setup: Setup) {
    let (server, folder) = start(setup);
    let accepting =
        || request("GET", "/static/reset.css", "Accept-Encoding: br;q=1, gzip;q=0.8\r\n");
    // (What lies in a folder is looked at once a second, what a file holds each time.)
    for content in ["by Brotli", "BY BROTLI"] {
        folder.file("static/reset.css.br", content);
        let answer = server.ask(accepting());
        assert_eq!((answer.status, &*answer.text()), (200, content));
        assert_eq!(answer.expect_field("content-encoding"), "br");
        assert!(answer.expect_field("content-type").starts_with("text/css"), "{answer:?}");
    }
    assert_eq!(server.get("/static/reset.css").text(), "a { color: red }");
}

fn messages_come_back(setup: Setup) {
    if Setup::http1_only("the handshake is an upgrade") {
        return;
    }
    let (server, _folder) = start(setup);
    let mut client = server.connect();
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    client.send(request("GET", "/ws", fields));
    assert_eq!(client.read_head().status, 101);
    // "Hello", masked as in RFC 6455 §5.7.
    client.send(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    assert_eq!(client.take(7).expect("a frame"), b"\x81\x05Hello");
    assert_eq!(server.get("/ws").status, 426);
}

#[test]
fn each_manifest_names_these_profiles() {
    let arena = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../arena");
    for entry in ["gustnado", "gustnado-asgi", "gustnado-wsgi", "gustnado-python"] {
        let text = fs::read(arena.join(entry).join("meta.json")).expect("a manifest");
        let manifest: Value = serde_json::from_slice(&text).expect("JSON");
        let mut found: Vec<&str> =
            manifest["tests"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if entry == "gustnado" {
            found.retain(|profile| !MORE_PROFILES.contains(profile));
            assert_eq!(manifest["tests"].as_array().map(Vec::len), Some(13));
        }
        if entry != "gustnado-wsgi" {
            assert_eq!(found.pop(), Some(WEBSOCKET), "{entry}");
        }
        assert_eq!(found, PROFILES, "{entry}");
        assert_eq!(manifest["display_name"], json!(entry));
    }
}
