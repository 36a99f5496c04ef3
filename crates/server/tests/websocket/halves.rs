//! The two halves of a WebSocket, in branches and tasks of their own.

use std::sync::mpsc;
use std::time::Duration;

use gustnado::Routes;
use gustnado::task::{mailbox, select2, sleep, spawn};
use gustnado::websocket::{
    CloseCode, MessageKind, WebSocket, WebSocketError, WebSocketReceiver, WebSocketSender,
    websocket,
};
use gustnado_http::websocket::Opcode;

use crate::harness::{PATIENCE, Server, Setup, wait_until};
use crate::peer::{Peer, close_of, frame, text};

on_every_server!(
    both_halves_are_used_in_one_task,
    both_halves_are_used_in_two_tasks,
    a_socket_may_be_moved_to_another_task,
    a_socket_stays_open_for_its_receiver,
    pieces_are_received_in_another_task,
    a_receiver_elsewhere_learns_of_the_end,
    a_receiver_elsewhere_is_told_of_a_drain,
    a_receiver_elsewhere_outlives_a_cut,
    it_is_ended_in_order_in_any_task,
);

fn serve<F, A>(setup: Setup, handler: F) -> Server
where
    F: Fn(WebSocket) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    Server::routes(setup.patient_config(), Routes::new().get("/", websocket(handler)))
}

/// Sends each message back, in upper case.
async fn shout(sender: WebSocketSender, mut receiver: WebSocketReceiver) {
    while let Ok(Some(message)) = receiver.recv().await {
        let answer = message.text().unwrap_or("?").to_uppercase();
        if sender.send(answer).await.is_err() {
            return;
        }
    }
}

fn expect_shouts(peer: &mut Peer) {
    for number in 0..50 {
        peer.send(text(&format!("message {number}")));
        assert_eq!(peer.text(), format!("MESSAGE {number}"));
    }
    peer.send((0..50).flat_map(|number| text(&format!("m{number}"))).collect::<Vec<u8>>());
    for number in 0..50 {
        assert_eq!(peer.text(), format!("M{number}"));
    }
}

fn both_halves_are_used_in_one_task(setup: Setup) {
    let server = serve(setup, async |socket: WebSocket| {
        let (sender, receiver) = socket.split();
        let ticks = async {
            loop {
                sleep(Duration::from_millis(20)).await;
                if sender.send("tick").await.is_err() {
                    return;
                }
            }
        };
        select2(shout(sender.clone(), receiver), ticks).await;
    });
    let mut peer = Peer::connect(&server, "/");
    // The one sends while the other waits.
    assert_eq!([peer.text(), peer.text()], ["tick", "tick"]);
    peer.send(text("a"));
    loop {
        match &*peer.text() {
            "tick" => {}
            other => break assert_eq!(other, "A"),
        }
    }
}

fn both_halves_are_used_in_two_tasks(setup: Setup) {
    let server = serve(setup, async |socket: WebSocket| {
        let (sender, mut receiver) = socket.split();
        let (to_sender, mut messages) = mailbox::<String>(4);
        let sending = spawn(async move {
            while let Some(message) = messages.recv().await {
                if sender.send(message).await.is_err() {
                    return;
                }
            }
        });
        let receiving = spawn(async move {
            while let Ok(Some(message)) = receiver.recv().await {
                let shouted = message.text().unwrap_or("?").to_uppercase();
                if to_sender.send(shouted).await.is_err() {
                    return;
                }
            }
        });
        _ = receiving.expect("there is room").await;
        _ = sending.expect("there is room").await;
    });
    let mut peer = Peer::connect(&server, "/");
    expect_shouts(&mut peer);
    peer.send(frame(Opcode::Close, true, &close_of(4000, "")));
    peer.expect_close(4000);
    peer.client.expect_end("both have closed");
}

fn a_socket_may_be_moved_to_another_task(setup: Setup) {
    let server = serve(setup, async |mut socket: WebSocket| {
        let moved = spawn(async move {
            while let Ok(Some(message)) = socket.recv().await {
                // More than may be gathered: it waits for the peer.
                let answer = message.text().unwrap_or("?").repeat(200_000);
                if socket.send(answer).await.is_err() {
                    return;
                }
            }
        });
        _ = moved.expect("there is room").await;
    });
    let mut peer = Peer::connect(&server, "/");
    for _ in 0..5 {
        peer.send(text("x"));
        assert_eq!(peer.text().len(), 200_000);
    }
    peer.send(frame(Opcode::Close, true, b""));
    peer.expect_close(1000);
}

fn a_socket_stays_open_for_its_receiver(setup: Setup) {
    let server = serve(setup, async |socket: WebSocket| {
        let (sender, receiver) = socket.split();
        // The handler returns at once.
        drop(spawn(shout(sender, receiver)));
    });
    let mut peer = Peer::connect(&server, "/");
    expect_shouts(&mut peer);
    wait_until("it is open", || server.stats().websockets_open == 1);
    peer.send(frame(Opcode::Close, true, &close_of(1000, "")));
    peer.expect_close(1000);
    server.wait_until("it has ended", |stats| stats.websockets_open == 0);
}

fn pieces_are_received_in_another_task(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let server = serve(setup, move |socket: WebSocket| {
        let tell = tell.clone();
        async move {
            let (_sender, mut receiver) = socket.split();
            let receiving = spawn(async move {
                while let Ok(Some(piece)) = receiver.recv_piece().await {
                    assert_eq!(piece.kind, MessageKind::Binary, "it is none of text");
                    _ = tell.send((piece.bytes.to_vec(), piece.is_last));
                }
            });
            _ = receiving.expect("there is room").await;
        }
    });
    let mut peer = Peer::connect(&server, "/");
    let expect = |wanted: &[u8], is_last| {
        let piece = told.recv_timeout(PATIENCE).expect("a piece");
        assert_eq!(piece, (wanted.to_vec(), is_last));
    };
    peer.send(frame(Opcode::Binary, false, b"one"));
    expect(b"one", false);
    peer.send(frame(Opcode::Continuation, true, b"two"));
    expect(b"two", true);
}

fn a_receiver_elsewhere_learns_of_the_end(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let server = serve(setup, move |socket: WebSocket| {
        let tell = tell.clone();
        async move {
            let (_sender, mut receiver) = socket.split();
            drop(spawn(async move {
                let end = match receiver.recv().await {
                    Ok(_) => None,
                    Err(error) => Some(format!("{error:?}")),
                };
                let after = receiver.recv().await;
                assert!(matches!(after, Ok(None)), "an error is told once: {after:?}");
                _ = tell.send((end, receiver.peer_close().map(|close| close.code.0)));
            }));
        }
    });
    let mut peer = Peer::connect(&server, "/");
    peer.send(frame(Opcode::Close, true, &close_of(4321, "")));
    let end = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(end, (None, Some(4321)));
    Peer::connect(&server, "/").client.hang_up();
    let end = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(end, (Some(format!("{:?}", WebSocketError::Lost(None))), Some(1006)));
}

fn a_receiver_elsewhere_is_told_of_a_drain(setup: Setup) {
    let server = serve(setup, async |socket: WebSocket| {
        let (sender, receiver) = socket.split();
        drop(spawn(shout(sender, receiver)));
    });
    let mut peer = Peer::connect(&server, "/");
    expect_shouts(&mut peer);
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_secs(5)));
        peer.expect_close(1001);
        peer.send(frame(Opcode::Close, true, &close_of(1001, "")));
        peer.client.expect_end("both have closed");
        assert_eq!(draining.join().expect("it drains").cut, 0);
    });
}

fn a_receiver_elsewhere_outlives_a_cut(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let server = serve(setup, move |socket: WebSocket| {
        let tell = tell.clone();
        async move {
            // On a thread that is no worker, so that it outlives the server's tasks.
            let (sender, mut receiver) = socket.split();
            std::thread::spawn(move || {
                let end = gustnado::task::block_on(async move {
                    receiver.recv().await.map(|message| message.is_some())
                });
                wait_until("it has ended", || sender.is_closed());
                _ = tell.send(end.expect("a reactor"));
            });
        }
    });
    let mut peer = Peer::connect(&server, "/");
    wait_until("it is open", || server.stats().websockets_open == 1);
    let report = server.running().drain(Duration::from_millis(100));
    assert_eq!(report.cut, 1);
    _ = peer.try_frame();
    let end = told.recv_timeout(PATIENCE).expect("it is told that nothing comes");
    assert!(matches!(end, Ok(false) | Err(_)), "{end:?}");
}

fn it_is_ended_in_order_in_any_task(setup: Setup) {
    let (tell, told) = mpsc::channel();
    let server = serve(setup, move |mut socket: WebSocket| {
        let tell = tell.clone();
        async move {
            let is_moved = socket.recv().await.expect("no error").expect("a message");
            let ending = async move {
                socket.end(CloseCode(4_003), "enough").await;
                _ = tell.send(());
            };
            if is_moved.text() == Some("moved") {
                _ = spawn(ending).expect("there is room").await;
            } else {
                ending.await;
            }
        }
    });
    for is_moved in ["here", "moved"] {
        let mut peer = Peer::connect(&server, "/");
        peer.send(text(is_moved));
        peer.expect_close(4_003);
        // What comes before the peer's close is dropped.
        peer.send(text("late"));
        assert!(told.recv_timeout(Duration::from_millis(30)).is_err(), "the peer has not closed");
        peer.send(frame(Opcode::Close, true, &close_of(4_003, "")));
        told.recv_timeout(PATIENCE).expect("it has ended");
        peer.client.expect_end("both have closed");
    }
}
