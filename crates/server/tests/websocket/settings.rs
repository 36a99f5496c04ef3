//! Settings of the server, which hold for each endpoint that has none of its own, and counters.

use std::time::{Duration, Instant};

use gustnado::config::{Config, WebSocketDeflate};
use gustnado::websocket::{CloseCode, WebSocket, websocket};
use gustnado::{Routes, route};
use gustnado_http::websocket::Opcode;

use crate::echo;
use crate::harness::{Server, Setup, wait_until};
use crate::peer::{Peer, close_of, frame, handshake, text};

on_every_server!(
    an_endpoint_keeps_to_the_settings_of_the_server,
    what_an_endpoint_sets_wins,
    a_peer_may_send_so_much_per_second,
    a_silent_peer_has_the_time_of_the_settings,
    a_peer_that_is_sent_to_is_not_lost,
    messages_leave_at_the_pace_of_the_connection,
    messages_leave_at_the_pace_of_their_route,
    messages_are_received_at_the_pace_of_the_connection,
    everything_is_counted,
);

/// A server whose endpoint at `/` sets nothing, and one at `/own` that does.
fn server(config: Config) -> Server {
    let own = websocket(echo)
        .message_bytes_max(2_000)
        .frame_bytes_max(2_000)
        .fragments_max(3)
        .messages_per_second_max(0);
    Server::routes(config, Routes::new().get("/", websocket(echo)).get("/own", own))
}

fn limited(setup: Setup) -> Config {
    Config {
        ws_message_bytes_max: 1_000,
        ws_frame_bytes_max: 600,
        ws_fragments_max: 2,
        ws_messages_per_second_max: 20,
        ws_deflate: WebSocketDeflate::Off,
        ..setup.patient_config()
    }
}

fn an_endpoint_keeps_to_the_settings_of_the_server(setup: Setup) {
    let server = server(limited(setup));
    let refused = |frames: Vec<u8>| {
        let mut peer = Peer::connect(&server, "/");
        peer.send(frames);
        peer.expect_close(1009);
    };
    refused(text(&"x".repeat(601)));
    let half = "x".repeat(501);
    let first = frame(Opcode::Text, false, half.as_bytes());
    refused([first, frame(Opcode::Continuation, true, half.as_bytes())].concat());
    let pieces = [Opcode::Text, Opcode::Continuation, Opcode::Continuation];
    refused(pieces.iter().flat_map(|opcode| frame(*opcode, false, b"x")).collect());
    let mut peer = Peer::connect(&server, "/");
    peer.send(text(&"x".repeat(600)));
    assert_eq!(peer.text().len(), 600);
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let (_, answer) = Peer::with_fields(&server, "/", offer);
    assert_eq!(answer.field("sec-websocket-extensions"), None);
}

fn what_an_endpoint_sets_wins(setup: Setup) {
    let server = server(limited(setup));
    let mut peer = Peer::connect(&server, "/own");
    peer.send(text(&"x".repeat(2_000)));
    assert_eq!(peer.text().len(), 2_000);
    // Without the limit of the server's settings.
    peer.send((0..100).flat_map(|_| text("y")).collect::<Vec<u8>>());
    for _ in 0..100 {
        assert_eq!(peer.text(), "y");
    }
    peer.send(text(&"x".repeat(2_001)));
    peer.expect_close(1009);
}

fn a_peer_may_send_so_much_per_second(setup: Setup) {
    let server = server(limited(setup));
    // A second's worth may come at once; the next has to wait.
    let mut peer = Peer::connect(&server, "/");
    peer.send((0..20).flat_map(|_| text("x")).collect::<Vec<u8>>());
    for _ in 0..20 {
        assert_eq!(peer.text(), "x");
    }
    std::thread::sleep(Duration::from_millis(300));
    peer.send(text("later"));
    assert_eq!(peer.text(), "later");
    for opcode in [Opcode::Text, Opcode::Ping, Opcode::Pong] {
        let mut peer = Peer::connect(&server, "/");
        peer.send((0..60).flat_map(|_| frame(opcode, true, b"x")).collect::<Vec<u8>>());
        let close = loop {
            let frame = peer.frame();
            if frame.header.opcode == Opcode::Close {
                break frame.payload;
            }
        };
        assert_eq!(close[..2], 1008_u16.to_be_bytes(), "{opcode:?}");
    }
}

fn a_silent_peer_has_the_time_of_the_settings(setup: Setup) {
    let server = server(Config {
        ws_ping: Duration::from_millis(100),
        ws_ping_timeout: Duration::from_millis(700),
        ..setup.patient_config()
    });
    let mut peer = Peer::connect(&server, "/");
    let began = Instant::now();
    assert_eq!(peer.frame().header.opcode, Opcode::Ping);
    assert!(began.elapsed() < Duration::from_millis(600), "{:?}", began.elapsed());
    peer.client.expect_end("it was not answered");
    assert!(began.elapsed() >= Duration::from_millis(750), "{:?}", began.elapsed());
    server.wait_until("it was counted", |stats| stats.websocket_pings_lost == 1);
    assert_eq!(server.stats().websocket_closes_lost, 1);
}

fn a_peer_that_is_sent_to_is_not_lost(setup: Setup) {
    const BYTES: usize = 32 << 20;
    let handler = async |mut socket: WebSocket| {
        // More than the kernel takes.
        _ = socket.send(vec![7; BYTES]).await;
        while let Ok(Some(_)) = socket.recv().await {}
    };
    let config = Config {
        ws_ping: Duration::from_millis(100),
        ws_ping_timeout: Duration::from_millis(200),
        ..setup.patient_config()
    };
    let server = Server::routes(config, Routes::new().get("/", websocket(handler)));
    let mut peer = Peer::connect(&server, "/");
    std::thread::sleep(Duration::from_millis(900));
    let message = peer.frame();
    assert_eq!((message.header.opcode, message.payload.len()), (Opcode::Binary, BYTES));
    // Then it is looked at again.
    assert_eq!(peer.frame().header.opcode, Opcode::Ping);
    peer.client.expect_end("it was not answered");
    assert_eq!(server.stats().websocket_pings_lost, 1);
}

/// Sends a message of so many bytes. Returns how long its echo took.
fn echo_time(server: &Server, path: &str, bytes: usize) -> Duration {
    let mut peer = Peer::connect(server, path);
    let message = "p".repeat(bytes);
    let began = Instant::now();
    peer.send(text(&message));
    assert!(peer.text() == message, "other bytes came");
    began.elapsed()
}

fn messages_leave_at_the_pace_of_the_connection(setup: Setup) {
    let mut config = setup.patient_config();
    (config.pace.write_rate, config.pace.write_burst) = (100_000, 10_000);
    let took = echo_time(&server(config), "/", 30_000);
    assert!(took >= Duration::from_millis(150), "20,000 bytes beyond the burst took {took:?}");
}

fn messages_leave_at_the_pace_of_their_route(setup: Setup) {
    let paced = route().bytes_per_second(100_000).get(websocket(echo));
    let routes = Routes::new().route("/paced", paced).get("/", websocket(echo));
    let server = Server::routes(setup.patient_config(), routes);
    // The burst is a quarter of a second's worth.
    let took = echo_time(&server, "/paced", 60_000);
    assert!(took >= Duration::from_millis(250), "35,000 bytes beyond the burst took {took:?}");
}

fn messages_are_received_at_the_pace_of_the_connection(setup: Setup) {
    let mut config = setup.patient_config();
    (config.pace.read_rate, config.pace.read_burst) = (200_000, 10_000);
    let took = echo_time(&server(config), "/", 80_000);
    assert!(took >= Duration::from_millis(200), "70,000 bytes beyond the burst took {took:?}");
}

fn everything_is_counted(setup: Setup) {
    let closing = async |mut socket: WebSocket| {
        socket.close(CloseCode(4001), "enough");
        while let Ok(Some(_)) = socket.recv().await {}
    };
    let routes = Routes::new().get("/", websocket(echo)).get("/closing", websocket(closing));
    let server = Server::routes(setup.patient_config(), routes);
    let mut peer = Peer::connect(&server, "/");
    peer.send([text("one"), text("two"), frame(Opcode::Ping, true, b"")].concat());
    assert_eq!([peer.text(), peer.text()], ["one", "two"]);
    assert_eq!(peer.frame().header.opcode, Opcode::Pong);
    wait_until("it is open", || server.stats().websockets_open == 1);
    peer.send(frame(Opcode::Close, true, &close_of(1000, "")));
    peer.expect_close(1000);
    let mut broken = Peer::connect(&server, "/");
    broken.send(b"\xff\xff\xff\xff");
    broken.expect_close(1002);
    let mut told = Peer::connect(&server, "/closing");
    told.expect_close(4001);
    told.send(frame(Opcode::Close, true, &close_of(4001, "")));
    Peer::connect(&server, "/").client.hang_up();
    let refused = server.ask(handshake("/", "Origin: https://evil.example\r\n"));
    assert_eq!(refused.status, 403);
    server
        .wait_until("all have ended", |stats| stats.websockets == 4 && stats.websockets_open == 0);
    let stats = server.stats();
    assert_eq!((stats.websocket_received, stats.websocket_sent), (2, 2));
    let closes = (stats.websocket_closes_normal, stats.websocket_closes_error);
    assert_eq!(closes, (1, 1), "{stats:?}");
    let closes = (stats.websocket_closes_application, stats.websocket_closes_lost);
    assert_eq!(closes, (1, 1), "{stats:?}");
    assert_eq!((stats.websocket_violations, stats.websocket_origins_refused), (1, 1));
    assert_eq!(stats.websocket_pings_lost, 0);
}
