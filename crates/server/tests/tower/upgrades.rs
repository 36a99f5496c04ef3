//! Connections that a service takes over as it would take hyper's: `WebSocket`s of axum, upgrades
//! to other protocols, tunnels.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{Method, Request, Response, StatusCode};
use axum::routing::{any, get};
use gustnado::config::Config;
use gustnado::{Routes, ServiceError, tower};
use gustnado_http::h2::frame::{flag, kind};
use gustnado_http::websocket::{Opcode, WebSocketHeader, write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::alive::Alive;
use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::http2::heads::literal;
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Server, Setup, wait_until};
use crate::{Plain, serve};

/// As axum's example has it.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(_) | Message::Binary(_) = &message
            && socket.send(message).await.is_err()
        {
            return;
        }
    }
}

fn app() -> Router {
    let upgrade = async |upgrade: WebSocketUpgrade| upgrade.protocols(["chat"]).on_upgrade(echo);
    Router::new().route("/ws", any(upgrade)).route("/text", get(async || "text"))
}

fn handshake(target: &str, fields: &str) -> String {
    let usual = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    request("GET", target, &format!("{usual}{fields}"))
}

fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mask = Some([1, 2, 3, 4]);
    let header = WebSocketHeader { opcode, is_final: true, is_compressed: false, mask, len: 0 };
    write(header, payload, &mut out);
    out
}

pub(crate) fn a_websocket_of_axum_echoes(setup: Setup) {
    if Setup::http1_only("an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)") {
        return;
    }
    let server = serve(setup, app());
    let mut client = server.connect();
    // The first message is in the packet of the request.
    let first = frame(Opcode::Text, b"hello");
    client.send([handshake("/ws", "Sec-WebSocket-Protocol: chat\r\n").as_bytes(), &first].concat());
    let head = client.read_head();
    assert_eq!(head.status, 101, "{head:?}");
    assert_eq!(head.expect_field("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(head.expect_field("sec-websocket-protocol"), "chat");
    assert_eq!((head.count("upgrade"), head.expect_field("connection")), (1, "Upgrade"));
    assert_eq!(client.take(7).expect("the echo"), b"\x81\x05hello");
    let bytes = noise(1, 60_000);
    for _ in 0..20 {
        client.send(frame(Opcode::Binary, &bytes));
        assert_eq!(client.take(4).expect("a header"), [0x82, 126, 0xea, 0x60]);
        assert!(client.take(bytes.len()).expect("the echo") == bytes, "other bytes came");
    }
    client.send(frame(Opcode::Close, &1000_u16.to_be_bytes()));
    assert_eq!(client.take(4).expect("a close frame"), b"\x88\x02\x03\xe8");
    client.expect_end("it is closed");
    server.wait_until_empty();
}

pub(crate) fn a_websocket_of_axum_echoes_over_http2(setup: Setup) {
    let config = Config { h2c: true, tls_cert: None, tls_key: None, ..setup.patient_config() };
    let server = Server::routes(config, Routes::new().fallback(tower(app())));
    let mut client = Http2Client::connect(server.address());
    let id = client.new_stream();
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/ws"),
        (":authority", "gust.example"),
        ("sec-websocket-version", "13"),
    ];
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    client.send(&frame_of(kind::HEADERS, flag::END_HEADERS, id, &block));
    assert_eq!(client.wait_for(id, |answer| answer.status > 0).status, 200);
    client.send(&frame_of(kind::DATA, 0, id, &frame(Opcode::Text, b"hello")));
    assert_eq!(client.wait_for(id, |answer| answer.body.len() >= 7).body, b"\x81\x05hello");
    let close = frame(Opcode::Close, &1000_u16.to_be_bytes());
    client.send(&frame_of(kind::DATA, 0, id, &close));
    let answer = client.wait_for(id, |answer| answer.is_whole);
    assert_eq!(answer.body[7..], *b"\x88\x02\x03\xe8");
    // The connection goes on.
    let id = client.request("GET", "/text", &[], true);
    assert_eq!(client.answer(id).text(), "text");
}

pub(crate) fn a_request_that_does_not_ask_is_no_websocket(setup: Setup) {
    let server = serve(setup, app());
    let mut client = server.connect();
    assert!((400..500).contains(&client.get("/ws").status));
    assert_eq!(client.get("/text").text(), "text");
}

/// Responds to an upgrade to `echo`, and echoes on a task of tokio's until the peer has ended.
async fn upgraded(mut request: Request<gustnado::Body>) -> Result<Response<Body>, ServiceError> {
    let is_connect = request.method() == Method::CONNECT;
    let on_upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = on_upgrade.await else { return };
        let mut io = TokioIo::new(upgraded);
        let mut buf = vec![0; 10_000];
        loop {
            match io.read(&mut buf).await {
                Ok(len) if len > 0 => io.write_all(&buf[..len]).await.expect("it is taken"),
                _ => break,
            }
        }
        _ = io.write_all(b"end").await;
        _ = io.shutdown().await;
    });
    let mut response = Response::new(Body::empty());
    if !is_connect {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("upgrade", "echo".parse()?);
        response.headers_mut().insert("connection", "upgrade".parse()?);
        response.headers_mut().insert("x-own", "1".parse()?);
    }
    Ok(response)
}

pub(crate) fn a_service_takes_a_connection_as_it_takes_hypers(setup: Setup) {
    if Setup::http1_only("an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)") {
        return;
    }
    let server =
        Server::routes(setup.patient_config(), Routes::new().fallback(tower(Plain(upgraded))));
    let upgrade = request("GET", "/", "Connection: upgrade\r\nUpgrade: echo\r\n");
    let connect = "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n".to_owned();
    for (ask, status, own) in [(upgrade, 101, Some("1")), (connect, 200, None)] {
        let mut client = server.connect();
        client.send(ask + "early");
        let head = client.read_head();
        assert_eq!((head.status, head.field("x-own")), (status, own), "{head:?}");
        assert_eq!(head.count("content-length") + head.count("transfer-encoding"), 0, "{head:?}");
        assert_eq!(client.take(5).expect("the echo"), b"early");
        // More than waits anywhere: each side is held back by the other.
        let bytes = noise(2, 3_000_000);
        let (sent, mut writer) = (bytes.clone(), client.second_handle());
        let sending = thread::spawn(move || writer.send(sent));
        assert!(client.take(bytes.len()).expect("all of it") == bytes, "other bytes came");
        sending.join().expect("all was sent");
        client.shut_write();
        assert_eq!(client.read_to_end(), b"end", "what is sent behind the peer's end");
    }
    server.wait_until_empty();
}

pub(crate) fn without_an_upgrade_the_service_is_told(setup: Setup) {
    if Setup::http1_only("an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)") {
        return;
    }
    let failed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&failed);
    let declines = Plain(move |mut request: Request<gustnado::Body>| {
        let counted = Arc::clone(&counted);
        async move {
            let on_upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                if on_upgrade.await.is_err() {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
            Ok::<_, ServiceError>(Response::new(Body::from("no")))
        }
    });
    let server = Server::routes(setup.config(), Routes::new().fallback(tower(declines)));
    let mut client = server.connect();
    // The last one asks for nothing.
    for (fields, count) in [("Connection: upgrade\r\nUpgrade: echo\r\n", 1), ("", 2)] {
        client.send(request("GET", "/", fields));
        assert_eq!(&*client.read_answer().text(), "no");
        wait_until("it fails", || failed.load(Ordering::SeqCst) == count);
    }
}

pub(crate) fn an_upgraded_connection_ends_with_either_side(setup: Setup) {
    if Setup::http1_only("an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)") {
        return;
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let holds = async move |upgrade: WebSocketUpgrade| {
        let alive = Alive::new(&counted);
        upgrade.on_upgrade(async move |mut socket| {
            let _alive = alive;
            if let Some(Ok(Message::Binary(_))) = socket.recv().await {
                return;
            }
            while let Some(Ok(_)) = socket.recv().await {}
        })
    };
    let server = serve(setup, Router::new().route("/", any(holds)));
    // The client is gone.
    let mut client = server.connect();
    client.send(handshake("/", ""));
    assert_eq!(client.read_head().status, 101);
    client.send(frame(Opcode::Text, b"hello"));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    client.reset();
    wait_until("the handler has ended", || count.load(Ordering::SeqCst) == 0);
    server.wait_until_empty();
    // The handler returns.
    let mut client = server.connect();
    client.send(handshake("/", ""));
    assert_eq!(client.read_head().status, 101);
    client.send(frame(Opcode::Binary, b""));
    client.read_to_end();
    wait_until("the handler has ended", || count.load(Ordering::SeqCst) == 0);
    server.wait_until_empty();
}

pub(crate) fn a_drain_cuts_an_upgraded_connection_in_the_end(setup: Setup) {
    if Setup::http1_only("an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)") {
        return;
    }
    let server = serve(setup, app());
    let mut client = server.connect();
    client.send(handshake("/ws", ""));
    assert_eq!(client.read_head().status, 101);
    let draining = thread::spawn(move || server.running().drain(Duration::from_millis(600)));
    thread::sleep(Duration::from_millis(200));
    // It goes on for as long as the drain allows.
    client.send(frame(Opcode::Text, b"hello"));
    assert_eq!(client.take(7).expect("the echo"), b"\x81\x05hello");
    client.read_to_end();
    let report = draining.join().expect("it ends");
    assert_eq!(report.cut, 1, "{report:?}");
}
