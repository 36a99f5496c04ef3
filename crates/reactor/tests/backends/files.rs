//! Sending files.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use gustnado_reactor::{BackendKind, Io, IoChoice, Options, Wait};

use crate::harness::{Harness, connect, pattern, read_some};

on_both_backends!(
    a_file_reaches_a_slow_reader_in_whole,
    a_part_of_a_file_is_sent,
    a_truncated_file_ends_with_zero_bytes_sent,
    a_head_and_its_file_arrive_in_order,
    a_file_for_a_peer_that_is_gone_is_an_error,
    idle_sockets_keep_few_descriptors_of_the_files_they_were_sent,
    a_descriptor_for_files_goes_once_no_more_of_them_are_sent,
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

fn a_descriptor_for_files_goes_once_no_more_of_them_are_sent(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    let file = file_of(b"the body");
    let mut pairs = Vec::new();
    for _ in 0..5 {
        let client = connect(address);
        pairs.push((harness.accept(&listener), client));
    }
    let is_uring = harness.reactor.backend() == BackendKind::Uring;
    // The last one gets a file again and again, others one each, and one gets none.
    for place in [1, 2, 3] {
        get_file(&mut harness, &mut pairs[place], &file);
    }
    let mut sent_ms = 0;
    for _ in 0..70 {
        sent_ms = harness.reactor.clock().read_ms();
        get_file(&mut harness, &mut pairs[4], &file);
        harness.turn_for(10);
        assert!(harness.reactor.fd(&pairs[4].0).is_some(), "it is not to be made for each file");
    }
    if is_uring {
        let kept = pairs[..4].iter().filter(|(io, _)| harness.reactor.fd(io).is_some()).count();
        assert_eq!(kept, 0, "they were sent one 0.7 s ago");
        // A wait ends for it, of which nothing else has to know.
        harness.reactor.turn(Wait::Forever, &mut harness.woken).expect("the kernel waits");
        harness.turn_until("it is closed", |reactor| reactor.fd(&pairs[4].0).is_none());
        let kept_ms = harness.reactor.clock().read_ms() - sent_ms;
        assert!(kept_ms >= 200, "{kept_ms} ms");
        // Closed or not, the next file arrives.
    }
    for pair in &mut pairs {
        get_file(&mut harness, pair, &file);
    }
    for (io, _) in pairs {
        harness.close(io);
    }
}

/// Sends a file of eight bytes to its end.
fn get_file(harness: &mut Harness, (io, client): &mut (Io, TcpStream), file: &File) {
    assert_eq!(send_file(harness, io, file, 0, 8), 8);
    harness.reactor.file_sent(io);
    client.read_exact(&mut [0; 8]).expect("it comes");
}

fn idle_sockets_keep_few_descriptors_of_the_files_they_were_sent(io: IoChoice) {
    let mut harness = Harness::over(&Options { installed_max: 8, ..Harness::options(io, 64, 64) });
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
