//! What peers are told when the server ends.

use std::thread;
use std::time::Duration;

use crate::harness::Setup;
use crate::peer::{Peer, close_of, frame, text};
use crate::serving;
use gustnado_http::websocket::Opcode;

on_every_server!(
    a_restart_closes_with_its_own_code,
    a_peer_that_does_not_close_is_cut_by_the_drain,
);

fn a_restart_closes_with_its_own_code(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peer = Peer::connect(&server, "/echo");
    peer.send(text("hello"));
    assert_eq!(peer.text(), "hello");
    server.running().announce_restart();
    peer.send(text("still there"));
    assert_eq!(peer.text(), "still there", "it is only said");
    thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_secs(5)));
        peer.expect_close(1012);
        peer.send(frame(Opcode::Close, true, &close_of(1012, "")));
        peer.client.expect_end("both have closed");
        assert_eq!(draining.join().expect("it drains").cut, 0);
    });
    assert_eq!(server.stats().websocket_closes_normal, 1);
}

fn a_peer_that_does_not_close_is_cut_by_the_drain(setup: Setup) {
    let server = serving(setup, |endpoint| endpoint);
    let mut peers: Vec<Peer> = (0..4).map(|_| Peer::connect(&server, "/echo")).collect();
    for peer in &mut peers {
        peer.send(text("hello"));
        assert_eq!(peer.text(), "hello");
    }
    let report = server.running().drain(Duration::from_millis(200));
    assert_eq!(report.cut, 4);
    assert!(report.took < Duration::from_secs(1), "no worker is held: {report:?}");
    for peer in &mut peers {
        peer.expect_close(1001);
        peer.client.read_until_ended();
    }
    // (Each side has told why: the server has.)
    assert_eq!((server.stats().websockets_open, server.stats().websocket_closes_normal), (0, 4));
}
