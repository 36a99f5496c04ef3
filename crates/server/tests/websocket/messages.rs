//! Messages in both directions.

use std::time::Duration;

use gustnado::Routes;
use gustnado::task::timeout;
use gustnado::websocket::{WebSocket, websocket};
use gustnado_http::websocket::Opcode;

use crate::harness::{Server, Setup};
use crate::peer::{Peer, close_of, frame, text};
use crate::serving;

on_every_server!(
    messages_come_back,
    a_message_may_be_cut_anywhere,
    messages_of_one_segment_are_answered_in_order,
    a_message_in_frames_comes_back_whole,
    the_rest_of_a_message_in_pieces_is_no_message,
    what_was_gathered_can_be_had_in_pieces,
    pings_are_answered_within_messages,
    text_has_to_be_utf8,
    text_is_refused_with_its_first_wrong_byte,
    messages_beyond_the_limit_are_refused,
    frames_that_break_a_rule_are_refused,
    a_client_that_reads_late_gets_everything,
);

fn messages_come_back(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    for len in [0, 1, 125, 126, 65_535, 65_536, 300_000] {
        let payload = "x".repeat(len);
        peer.send(text(&payload));
        assert_eq!(peer.text(), payload);
        let bytes = vec![0xff; len];
        peer.send(frame(Opcode::Binary, true, &bytes));
        let answer = peer.frame();
        assert_eq!(answer.header.opcode, Opcode::Binary);
        assert!(answer.payload == bytes, "{len}");
    }
}

fn a_message_may_be_cut_anywhere(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    let bytes = text("Zürich 🌪");
    for at in 1..bytes.len() {
        peer.client.send_cut(&bytes, at);
        assert_eq!(peer.text(), "Zürich 🌪");
    }
}

fn messages_of_one_segment_are_answered_in_order(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    let all: Vec<u8> = (0..1_000).flat_map(|number| text(&number.to_string())).collect();
    peer.send(all);
    for number in 0..1_000 {
        assert_eq!(peer.text(), number.to_string());
    }
}

fn a_message_in_frames_comes_back_whole(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    // It is cut within a character.
    peer.send(frame(Opcode::Text, false, b"Z\xc3"));
    peer.send(frame(Opcode::Continuation, false, b""));
    peer.send(frame(Opcode::Continuation, false, b"\xbcr"));
    peer.send(frame(Opcode::Continuation, true, b"ich"));
    assert_eq!(peer.text(), "Zürich");
}

fn the_rest_of_a_message_in_pieces_is_no_message(setup: Setup) {
    let endpoint = websocket(async |mut socket: WebSocket| {
        let piece = socket.recv_piece().await.expect("no error").expect("a piece");
        assert!(!piece.is_last);
        _ = socket.send(piece.bytes.to_vec()).await;
        let message = socket.recv().await.expect("no error").expect("a message");
        _ = socket.send(message).await;
    });
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", endpoint));
    let mut peer = Peer::connect(&server, "/");
    // It is cut within a character.
    let (first, rest) = "Zürich".as_bytes().split_at(2);
    peer.send(frame(Opcode::Text, false, first));
    assert_eq!(peer.frame().payload, first);
    peer.send([frame(Opcode::Continuation, true, rest), text("next")].concat());
    assert_eq!(peer.text(), "next");
}

fn what_was_gathered_can_be_had_in_pieces(setup: Setup) {
    let endpoint = websocket(async |mut socket: WebSocket| {
        assert!(timeout(Duration::from_millis(100), socket.recv()).await.is_none(), "half of one");
        while let Ok(Some(piece)) = socket.recv_piece().await {
            _ = socket.send(piece.bytes.to_vec()).await;
        }
    });
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", endpoint));
    let mut peer = Peer::connect(&server, "/");
    let (first, rest) = "Zürich".as_bytes().split_at(2);
    peer.send(frame(Opcode::Text, false, first));
    assert_eq!(peer.frame().payload, first);
    peer.send(frame(Opcode::Continuation, true, rest));
    assert_eq!(peer.frame().payload, rest);
}

fn pings_are_answered_within_messages(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(frame(Opcode::Text, false, b"a"));
    peer.send(frame(Opcode::Ping, true, b"still there?"));
    let pong = peer.frame();
    assert_eq!((pong.header.opcode, &*pong.payload), (Opcode::Pong, &b"still there?"[..]));
    peer.send(frame(Opcode::Pong, true, b"unasked"));
    peer.send(frame(Opcode::Continuation, true, b"b"));
    assert_eq!(peer.text(), "ab");
}

fn text_has_to_be_utf8(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    for wrong in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"] {
        let mut peer = Peer::connect(&server, "/echo");
        peer.send(frame(Opcode::Text, true, wrong));
        peer.expect_close(1007);
        let mut peer = Peer::connect(&server, "/echo");
        peer.send(frame(Opcode::Binary, true, wrong));
        assert_eq!(peer.frame().payload, wrong, "bytes may be anything");
    }
}

fn text_is_refused_with_its_first_wrong_byte(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    let long = frame(Opcode::Text, true, &[b"good \xff"[..].to_vec(), vec![b'x'; 1_000]].concat());
    peer.send(&long[..100]);
    peer.expect_close(1007);
}

fn messages_beyond_the_limit_are_refused(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint.message_bytes_max(1_000));
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(text(&"x".repeat(1_000)));
    assert_eq!(peer.text().len(), 1_000);
    // Its head says it.
    peer.send(&text(&"x".repeat(1_001))[..8]);
    peer.expect_close(1009);
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(frame(Opcode::Binary, false, &[0; 600]));
    peer.send(frame(Opcode::Continuation, true, &[0; 600]));
    peer.expect_close(1009);
    let server = serving(setup, |endpoint| endpoint.fragments_max(3));
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(frame(Opcode::Binary, false, b""));
    peer.send(frame(Opcode::Continuation, false, b"").repeat(3));
    peer.expect_close(1009);
}

fn frames_that_break_a_rule_are_refused(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    for (name, wrong) in [
        ("not masked", b"\x81\x01a".to_vec()),
        ("a reserved bit", b"\xc1\x80\x00\x00\x00\x00".to_vec()),
        ("an unknown opcode", b"\x83\x80\x00\x00\x00\x00".to_vec()),
        ("a long ping", frame(Opcode::Ping, true, &[0; 126])),
        ("a ping in pieces", frame(Opcode::Ping, false, b"")),
        ("a continuation of nothing", frame(Opcode::Continuation, true, b"x")),
        ("a close frame of one byte", frame(Opcode::Close, true, b"x")),
        ("a close code that is none", frame(Opcode::Close, true, &close_of(1005, ""))),
    ] {
        let mut peer = Peer::connect(&server, "/echo");
        peer.send(text("before"));
        assert_eq!(peer.text(), "before");
        peer.send(wrong);
        peer.expect_close(1002);
        peer.client.expect_end(name);
    }
}

fn a_client_that_reads_late_gets_everything(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    let (count, payload) = (40, "y".repeat(100_000));
    let all = text(&payload).repeat(count);
    // More than the kernel keeps: the server has to stop reading until its answers are read.
    let mut other = Peer { client: peer.client.second_handle() };
    let sender = std::thread::spawn(move || other.send(all));
    for _ in 0..count {
        assert!(peer.text() == payload);
    }
    sender.join().expect("it sends everything");
}
