//! Every way a connection ends, and the engine with it.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use gustnado::Endpoint;
use gustnado::config::Config;
use gustnado::protocol::{
    CallError, ConnectOptions, Connector, Engine, Factory, ListenError, Port, Protocol, Reason,
    Transport, WriteError, WriteLimits,
};

use crate::harness::client::{End, wait_until_refused};
use crate::harness::folder::noise;
use crate::harness::process::open_descriptors;
use crate::harness::{Client, Setup, wait_until};
use crate::tape::{Running, Tape, address, connect, echo, engine, taped};

/// Does what the peer says: `close`, `abort`, `panic`, or an echo.
fn obedient(transport: &mut Transport, data: &[u8]) {
    match data {
        b"close" => transport.lose_connection(),
        b"abort" => transport.abort_connection(),
        b"panic" => panic!("as it was told"),
        data => echo(transport, data),
    }
}

fn listen(engine: &Engine, tape: &Tape) -> Port {
    let tape = tape.clone();
    engine.listen_tcp("127.0.0.1:0", move |_| taped(&tape, obedient)).expect("a port")
}

pub(crate) fn every_end_has_its_reason(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = listen(&engine, &tape);

    drop(connect(&port));
    tape.wait_for("lost: Done");

    let mut client = connect(&port);
    client.send("x");
    assert_eq!(client.take(1).expect("an echo"), b"x");
    client.reset();
    tape.wait_for("lost: Lost(ConnectionReset)");

    let mut client = connect(&port);
    client.send("close");
    client.expect_end("close");
    tape.wait_for("lost: Closed");

    let mut client = connect(&port);
    client.send("abort");
    assert_eq!(client.read_until_ended().1, End::Reset(0));
    tape.wait_for("lost: Aborted");

    let mut client = connect(&port);
    client.send("panic");
    client.read_until_ended();
    tape.wait_for("lost: Panicked");

    let client = connect(&port);
    tape.wait_for_count("made", 6);
    engine.drain(Duration::from_secs(5));
    tape.wait_for("lost: Ended");
    drop(client);
    assert_eq!(tape.entries().iter().filter(|entry| entry.starts_with("lost")).count(), 6);
    assert_eq!(Reason::Done.to_string(), "the peer closed the connection");
}

pub(crate) fn a_lost_connection_is_written_out_first(setup: Setup) {
    let engine = engine(setup);
    let port = engine
        .listen_tcp("127.0.0.1:0", |_| {
            taped(&Tape::default(), |transport: &mut Transport, data: &[u8]| {
                if data.is_empty() {
                    transport.write(&noise(3, 1 << 20));
                    transport.lose_connection();
                    assert!(transport.is_ending());
                }
            })
        })
        .expect("a port");
    let mut client = Client::connect_narrow(address(&port));
    thread::sleep(Duration::from_millis(50));
    assert!(client.read_to_end() == noise(3, 1 << 20));
}

pub(crate) fn unread_bytes_do_not_destroy_the_last_ones_written(setup: Setup) {
    let engine = engine(setup);
    let port = engine
        .listen_tcp("127.0.0.1:0", |_| {
            taped(&Tape::default(), |transport: &mut Transport, data: &[u8]| {
                if !data.is_empty() {
                    transport.write(b"goodbye");
                    transport.lose_connection();
                }
            })
        })
        .expect("a port");
    for _ in 0..10 {
        let mut client = connect(&port);
        client.send(vec![b'x'; 200_000]);
        thread::sleep(Duration::from_millis(5));
        client.shut_write_unless_closed();
        assert_eq!(client.read_to_end(), b"goodbye");
    }
}

/// Counts what it receives, and answers only when the peer has finished.
struct Summing(usize);

impl Protocol for Summing {
    fn data_received(&mut self, _transport: &mut Transport, data: &[u8]) {
        self.0 += data.len();
    }

    fn peer_finished(&mut self, transport: &mut Transport) {
        transport.write(self.0.to_string().as_bytes());
        transport.lose_write_connection();
    }
}

pub(crate) fn either_side_may_finish_first(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = engine.listen_tcp("127.0.0.1:0", |_| Summing(0)).expect("a port");
    let mut client = connect(&port);
    client.send([0; 10_000]);
    client.shut_write();
    assert_eq!(client.read_to_end(), b"10000");

    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let tape = noted.clone();
            taped(&noted, move |transport: &mut Transport, data: &[u8]| {
                if data.is_empty() {
                    transport.write(b"that was all");
                    transport.lose_write_connection();
                } else {
                    tape.note(String::from_utf8_lossy(data));
                }
            })
        })
        .expect("a port");
    let mut client = connect(&port);
    assert_eq!(client.read_to_end(), b"that was all");
    client.send("still heard");
    tape.wait_for("still heard");
    client.shut_write();
    tape.wait_for("lost: Done");
}

pub(crate) fn a_silent_connection_times_out(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            taped(&noted, |transport: &mut Transport, data: &[u8]| {
                if data.is_empty() {
                    transport.set_timeout(Some(Duration::from_millis(150)));
                }
                if data == b"no limit" {
                    transport.set_timeout(None);
                }
                echo(transport, data);
            })
        })
        .expect("a port");
    let mut patient = connect(&port);
    patient.send("no limit");
    let mut client = connect(&port);
    let began = Instant::now();
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(50));
        client.send("x");
    }
    client.read_until_ended();
    assert!(began.elapsed() >= Duration::from_millis(390), "{:?}", began.elapsed());
    tape.wait_for("lost: TimedOut");
    assert_eq!(patient.take(8).expect("an echo"), b"no limit");
    patient.expect_silence(Duration::from_millis(100));
}

pub(crate) fn a_slow_reader_is_not_silent(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let much = WriteLimits { max_bytes: 64 << 20, ..WriteLimits::default() };
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            taped(&noted, move |transport: &mut Transport, _: &[u8]| {
                transport.set_write_limits(much);
                transport.set_timeout(Some(Duration::from_millis(800)));
                transport.write(&vec![b's'; 32 << 20]);
                transport.lose_connection();
            })
        })
        .expect("a port");
    let mut client = connect(&port);
    let began = Instant::now();
    for _ in 0..32 {
        client.take(1 << 20).expect("the next million");
        thread::sleep(Duration::from_millis(35));
    }
    assert!(began.elapsed() > Duration::from_millis(1_100));
    client.expect_end("all of it");
    tape.wait_for("lost: Closed");
}

/// Says when nothing has come for a while, and ends at the third time, or when it is told `bye`.
struct Nagging(u32, Tape);

impl Protocol for Nagging {
    fn connection_made(&mut self, transport: &mut Transport) {
        transport.set_timeout(Some(Duration::from_millis(20)));
    }

    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        assert_eq!(data, b"bye");
        transport.lose_connection();
    }

    fn timed_out(&mut self, transport: &mut Transport) {
        self.0 += 1;
        transport.write(b"hello? ");
        if self.0 == 3 {
            transport.lose_connection();
        }
    }

    fn connection_lost(&mut self, reason: Reason) {
        self.1.note(format!("lost: {reason:?}"));
    }
}

pub(crate) fn a_protocol_may_bear_a_time_out(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port =
        engine.listen_tcp("127.0.0.1:0", move |_| Nagging(0, noted.clone())).expect("a port");
    assert_eq!(connect(&port).read_to_end(), b"hello? hello? hello? ");
    tape.wait_for("lost: TimedOut");
    let mut client = connect(&port);
    assert_eq!(client.take(7).expect("a question"), b"hello? ");
    client.send("bye");
    client.read_to_end();
    tape.wait_for("lost: Closed");
}

pub(crate) fn a_connection_that_cannot_be_written_out_is_given_up(setup: Setup) {
    let config = Config { write_timeout: Duration::from_millis(100), ..setup.config() };
    let (engine, tape) = (Running::start(&config), Tape::default());
    let noted = tape.clone();
    let much = WriteLimits { max_bytes: 64 << 20, ..WriteLimits::default() };
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            taped(&noted, move |transport: &mut Transport, _: &[u8]| {
                // More than the kernel holds for a peer that reads nothing.
                transport.set_write_limits(much);
                transport.write(&vec![0; 32 << 20]);
                transport.lose_connection();
            })
        })
        .expect("a port");
    let client = Client::connect_narrow(address(&port));
    tape.wait_for("lost: TimedOut");
    drop(client);
}

pub(crate) fn the_engine_stops_from_a_callback_and_tells_all(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (noted, stopping) = (tape.clone(), Engine::clone(&engine));
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let engine = stopping.clone();
            taped(&noted, move |transport: &mut Transport, data: &[u8]| {
                echo(transport, data);
                if data == b"stop" {
                    engine.stop();
                }
            })
        })
        .expect("a port");
    let mut idle: Vec<_> = (0..5).map(|_| connect(&port)).collect();
    let mut client = connect(&port);
    tape.wait_for_count("made", 6);
    client.send("stop");
    let report = engine.run();
    assert_eq!(report.cut, 0);
    assert_eq!(tape.count("lost: Ended"), 6);
    assert_eq!(client.read_to_end(), b"stop", "what was written before arrives");
    for client in &mut idle {
        client.expect_end("the engine's end");
    }
    wait_until_refused(address(&port));
    assert_eq!(engine.stats().connections_open, 0);
}

/// Does not end when the engine stops, but when it is told `enough`.
struct Stubborn(Tape);

impl Protocol for Stubborn {
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        if data == b"enough" {
            transport.lose_connection();
        }
    }

    fn stopping(&mut self, transport: &mut Transport) {
        transport.write(b"soon");
        self.0.note("stopping");
    }

    fn connection_lost(&mut self, reason: Reason) {
        self.0.note(format!("lost: {reason:?}"));
    }
}

pub(crate) fn a_drain_writes_everything_out_and_cuts_what_does_not_end(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine.listen_tcp("127.0.0.1:0", move |_| Stubborn(noted.clone())).expect("a port");
    let (mut one, mut other) = (connect(&port), connect(&port));
    wait_until("both are there", || engine.stats().made == 2);
    let report = thread::scope(|scope| {
        let draining = scope.spawn(|| engine.drain(Duration::from_millis(150)));
        assert_eq!(one.take(4).expect("a word"), b"soon");
        one.send("enough");
        one.expect_end("enough");
        draining.join().expect("no panic")
    });
    assert_eq!(report.cut, 1);
    assert_eq!(tape.count("stopping"), 2);
    assert_eq!(tape.count("lost: Ended"), 2);
    assert_eq!(other.read_until_ended().0, b"soon");
}

pub(crate) fn a_stopped_engine_takes_nothing_more(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = listen(&engine, &tape);
    let client = connect(&port);
    tape.wait_for("made");
    let dropped = Mutex::new(Some(SaysWhenDropped(tape.clone())));
    let never = move || drop(dropped.lock().expect("no panic").take());
    let delayed = engine.call_later(Duration::from_mins(1), never).expect("it runs");
    assert_eq!(engine.drain(Duration::from_secs(5)), engine.drain(Duration::ZERO));
    assert!(tape.has("dropped") && !delayed.is_active() && !port.is_listening());
    assert!(matches!(engine.call_from_thread(|| {}), Err(CallError::Stopped)));
    assert!(engine.call_later(Duration::ZERO, || {}).is_err());
    let refused = engine.listen_tcp("127.0.0.1:0", |_| Summing(0));
    assert!(matches!(refused, Err(ListenError::Stopped)));
    let noted = tape.clone();
    let act = move |transport: &mut Transport, _: &[u8]| {
        assert_eq!(transport.handle().write(b""), Err(WriteError::Closed));
    };
    let connector = engine
        .connect_tcp(address(&port), ConnectOptions::default(), move |_| taped(&noted, act))
        .expect("an address");
    assert_eq!(connector.state(), gustnado::protocol::ConnectorState::Disconnected);
    drop(client);
}

/// A factory that holds its engine, and says when it is dropped.
struct Holding {
    engine: Engine,
    _says: SaysWhenDropped,
}

impl Factory for Holding {
    fn build_protocol(&self, _peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        assert!(!self.engine.is_stopping());
        Some(Box::new(Summing(0)))
    }

    fn connection_lost(&self, connector: &Connector, _reason: Reason) {
        connector.connect();
    }
}

pub(crate) fn an_engine_leaves_nothing_behind(setup: Setup) {
    let round = |tape: &Tape| {
        let engine = Engine::start(&setup.config()).expect("the engine starts");
        setup.assert_backend(engine.backend(), engine.notes());
        let holding = || Holding { engine: engine.clone(), _says: SaysWhenDropped(tape.clone()) };
        let port = engine.listen_tcp("127.0.0.1:0", holding()).expect("a port");
        let connecting = engine.connect_tcp(address(&port), ConnectOptions::default(), holding());
        connecting.expect("an address");
        let again = holding();
        let never = move || drop(again);
        engine.call_later(Duration::from_mins(1), never).expect("the engine runs");
        wait_until("both ends are there", || engine.stats().made == 2);
        // Perhaps no worker has heard of this one when the engine ends.
        let late = engine.listen_tcp("127.0.0.1:0", holding()).expect("a port");
        engine.drain(Duration::from_secs(5));
        address(&late)
    };
    round(&Tape::default());
    let before = open_descriptors();
    for _ in 0..10 {
        let tape = Tape::default();
        let late = round(&tape);
        tape.wait_for_count("dropped", 4);
        wait_until_refused(late);
    }
    wait_until("every descriptor is closed", || open_descriptors() <= before);
}

struct SaysWhenDropped(Tape);

impl Drop for SaysWhenDropped {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}
