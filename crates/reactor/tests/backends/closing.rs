//! Ends: the peer's, ours, and what is under way then.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Instant;

use gustnado_reactor::IoChoice;

use crate::harness::{Harness, connect, read_some};

on_both_backends!(
    the_peer_s_end_is_an_empty_piece_as_often_as_one_asks,
    the_end_comes_after_the_last_bytes,
    a_half_closed_peer_still_gets_its_answer,
    our_own_half_close_leaves_receiving_open,
    closing_with_a_receive_under_way_ends_the_connection_at_once,
    closing_wakes_nobody,
    a_reset_is_an_error_of_the_receive,
    sending_to_a_peer_that_is_gone_is_an_error_and_no_signal,
    a_new_connection_gets_nothing_of_its_predecessor,
    closing_with_a_send_under_way_does_not_leak_the_slot,
);

fn the_peer_s_end_is_an_empty_piece_as_often_as_one_asks(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    assert!(harness.reactor.recv(&io, 1).is_pending());
    drop(client);
    for _ in 0..3 {
        assert_eq!(harness.recv(&io).expect("the end is no error"), b"");
    }
}

fn the_end_comes_after_the_last_bytes(io: IoChoice) {
    for len in [1, 4_095, 4_096, 4_097, 20_000, 32_768, 70_000] {
        let mut harness = Harness::open(io);
        let (io, mut client) = harness.pair();
        client.write_all(&vec![7; len]).expect("the connection is open");
        drop(client);
        // All has arrived before the first look.
        harness.turn_for(2);
        assert_eq!(harness.recv_all(&io).len(), len);
    }
}

fn a_half_closed_peer_still_gets_its_answer(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    client.write_all(b"question").expect("the connection is open");
    client.shutdown(Shutdown::Write).expect("it is connected");
    assert_eq!(harness.recv_all(&io), b"question");
    harness.send(&io, b"answer").expect("the client still reads");
    harness.close(io);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the answer ends");
    assert_eq!(answer, "answer");
}

fn our_own_half_close_leaves_receiving_open(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    harness.send(&io, b"all there is").expect("the client is there");
    harness.reactor.shutdown_write(&io);
    // Again, as a tunnel does that ends behind its last byte.
    harness.reactor.shutdown_write(&io);
    assert!(harness.reactor.recv(&io, 1).is_pending());
    harness.turn_for(5);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the answer ends");
    assert_eq!(answer, "all there is");
    client.write_all(b"thanks").expect("the other direction is open");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"thanks");
}

fn closing_with_a_receive_under_way_ends_the_connection_at_once(io: IoChoice) {
    let mut harness = Harness::open(io);
    for kept in [false, true] {
        let (io, mut client) = harness.pair();
        if kept {
            // From the second receive on, a ring keeps it armed.
            client.write_all(b"x").expect("the connection is open");
            assert_eq!(harness.recv(&io).expect("a byte comes"), b"x");
        }
        assert!(harness.reactor.recv(&io, 1).is_pending());
        harness.turn_for(5);
        let closed = Instant::now();
        harness.close(io);
        harness.turn_until("it is closed", |reactor| !reactor.has_unfinished());
        // What the last turn has decided, the next one tells the kernel.
        harness.turn_for(1);
        assert_eq!(read_some(&mut client, &mut [0; 4]).expect("the end comes"), 0);
        assert!(closed.elapsed().as_millis() < 500, "{:?}", closed.elapsed());
    }
}

fn closing_wakes_nobody(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    assert!(harness.reactor.recv(&io, 55).is_pending());
    harness.turn_for(5);
    client.write_all(b"on its way").expect("the connection is open");
    harness.woken.clear();
    harness.close(io);
    harness.turn_for(20);
    assert!(!harness.woken.contains(&55), "who closed it was woken for it");
}

fn a_reset_is_an_error_of_the_receive(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    assert!(harness.reactor.recv(&io, 1).is_pending());
    harness.send(&io, b"unread").expect("the client is there");
    // A socket that closes with unread bytes resets the connection.
    client.write_all(b"x").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("a byte comes"), b"x");
    drop(client);
    let error = harness.recv(&io).expect_err("the connection was reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

fn sending_to_a_peer_that_is_gone_is_an_error_and_no_signal(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    drop(client);
    let failed = (0..100).find_map(|_| {
        let result = harness.send(&io, &[0; 10_000]);
        harness.turn_for(1);
        result.err()
    });
    let kind = failed.expect("a hundred sends fail sooner or later").kind();
    assert!(matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{kind}");
}

fn a_new_connection_gets_nothing_of_its_predecessor(io: IoChoice) {
    let mut harness = Harness::with(io, 4, 8);
    let (listener, address) = harness.listen();
    for round in 0..200_u8 {
        let mut client = connect(address);
        let io = harness.accept(&listener);
        client.write_all(&[round; 3]).expect("the connection is open");
        assert_eq!(harness.recv(&io).expect("bytes come"), [round; 3]);
        assert!(harness.reactor.recv(&io, 1).is_pending());
        if round % 3 == 0 {
            // These are on their way while the socket closes.
            client.write_all(b"late").expect("the connection is open");
        }
        if round % 2 == 0 {
            harness.turn_for(1);
        }
        harness.close(io);
        drop(client);
    }
    harness.turn_until("all are closed", |reactor| !reactor.has_unfinished());
}

fn closing_with_a_send_under_way_does_not_leak_the_slot(io: IoChoice) {
    let mut harness = Harness::with(io, 4, 8);
    for _ in 0..12 {
        let (io, client) = harness.pair();
        let mut out = Some(harness.outgoing(&vec![1; 16 << 20]));
        assert!(harness.reactor.send(&io, &mut out, 1).is_pending());
        harness.turn_for(5);
        harness.close(io);
        harness.turn_until("it is closed", |reactor| !reactor.has_unfinished());
        drop(client);
    }
    let (io, mut client) = harness.pair();
    client.write_all(b"x").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("a byte comes"), b"x");
}
