//! What `WebSocket`s hold is charged to the ledger, and bounded.

use std::thread;
use std::time::Duration;

use gustnado::Routes;
use gustnado::config::{Config, WebSocketDeflate};
use gustnado::websocket::{WebSocket, websocket};
use gustnado_http::websocket::Opcode;

use crate::compression::{Both, OFFER};
use crate::echo;
use crate::harness::{Server, Setup, wait_until};
use crate::peer::{Peer, frame, text};

on_every_server!(
    contexts_are_agreed_on_while_there_is_memory,
    a_context_that_is_not_used_is_given_back,
    long_messages_are_charged_and_refused_while_memory_is_short,
    what_waits_for_a_peer_is_charged,
);

const BUDGET: u64 = 1 << 20;

/// What all workers together may hold beyond the budget: changes are published in steps.
const STEPS: u64 = 3 * (64 << 10);

fn config(setup: Setup) -> Config {
    Config {
        limit_websocket_memory: BUDGET,
        ws_deflate: WebSocketDeflate::Context,
        ws_deflate_bytes_min: 1,
        ws_frame_bytes_max: 16 << 20,
        ..setup.patient_config()
    }
}

fn server(config: Config) -> Server {
    Server::routes(config, Routes::new().get("/", websocket(echo)))
}

/// A text that compresses to a part of it.
fn numbers() -> String {
    (0..200).map(|number| (number * 7_919 % 1_000).to_string()).collect::<Vec<_>>().join(", ")
}

fn contexts_are_agreed_on_while_there_is_memory(setup: Setup) {
    let server = server(config(setup));
    let (mut peers, mut with_context) = (Vec::new(), 0);
    for _ in 0..40 {
        let (mut peer, answer) = Peer::with_fields(&server, "/", OFFER);
        let agreed = answer.field("sec-websocket-extensions").expect("it is agreed on");
        let keeps_context = !agreed.contains("client_no_context_takeover");
        with_context += usize::from(keeps_context);
        let mut both = Both::new();
        for _ in 0..3 {
            if !keeps_context {
                both = Both::new();
            }
            peer.send(both.frame(Opcode::Text, numbers().as_bytes()));
            let answer = peer.frame();
            assert!(answer.header.is_compressed, "with or without a context");
            assert!(both.inflate(&answer.payload) == numbers().as_bytes());
        }
        peers.push(peer);
    }
    assert!((3..40).contains(&with_context), "{with_context} of 40 keep their context");
    let held = server.stats().memory_websockets;
    assert!((BUDGET / 2..BUDGET + STEPS).contains(&held), "{held} bytes are held");
    drop(peers);
    server.wait_until("all is released", |stats| stats.memory_websockets == 0);
}

fn a_context_that_is_not_used_is_given_back(setup: Setup) {
    let patient = Duration::from_secs(20);
    let server = server(Config {
        ws_ping: Duration::from_millis(150),
        ws_ping_timeout: patient,
        ..config(setup)
    });
    let (mut peer, _) = Peer::with_fields(&server, "/", OFFER);
    let mut both = Both::new();
    let mut ask = |peer: &mut Peer| {
        peer.send(both.frame(Opcode::Text, numbers().as_bytes()));
        let answer = loop {
            let frame = peer.frame();
            if frame.header.opcode != Opcode::Ping {
                break frame;
            }
            peer.send(frame_of_pong());
        };
        assert!(both.inflate(&answer.payload) == numbers().as_bytes());
        answer.payload.len()
    };
    let (first, second) = (ask(&mut peer), ask(&mut peer));
    assert!(second < first / 5, "the window is kept: {first} and {second} bytes");
    let held = server.stats().memory_websockets;
    assert!(held > 200_000, "{held} bytes are held");
    for _ in 0..2 {
        assert_eq!(peer.frame().header.opcode, Opcode::Ping);
        peer.send(frame_of_pong());
    }
    server.wait_until("the compressor's is given back", |stats| stats.memory_websockets < 100_000);
    assert!(server.stats().memory_websockets > 10_000, "the decompressor's has to stay");
    let (third, fourth) = (ask(&mut peer), ask(&mut peer));
    assert!(third > first / 2, "it begins with an empty window: {third} bytes");
    assert!(fourth < first / 5, "and is kept again: {fourth} bytes");
}

fn frame_of_pong() -> Vec<u8> {
    frame(Opcode::Pong, true, b"")
}

fn long_messages_are_charged_and_refused_while_memory_is_short(setup: Setup) {
    let server = server(config(setup));
    let mut peer = Peer::connect(&server, "/");
    let long = text(&"x".repeat(400_000));
    peer.send(&long[..300_000]);
    server.wait_until("it is charged", |stats| stats.memory_websockets >= 200_000);
    peer.send(&long[300_000..]);
    assert_eq!(peer.text().len(), 400_000);
    server.wait_until("it is released", |stats| stats.memory_websockets == 0);
    let mut long = Peer::connect(&server, "/");
    long.client.send_unless_closed(text(&"x".repeat(6 << 20)));
    long.expect_close(1013);
    assert_eq!(server.stats().websocket_violations, 0, "the peer has broken no rule");
    server.wait_until("it is released", |stats| stats.memory_websockets == 0);
    peer.send(text("others go on"));
    assert_eq!(peer.text(), "others go on");
}

fn what_waits_for_a_peer_is_charged(setup: Setup) {
    // Each sends as much as it may, and none reads.
    let handler = async |mut socket: WebSocket| {
        let sender = socket.sender();
        let sending = async {
            loop {
                if sender.send(vec![0; 50_000]).await.is_err() {
                    return;
                }
            }
        };
        let receiving = async { while let Ok(Some(_)) = socket.recv().await {} };
        gustnado::task::select2(sending, receiving).await;
    };
    let config = Config { ws_unsent_bytes_max: 4 << 20, ..config(setup) };
    let server = Server::routes(config, Routes::new().get("/", websocket(handler)));
    let peers: Vec<Peer> = (0..8).map(|_| Peer::connect(&server, "/")).collect();
    let mut held = 0;
    wait_until("nothing more is added", || {
        thread::sleep(Duration::from_millis(100));
        let before = held;
        held = server.stats().memory_websockets;
        held == before && held > BUDGET / 2
    });
    // 4 MiB for each, were it not for the budget; each may have a little.
    assert!(held < BUDGET + 8 * (256 << 10), "{held} bytes are held");
    drop(peers);
    server.wait_until("all is released", |stats| stats.memory_websockets == 0);
}
