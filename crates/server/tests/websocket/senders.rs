//! Messages from other tasks, and one to many.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use gustnado::Routes;
use gustnado::websocket::{
    SendError, SlowPeer, Topic, WebSocket, WebSocketMessage, WebSocketSender, websocket,
};

use crate::harness::{PATIENCE, Server, Setup, wait_until};
use crate::peer::Peer;

on_every_server!(
    a_sender_reaches_a_socket_whose_handler_waits,
    a_sender_of_a_socket_that_is_gone_fails,
    a_topic_reaches_all_of_its_subscribers,
    slow_peers_miss_messages,
    slow_peers_may_be_closed,
);

/// A server whose handlers hand out a sender, and wait.
fn handing_out(setup: Setup) -> (Server, mpsc::Receiver<WebSocketSender>) {
    let (tell, told) = mpsc::channel();
    let handler = move |mut socket: WebSocket| {
        _ = tell.send(socket.sender());
        async move { while let Ok(Some(_)) = socket.recv().await {} }
    };
    let endpoint = websocket(handler).unsent_bytes_max(100_000);
    (Server::routes(setup.patient_config(), Routes::new().get("/", endpoint)), told)
}

fn a_sender_reaches_a_socket_whose_handler_waits(setup: Setup) {
    let (server, told) = handing_out(setup);
    let mut peer = Peer::connect(&server, "/");
    let sender = told.recv_timeout(PATIENCE).expect("a sender");
    for number in 0..50 {
        // From another thread, before and after the handler waits.
        sender.try_send(number.to_string()).expect("there is room");
    }
    for number in 0..50 {
        assert_eq!(peer.text(), number.to_string());
    }
}

fn a_sender_of_a_socket_that_is_gone_fails(setup: Setup) {
    let (server, told) = handing_out(setup);
    let peer = Peer::connect(&server, "/");
    let sender = told.recv_timeout(PATIENCE).expect("a sender");
    peer.client.hang_up();
    wait_until("the socket is gone", || sender.try_send("x") == Err(SendError::Closed));
    wait_until("its memory is", || sender.is_closed());
}

/// A server whose sockets subscribe to a topic.
fn of_topic(setup: Setup, topic: &Topic) -> Server {
    let topic = topic.clone();
    let handler = move |mut socket: WebSocket| {
        let subscription = topic.subscribe(&socket);
        async move {
            while let Ok(Some(_)) = socket.recv().await {}
            drop(subscription);
        }
    };
    let endpoint = websocket(handler).unsent_bytes_max(200_000);
    Server::routes(setup.patient_config(), Routes::new().get("/", endpoint))
}

fn a_topic_reaches_all_of_its_subscribers(setup: Setup) {
    let topic = Topic::new();
    let server = of_topic(setup, &topic);
    let mut peers: Vec<Peer> = (0..20).map(|_| Peer::connect(&server, "/")).collect();
    wait_until("all have subscribed", || topic.subscribers() == 20);
    let long = "z".repeat(10_000);
    assert_eq!(topic.publish("short"), 20);
    assert_eq!(topic.publish(long.as_str()), 20);
    assert_eq!(topic.publish(WebSocketMessage::Binary(vec![1, 2, 3])), 20);
    for peer in &mut peers {
        assert_eq!((peer.text(), peer.text()), ("short".to_owned(), long.clone()));
        assert_eq!(peer.frame().payload, [1, 2, 3]);
    }
    peers.truncate(5);
    wait_until("the others are gone", || topic.subscribers() == 5);
}

/// Publishes until the peer, which reads nothing, has as much as it may have.
fn publish_until_full(topic: &Topic) {
    let long = "q".repeat(50_000);
    let mut is_full = false;
    for _ in 0..2_000 {
        if topic.publish(long.as_str()) == 0 {
            is_full = true;
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(is_full, "nothing grows without bound");
}

fn slow_peers_miss_messages(setup: Setup) {
    let topic = Topic::new();
    let server = of_topic(setup, &topic);
    let mut peer = Peer::connect(&server, "/");
    wait_until("it has subscribed", || topic.subscribers() == 1);
    publish_until_full(&topic);
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let reader = thread::spawn(move || {
        loop {
            match peer.text() {
                text if text == "last" => return,
                text => assert_eq!(text.len(), 50_000),
            }
            *count.lock().expect("it counts") += 1;
        }
    });
    wait_until("there is room again", || topic.publish("last") == 1);
    reader.join().expect("what it got was whole");
    assert!(*seen.lock().expect("it has counted") > 0);
}

fn slow_peers_may_be_closed(setup: Setup) {
    let topic = Topic::with(SlowPeer::Close);
    let server = of_topic(setup, &topic);
    let mut peer = Peer::connect(&server, "/");
    wait_until("it has subscribed", || topic.subscribers() == 1);
    publish_until_full(&topic);
    loop {
        let frame = peer.frame();
        if frame.header.opcode == gustnado_http::websocket::Opcode::Close {
            assert_eq!(frame.payload[..2], 1013_u16.to_be_bytes());
            break;
        }
    }
}
