//! How a WebSocket ends.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use gustnado::Routes;
use gustnado::task::sleep;
use gustnado::websocket::{CloseCode, CloseFrame, SendError, WebSocket, WebSocketError, websocket};
use gustnado_http::websocket::Opcode;

use crate::harness::{PATIENCE, Server, Setup};
use crate::peer::{Peer, close_of, frame, text};
use crate::serving;

on_every_server!(
    a_close_frame_is_answered_with_its_code,
    the_handler_learns_why_the_peer_closes,
    what_was_sent_before_leaves_before_the_close_frame,
    a_handler_that_returns_closes_in_order,
    a_handler_that_panics_closes_with_an_error,
    a_handler_may_close_and_still_receive,
    a_peer_that_does_not_answer_is_not_waited_for,
    a_peer_that_ignores_the_close_frame_is_lost,
    an_answer_that_is_received_late_was_in_time,
    a_lost_connection_is_an_error_once,
    a_drain_closes_with_going_away,
    a_drain_is_told_while_the_handler_does_not_receive,
    a_drain_cuts_a_peer_that_does_not_close,
    a_silent_peer_is_pinged_and_then_lost,
);

fn a_close_frame_is_answered_with_its_code(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    for (sent, answered) in
        [(close_of(1000, "done"), 1000), (close_of(4321, ""), 4321), (Vec::new(), 1000)]
    {
        let mut peer = Peer::connect(&server, "/echo");
        peer.send(frame(Opcode::Close, true, &sent));
        peer.expect_close(answered);
        peer.client.expect_end("the server closes first");
    }
}

/// A server whose handler tells how its WebSocket has ended.
fn telling(setup: Setup) -> (Server, mpsc::Receiver<(String, Option<CloseFrame>)>) {
    let (tell, told) = mpsc::channel();
    let handler = move |mut socket: WebSocket| {
        let tell = tell.clone();
        async move {
            let end = loop {
                match socket.recv().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break "closed".to_owned(),
                    Err(error) => break format!("{error:?}"),
                }
            };
            assert!(matches!(socket.recv().await, Ok(None)), "an error is told once");
            let is_closed = socket.send("more").await == Err(SendError::Closed);
            assert!(is_closed, "nothing can be sent after the end");
            _ = tell.send((end, socket.peer_close()));
        }
    };
    let routes = Routes::new().get("/", websocket(handler));
    (Server::routes(setup.patient_config(), routes), told)
}

fn the_handler_learns_why_the_peer_closes(setup: Setup) {
    let (server, told) = telling(setup);
    let mut peer = Peer::connect(&server, "/");
    peer.send(frame(Opcode::Close, true, &close_of(4000, "bye")));
    let (end, close) = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(end, "closed");
    assert_eq!(close, Some(CloseFrame { code: CloseCode(4000), reason: "bye".to_owned() }));
    let mut peer = Peer::connect(&server, "/");
    peer.send(frame(Opcode::Close, true, b""));
    let (_, close) = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(close.map(|close| close.code), Some(CloseCode::NO_STATUS));
}

fn what_was_sent_before_leaves_before_the_close_frame(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    peer.send([text("one"), text("two"), frame(Opcode::Close, true, b"")].concat());
    assert_eq!([peer.text(), peer.text()], ["one", "two"]);
    peer.expect_close(1000);
}

fn a_handler_that_returns_closes_in_order(setup: Setup) {
    let handler = async |mut socket: WebSocket| {
        _ = socket.send("the only one").await;
    };
    let routes = Routes::new().get("/", websocket(handler));
    let server = Server::routes(setup.patient_config(), routes);
    let mut peer = Peer::connect(&server, "/");
    assert_eq!(peer.text(), "the only one");
    peer.expect_close(1000);
    peer.send(frame(Opcode::Close, true, &close_of(1000, "")));
    peer.client.expect_end("both have closed");
}

fn a_handler_that_panics_closes_with_an_error(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(text("panic"));
    peer.expect_close(1011);
    peer.send(frame(Opcode::Close, true, &close_of(1011, "")));
    peer.client.expect_end("the connection ends");
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(text("others go on"));
    assert_eq!(peer.text(), "others go on");
}

fn a_handler_may_close_and_still_receive(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let handler = move |mut socket: WebSocket| {
        let tell = tell.clone();
        async move {
            socket.close(CloseCode(4001), "enough");
            while let Ok(Some(message)) = socket.recv().await {
                _ = tell.send(message);
            }
        }
    };
    let routes = Routes::new().get("/", websocket(handler));
    let server = Server::routes(setup.patient_config(), routes);
    let mut peer = Peer::connect(&server, "/");
    peer.expect_close(4001);
    peer.send([text("one more"), frame(Opcode::Close, true, &close_of(4001, ""))].concat());
    let message = told.recv_timeout(PATIENCE).expect("it is received");
    assert_eq!(message.text(), Some("one more"));
    peer.client.expect_end("both have closed");
}

fn a_peer_that_does_not_answer_is_not_waited_for(setup: Setup) {
    let handler = async |_: WebSocket| {};
    let endpoint = websocket(handler).close_timeout(Duration::from_millis(200));
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", endpoint));
    let mut peer = Peer::connect(&server, "/");
    peer.expect_close(1000);
    peer.client.expect_end("its time is over");
}

/// A server whose handler closes, lets `pause` pass, receives, and tells how that has ended.
fn closing(setup: Setup, pause: Duration) -> (Server, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let handler = move |mut socket: WebSocket| {
        let tell = tell.clone();
        async move {
            socket.close(CloseCode::NORMAL, "enough");
            sleep(pause).await;
            while let Some(received) = socket.recv().await.transpose() {
                if let Err(error) = received {
                    _ = tell.send(format!("{error:?}"));
                }
            }
            _ = tell.send("closed".to_owned());
        }
    };
    let endpoint = websocket(handler).close_timeout(Duration::from_millis(200));
    (Server::routes(setup.patient_config(), Routes::new().get("/", endpoint)), told)
}

fn a_peer_that_ignores_the_close_frame_is_lost(setup: Setup) {
    let (server, told) = closing(setup, Duration::ZERO);
    for is_silent in [true, false] {
        let mut peer = Peer::connect(&server, "/");
        peer.expect_close(1000);
        let (began, mut end) = (Instant::now(), None);
        while end.is_none() && began.elapsed() < PATIENCE {
            if !is_silent {
                peer.client.send_unless_closed(text("one more"));
            }
            end = told.recv_timeout(Duration::from_millis(10)).ok();
        }
        assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
        assert_eq!(end, Some(format!("{:?}", WebSocketError::TimedOut)));
        assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok("closed"));
    }
}

fn an_answer_that_is_received_late_was_in_time(setup: Setup) {
    let (server, told) = closing(setup, Duration::from_millis(400));
    let mut peer = Peer::connect(&server, "/");
    peer.expect_close(1000);
    peer.send([text("one more"), frame(Opcode::Close, true, &close_of(1000, ""))].concat());
    assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok("closed"));
    peer.client.expect_end("both have closed");
}

fn a_lost_connection_is_an_error_once(setup: Setup) {
    let (server, told) = telling(setup);
    let peer = Peer::connect(&server, "/");
    peer.client.hang_up();
    let (end, close) = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(end, format!("{:?}", WebSocketError::Lost(None)));
    assert_eq!(close.map(|close| close.code), Some(CloseCode::ABNORMAL));
}

fn a_drain_closes_with_going_away(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(text("hello"));
    assert_eq!(peer.text(), "hello");
    thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_secs(5)));
        peer.expect_close(1001);
        peer.send(frame(Opcode::Close, true, &close_of(1001, "")));
        peer.client.expect_end("both have closed");
        assert_eq!(draining.join().expect("it drains").cut, 0);
    });
}

fn a_drain_is_told_while_the_handler_does_not_receive(setup: Setup) {
    let busy = async |mut socket: WebSocket| {
        _ = socket.send("begun").await;
        sleep(Duration::from_millis(300)).await;
        // The close frame is answered as soon as it is received.
        _ = socket.recv().await;
    };
    let server = Server::routes(setup.patient_config(), Routes::new().get("/", websocket(busy)));
    let mut peer = Peer::connect(&server, "/");
    assert_eq!(peer.text(), "begun");
    let began = Instant::now();
    thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_secs(5)));
        peer.expect_close(1001);
        assert!(began.elapsed() < Duration::from_millis(290), "only once it has received");
        peer.send(frame(Opcode::Close, true, &close_of(1001, "")));
        peer.client.expect_end("both have closed");
        assert_eq!(draining.join().expect("it drains").cut, 0);
    });
}

fn a_drain_cuts_a_peer_that_does_not_close(setup: Setup) {
    let (server, told) = telling(setup);
    let mut peer = Peer::connect(&server, "/");
    let began = Instant::now();
    thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_millis(300)));
        peer.expect_close(1001);
        draining.join().expect("it drains");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    });
    // Cut with its connection, or told before that.
    if let Ok((end, _)) = told.recv_timeout(PATIENCE) {
        assert_eq!(end, format!("{:?}", WebSocketError::Lost(None)));
    }
}

fn a_silent_peer_is_pinged_and_then_lost(setup: Setup) {
    let often = Duration::from_millis(150);
    let server = serving(setup, |endpoint| endpoint.ping(Some(often)).ping_timeout(often));
    let mut peer = Peer::connect(&server, "/echo");
    assert_eq!(peer.frame().header.opcode, Opcode::Ping);
    peer.send(frame(Opcode::Pong, true, b""));
    assert_eq!(peer.frame().header.opcode, Opcode::Ping, "it was answered, so it goes on");
    peer.client.expect_end("it was not answered");
    // A peer that says something is not pinged.
    let mut peer = Peer::connect(&server, "/echo");
    for _ in 0..10 {
        peer.send(text("x"));
        assert_eq!(peer.text(), "x");
        thread::sleep(Duration::from_millis(40));
    }
}
