//! Sending files.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use gustnado_reactor::{BackendKind, Clock, Io, IoChoice, Options};

use crate::harness::{Harness, connect, pattern, read_some};

on_both_backends!(
    a_file_reaches_a_slow_reader_in_whole,
    a_part_of_a_file_is_sent,
    a_truncated_file_ends_with_zero_bytes_sent,
    a_head_and_its_file_arrive_in_order,
    a_file_for_a_peer_that_is_gone_is_an_error,
    idle_sockets_keep_few_descriptors_of_the_files_they_were_sent,
);

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    file.write_all(bytes).expect("there is room for it");
    file
}

/// Sends `len` bytes from `offset`, or as many as the file has. Returns how many were sent.
fn send_file(harness: &mut Harness, io: &Io, file: &File, offset: u64, len: u64) -> u64 {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let step = usize::try_from(end - at).expect("test files are small");
        let before = at;
        let sent = harness.finish("send a file", |reactor, token| {
            reactor.sendfile(io, file.as_fd(), &mut at, step, token)
        });
        let sent = sent.expect("the reader stays") as u64;
        assert_eq!(at, before + sent, "the offset moves on by what was sent");
        if sent == 0 {
            break;
        }
    }
    at - offset
}

fn a_file_reaches_a_slow_reader_in_whole(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let bytes = pattern(12 << 20);
    let file = file_of(&bytes);
    let reader = thread::spawn(move || {
        let (mut came, mut piece) = (Vec::new(), vec![0; 256 << 10]);
        loop {
            let len = read_some(&mut client, &mut piece).expect("bytes go on coming");
            came.extend_from_slice(&piece[..len]);
            if len == 0 {
                return came;
            }
            if came.len() < 2 << 20 {
                thread::sleep(Duration::from_millis(3));
            }
        }
    });
    assert_eq!(send_file(&mut harness, &io, &file, 0, 12 << 20), 12 << 20);
    harness.close(io);
    assert!(reader.join().expect("the reader ends") == bytes);
}

fn a_part_of_a_file_is_sent(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let bytes = pattern(100_000);
    let file = file_of(&bytes);
    assert_eq!(send_file(&mut harness, &io, &file, 70_001, 12_345), 12_345);
    assert_eq!(send_file(&mut harness, &io, &file, 5, 1), 1);
    harness.close(io);
    let mut came = Vec::new();
    client.read_to_end(&mut came).expect("it ends");
    assert!(came[..12_345] == bytes[70_001..82_346] && came[12_345..] == bytes[5..6]);
}

fn a_truncated_file_ends_with_zero_bytes_sent(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let file = file_of(&pattern(50_000));
    assert_eq!(send_file(&mut harness, &io, &file, 0, 10_000), 10_000);
    file.set_len(30_000).expect("the file is ours");
    assert_eq!(send_file(&mut harness, &io, &file, 10_000, 40_000), 20_000);
    file.set_len(0).expect("the file is ours");
    assert_eq!(send_file(&mut harness, &io, &file, 0, 10), 0);
    harness.close(io);
    let mut came = Vec::new();
    client.read_to_end(&mut came).expect("it ends");
    assert!(came == pattern(50_000)[..30_000]);
}

fn a_head_and_its_file_arrive_in_order(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let file = file_of(b"the body");
    let mut wanted = String::new();
    for number in 0..20 {
        let head = format!("head {number}: ");
        let mut out = harness.outgoing(head.as_bytes());
        out.expect_more();
        let mut out = Some(out);
        let sent =
            harness.finish("send a head", |reactor, token| reactor.send(&io, &mut out, token));
        sent.expect("the reader stays");
        assert_eq!(send_file(&mut harness, &io, &file, 0, 8), 8);
        wanted.push_str(&head);
        wanted.push_str("the body");
    }
    harness.close(io);
    let mut came = String::new();
    client.read_to_string(&mut came).expect("it ends");
    assert_eq!(came, wanted);
}

fn a_file_for_a_peer_that_is_gone_is_an_error(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    let file = file_of(&pattern(100_000));
    drop(client);
    let failed = (0..100).find_map(|_| {
        let mut at = 0;
        let sent = harness.finish("send a file", |reactor, token| {
            reactor.sendfile(&io, file.as_fd(), &mut at, 100_000, token)
        });
        harness.turn_for(1);
        sent.err()
    });
    assert!(failed.is_some(), "a hundred sends fail sooner or later");
}

fn idle_sockets_keep_few_descriptors_of_the_files_they_were_sent(io: IoChoice) {
    let clock = Clock::start();
    let mut harness =
        Harness::over(&Options { io, direct_max: 64, buffers: 64, installed_max: 8, clock });
    let (listener, address) = harness.listen();
    let file = file_of(b"the body");
    let mut pairs: Vec<_> = (0..12)
        .map(|_| {
            let client = connect(address);
            (harness.accept(&listener), client)
        })
        .collect();
    for _ in 0..3 {
        for (io, client) in &mut pairs {
            assert_eq!(send_file(&mut harness, io, &file, 0, 8), 8);
            harness.reactor.file_sent(io);
            client.read_exact(&mut [0; 8]).expect("it comes");
        }
    }
    if harness.reactor.backend() == BackendKind::Uring {
        let kept = pairs.iter().filter(|(io, _)| harness.reactor.fd(io).is_some()).count();
        assert_eq!(kept, 4, "half of what may be installed");
        // While files are on their way, there may be as many as were said, and no more.
        let mut sent = 0;
        for (io, _) in &pairs {
            let mut at = 0;
            let result = harness.finish("send a file", |reactor, token| {
                reactor.sendfile(io, file.as_fd(), &mut at, 8, token)
            });
            match result {
                Ok(_) => sent += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
            }
        }
        let kept = pairs.iter().filter(|(io, _)| harness.reactor.fd(io).is_some()).count();
        assert_eq!((kept, sent), (8, 8));
    }
    for (io, _) in pairs {
        harness.close(io);
    }
    let (io, _client) = {
        let client = connect(address);
        (harness.accept(&listener), client)
    };
    assert_eq!(send_file(&mut harness, &io, &file, 0, 8), 8, "they have come back");
    harness.close(io);
    harness.reactor.unlisten(&listener);
}
