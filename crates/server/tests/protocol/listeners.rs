//! Listeners: many, added and removed while the engine runs.

use std::thread;
use std::time::Duration;

use gustnado::Endpoint;
use gustnado::config::{Acceptor, Config};
use gustnado::protocol::{Factory, ListenError, Protocol, Transport};

use crate::harness::client::wait_until_refused;
use crate::harness::{Client, Folder, Setup, wait_until};
use crate::tape::{Running, Tape, address, connect, echo, engine, taped};

/// Builds protocols that say a name and end, and notes what it is told.
struct Naming {
    name: &'static str,
    tape: Tape,
}

impl Factory for Naming {
    fn build_protocol(&self, _peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        let name = self.name;
        let say = move |transport: &mut Transport, data: &[u8]| {
            if data.is_empty() {
                transport.write(name.as_bytes());
            } else {
                echo(transport, data);
            }
        };
        Some(Box::new(taped(&self.tape, say)))
    }

    fn started(&self) {
        self.tape.note(format!("{} started", self.name));
    }

    fn stopped(&self) {
        self.tape.note(format!("{} stopped", self.name));
    }
}

fn naming(name: &'static str, tape: &Tape) -> Naming {
    Naming { name, tape: tape.clone() }
}

pub(crate) fn each_listener_has_its_own_factory(setup: Setup) {
    let (engine, tape, folder) = (engine(setup), Tape::default(), Folder::new());
    let path = folder.path("socket");
    let one = engine.listen_tcp("127.0.0.1:0", naming("one", &tape)).expect("a port");
    let two = engine.listen_tcp("[::1]:0", naming("two", &tape));
    let unix = engine.listen_unix(&path, naming("unix", &tape)).expect("a socket");
    assert_eq!(unix.address(), &Endpoint::Unix(path.clone()));
    for _ in 0..10 {
        assert_eq!(connect(&one).take(3).expect("a name"), b"one");
        // A machine may have no IPv6.
        if let Ok(two) = &two {
            assert_eq!(connect(two).take(3).expect("a name"), b"two");
        }
        let mut client = Client::connect_unix(&path);
        assert_eq!(client.take(4).expect("a name"), b"unix");
        client.send("hello");
        assert_eq!(client.take(5).expect("an echo"), b"hello");
    }
    engine.drain(Duration::from_secs(2));
    for name in ["one", "unix"] {
        tape.wait_for(&format!("{name} started"));
        tape.wait_for(&format!("{name} stopped"));
    }
    assert!(!path.exists(), "the socket's file is removed");
}

pub(crate) fn listeners_come_and_go_while_others_work(setup: Setup) {
    let (engine, tape, folder) = (engine(setup), Tape::default(), Folder::new());
    let steady = engine.listen_tcp("127.0.0.1:0", naming("steady", &tape)).expect("a port");
    let path = folder.path("socket");
    let mut kept = connect(&steady);
    assert_eq!(kept.take(6).expect("a name"), b"steady");
    for round in 1..=5 {
        let port = engine.listen_tcp("127.0.0.1:0", naming("brief", &tape)).expect("a port");
        let unix = engine.listen_unix(&path, naming("file", &tape)).expect("a socket");
        let mut client = connect(&port);
        assert_eq!(client.take(5).expect("a name"), b"brief");
        assert_eq!(Client::connect_unix(&path).take(4).expect("a name"), b"file");
        assert!(port.is_listening());
        port.stop_listening();
        unix.stop_listening();
        assert!(!port.is_listening() && !path.exists());
        wait_until_refused(address(&port));
        tape.wait_for_count("brief stopped", round);
        tape.wait_for_count("file stopped", round);
        // What is open stays open, and the address is free.
        client.send("still here");
        assert_eq!(client.take(10).expect("an echo"), b"still here");
        let again = engine.listen_tcp(address(&port), naming("again", &tape));
        again.expect("the address is free").stop_listening();
    }
    kept.send("kept");
    assert_eq!(kept.take(4).expect("an echo"), b"kept");
    assert_eq!(tape.count("steady stopped"), 0);
}

pub(crate) fn an_address_in_use_is_refused(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let port = engine.listen_tcp("127.0.0.1:0", naming("first", &tape)).expect("a port");
    let refused = engine.listen_tcp(address(&port), naming("second", &tape));
    let error = refused.expect_err("the address is in use");
    assert!(matches!(error, ListenError::InUse(_)), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot listen on {}: it is in use", port.address()));
    // A factory that was told of the begin is told of the end.
    assert!(tape.has("second started") && tape.has("second stopped"));
    let error = engine.listen_tcp("nowhere.invalid:80", naming("third", &tape));
    assert!(matches!(error, Err(ListenError::Address(_))));
}

/// Takes every other connection.
struct Picky(std::sync::atomic::AtomicUsize);

impl Factory for Picky {
    fn build_protocol(&self, _peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        let count = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        (count % 2 == 1).then(|| Box::new(taped(&Tape::default(), echo)) as Box<dyn Protocol>)
    }
}

pub(crate) fn a_factory_may_refuse_a_connection(setup: Setup) {
    let engine = engine(setup);
    let port = engine.listen_tcp("127.0.0.1:0", Picky(0.into())).expect("a port");
    for _ in 0..3 {
        connect(&port).expect_end("refused");
        let mut client = connect(&port);
        client.send("taken");
        assert_eq!(client.take(5).expect("an echo"), b"taken");
    }
    let stats = engine.stats();
    assert_eq!((stats.accepted, stats.made, stats.refused), (6, 3, 3));
}

pub(crate) fn one_accepting_thread_serves_all_listeners(setup: Setup) {
    let config = Config { acceptor: Acceptor::Dedicated, ..setup.config() };
    let (engine, tape) = (Running::start(&config), Tape::default());
    let one = engine.listen_tcp("127.0.0.1:0", naming("one", &tape)).expect("a port");
    let two = engine.listen_tcp("127.0.0.1:0", naming("two", &tape)).expect("a port");
    let mut clients: Vec<_> =
        (0..40).map(|turn| connect(if turn % 2 == 0 { &one } else { &two })).collect();
    for (turn, client) in clients.iter_mut().enumerate() {
        let name: &[u8] = if turn % 2 == 0 { b"one" } else { b"two" };
        assert_eq!(client.take(3).expect("a name"), name);
    }
    one.stop_listening();
    tape.wait_for("one stopped");
    wait_until_refused(address(&one));
    assert_eq!(connect(&two).take(3).expect("a name"), b"two");
}

pub(crate) fn no_more_connections_are_open_than_may_be(setup: Setup) {
    let config = Config { connections_max: 4, ..setup.config() };
    let (engine, tape) = (Running::start(&config), Tape::default());
    let one = engine.listen_tcp("127.0.0.1:0", naming("one", &tape)).expect("a port");
    let two = engine.listen_tcp("127.0.0.1:0", naming("two", &tape)).expect("a port");
    let mut clients: Vec<_> =
        (0..8).map(|turn| connect(if turn % 2 == 0 { &one } else { &two })).collect();
    wait_until("as many as may be are open", || engine.stats().connections_open == 4);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(engine.stats().connections_open, 4);
    // The rest waits in the backlog, and none is lost.
    for _ in 0..8 {
        let ready = |client: &mut Client| client.has_bytes_within(Duration::from_millis(20));
        wait_until("one of them is served", || clients.iter_mut().any(ready));
        let at = clients.iter_mut().position(ready).expect("one was found");
        clients.swap_remove(at);
    }
    wait_until("all are closed", || engine.stats().connections_open == 0);
    assert_eq!(engine.stats().made, 8);
}
