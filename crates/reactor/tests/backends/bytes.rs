//! Receiving and sending.

use std::io::{ErrorKind, Read, Write};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gustnado_reactor::{Io, IoChoice};

use crate::harness::{Harness, connect, pattern, read_some, write_aside};

on_both_backends!(
    bytes_come_in_order_however_many,
    asking_for_what_is_under_way_starts_nothing_twice,
    a_piece_can_be_kept_while_others_come,
    a_send_beyond_all_buffers_reaches_a_slow_reader,
    a_large_send_leaves_at_once_and_hides_no_event_of_others,
    sends_and_receives_on_one_socket_do_not_disturb_each_other,
    many_writers_are_all_read_with_eight_buffers,
    who_waited_for_buffers_goes_on_when_a_slow_one_has_read,
    small_sends_leave_in_their_order,
    pieces_leave_from_where_they_lie_whatever_the_kernel_takes_of_them,
    what_waits_for_more_leaves_with_it,
    bytes_that_nobody_asks_for_keep_no_buffer_from_others,
);

fn bytes_come_in_order_however_many(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    let sent = pattern(3 << 20);
    let writer = write_aside(client, &sent);
    let came = harness.recv_all(&io);
    writer.join().expect("the writer ends");
    assert!(came == sent, "{} bytes came of {}", came.len(), sent.len());
}

fn asking_for_what_is_under_way_starts_nothing_twice(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    for round in 0..5_u8 {
        for _ in 0..3 {
            assert!(harness.reactor.recv(&io, 1).is_pending());
        }
        harness.turn_for(2);
        assert!(harness.reactor.recv(&io, 2).is_pending());
        harness.woken.clear();
        client.write_all(&[round]).expect("the connection is open");
        harness.turn_for(10);
        assert_eq!(harness.woken, [2], "the last one who asked is woken, once");
        assert_eq!(harness.recv(&io).expect("a byte comes"), [round]);
        assert!(harness.reactor.recv(&io, 1).is_pending(), "the byte came twice");
    }
}

fn a_piece_can_be_kept_while_others_come(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (first, mut first_client) = harness.pair();
    let (second, mut second_client) = harness.pair();
    first_client.write_all(b"first").expect("the connection is open");
    let kept = harness.finish("receive", |reactor, token| reactor.recv(&first, token));
    let kept = kept.expect("bytes come");
    second_client.write_all(b"other").expect("the connection is open");
    first_client.write_all(b"later").expect("the connection is open");
    assert_eq!(harness.recv(&second).expect("bytes come"), b"other");
    assert_eq!(harness.recv(&first).expect("bytes come"), b"later");
    assert_eq!(kept.bytes(), b"first");
}

fn a_send_beyond_all_buffers_reaches_a_slow_reader(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let sent = pattern(24 << 20);
    let wanted = sent.clone();
    let reader = thread::spawn(move || {
        let (mut came, mut piece) = (Vec::new(), vec![0; 1 << 20]);
        while came.len() < wanted.len() {
            let len = read_some(&mut client, &mut piece).expect("bytes go on coming");
            assert!(len > 0, "it ended after {}", came.len());
            came.extend_from_slice(&piece[..len]);
            if came.len() < 4 << 20 {
                thread::sleep(Duration::from_millis(2));
            }
        }
        assert!(came == wanted, "the bytes are others");
        client
    });
    harness.send(&io, &sent).expect("the reader stays");
    let _client = reader.join().expect("the reader ends");
    // The socket is as good as before.
    harness.send(&io, b"more").expect("the reader stays");
}

fn a_large_send_leaves_at_once_and_hides_no_event_of_others(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (waiting, mut early) = harness.pair();
    let (sending, mut reader) = harness.pair();
    let bytes = pattern(64 << 10);
    for _ in 0..5 {
        assert!(harness.reactor.recv(&waiting, 1).is_pending());
        harness.turn_for(2);
        harness.woken.clear();
        early.write_all(b"x").expect("the connection is open");
        thread::sleep(Duration::from_millis(2));
        let mut out = Some(harness.outgoing(&bytes));
        let sent = harness.reactor.send(&sending, &mut out, 2);
        assert!(matches!(sent, Poll::Ready(Ok(()))), "{sent:?}");
        let began_ms = harness.reactor.clock().read_ms();
        while !harness.woken.contains(&1) {
            harness.turn();
            let took_ms = harness.reactor.clock().read_ms() - began_ms;
            assert!(took_ms < 1_000, "the byte that had come before woke nobody");
        }
        assert_eq!(harness.recv(&waiting).expect("a byte comes"), b"x");
        let mut came = vec![0; bytes.len()];
        reader.read_exact(&mut came).expect("all of it comes");
        assert!(came == bytes, "the bytes are others");
    }
}

fn sends_and_receives_on_one_socket_do_not_disturb_each_other(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let (up, down) = (pattern(4 << 20), pattern(5 << 20));
    let mut writing = client.try_clone().expect("a descriptor is free");
    let (up_sent, down_len) = (up.clone(), down.len());
    let writer = thread::spawn(move || writing.write_all(&up_sent).expect("the reactor reads"));
    let reader = thread::spawn(move || {
        let mut came = vec![0; down_len];
        client.read_exact(&mut came).expect("bytes go on coming");
        came
    });
    let (mut out, mut sent, mut came) = (Some(harness.outgoing(&down)), false, Vec::new());
    harness.finish("both ways", |reactor, token| {
        if !sent && let Poll::Ready(result) = reactor.send(&io, &mut out, token) {
            result.expect("the reader stays");
            sent = true;
        }
        while came.len() < up.len()
            && let Poll::Ready(piece) = reactor.recv(&io, token)
        {
            came.extend_from_slice(piece.expect("bytes come").bytes());
        }
        if sent && came.len() == up.len() { Poll::Ready(()) } else { Poll::Pending }
    });
    writer.join().expect("the writer ends");
    assert!(reader.join().expect("the reader ends") == down && came == up);
}

fn many_writers_are_all_read_with_eight_buffers(io: IoChoice) {
    const WRITERS: usize = 40;
    const EACH: usize = 60_000;
    let mut harness = Harness::with(io, 64, 8);
    let (listener, address) = harness.listen();
    let mut writers = Vec::new();
    let mut open = Vec::new();
    for _ in 0..WRITERS {
        let mut client = connect(address);
        open.push(harness.accept(&listener));
        writers.push(thread::spawn(move || {
            client.write_all(&pattern(EACH)).expect("the reactor reads");
            client
        }));
    }
    let mut came: Vec<Vec<u8>> = vec![Vec::new(); WRITERS];
    let start_ms = harness.reactor.clock().read_ms();
    // Each has a token of its own and is only asked when that was handed out.
    let mut ready: Vec<u64> = (0..WRITERS as u64).collect();
    while came.iter().any(|bytes| bytes.len() < EACH) {
        let waited_ms = harness.reactor.clock().read_ms() - start_ms;
        let short = came.iter().filter(|bytes| bytes.len() < EACH).count();
        assert!(waited_ms < 15_000, "{short} of {WRITERS} starve");
        for token in ready.drain(..) {
            let Ok(at) = usize::try_from(token) else { continue };
            while at < WRITERS
                && let Poll::Ready(piece) = harness.reactor.recv(&open[at], token)
            {
                let piece = piece.expect("bytes come");
                if piece.bytes().is_empty() {
                    break;
                }
                came[at].extend_from_slice(piece.bytes());
            }
        }
        harness.turn();
        ready.append(&mut harness.woken);
        ready.dedup();
    }
    drop(writers);
    assert!(came.iter().all(|bytes| *bytes == pattern(EACH)), "bytes of one came to another");
}

/// A connection that floods us while its task does something else.
fn stalled_flood(harness: &mut Harness, len: usize) -> (Io, JoinHandle<()>) {
    let (io, mut client) = harness.pair();
    client.write_all(b"first").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"first");
    assert!(harness.reactor.recv(&io, 99).is_pending());
    let flood = thread::spawn(move || {
        // It ends at the latest when the reactor's side closes.
        let _ = client.write_all(&vec![0; len]);
    });
    harness.turn_for(30);
    (io, flood)
}

fn who_waited_for_buffers_goes_on_when_a_slow_one_has_read(io: IoChoice) {
    const FLOOD: usize = 500_000;
    let mut harness = Harness::with(io, 64, 8);
    let (stalled, flood) = stalled_flood(&mut harness, FLOOD);
    let (io, mut client) = harness.pair();
    client.write_all(b"patient").expect("the connection is open");
    harness.turn_for(30);
    assert_eq!(harness.recv_all(&stalled).len(), FLOOD);
    flood.join().expect("the flood ends");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"patient");
}

fn small_sends_leave_in_their_order(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let mut wanted = Vec::new();
    for number in 0..500_u32 {
        let line = format!("line {number}\n");
        wanted.extend_from_slice(line.as_bytes());
        harness.send(&io, line.as_bytes()).expect("the reader stays");
    }
    harness.close(io);
    let mut came = Vec::new();
    client.read_to_end(&mut came).expect("it ends");
    assert!(came == wanted);
}

fn bytes_that_nobody_asks_for_keep_no_buffer_from_others(io: IoChoice) {
    let mut harness = Harness::with(io, 64, 8);
    let (mut stalled, sent) = (Vec::new(), pattern(9_000));
    for _ in 0..16 {
        let (io, mut client) = harness.pair();
        client.write_all(b"x").expect("the connection is open");
        assert_eq!(harness.recv(&io).expect("a byte comes"), b"x");
        // Asked for once more, and then no more: its task has other things to do.
        assert!(harness.reactor.recv(&io, 1).is_pending());
        stalled.push((io, client));
    }
    for (_, client) in &mut stalled {
        client.write_all(&sent[..5_000]).expect("the connection is open");
    }
    harness.turn_for(5);
    for (_, client) in &mut stalled {
        client.write_all(&sent[5_000..]).expect("the connection is open");
    }
    let (io, mut client) = harness.pair();
    for round in 0..20_u8 {
        client.write_all(&[round; 9_000]).expect("the connection is open");
        let mut came = 0;
        while came < 9_000 {
            came += harness.recv(&io).expect("bytes come").len();
        }
    }
    // Nothing of theirs is lost, and it comes in order.
    for (io, client) in stalled {
        drop(client);
        assert!(harness.recv_all(&io) == sent);
        harness.close(io);
    }
}

fn nobody_else_waits_for_a_flood_that_is_not_read(io: IoChoice) {
    let mut harness = Harness::with(io, 64, 8);
    let (stalled, flood) = stalled_flood(&mut harness, 64 << 20);
    let (io, mut client) = harness.pair();
    for round in 0..50_u8 {
        client.write_all(&[round; 9_000]).expect("the connection is open");
        let mut came = 0;
        while came < 9_000 {
            came += harness.recv(&io).expect("bytes come").len();
        }
    }
    harness.close(stalled);
    harness.turn_until("it is closed", |reactor| !reactor.has_unfinished());
    harness.turn_for(1);
    flood.join().expect("the flood ends with the connection");
}

#[test]
fn nobody_else_waits_for_a_flood_under_epoll() {
    nobody_else_waits_for_a_flood_that_is_not_read(IoChoice::Epoll);
}

#[test]
fn nobody_else_waits_for_a_flood_under_io_uring() {
    if crate::harness::has_uring("bytes::nobody_else_waits_for_a_flood_under_io_uring") {
        nobody_else_waits_for_a_flood_that_is_not_read(IoChoice::Uring);
    }
}

fn pieces_leave_from_where_they_lie_whatever_the_kernel_takes_of_them(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let mut wanted = Vec::new();
    // More parts than one call takes, and more bytes than all buffers hold.
    let mut out = harness.outgoing(b"head");
    wanted.extend_from_slice(b"head");
    for number in 0..600_usize {
        let piece = pattern(if number % 50 == 0 { 700_000 } else { number });
        wanted.extend_from_slice(&piece);
        out.share(piece.into());
        let own = format!("-{number}-");
        wanted.extend_from_slice(own.as_bytes());
        out.bytes.extend_from_slice(own.as_bytes());
    }
    assert_eq!(out.len(), wanted.len());
    let length = wanted.len();
    let reader = thread::spawn(move || {
        let mut came = vec![0; length];
        client.read_exact(&mut came).expect("bytes go on coming");
        assert!(came == wanted, "the bytes are others");
        client
    });
    let mut out = Some(out);
    let sent = harness.finish("send parts", |reactor, token| reactor.send(&io, &mut out, token));
    sent.expect("the reader stays");
    assert!(out.is_none());
    let _client = reader.join().expect("the reader ends");
    harness.send(&io, b"more").expect("the reader stays");
}

fn what_waits_for_more_leaves_with_it(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let mut out = harness.outgoing(b"head, ");
    out.wait_for_more();
    let mut out = Some(out);
    assert!(matches!(harness.reactor.send(&io, &mut out, 1), Poll::Ready(Ok(()))));
    harness.turn_for(10);
    client.set_nonblocking(true).expect("a socket");
    let nothing = client.read(&mut [0; 16]).map_err(|error| error.kind());
    assert_eq!(nothing.err(), Some(ErrorKind::WouldBlock));
    client.set_nonblocking(false).expect("a socket");
    let mut waiting = out.take().expect("it has stayed");
    waiting.expect_nothing();
    waiting.share(pattern(5_000).into());
    let mut out = Some(waiting);
    let sent = harness.finish("send both", |reactor, token| reactor.send(&io, &mut out, token));
    sent.expect("the reader stays");
    let mut came = vec![0; 5_006];
    client.read_exact(&mut came).expect("all of it comes");
    assert!(came.starts_with(b"head, ") && came.ends_with(&pattern(5_000)));
}
