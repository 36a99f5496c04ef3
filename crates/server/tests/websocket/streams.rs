//! `WebSocket`s over a stream of HTTP/2 (RFC 8441).

use gustnado::Routes;
use gustnado::config::Config;
use gustnado::websocket::websocket;
use gustnado_http::h2::frame::{flag, kind};
use gustnado_http::websocket::Opcode;

use crate::echo;
use crate::harness::http2::heads::literal;
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Server, Setup};
use crate::peer::{close_of, frame, text};

on_every_server!(
    a_stream_is_a_websocket,
    many_streams_of_one_connection_are,
    a_handshake_without_its_version_is_refused,
    many_short_messages_are_no_flood,
);

fn server(setup: Setup) -> Server {
    let config = Config { h2c: true, ..setup.patient_config() };
    Server::routes(config, Routes::new().get("/echo", websocket(echo)))
}

/// Opens a WebSocket. Returns its stream.
fn open(client: &mut Http2Client, version: Option<&str>) -> u32 {
    let id = client.new_stream();
    let mut fields = vec![
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/echo"),
        (":authority", "gust.example"),
    ];
    fields.extend(version.map(|version| ("sec-websocket-version", version)));
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    client.send(&frame_of(kind::HEADERS, flag::END_HEADERS, id, &block));
    id
}

fn a_stream_is_a_websocket(setup: Setup) {
    let server = server(setup);
    let mut client = Http2Client::connect(server.address());
    let id = open(&mut client, Some("13"));
    let answer = client.wait_for(id, |answer| answer.status > 0);
    assert_eq!((answer.status, answer.field("sec-websocket-accept")), (200, None));
    client.send(&frame_of(kind::DATA, 0, id, &text("hello")));
    let answer = client.wait_for(id, |answer| answer.body.len() >= 7);
    assert_eq!(answer.body, b"\x81\x05hello");
    let close = frame(Opcode::Close, true, &close_of(1000, ""));
    client.send(&frame_of(kind::DATA, 0, id, &close));
    let answer = client.wait_for(id, |answer| answer.is_whole);
    assert_eq!(answer.body[7..], *b"\x88\x02\x03\xe8");
}

fn many_streams_of_one_connection_are(setup: Setup) {
    let server = server(setup);
    let mut client = Http2Client::connect(server.address());
    let ids: Vec<u32> = (0..20).map(|_| open(&mut client, Some("13"))).collect();
    for id in &ids {
        client.send(&frame_of(kind::DATA, 0, *id, &text(&format!("{id:04}"))));
    }
    for id in ids {
        let answer = client.wait_for(id, |answer| answer.body.len() >= 6);
        assert_eq!(
            answer.body,
            format!("\u{81}\u{4}{id:04}").chars().map(|c| c as u8).collect::<Vec<_>>()
        );
    }
}

fn a_handshake_without_its_version_is_refused(setup: Setup) {
    let server = server(setup);
    let mut client = Http2Client::connect(server.address());
    for version in [None, Some("8")] {
        let id = open(&mut client, version);
        let answer = client.wait_for(id, |answer| answer.is_whole);
        assert!((400..600).contains(&answer.status), "{answer:?}");
    }
}

fn many_short_messages_are_no_flood(setup: Setup) {
    let server = server(setup);
    let mut client = Http2Client::connect(server.address());
    let id = open(&mut client, Some("13"));
    let data = frame_of(kind::DATA, 0, id, &text(""));
    let count = 2_500;
    for number in 1..=count {
        client.send(&data);
        client.wait_for(id, |answer| answer.body.len() >= 2 * number);
        // As HAProxy has it: each frame that was read is given back at once.
        client.send(&frame_of(kind::WINDOW_UPDATE, 0, id, &2_u32.to_be_bytes()));
        client.send(&frame_of(kind::WINDOW_UPDATE, 0, 0, &2_u32.to_be_bytes()));
    }
    let answer = client.so_far(id);
    assert_eq!((answer.body.len(), answer.is_whole), (2 * count, false));
}
