//! Writers that wait for readers, and readers that rest.

use std::thread;
use std::time::Duration;

use gustnado::protocol::{
    LineProtocol, LineReceiver, Lines, Transport, TransportHandle, WriteFlow, WriteLimits,
};

use crate::harness::{Client, Setup, wait_until};
use crate::tape::{Tape, address, connect, echo, engine, taped};

/// Marks of a few kilobytes, so that little shows much.
const SMALL: WriteLimits =
    WriteLimits { high_bytes: 8 << 10, low_bytes: 2 << 10, max_bytes: 64 << 10 };

pub(crate) fn a_peer_that_does_not_read_is_read_no_more(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine.listen_tcp("127.0.0.1:0", move |_| taped(&noted, echo)).expect("a port");
    let mut client = Client::connect_narrow(address(&port));
    let sent = client.send_until_blocked(&[b'x'; 16_384], 64 << 20);
    assert!(sent < 32 << 20, "{sent} bytes were taken from a peer that reads nothing");
    client.shut_write();
    assert_eq!(client.read_to_end().len(), sent, "and every one of them came back");
    tape.wait_for("lost: Done");
    assert!(tape.has("pause producing") && tape.has("resume producing"));
}

pub(crate) fn a_writer_is_told_to_wait_and_to_go_on(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let tape = noted.clone();
            taped(&noted, move |transport: &mut Transport, data: &[u8]| {
                if data.is_empty() {
                    return transport.set_write_limits(SMALL);
                }
                // Whoever writes a little at a time is told to wait long before the limit.
                let mut wrote = 0;
                while transport.write(&[b'y'; 1_024]) == WriteFlow::Go {
                    wrote += 1;
                    assert!(wrote <= 8, "{} bytes pend", transport.pending_bytes());
                }
                assert!(transport.room() <= SMALL.max_bytes - SMALL.high_bytes);
                tape.note("waits");
            })
        })
        .expect("a port");
    let mut client = connect(&port);
    for round in 1..=3 {
        client.send("go");
        tape.wait_for_count("waits", round);
        assert_eq!(client.take(9 << 10).expect("nine pieces").len(), 9 << 10);
        // However fast it went, both were told.
        tape.wait_for_count("pause producing", round);
        tape.wait_for_count("resume producing", round);
    }
}

pub(crate) fn more_than_the_limit_ends_the_connection(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let tape = noted.clone();
            taped(&noted, move |transport: &mut Transport, data: &[u8]| {
                transport.set_write_limits(SMALL);
                if !data.is_empty() {
                    assert_ne!(
                        transport.write(&vec![0; 64 << 10]),
                        WriteFlow::Closed,
                        "it just fits"
                    );
                    assert_eq!(transport.write(&[0; 1]), WriteFlow::Closed);
                    assert_eq!(transport.write(&[]), WriteFlow::Closed);
                    tape.note("closed");
                }
            })
        })
        .expect("a port");
    let mut client = connect(&port);
    client.send("x");
    tape.wait_for("lost: Overrun");
    assert!(tape.has("closed"));
    let (_, end) = client.read_until_ended();
    assert!(matches!(end, crate::harness::client::End::Reset(_)), "{end:?}");
}

pub(crate) fn reading_can_be_paused_and_resumed(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let handles = std::sync::Arc::new(std::sync::Mutex::new(Vec::<TransportHandle>::new()));
    let (noted, kept) = (tape.clone(), handles.clone());
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let (tape, kept) = (noted.clone(), kept.clone());
            taped(&noted, move |transport: &mut Transport, data: &[u8]| {
                if data.is_empty() {
                    kept.lock().expect("no panic").push(transport.handle());
                } else {
                    tape.note(String::from_utf8_lossy(data));
                    transport.pause_reading();
                    assert!(!transport.is_reading());
                }
            })
        })
        .expect("a port");
    let mut client = connect(&port);
    client.send("first");
    tape.wait_for("first");
    client.send("second");
    thread::sleep(Duration::from_millis(50));
    assert!(!tape.has("second"));
    let handle = handles.lock().expect("no panic").pop().expect("a handle");
    handle.resume_reading();
    tape.wait_for("second");
    // Also the end is noticed only after that.
    drop(client);
    thread::sleep(Duration::from_millis(50));
    assert!(!tape.has("lost: Done"));
    handle.resume_reading();
    tape.wait_for("lost: Done");
}

/// Takes one line, and the next one when a delayed call says so.
struct Slow(gustnado::protocol::Engine, Tape);

impl LineProtocol for Slow {
    fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]) {
        self.1.note(String::from_utf8_lossy(line));
        lines.transport.pause_reading();
        let handle = lines.transport.handle();
        let later = self.0.call_later(Duration::from_millis(5), move || handle.resume_reading());
        later.expect("the engine runs");
    }
}

pub(crate) fn lines_rest_while_reading_is_paused(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (noted, calls) = (tape.clone(), engine.clone());
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| LineReceiver::new(Slow(calls.clone(), noted.clone())))
        .expect("a port");
    let mut client = connect(&port);
    client.send("1\r\n2\r\n3\r\n4\r\n5\r\n");
    tape.wait_for("5");
    assert_eq!(*tape.entries(), ["1", "2", "3", "4", "5"]);
    client.shut_write();
    wait_until("the end is noticed", || engine.stats().connections_open == 0);
}
