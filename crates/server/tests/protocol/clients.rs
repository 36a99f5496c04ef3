//! Connections that the engine makes.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gustnado::Endpoint;
use gustnado::protocol::{
    ConnectError, ConnectOptions, Connector, ConnectorState, Factory, Protocol, Reason, Transport,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::harness::{Folder, PATIENCE, Setup, wait_until};
use crate::tape::{Tape, address, echo, engine, taped};

/// Builds protocols that do something with data, and notes what it is told.
pub(crate) struct Noting<A> {
    pub(crate) tape: Tape,
    pub(crate) act: A,
}

impl<A> Factory for Noting<A>
where
    A: Fn(&mut Transport, &[u8]) + Clone + Send + Sync + 'static,
{
    fn build_protocol(&self, _peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        Some(Box::new(taped(&self.tape, self.act.clone())))
    }

    fn started(&self) {
        self.tape.note("started");
    }

    fn stopped(&self) {
        self.tape.note("stopped");
    }

    fn connection_failed(&self, connector: &Connector, error: &ConnectError) {
        assert_eq!(connector.state(), ConnectorState::Disconnected);
        self.tape.note(format!("failed: {error}"));
    }

    fn connection_lost(&self, _connector: &Connector, reason: Reason) {
        self.tape.note(format!("factory lost: {reason:?}"));
    }
}

/// Says `hello`, notes the answer, and ends.
fn hello(tape: &Tape) -> impl Fn(&mut Transport, &[u8]) + Clone + Send + Sync + 'static {
    let tape = tape.clone();
    move |transport, data| {
        if data.is_empty() {
            transport.write(b"hello");
        } else {
            tape.note(String::from_utf8_lossy(data));
            transport.lose_connection();
        }
    }
}

pub(crate) fn a_client_speaks_with_a_server(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = engine.listen_tcp("127.0.0.1:0", |_| taped(&Tape::default(), echo)).expect("a port");
    let factory = Arc::new(Noting { tape: tape.clone(), act: hello(&tape) });
    for turn in 1..=3 {
        let connector = engine
            .connect_tcp(address(&port), ConnectOptions::default(), Arc::clone(&factory))
            .expect("an address");
        assert_eq!(connector.destination(), port.address());
        tape.wait_for_count("factory lost: Closed", turn);
        tape.wait_for_count("stopped", turn);
        assert_eq!(connector.state(), ConnectorState::Disconnected);
    }
    let expected = ["started", "made", "hello", "lost: Closed", "factory lost: Closed", "stopped"];
    assert_eq!(*tape.entries(), expected.repeat(3));
    assert_eq!((engine.stats().made, engine.stats().accepted), (6, 3));
}

pub(crate) fn a_connection_comes_from_the_source_address(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let noted = tape.clone();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |peer: Endpoint| {
            noted.note(match peer {
                Endpoint::Tcp(peer) => peer.ip().to_string(),
                other => other.to_string(),
            });
            taped(&Tape::default(), echo)
        })
        .expect("a port");
    let options = ConnectOptions {
        source: Some(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 9), 0))),
        ..ConnectOptions::default()
    };
    let factory = Noting { tape: tape.clone(), act: hello(&tape) };
    engine.connect_tcp(address(&port), options, factory).expect("an address");
    tape.wait_for("factory lost: Closed");
    tape.wait_for("127.0.0.9");
    let elsewhere = ConnectOptions {
        source: Some(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 0))),
        ..options
    };
    let factory = Noting { tape: tape.clone(), act: hello(&tape) };
    engine.connect_tcp(address(&port), elsewhere, factory).expect("an address");
    tape.wait_for("failed: no connection could be made");
}

pub(crate) fn a_connection_to_nowhere_fails(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let factory = Noting { tape: tape.clone(), act: echo };
    let connector =
        engine.connect_tcp(closed, ConnectOptions::default(), factory).expect("an address");
    tape.wait_for("stopped");
    assert_eq!(*tape.entries(), ["started", "failed: no connection could be made", "stopped"]);
    assert_eq!(connector.state(), ConnectorState::Disconnected);
    let unknown = engine.connect_tcp("nowhere.invalid:80", ConnectOptions::default(), |_| {
        taped(&Tape::default(), echo)
    });
    assert!(unknown.is_err());
    assert_eq!(engine.stats().made, 0);
    wait_until("the attempt is over", || engine.stats().connections_open == 0);
}

/// A listener whose backlog is full, so that the kernel answers nobody; and what fills it.
fn full_listener() -> (TcpListener, Vec<std::os::fd::OwnedFd>) {
    let family = AddressFamily::INET;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    rustix::net::bind(&socket, &any).expect("a port");
    rustix::net::listen(&socket, 0).expect("it listens");
    let listener = TcpListener::from(socket);
    let to = listener.local_addr().expect("an address");
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let connect = |_| {
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
        let socket = socket.expect("a socket");
        // Whether it is made or only begun, it takes a place.
        let _ = rustix::net::connect(&socket, &to);
        socket
    };
    let filling = (0..4).map(connect).collect();
    (listener, filling)
}

pub(crate) fn connecting_takes_no_longer_than_it_may(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (listener, _filling) = full_listener();
    let factory = Noting { tape: tape.clone(), act: echo };
    let options =
        ConnectOptions { timeout: Duration::from_millis(150), ..ConnectOptions::default() };
    let to = listener.local_addr().expect("an address");
    let began = Instant::now();
    engine.connect_tcp(to, options, factory).expect("an address");
    tape.wait_for("failed: connecting took too long");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(140) && took < PATIENCE, "{took:?}");
}

pub(crate) fn connecting_can_be_given_up(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (listener, _filling) = full_listener();
    let to = listener.local_addr().expect("an address");
    let factory = Noting { tape: tape.clone(), act: echo };
    let connector = engine.connect_tcp(to, ConnectOptions::default(), factory).expect("an address");
    assert_eq!(connector.state(), ConnectorState::Connecting);
    thread::sleep(Duration::from_millis(20));
    connector.stop_connecting();
    tape.wait_for("failed: connecting was given up");
    tape.wait_for("stopped");

    // Also the end of the engine gives it up, at once.
    connector.connect();
    thread::sleep(Duration::from_millis(20));
    let report = engine.drain(Duration::from_secs(9));
    assert!(report.took < Duration::from_secs(5) && report.cut == 0, "{report:?}");
    tape.wait_for("failed: the engine takes no more connections");
}

pub(crate) fn a_connector_can_be_used_again(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = engine.listen_tcp("127.0.0.1:0", |_| taped(&Tape::default(), echo)).expect("a port");
    let factory = Noting { tape: tape.clone(), act: |_: &mut Transport, _: &[u8]| {} };
    let connector =
        engine.connect_tcp(address(&port), ConnectOptions::default(), factory).expect("an address");
    for turn in 1..=3 {
        tape.wait_for_count("made", turn);
        wait_until("it is connected", || connector.state() == ConnectorState::Connected);
        let handle = connector.handle().expect("a connection");
        assert_eq!(handle.peer(), port.address());
        // There is one, so nothing is begun.
        connector.connect();
        connector.disconnect();
        tape.wait_for_count("factory lost: Closed", turn);
        assert!(connector.handle().is_none() && handle.is_closed());
        connector.connect();
    }
    tape.wait_for_count("made", 4);
    port.stop_listening();
    engine.drain(Duration::from_secs(2));
    assert_eq!((tape.count("factory lost: Ended"), tape.count("made")), (1, 4));
}

pub(crate) fn a_client_over_a_unix_socket(setup: Setup) {
    let (engine, tape, folder) = (engine(setup), Tape::default(), Folder::new());
    let path = folder.path("socket");
    let _port = engine.listen_unix(&path, |_| taped(&Tape::default(), echo)).expect("a socket");
    let factory = Noting { tape: tape.clone(), act: hello(&tape) };
    let connector = engine.connect_unix(&path, ConnectOptions::default(), factory);
    tape.wait_for("factory lost: Closed");
    assert!(tape.has("hello"));
    assert_eq!(connector.destination(), &Endpoint::Unix(path));
    let factory = Noting { tape: tape.clone(), act: hello(&tape) };
    engine.connect_unix(folder.path("none"), ConnectOptions::default(), factory);
    tape.wait_for("failed: no connection could be made");
}

/// Tries again at once, whatever happened.
struct Eager(Tape);

impl Factory for Eager {
    fn build_protocol(&self, _peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        None
    }

    fn connection_failed(&self, connector: &Connector, error: &ConnectError) {
        self.0.note(error);
        connector.connect();
    }
}

pub(crate) fn who_tries_again_at_once_does_not_hold_up_the_end(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = engine.listen_tcp("127.0.0.1:0", |_| taped(&Tape::default(), echo)).expect("a port");
    let connector = engine
        .connect_tcp(address(&port), ConnectOptions::default(), Eager(tape.clone()))
        .expect("an address");
    tape.wait_for_count("no protocol wants the connection", 5);
    let report = engine.drain(Duration::from_secs(9));
    assert!(report.took < Duration::from_secs(5), "{report:?}");
    tape.wait_for("the engine takes no more connections");
    connector.connect();
    assert_eq!(connector.state(), ConnectorState::Disconnected);
}

/// Sends much, as fast as it may, and counts what comes back.
struct Pump {
    unsent: Vec<u8>,
    expected: usize,
    came: usize,
    tape: Tape,
}

impl Pump {
    fn pump(&mut self, transport: &mut Transport) {
        while !self.unsent.is_empty() && transport.room() > 10_000 {
            let piece = self.unsent.split_off(self.unsent.len().saturating_sub(10_000));
            if transport.write(&piece) == gustnado::protocol::WriteFlow::Wait {
                return;
            }
        }
    }
}

impl Protocol for Pump {
    fn connection_made(&mut self, transport: &mut Transport) {
        self.pump(transport);
    }

    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        self.came += data.len();
        if self.came == self.expected {
            transport.lose_connection();
        }
    }

    fn resume_producing(&mut self, transport: &mut Transport) {
        self.pump(transport);
    }

    fn connection_lost(&mut self, reason: Reason) {
        self.tape.note(format!("{reason:?} {}", self.came));
    }
}

pub(crate) fn many_megabytes_both_ways_at_once(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = engine.listen_tcp("127.0.0.1:0", |_| taped(&Tape::default(), echo)).expect("a port");
    // More than the kernel holds: if both ends waited for the other to read, that would be it.
    for _ in 0..2 {
        let tape = tape.clone();
        let build = move |_| {
            let unsent = vec![b'p'; 40_000_000];
            Pump { expected: unsent.len(), unsent, came: 0, tape: tape.clone() }
        };
        engine.connect_tcp(address(&port), ConnectOptions::default(), build).expect("an address");
    }
    tape.wait_for_count("Closed 40000000", 2);
}
