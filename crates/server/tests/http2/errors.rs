//! What ends a connection, with its code and a sentence (RFC 9113 §5.4.1).

use std::time::Duration;

use gustnado::task::sleep;
use gustnado::{Request, Routes};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{PREFACE, flag, kind, setting};

use crate::harness::http2::heads::{block, request_frame};
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Server, Setup};
use crate::in_clear;

on_every_server!(
    each_broken_rule_has_its_code,
    what_was_asked_before_is_answered,
    what_takes_long_is_answered_behind_an_error,
    a_flood_gets_no_answers,
    a_stream_error_leaves_the_connection,
    a_frame_cut_short_ends_quietly,
);

/// Settings out of their range, and the codes that they end a connection with.
fn wrong_settings() -> [(&'static str, Vec<u8>, ErrorCode); 5] {
    use ErrorCode::{FlowControlError, ProtocolError};
    let frame = |id: u16, value: u32| {
        let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        frame_of(kind::SETTINGS, 0, 0, &payload)
    };
    [
        ("push that is neither on nor off", frame(setting::ENABLE_PUSH, 2), ProtocolError),
        ("a huge window", frame(setting::INITIAL_WINDOW_SIZE, 1 << 31), FlowControlError),
        ("frames too small", frame(setting::MAX_FRAME_SIZE, 16_383), ProtocolError),
        ("frames too large", frame(setting::MAX_FRAME_SIZE, 1 << 24), ProtocolError),
        ("CONNECT of two kinds", frame(setting::ENABLE_CONNECT_PROTOCOL, 2), ProtocolError),
    ]
}

/// Windows that cannot be, and the codes that they end a connection with.
fn wrong_windows() -> [(&'static str, Vec<u8>, ErrorCode); 4] {
    use ErrorCode::{FlowControlError, FrameSizeError, ProtocolError};
    let frame = |stream, payload: &[u8]| frame_of(kind::WINDOW_UPDATE, 0, stream, payload);
    [
        ("a window of nothing", frame(0, &[0; 4]), ProtocolError),
        ("a window too large", frame(0, &i32::MAX.to_be_bytes()), FlowControlError),
        ("a short WINDOW_UPDATE", frame(0, &[0; 3]), FrameSizeError),
        ("a window of an idle stream", frame(1, &[0, 0, 0, 1]), ProtocolError),
    ]
}

/// Priorities that cannot be read, and the codes that they end a connection with.
fn wrong_priorities() -> [(&'static str, Vec<u8>, ErrorCode); 6] {
    use ErrorCode::{FrameSizeError, ProtocolError};
    let frame = |kind, stream, payload: &[u8]| frame_of(kind, 0, stream, payload);
    [
        ("PRIORITY on no stream", frame(kind::PRIORITY, 0, &[0; 5]), ProtocolError),
        ("a short PRIORITY", frame(kind::PRIORITY, 1, &[0; 4]), FrameSizeError),
        ("a stream before itself", frame(kind::PRIORITY, 1, &[0, 0, 0, 1, 0]), ProtocolError),
        ("PRIORITY_UPDATE on a stream", frame(kind::PRIORITY_UPDATE, 1, &[0; 4]), ProtocolError),
        ("a short PRIORITY_UPDATE", frame(kind::PRIORITY_UPDATE, 0, &[0; 3]), FrameSizeError),
        ("an update for no stream", frame(kind::PRIORITY_UPDATE, 0, &[0; 4]), ProtocolError),
    ]
}

fn each_broken_rule_has_its_code(setup: Setup) {
    use ErrorCode::{CompressionError, FrameSizeError, ProtocolError};
    let server = Server::start(in_clear(setup));
    let headers = flag::END_HEADERS | flag::END_STREAM;
    let get = block("GET", "/", &[]);
    let frame = |kind, flags, stream, payload: &[u8]| frame_of(kind, flags, stream, payload);
    let cases = [
        ("an even stream", frame(kind::HEADERS, headers, 2, &get), ProtocolError),
        ("HEADERS on no stream", frame(kind::HEADERS, headers, 0, &get), ProtocolError),
        ("DATA on no stream", frame(kind::DATA, 0, 0, b"x"), ProtocolError),
        ("DATA on an idle stream", frame(kind::DATA, 0, 1, b"x"), ProtocolError),
        ("RST_STREAM on an idle stream", frame(kind::RST_STREAM, 0, 1, &[0; 4]), ProtocolError),
        ("a short RST_STREAM", frame(kind::RST_STREAM, 0, 1, &[0; 3]), FrameSizeError),
        ("a short PING", frame(kind::PING, 0, 0, &[0; 7]), FrameSizeError),
        ("PING on a stream", frame(kind::PING, 0, 1, &[0; 8]), ProtocolError),
        ("a short GOAWAY", frame(kind::GOAWAY, 0, 0, &[0; 7]), FrameSizeError),
        ("PUSH_PROMISE", frame(kind::PUSH_PROMISE, 4, 1, &[0; 8]), ProtocolError),
        ("CONTINUATION of nothing", frame(kind::CONTINUATION, 4, 1, b""), ProtocolError),
        ("SETTINGS on a stream", frame(kind::SETTINGS, 0, 1, b""), ProtocolError),
        ("broken SETTINGS", frame(kind::SETTINGS, 0, 0, &[0; 5]), FrameSizeError),
        ("an acknowledgement with more", frame(kind::SETTINGS, 1, 0, &[0; 6]), FrameSizeError),
        ("an index of nothing", frame(kind::HEADERS, headers, 1, &[0x80]), CompressionError),
        ("an unknown index", frame(kind::HEADERS, headers, 1, &[0xff, 0]), CompressionError),
        (
            "no room for a padding",
            frame(kind::HEADERS, headers | flag::PADDED, 1, b""),
            FrameSizeError,
        ),
        (
            "no room for a priority",
            frame(kind::HEADERS, headers | flag::PRIORITY, 1, &[0; 4]),
            FrameSizeError,
        ),
        ("GOAWAY on a stream", frame(kind::GOAWAY, 0, 1, &[0; 8]), ProtocolError),
        ("a block that is cut", frame(kind::HEADERS, headers, 1, b"\0\x05ab"), CompressionError),
        ("a table too large", frame(kind::HEADERS, headers, 1, b"\x3f\xe2\x1f"), CompressionError),
        ("a frame too long", frame(kind::DATA, 0, 1, &vec![0; 16_385]), FrameSizeError),
        (
            "padding beyond the frame",
            frame(kind::HEADERS, headers | flag::PADDED, 1, &[9, 1]),
            ProtocolError,
        ),
        (
            "a block that is interrupted",
            [frame(kind::HEADERS, 1, 1, &get), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            ProtocolError,
        ),
    ];
    let cases =
        cases.into_iter().chain(wrong_windows()).chain(wrong_priorities()).chain(wrong_settings());
    for (number, (what, bytes, code)) in (1..).zip(cases) {
        let mut client = Http2Client::connect(server.address());
        client.send(&bytes);
        let goaway = client.ended().unwrap_or_else(|| panic!("{what}: no GOAWAY"));
        assert_eq!(goaway.code, code, "{what}: {goaway:?}");
        assert!(!goaway.reason.is_empty(), "{what}");
        server.wait_until(what, |stats| stats.http2_errors == number);
    }
    let mut client = Http2Client::connect_silently(server.address());
    client.send(PREFACE);
    client.send(&frame_of(kind::PING, 0, 0, &[0; 8]));
    let goaway = client.ended().expect("a GOAWAY");
    assert_eq!(goaway.code, ProtocolError, "SETTINGS come first");
    server.wait_until_empty();
}

fn what_was_asked_before_is_answered(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let mut bytes = request_frame(1, "GET", "/", &[], true);
    bytes.extend(request_frame(3, "GET", "/", &[], true));
    bytes.extend(frame_of(kind::PING, 0, 0, &[0; 7]));
    bytes.extend(request_frame(5, "GET", "/", &[], true));
    client.send(&bytes);
    let goaway = client.ended().expect("a GOAWAY");
    assert_eq!((goaway.last, goaway.code), (3, ErrorCode::FrameSizeError));
    for id in [1, 3] {
        assert_eq!(client.so_far(id).status, 200);
        assert!(client.so_far(id).is_whole);
    }
    assert_eq!(client.so_far(5).status, 0);
}

/// Routes of which some respond later.
fn of_all_kinds() -> Routes {
    Routes::new()
        .get("/", |_: &Request| "here")
        .get("/large", |_: &Request| vec![b'l'; 60_000])
        .get("/slow", async |_: Request| {
            sleep(Duration::from_millis(200)).await;
            "slow"
        })
        .post("/echo", async |request: Request| request.into_body().bytes(1 << 20).await)
}

fn what_takes_long_is_answered_behind_an_error(setup: Setup) {
    let server = Server::routes(in_clear(setup), of_all_kinds());
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    client.give(0, 1 << 24);
    client.ping();
    let (mut bytes, mut asked) = (Vec::new(), Vec::new());
    for (at, target) in (0..).zip(["/", "/slow", "/large"].repeat(12)) {
        asked.push((2 * at + 1, target));
        bytes.extend(request_frame(2 * at + 1, "GET", target, &[], true));
    }
    // This one needs more of the client, which comes too late.
    let half = 2 * 36 + 1;
    bytes.extend(request_frame(half, "POST", "/echo", &[], false));
    bytes.extend(frame_of(kind::SETTINGS, 0, 0, &[0; 5]));
    bytes.extend(frame_of(kind::DATA, flag::END_STREAM, half, b"late"));
    bytes.extend(request_frame(half + 2, "GET", "/", &[], true));
    client.send(&bytes);
    let goaway = client.ended().expect("a GOAWAY");
    assert_eq!((goaway.last, goaway.code), (half, ErrorCode::FrameSizeError));
    for (id, target) in asked {
        let answer = client.so_far(id);
        assert!(answer.is_whole && answer.reset.is_none(), "{id} {target}: {answer:?}");
        let len = match target {
            "/large" => 60_000,
            _ => 4,
        };
        assert_eq!((answer.status, answer.body.len()), (200, len), "{id} {target}");
    }
    assert_eq!(client.so_far(half).reset, Some(ErrorCode::Cancel));
    assert_eq!(client.so_far(half + 2).status, 0);
    assert_eq!(server.stats().http2_errors, 1);
    server.wait_until_empty();
}

fn a_flood_gets_no_answers(setup: Setup) {
    let server = Server::routes(in_clear(setup), of_all_kinds());
    let mut client = Http2Client::connect(server.address());
    let slow = client.get("/slow");
    client.ping();
    let mut bytes = frame_of(kind::HEADERS, 0, slow + 2, b"");
    bytes.extend(frame_of(kind::CONTINUATION, 0, slow + 2, b"").repeat(9));
    client.send(&bytes);
    let goaway = client.ended().expect("a GOAWAY");
    assert_eq!(goaway.code, ErrorCode::EnhanceYourCalm);
    assert_eq!(client.so_far(slow).status, 0);
}

fn a_stream_error_leaves_the_connection(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/echo", &[], false);
    client.give(id, i32::MAX.unsigned_abs());
    assert_eq!(client.answer(id).reset, Some(ErrorCode::FlowControlError));
    let id = client.request("POST", "/echo", &[], false);
    client.send_frame(kind::WINDOW_UPDATE, 0, id, &[0; 4]);
    assert_eq!(client.answer(id).reset, Some(ErrorCode::ProtocolError));
    // What was under way for it is read over.
    client.send_data(id, b"late", true);
    assert_eq!(client.ask("/").status, 200);
    // DATA behind the end is an error of the stream, which is closed (RFC 9113 §5.1).
    let id = client.get("/");
    client.send_data(id, b"more", false);
    let answer = client.answer(id);
    assert!(answer.status == 200 || answer.reset.is_some(), "{answer:?}");
    assert_eq!(server.stats().http2_errors, 0);
}

fn a_frame_cut_short_ends_quietly(setup: Setup) {
    let server = Server::start(in_clear(setup));
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/").status, 200);
    client.send(&request_frame(3, "GET", "/", &[], true)[..20]);
    client.half_close();
    client.ended();
    server.wait_until_empty();
}
