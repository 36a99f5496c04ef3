//! What tunnels hold is charged: bytes that their functions have not taken as bodies are, and bytes
//! that clients have not taken as sends are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Tunnel};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::setting;

use crate::harness::http2::Http2Client;
use crate::harness::{PATIENCE, Server, Setup};
use crate::in_clear;
use crate::tunnels::{expect, opened};

on_every_server!(
    bytes_are_charged_until_the_tunnel_takes_them,
    bytes_that_come_before_the_tunnel_is_open_are_charged,
    tunnels_that_nobody_reads_stay_within_their_memory,
    bytes_that_the_client_does_not_take_are_charged,
);

const MIB: usize = 1 << 20;

async fn wait(gate: Arc<AtomicBool>) {
    while !gate.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(2)).await;
    }
}

/// Echoes once it may begin.
fn echo(gate: Arc<AtomicBool>) -> Response {
    Response::upgrade("echo", async move |mut tunnel: Tunnel| {
        wait(gate).await;
        while let Ok(bytes) = tunnel.recv().await {
            if bytes.is_empty() || tunnel.send(bytes).await.is_err() {
                return;
            }
        }
    })
}

fn gated(gate: &Arc<AtomicBool>) -> Routes {
    let (inner, outer) = (Arc::clone(gate), Arc::clone(gate));
    let late = move |_: Request| {
        let gate = Arc::clone(&outer);
        async move {
            wait(Arc::clone(&gate)).await;
            echo(gate)
        }
    };
    Routes::new().get("/", move |_: &Request| echo(Arc::clone(&inner))).get("/late", late)
}

fn bytes_are_charged_until_the_tunnel_takes_them(setup: Setup) {
    let gate = Arc::new(AtomicBool::new(false));
    let server = Server::routes(in_clear(setup), gated(&gate));
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let id = opened(&mut client, "/");
    let sent = vec![b't'; 15_000];
    for _ in 0..2 {
        client.send_data(id, &sent, false);
    }
    server.wait_until("they are charged", |stats| stats.memory_bodies == 30_000);
    gate.store(true, Ordering::SeqCst);
    // Less than half of the window was taken, which would otherwise be told later.
    server.wait_until("nothing is held", |stats| stats.memory_bodies == 0);
    expect(&mut client, id, &[&sent[..], &sent].concat());
    client.send_data(id, b"end", true);
    assert_eq!(client.answer(id).body.len(), 30_003);
}

fn bytes_that_come_before_the_tunnel_is_open_are_charged(setup: Setup) {
    let gate = Arc::new(AtomicBool::new(false));
    let server = Server::routes(in_clear(setup), gated(&gate));
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let id = crate::tunnels::open(&mut client, "/late");
    let sent = vec![b'e'; 15_000];
    client.send_data(id, &sent, false);
    server.wait_until("they are charged", |stats| stats.memory_bodies == 15_000);
    gate.store(true, Ordering::SeqCst);
    expect(&mut client, id, &sent);
    server.wait_until("nothing is held", |stats| stats.memory_bodies == 0);
}

fn tunnels_that_nobody_reads_stay_within_their_memory(setup: Setup) {
    let config = Config { limit_body_memory: 2 * MIB as u64, ..in_clear(setup) };
    let routes = Routes::new()
        .get("/", |_: &Request| {
            Response::upgrade("echo", async |tunnel: Tunnel| {
                sleep(PATIENCE).await;
                drop(tunnel);
            })
        })
        .get("/text", |_: &Request| "text");
    let server = Server::routes(config, routes);
    let mut clients: Vec<_> = (2..12)
        .map(|host| {
            let mut client = Http2Client::connect_from(host, server.address());
            client.ping();
            let ids: Vec<_> = (0..20).map(|_| opened(&mut client, "/")).collect();
            (client, ids)
        })
        .collect();
    let (began, mut most) = (Instant::now(), 0);
    for (client, ids) in &mut clients {
        for id in &*ids {
            for piece in std::iter::repeat_n([b't'; 15_000], 4) {
                // One that was cut takes no more.
                while client.window(0) < 15_000 && client.so_far(*id).reset.is_none() {
                    client.next_frame().expect("it goes on");
                }
                client.send_data(*id, &piece, false);
            }
        }
        most = most.max(server.stats().memory_bodies);
    }
    while began.elapsed() < Duration::from_millis(1_500) {
        most = most.max(server.stats().memory_bodies);
        let mut newcomer = Http2Client::connect_from(99, server.address());
        assert_eq!(newcomer.ask("/text").text(), "text");
    }
    // As of bodies: 12 MB were sent.
    assert!(most <= 2 * MIB as u64 + 10 * (64 + 64) * 1_024, "{most} bytes were held");
    assert!(most >= MIB as u64, "{most} bytes were held");
    assert!(server.stats().bodies_cut >= 20, "{} were cut", server.stats().bodies_cut);
    let (client, ids) = &mut clients[9];
    client.ping();
    for id in ids {
        let reset = client.so_far(*id).reset;
        assert!(reset.is_none_or(|code| code == ErrorCode::EnhanceYourCalm), "{id}: {reset:?}");
    }
    assert_eq!(client.ask("/text").text(), "text", "the connection goes on");
}

fn bytes_that_the_client_does_not_take_are_charged(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        Response::upgrade("echo", async |mut tunnel: Tunnel| {
            _ = tunnel.send(vec![b's'; MIB]).await;
            _ = tunnel.recv().await;
        })
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    let id = opened(&mut client, "/");
    server.wait_until("they are charged", |stats| stats.memory_sends >= MIB as u64);
    client.give(id, 2 << 20);
    client.wait_for(id, |answer| answer.body.len() == MIB);
    server.wait_until("nothing is held", |stats| stats.memory_sends == 0);
}
