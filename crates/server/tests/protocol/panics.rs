//! Panics of callbacks: contained, counted, told.

use std::time::Duration;

use gustnado::protocol::{ConnectOptions, Engine, LineProtocol, LineReceiver, Lines, Protocol};
use gustnado::protocol::{Reason, Transport};

use crate::harness::{Setup, wait_until};
use crate::tape::{Tape, address, connect, echo, engine, taped};

/// Panics where it is told to.
struct Fragile {
    tape: Tape,
    at_the_end: bool,
}

impl Protocol for Fragile {
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        match data {
            b"now" => panic!("as it was told"),
            b"at the end" => self.at_the_end = true,
            data => echo(transport, data),
        }
    }

    fn connection_lost(&mut self, reason: Reason) {
        self.tape.note(format!("lost: {reason:?}"));
        assert!(!self.at_the_end, "as it was told");
    }
}

pub(crate) fn a_panic_ends_its_connection_only(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| Fragile { tape: noted.clone(), at_the_end: false })
        .expect("a port");
    let mut others: Vec<_> = (0..10).map(|_| connect(&port)).collect();
    for round in 1..=3 {
        let mut client = connect(&port);
        client.send("now");
        client.read_until_ended();
        tape.wait_for_count("lost: Panicked", round);
    }
    let mut client = connect(&port);
    client.send("at the end");
    drop(client);
    tape.wait_for("lost: Done");
    wait_until("all four are counted", || engine.stats().panics == 4);
    for other in &mut others {
        other.send("alive");
        assert_eq!(other.take(5).expect("an echo"), b"alive");
    }
    wait_until("the others stay", || engine.stats().connections_open == 10);
}

struct FragileLines;

impl LineProtocol for FragileLines {
    fn line_received(&mut self, _lines: &mut Lines<'_>, line: &[u8]) {
        assert_ne!(line, b"now", "as it was told");
    }
}

pub(crate) fn a_panic_in_a_factory_or_a_call_is_contained(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let fragile = |_| -> LineReceiver<FragileLines> { panic!("as it always does") };
    let port = engine.listen_tcp("127.0.0.1:0", fragile).expect("a port");
    connect(&port).expect_end("nothing was built");
    engine.call_from_thread(|| panic!("as it was told")).expect("the engine runs");
    engine.call_later(Duration::ZERO, || panic!("as it was told")).expect("the engine runs");
    engine.connect_tcp(address(&port), ConnectOptions::default(), fragile).expect("an address");
    // Two were built on either side of that connection.
    wait_until("all five are counted", || engine.stats().panics == 5);
    let noted = tape.clone();
    let lines =
        engine.listen_tcp("127.0.0.1:0", |_| LineReceiver::new(FragileLines)).expect("a port");
    let mut client = connect(&lines);
    client.send("then\r\nnow\r\n");
    client.read_until_ended();
    wait_until("the sixth is counted", || engine.stats().panics == 6);
    let call = Engine::clone(&engine).call_from_thread(move || noted.note("alive"));
    call.expect("the engine runs");
    tape.wait_for("alive");
    let port = engine.listen_tcp("127.0.0.1:0", move |_| taped(&tape, echo)).expect("a port");
    let mut client = connect(&port);
    client.send("alive");
    assert_eq!(client.take(5).expect("an echo"), b"alive");
}
