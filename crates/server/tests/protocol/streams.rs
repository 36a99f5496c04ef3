//! What goes through a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use gustnado::protocol::{LineProtocol, LineReceiver, Lines, Transport, WriteFlow};

use crate::harness::folder::noise;
use crate::harness::{Setup, wait_until};
use crate::tape::{Tape, address, connect, echo, engine, taped};

pub(crate) fn what_is_sent_comes_back_whole(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine.listen_tcp("127.0.0.1:0", move |_| taped(&noted, echo)).expect("a port");
    let sent = noise(1, 3_000_000);
    let mut client = connect(&port);
    let mut writer = client.second_handle();
    let echoed = thread::scope(|scope| {
        scope.spawn(|| {
            for piece in sent.chunks(70_001) {
                writer.send(piece);
            }
            writer.shut_write();
        });
        client.read_to_end()
    });
    assert!(echoed == sent, "{} bytes came back", echoed.len());
    tape.wait_for("lost: Done");
    wait_until("it is closed", || engine.stats().connections_open == 0);
    assert_eq!((engine.stats().made, engine.stats().accepted), (1, 1));
}

pub(crate) fn many_connections_at_once_are_served(setup: Setup) {
    let engine = engine(setup);
    let port = engine.listen_tcp("127.0.0.1:0", |_| taped(&Tape::default(), echo)).expect("a port");
    let mut clients: Vec<_> = (0..100).map(|_| connect(&port)).collect();
    for round in 0..5_u8 {
        for client in &mut clients {
            client.send([round; 100]);
        }
        for client in &mut clients {
            assert_eq!(client.take(100).expect("an echo"), [round; 100]);
        }
    }
    assert_eq!(engine.stats().connections_open, 100);
    drop(clients);
    wait_until("all are closed", || engine.stats().connections_open == 0);
}

pub(crate) fn a_server_may_speak_first(setup: Setup) {
    let engine = engine(setup);
    let greet = |transport: &mut Transport, data: &[u8]| {
        if data.is_empty() {
            transport.write_sequence(&["220 ", "ready", "\r\n"]);
            transport.lose_connection();
        }
    };
    let port =
        engine.listen_tcp("127.0.0.1:0", move |_| taped(&Tape::default(), greet)).expect("a port");
    for _ in 0..20 {
        assert_eq!(connect(&port).read_to_end(), b"220 ready\r\n");
    }
}

/// Numbers lines, and counts raw bytes: `raw N` begins N of them.
#[derive(Default)]
struct Counting {
    lines: usize,
    raw_left: usize,
}

impl LineProtocol for Counting {
    fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]) {
        self.lines += 1;
        let line = String::from_utf8_lossy(line);
        lines.send_line(format!("{}: {line}", self.lines));
        if let Some(count) = line.strip_prefix("raw ") {
            self.raw_left = count.parse().expect("a number");
            lines.set_raw_mode();
        }
    }

    fn raw_data_received(&mut self, lines: &mut Lines<'_>, data: &[u8]) {
        let (raw, rest) = data.split_at(data.len().min(self.raw_left));
        lines.transport.write(raw);
        self.raw_left -= raw.len();
        if self.raw_left == 0 {
            lines.set_line_mode(rest);
        }
    }
}

pub(crate) fn lines_arrive_whole_however_they_were_cut(setup: Setup) {
    let engine = engine(setup);
    let port = engine
        .listen_tcp("127.0.0.1:0", |_| LineReceiver::new(Counting::default()))
        .expect("a port");
    let text = b"one\r\n\r\nthr\ree\r\n";
    for at in 1..text.len() {
        let mut client = connect(&port);
        client.send_cut(text, at);
        client.shut_write();
        assert_eq!(client.read_to_end(), b"1: one\r\n2: \r\n3: thr\ree\r\n", "cut at {at}");
    }
}

pub(crate) fn a_line_that_is_too_long_ends_the_connection(setup: Setup) {
    let engine = engine(setup);
    let port = engine
        .listen_tcp("127.0.0.1:0", |_| LineReceiver::new(Counting::default()))
        .expect("a port");
    let mut client = connect(&port);
    client.send([b'x'; 16_384]);
    client.send("\r\n");
    assert_eq!(client.take(3 + 16_384 + 2).expect("the longest line").len(), 16_389);
    client.send("x".repeat(16_385));
    client.send_unless_closed("\r\nmore\r\n");
    client.expect_end("a line with one byte too many");
}

pub(crate) fn a_line_protocol_may_receive_raw_data_in_between(setup: Setup) {
    let engine = engine(setup);
    let port = engine
        .listen_tcp("127.0.0.1:0", |_| LineReceiver::new(Counting::default()).delimiter("\n"))
        .expect("a port");
    let mut client = connect(&port);
    client.send("raw 4\n\n\n\n\nlast\n");
    client.shut_write();
    assert_eq!(client.read_to_end(), b"1: raw 4\n\n\n\n\n2: last\n");
    let big = noise(7, 200_000);
    let mut client = connect(&port);
    let mut writer = client.second_handle();
    let came = thread::scope(|scope| {
        scope.spawn(|| {
            writer.send(b"raw 200000\n");
            writer.send(&big);
            writer.send(b"end\n");
            writer.shut_write();
        });
        client.read_to_end()
    });
    let expected = [b"1: raw 200000\n", &big[..], b"2: end\n"].concat();
    assert!(came == expected, "{} bytes came", came.len());
}

pub(crate) fn a_connection_knows_both_its_addresses(setup: Setup) {
    let engine = engine(setup);
    let tell = |transport: &mut Transport, data: &[u8]| {
        if data.is_empty() {
            let both = format!("{} {}", transport.peer(), transport.local());
            transport.write(both.as_bytes());
            transport.lose_connection();
        }
    };
    let port =
        engine.listen_tcp("127.0.0.1:0", move |_| taped(&Tape::default(), tell)).expect("a port");
    let mut client = connect(&port);
    let told = String::from_utf8(client.read_to_end()).expect("two addresses");
    let own = client.into_stream().local_addr().expect("an address");
    assert_eq!(told, format!("{own} {}", address(&port)));
}

pub(crate) fn callbacks_of_a_connection_never_run_concurrently(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let (inside, tape) = (Arc::new(AtomicBool::new(false)), noted.clone());
            let engine_thread = move |transport: &mut Transport, data: &[u8]| {
                if inside.swap(true, Ordering::SeqCst) {
                    tape.note("concurrently");
                }
                let handle = transport.handle();
                // A handle's wake-up comes while the callback runs.
                let other = thread::spawn(move || handle.write(b"."));
                thread::sleep(Duration::from_millis(2));
                let _ = other.join().expect("writing does not panic");
                transport.write(data);
                inside.store(false, Ordering::SeqCst);
            };
            taped(&noted, engine_thread)
        })
        .expect("a port");
    let mut client = connect(&port);
    for _ in 0..50 {
        client.send("x");
        thread::sleep(Duration::from_millis(1));
    }
    let mut echoed = 0;
    while echoed < 50 {
        let piece = client.read_some(1_000).expect("every byte comes back");
        echoed += String::from_utf8_lossy(&piece).matches('x').count();
    }
    assert!(!tape.has("concurrently"));
}

pub(crate) fn without_auto_flush_bytes_wait_for_a_flush(setup: Setup) {
    let engine = engine(setup);
    let hoard = |transport: &mut Transport, data: &[u8]| {
        transport.set_auto_flush(false);
        assert_ne!(transport.write(data), WriteFlow::Closed);
        if data.ends_with(b"!") {
            transport.flush();
        }
    };
    let port =
        engine.listen_tcp("127.0.0.1:0", move |_| taped(&Tape::default(), hoard)).expect("a port");
    let mut client = connect(&port);
    client.send("kept");
    client.expect_silence(Duration::from_millis(50));
    client.send("sent!");
    assert_eq!(client.take(9).expect("all of it"), b"keptsent!");
    client.send("the rest");
    client.shut_write();
    assert_eq!(client.read_to_end(), b"the rest", "the end flushes too");
}
