//! Asking for the names of both ends, and other calls that need a descriptor.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::task::Poll;
use std::time::Duration;

use gustnado_reactor::{Endpoint, IoChoice, IoId, SocketAddrs, bind};
use rustix::net::sockopt;

use crate::harness::{Harness, connect};

on_both_backends!(
    both_ends_have_their_names,
    names_that_were_said_last_as_long_as_the_socket,
    names_are_remembered_of_a_peer_that_is_gone,
    unix_ends_have_theirs,
    names_are_asked_among_many_busy_connections,
    an_option_is_set_on_the_socket_itself,
    a_socket_that_is_closed_has_no_names,
);

fn both_ends_have_their_names(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    for _ in 0..3 {
        let addrs = harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open");
        let peer = client.local_addr().expect("it is connected");
        let local = client.peer_addr().expect("it is connected");
        assert_eq!(addrs.peer, Some(Endpoint::Tcp(peer)));
        assert_eq!(addrs.local, Endpoint::Tcp(local));
    }
    harness.reactor.close(io);
}

fn names_that_were_said_last_as_long_as_the_socket(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    let told = |text: &str| Endpoint::Tcp(text.parse().expect("an address of this test"));
    for round in 0..3 {
        let client = connect(address);
        let io = harness.accept(&listener);
        if round > 0 {
            _ = harness.reactor.addrs(io.id(), &mut harness.woken);
        }
        let said = SocketAddrs { peer: Some(told("192.0.2.1:5")), local: told("192.0.2.2:80") };
        harness.reactor.override_addrs(&io, said.clone());
        for _ in 0..2 {
            let addrs = harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open");
            assert_eq!(addrs, said);
        }
        harness.reactor.close(io);
        harness.turn_for(20);
        drop(client);
        // Whoever gets its number has names of its own.
        let client = connect(address);
        let io = harness.accept(&listener);
        let addrs = harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open");
        let own = client.local_addr().expect("it is connected");
        assert_eq!(addrs.peer, Some(Endpoint::Tcp(own)));
        harness.reactor.close(io);
        harness.turn_for(20);
    }
    harness.reactor.unlisten(&listener);
}

fn names_are_remembered_of_a_peer_that_is_gone(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, client) = harness.pair();
    let before = harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open");
    // A reset: the kernel could not say any more who that was.
    sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("a socket takes this");
    drop(client);
    harness.turn_for(20);
    let after =
        harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open on this side");
    assert_eq!((&after, after.peer.is_some()), (&before, true));
    harness.reactor.close(io);
}

fn unix_ends_have_theirs(io: IoChoice) {
    let mut harness = Harness::open(io);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("socket");
    let (mut sockets, _) = bind(&Endpoint::Unix(path.clone()), 1, 16).expect("it is free");
    let listener = harness.listen_on(sockets.pop().expect("one was asked for"));
    let _client = UnixStream::connect(&path).expect("somebody listens");
    let io = harness.accept(&listener);
    let addrs = harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open");
    assert_eq!(addrs.peer, Some(Endpoint::Unix("".into())));
    assert_eq!(addrs.local, Endpoint::Unix(path));
    harness.reactor.close(io);
    harness.reactor.unlisten(&listener);
}

fn names_are_asked_among_many_busy_connections(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    let mut pairs = Vec::new();
    for _ in 0..24 {
        let client = connect(address);
        pairs.push((harness.accept(&listener), client));
    }
    for round in 0..20_u8 {
        for (at, (io, client)) in pairs.iter_mut().enumerate() {
            // What arrives around the question must be there afterwards, once.
            let (before, after) = ([round, 1], [round, 2]);
            client.write_all(&before).expect("the socket takes two bytes");
            let token = 100 + at as u64;
            let early = harness.reactor.recv(io, token);
            let addrs = harness.reactor.addrs(io.id(), &mut harness.woken).expect("it is open");
            let own = client.local_addr().expect("it is connected");
            assert_eq!(addrs.peer, Some(Endpoint::Tcp(own)));
            client.write_all(&after).expect("the socket takes two bytes");
            let mut received = match early {
                Poll::Ready(piece) => piece.expect("bytes").bytes().to_vec(),
                Poll::Pending => Vec::new(),
            };
            while received.len() < 4 {
                received.extend(harness.recv(io).expect("bytes are there"));
            }
            assert_eq!(received, [before, after].concat());
        }
    }
    for (io, _client) in pairs {
        harness.reactor.close(io);
    }
    harness.reactor.unlisten(&listener);
}

fn an_option_is_set_on_the_socket_itself(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    let set = harness.reactor.with_descriptor(&io, &mut harness.woken, |descriptor| {
        Ok(sockopt::set_socket_linger(descriptor, Some(Duration::ZERO))?)
    });
    set.expect("a socket takes this");
    harness.reactor.close(io);
    harness.turn_for(20);
    let error = client.read(&mut [0]).expect_err("it is told");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

fn a_socket_that_is_closed_has_no_names(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, _client) = harness.pair();
    let id = io.id();
    harness.reactor.close(io);
    harness.turn_for(20);
    // Its number may be another's by now.
    let _taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    for id in [id, IoId::NONE] {
        let error = harness.reactor.addrs(id, &mut harness.woken).expect_err("it is closed");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
