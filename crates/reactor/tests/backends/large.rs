//! Receiving into large buffers, and discarding.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use bytes::Bytes;
use gustnado_reactor::{BufferAccount, Discarded, Io, IoChoice, MemoryAccount, Options};

use crate::harness::{Harness, pattern, write_aside};

on_both_backends!(
    large_pieces_come_in_order_and_outlive_their_buffers,
    without_memory_for_large_buffers_bytes_come_in_small_ones,
    all_buffers_are_counted_until_they_are_gone,
    bytes_are_received_behind_those_of_a_body,
    small_and_large_receives_take_turns,
    a_receive_that_goes_on_by_itself_gives_way_to_a_large_one,
    no_more_is_discarded_than_was_asked_for,
    what_was_received_before_is_not_discarded_unseen,
    the_end_is_told_apart_from_bytes,
    a_unix_socket_gives_its_bytes_in_place_of_discarding_them,
    many_who_await_large_pieces_keep_none_from_others,
    a_socket_is_closed_with_a_large_receive_under_way,
);

impl Harness {
    /// Receives a piece that may be large; an empty one is the end.
    fn recv_large(&mut self, io: &Io) -> Bytes {
        let piece = self.finish("receive much", |reactor, token| reactor.recv_large(io, token));
        piece.expect("bytes or the end come").into_bytes()
    }

    fn discard(&mut self, io: &Io, bytes_max: usize) -> Discarded {
        let discarded =
            self.finish("discard", |reactor, token| reactor.discard(io, bytes_max, token));
        discarded.expect("bytes or the end come")
    }
}

fn large_pieces_come_in_order_and_outlive_their_buffers(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    // More than all large buffers of a worker hold.
    let sent = pattern(24 << 20);
    let writer = write_aside(client, &sent);
    let mut came: Vec<Bytes> = Vec::new();
    loop {
        let piece = harness.recv_large(&io);
        if piece.is_empty() {
            break;
        }
        came.push(piece);
    }
    writer.join().expect("the writer ends");
    assert!(came.iter().any(|piece| piece.len() > 32 << 10), "no piece was large");
    drop(harness);
    assert!(came.concat() == sent, "the bytes are others");
}

/// What receive buffers hold, and the most that they ever held.
#[derive(Default)]
struct Held {
    now: AtomicI64,
    most: AtomicI64,
    room: usize,
}

impl Held {
    fn with_room(room: usize) -> Arc<Self> {
        Arc::new(Self { room, ..Self::default() })
    }

    fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }
}

impl MemoryAccount for Held {
    fn change(&self, bytes: i64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        usize::try_from(self.now()).is_ok_and(|held| held + bytes <= self.room)
    }
}

fn counted_by(held: &Arc<Held>, io: IoChoice) -> Harness {
    let account = BufferAccount::new(Arc::clone(held) as Arc<dyn MemoryAccount>);
    Harness::over(&Options { account, ..Harness::options(io, 64, 64) })
}

fn without_memory_for_large_buffers_bytes_come_in_small_ones(io: IoChoice) {
    let held = Held::with_room(0);
    let mut harness = counted_by(&held, io);
    let fixed = held.now();
    assert!(fixed > 0, "a worker's own buffers are counted");
    let pairs: Vec<_> = (0..3).map(|_| harness.pair()).collect();
    let sent = pattern(2 << 20);
    for (io, client) in pairs {
        let writer = write_aside(client, &sent);
        let mut came = Vec::new();
        loop {
            let piece = harness.recv_large(&io);
            if piece.is_empty() {
                break;
            }
            came.extend_from_slice(&piece);
        }
        writer.join().expect("the writer ends");
        assert!(came == sent, "{} bytes came of {}", came.len(), sent.len());
    }
    assert_eq!(held.most.load(Ordering::Relaxed), fixed, "no large buffer was taken");
    drop(harness);
    assert_eq!(held.now(), 0);
}

fn all_buffers_are_counted_until_they_are_gone(io: IoChoice) {
    let held = Held::with_room(64 << 20);
    let mut harness = counted_by(&held, io);
    let fixed = held.now();
    let (io, client) = harness.pair();
    let sent = pattern(4 << 20);
    let writer = write_aside(client, &sent);
    let mut came: Vec<Bytes> = Vec::new();
    while came.iter().map(Bytes::len).sum::<usize>() < sent.len() {
        came.push(harness.recv_large(&io));
    }
    writer.join().expect("the writer ends");
    assert!(came.concat() == sent, "the bytes are others");
    assert!(held.now() >= fixed + (256 << 10), "{} bytes are counted", held.now());
    harness.close(io);
    harness.turn_for(10);
    drop(harness);
    let is_kept = came.iter().any(|piece| piece.len() >= 16 << 10);
    assert!(!is_kept || held.now() >= 256 << 10, "what was handed on is still counted");
    drop(came);
    assert_eq!(held.now(), 0);
}

fn bytes_are_received_behind_those_of_a_body(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    let sent = pattern(3 << 20);
    let writer = write_aside(client, &sent);
    let mut came = Vec::new();
    loop {
        let before = came.len();
        let piece = harness.finish("append", |reactor, token| {
            reactor.recv_onto(&io, (&mut came, 64 << 10), token)
        });
        match piece.expect("bytes or the end come") {
            None => assert!(came.len() > before, "nothing was appended"),
            Some(piece) if piece.bytes().is_empty() => break,
            Some(piece) => came.extend_from_slice(piece.bytes()),
        }
        assert!(came.capacity() <= 2 * came.len() + (128 << 10), "room for what may never come");
    }
    writer.join().expect("the writer ends");
    assert!(came == sent, "{} bytes came of {}", came.len(), sent.len());
}

fn small_and_large_receives_take_turns(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    let sent = pattern(3 << 20);
    let writer = write_aside(client, &sent);
    let (mut at, mut turn) = (0, 0);
    loop {
        turn += 1;
        let piece = match turn % 3 {
            0 => harness.recv_large(&io),
            1 => harness.recv(&io).expect("bytes or the end come").into(),
            _ => match harness.discard(&io, 10_000) {
                Discarded::Bytes(0) => break,
                Discarded::Bytes(bytes) => {
                    assert!(bytes <= 10_000, "{bytes} bytes");
                    at += bytes;
                    continue;
                }
                Discarded::Received(piece) => piece.into_bytes(),
            },
        };
        if piece.is_empty() {
            break;
        }
        assert!(sent[at..].starts_with(&piece), "{} bytes at {at} are others", piece.len());
        at += piece.len();
    }
    writer.join().expect("the writer ends");
    assert_eq!(at, sent.len());
}

fn a_receive_that_goes_on_by_itself_gives_way_to_a_large_one(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    for _ in 0..3 {
        client.write_all(b"short").expect("the connection is open");
        assert_eq!(harness.recv(&io).expect("bytes come"), b"short");
    }
    assert!(harness.reactor.recv(&io, 1).is_pending());
    harness.turn_for(2);
    let sent = pattern(1 << 20);
    let writer = thread::spawn({
        let sent = sent.clone();
        move || {
            client.write_all(&sent).expect("the reactor reads");
            client
        }
    });
    let mut came = Vec::new();
    while came.len() < sent.len() {
        came.extend_from_slice(&harness.recv_large(&io));
    }
    assert!(came == sent, "the bytes are others");
    let mut client = writer.join().expect("the writer ends");
    client.write_all(b"short").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"short");
}

fn no_more_is_discarded_than_was_asked_for(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    for len in [1, 4_096, 300_000, 5 << 20] {
        let writer = thread::spawn(move || {
            client.write_all(&pattern(len)).expect("the reactor reads");
            client.write_all(b"next").expect("the reactor reads");
            client
        });
        let mut left = len;
        while left > 0 {
            let discarded = harness.discard(&io, left);
            assert!((1..=left).contains(&discarded.len()), "{discarded:?} of {left}");
            left -= discarded.len();
        }
        client = writer.join().expect("the writer ends");
        let mut came = Vec::new();
        while came.len() < 4 {
            came.extend(harness.recv(&io).expect("bytes come"));
        }
        assert_eq!(came, b"next", "{len}");
    }
}

fn what_was_received_before_is_not_discarded_unseen(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    client.write_all(b"short").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"short");
    // Under io_uring the next bytes are received before they are asked for again.
    assert!(harness.reactor.recv(&io, 1).is_pending());
    harness.turn_for(2);
    client.write_all(b"0123456789").expect("the connection is open");
    harness.turn_for(10);
    let mut gone = 0;
    while gone < 10 {
        match harness.discard(&io, 10 - gone) {
            Discarded::Bytes(bytes) => gone += bytes,
            Discarded::Received(piece) => {
                assert!(b"0123456789"[gone..].starts_with(piece.bytes()));
                gone += piece.bytes().len();
            }
        }
    }
    client.write_all(b"next").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"next");
}

fn the_end_is_told_apart_from_bytes(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (large, mut first) = harness.pair();
    let (discarded, mut second) = harness.pair();
    for client in [&mut first, &mut second] {
        client.write_all(b"last").expect("the connection is open");
    }
    drop((first, second));
    assert_eq!(harness.recv_large(&large), "last");
    assert_eq!(harness.discard(&discarded, 100).len(), 4);
    for _ in 0..2 {
        assert!(harness.recv_large(&large).is_empty());
        assert!(harness.discard(&discarded, 100).is_empty());
    }
}

fn a_unix_socket_gives_its_bytes_in_place_of_discarding_them(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (own, mut client) = UnixStream::pair().expect("a pair can be had");
    own.set_nonblocking(true).expect("it can be set");
    let io = harness.reactor.adopt(OwnedFd::from(own)).expect("its number is below the limit");
    for _ in 0..3 {
        client.write_all(b"0123456789").expect("the connection is open");
        match harness.discard(&io, 10) {
            Discarded::Received(piece) => assert_eq!(piece.bytes(), b"0123456789"),
            Discarded::Bytes(bytes) => panic!("{bytes} bytes were discarded"),
        }
    }
}

fn many_who_await_large_pieces_keep_none_from_others(io: IoChoice) {
    let mut harness = Harness::with(io, 256, 8);
    let mut waiting: Vec<_> = (0..100).map(|_| harness.pair()).collect();
    for (io, _) in &waiting {
        assert!(harness.reactor.recv_large(io, 1).is_pending());
    }
    let (io, mut client) = harness.pair();
    client.write_all(&pattern(300_000)).expect("the kernel takes it");
    let mut came = 0;
    while came < 300_000 {
        came += harness.recv_large(&io).len();
    }
    // All at once: more than there are large buffers.
    for (_, client) in &mut waiting {
        client.write_all(&pattern(50_000)).expect("the kernel takes it");
    }
    for (io, _) in &waiting {
        let mut came = Vec::new();
        while came.len() < 50_000 {
            came.extend_from_slice(&harness.recv_large(io));
        }
        assert!(came == pattern(50_000), "the bytes are others");
    }
}

fn a_socket_is_closed_with_a_large_receive_under_way(io: IoChoice) {
    let mut harness = Harness::open(io);
    for _ in 0..50 {
        let (large, mut first) = harness.pair();
        let (discarded, mut second) = harness.pair();
        assert!(harness.reactor.recv_large(&large, 1).is_pending());
        assert!(harness.reactor.discard(&discarded, 100, 1).is_pending());
        harness.turn_for(1);
        for client in [&mut first, &mut second] {
            client.write_all(&pattern(20_000)).expect("the connection is open");
        }
        harness.reactor.close(large);
        harness.reactor.close(discarded);
    }
    harness.turn_until("all are closed", |reactor| !reactor.has_unfinished());
    let (io, mut client) = harness.pair();
    assert!(harness.reactor.recv_large(&io, 1).is_pending());
    harness.turn_for(1);
    client.write_all(b"nobody takes this").expect("the connection is open");
}
