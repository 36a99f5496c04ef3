//! What peers do wrong, or by halves: each gets the right code or is cut, is counted, and holds no
//! more than it may.

use std::sync::mpsc;
use std::time::Duration;

use gustnado::Routes;
use gustnado::config::Config;
use gustnado::websocket::{WebSocket, WebSocketError, websocket};
use gustnado_http::websocket::Opcode;

use crate::echo;
use crate::harness::{PATIENCE, Server, Setup};
use crate::peer::{Peer, close_of, frame, handshake, text};

on_every_server!(
    a_peer_may_be_gone_at_any_byte,
    every_wrong_frame_is_refused_with_its_code,
    wrong_masks_make_wrong_texts,
    a_text_that_is_wrong_at_any_place_is_refused,
    a_close_within_a_message_ends_it,
    a_peer_that_never_reads_is_lost,
    a_peer_may_send_a_byte_at_a_time,
    half_handshakes_are_cut,
);

fn server(config: Config) -> Server {
    Server::routes(config, Routes::new().get("/", websocket(echo)))
}

/// The head of a frame, byte by byte, with a mask of zeros.
fn raw(first: u8, len: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[first, len[0] | 0x80][..], &len[1..], &[0; 4], payload].concat()
}

fn a_peer_may_be_gone_at_any_byte(setup: Setup) {
    let server = server(setup.patient_config());
    let frames = [
        frame(Opcode::Text, false, "Zür".as_bytes()),
        frame(Opcode::Ping, true, b"?"),
        frame(Opcode::Continuation, true, b"ich"),
        frame(Opcode::Binary, true, &[7; 130]),
    ]
    .concat();
    for at in 0..frames.len() {
        let mut peer = Peer::connect(&server, "/");
        peer.send(&frames[..at]);
        peer.client.hang_up();
    }
    let all = frames.len() as u64;
    server.wait_until("all are lost", |stats| stats.websocket_closes_lost == all);
    let stats = server.stats();
    assert_eq!((stats.websockets_open, stats.websocket_violations, stats.panics), (0, 0, 0));
}

fn every_wrong_frame_is_refused_with_its_code(setup: Setup) {
    let server = server(setup.patient_config());
    let mut wrong: Vec<(String, Vec<u8>, u16)> = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>, code| wrong.push((name.to_owned(), bytes, code));
    for bit in [0x40, 0x20, 0x10] {
        for opcode in [1, 2, 8, 9, 10] {
            add(&format!("bit {bit:x} of {opcode}"), raw(0x80 | bit | opcode, &[0], b""), 1002);
        }
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        add(&format!("opcode {opcode}"), raw(0x80 | opcode, &[0], b""), 1002);
    }
    for opcode in [8, 9, 10] {
        add(&format!("{opcode} in pieces"), raw(opcode, &[0], b""), 1002);
        add(&format!("{opcode} of 126 bytes"), raw(0x80 | opcode, &[126, 0, 126], b""), 1002);
        let long = [127, 0, 0, 0, 0, 0, 1, 0, 0];
        add(&format!("{opcode} of 65,536 bytes"), raw(0x80 | opcode, &long, b""), 1002);
    }
    for opcode in [0x81, 0x88, 0x89] {
        add(&format!("{opcode:x} without a mask"), vec![opcode, 0], 1002);
    }
    add("125 bytes in two", raw(0x82, &[126, 0, 125], b""), 1002);
    add("65,535 bytes in eight", raw(0x82, &[127, 0, 0, 0, 0, 0, 0, 255, 255], b""), 1002);
    add("a length beyond 63 bits", raw(0x82, &[127, 128, 0, 0, 0, 0, 0, 0, 0], b""), 1002);
    add("a length of 62 bits", raw(0x82, &[127, 63, 0, 0, 0, 0, 0, 0, 0], b""), 1009);
    add("a continuation of nothing", frame(Opcode::Continuation, false, b"x"), 1002);
    let within = [frame(Opcode::Text, false, b"x"), frame(Opcode::Binary, true, b"y")].concat();
    add("a message within another", within, 1002);
    add("a close frame of one byte", frame(Opcode::Close, true, b"x"), 1002);
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        add(&format!("code {code}"), frame(Opcode::Close, true, &close_of(code, "")), 1002);
    }
    let reason = [&1000_u16.to_be_bytes()[..], b"\xff"].concat();
    add("a reason that is not UTF-8", frame(Opcode::Close, true, &reason), 1007);
    let count = wrong.len() as u64;
    for (name, bytes, code) in wrong {
        let mut peer = Peer::connect(&server, "/");
        peer.send([text("before"), bytes].concat());
        assert_eq!(peer.text(), "before", "{name}");
        let close = peer.frame();
        assert_eq!(close.header.opcode, Opcode::Close, "{name}");
        assert_eq!(close.payload[..2], code.to_be_bytes(), "{name}: {close:?}");
        peer.client.expect_end(&name);
    }
    server.wait_until("all are counted", |stats| stats.websocket_violations == count);
    assert_eq!(server.stats().websocket_closes_error, count);
}

fn wrong_masks_make_wrong_texts(setup: Setup) {
    let server = server(setup.patient_config());
    let mut peer = Peer::connect(&server, "/");
    let mut bytes = text("a text that is masked");
    // Another mask than the one that it was masked with, which sets the highest bits.
    bytes[2..6].copy_from_slice(&[0x91, 0xa2, 0xb3, 0xc4]);
    peer.send(bytes);
    peer.expect_close(1007);
}

fn a_text_that_is_wrong_at_any_place_is_refused(setup: Setup) {
    let server = server(setup.patient_config());
    let good = "κόσμε 🌪 and".as_bytes();
    for at in 0..good.len() {
        let mut wrong = good.to_vec();
        wrong[at] = 0xff;
        let (first, rest) = wrong.split_at(at);
        let ways = [
            frame(Opcode::Text, true, &wrong),
            [frame(Opcode::Text, false, first), frame(Opcode::Continuation, true, rest)].concat(),
            [
                frame(Opcode::Text, false, &wrong[..=at]),
                frame(Opcode::Continuation, true, &wrong[at + 1..]),
            ]
            .concat(),
        ];
        for way in ways {
            let mut peer = Peer::connect(&server, "/");
            peer.client.send_unless_closed(way);
            peer.expect_close(1007);
        }
    }
}

fn a_close_within_a_message_ends_it(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let handler = move |mut socket: WebSocket| {
        let tell = tell.clone();
        async move {
            let received = socket.recv().await;
            let is_end = matches!(received, Ok(None));
            _ = tell.send((is_end, socket.peer_close().map(|close| close.code.0)));
        }
    };
    let routes = Routes::new().get("/", websocket(handler));
    let server = Server::routes(setup.patient_config(), routes);
    let mut peer = Peer::connect(&server, "/");
    let begun = frame(Opcode::Text, false, b"begun and not");
    peer.send([begun, frame(Opcode::Close, true, &close_of(1001, ""))].concat());
    peer.expect_close(1001);
    peer.client.expect_end("both have closed");
    let end = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(end, (true, Some(1001)), "a half message is none");
    // What follows its close frame is not read.
    let mut peer = Peer::connect(&server, "/");
    peer.send([frame(Opcode::Close, true, b""), text("after"), b"\xff\xff".to_vec()].concat());
    peer.expect_close(1000);
    peer.client.read_until_ended();
    server.wait_until("it has ended", |stats| stats.websockets_open == 0);
    assert_eq!(server.stats().websocket_violations, 0);
}

fn a_peer_that_never_reads_is_lost(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let handler = move |mut socket: WebSocket| {
        let tell = tell.clone();
        async move {
            while socket.send(vec![0; 100_000]).await.is_ok() {}
            let end = socket.recv().await;
            _ = tell.send(matches!(end, Err(WebSocketError::TimedOut)));
        }
    };
    let config = Config {
        write_timeout: Duration::from_millis(500),
        write_rate_min: 0,
        ..setup.patient_config()
    };
    let server = Server::routes(config, Routes::new().get("/", websocket(handler)));
    let _peer = Peer::connect(&server, "/");
    let is_timed_out = told.recv_timeout(PATIENCE).expect("it is lost");
    assert!(is_timed_out, "its time is over");
    server.wait_until("it has ended", |stats| {
        stats.websocket_closes_lost == 1 && stats.connections_open == 0
    });
}

fn a_peer_may_send_a_byte_at_a_time(setup: Setup) {
    let server = server(Config { ws_ping: Duration::from_millis(400), ..setup.patient_config() });
    let mut peer = Peer::connect(&server, "/");
    let bytes = [frame(Opcode::Text, false, "Zü".as_bytes()), frame(Opcode::Ping, true, b"p")];
    let rest = frame(Opcode::Continuation, true, b"rich");
    // It is never silent for as long as it may be.
    peer.client.trickle(&bytes.concat(), Duration::from_millis(20));
    peer.client.trickle(&rest, Duration::from_millis(20));
    assert_eq!(peer.frame().header.opcode, Opcode::Pong);
    assert_eq!(peer.text(), "Zürich");
}

fn half_handshakes_are_cut(setup: Setup) {
    let config = Config { header_timeout: Duration::from_millis(400), ..setup.config() };
    let server = server(config);
    let whole = handshake("/", "");
    let mut clients: Vec<_> = (0..200)
        .map(|number| {
            let mut client = server.connect();
            client.send(&whole.as_bytes()[..whole.len() * (number % 10 + 1) / 11]);
            client
        })
        .collect();
    let mut peer = Peer::connect(&server, "/");
    peer.send(text("others go on"));
    assert_eq!(peer.text(), "others go on");
    for client in &mut clients {
        client.read_until_ended();
    }
    server.wait_until("all are counted", |stats| stats.timeouts >= 200);
    assert_eq!(server.stats().websockets, 1);
    peer.send(text("still"));
    assert_eq!(peer.text(), "still");
}
