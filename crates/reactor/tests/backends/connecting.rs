//! Outgoing connections, and readiness for callers who do the calls themselves.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

use gustnado_reactor::{BackendKind, Endpoint, Interest, Io, IoChoice, Outbound, connect_socket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::harness::Harness;

on_both_backends!(
    a_connection_is_made,
    a_connection_that_moves_in_frees_its_descriptor,
    a_refused_connection_is_an_error,
    a_connection_to_a_unix_socket_is_made,
    readiness_to_read_comes_with_the_bytes_and_takes_none,
    readiness_comes_again_for_later_bytes,
);

fn connect(harness: &mut Harness, to: &Endpoint, source: Option<SocketAddr>) -> Result<Io> {
    let outbound = Outbound { source, ..Outbound::default() };
    let socket = connect_socket(to, &outbound)?;
    let io = harness.reactor.adopt(socket)?;
    harness.finish("connect", |reactor, token| reactor.ready(&io, Interest::Write, token));
    harness.reactor.connected(&io).map(|()| io)
}

fn a_connection_is_made(io: IoChoice) {
    let mut harness = Harness::open(io);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let to = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
    let source = SocketAddr::from(([127, 0, 0, 3], 0));
    for from in [None, Some(source)] {
        let io = connect(&mut harness, &to, from).expect("somebody listens");
        let (mut peer, address) = listener.accept().expect("the connection is made");
        if let Some(from) = from {
            assert_eq!(address.ip(), from.ip());
        }
        harness.send(&io, b"hello").expect("the peer is there");
        let mut came = [0; 5];
        peer.read_exact(&mut came).expect("bytes come");
        assert_eq!(&came, b"hello");
        peer.write_all(b"welcome").expect("the connection is open");
        drop(peer);
        assert_eq!(harness.recv_all(&io), b"welcome");
        harness.close(io);
    }
}

fn a_connection_that_moves_in_frees_its_descriptor(io: IoChoice) {
    let mut harness = Harness::open(io);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let to = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
    // More often than the table has room, one after the other: slots are used again.
    for round in 0..40 {
        let mut io = connect(&mut harness, &to, None).expect("somebody listens");
        let (mut peer, _) = listener.accept().expect("the connection is made");
        harness.reactor.make_direct(&mut io).expect("nothing is under way");
        let is_direct = harness.reactor.backend() == BackendKind::Uring;
        assert_eq!(harness.reactor.fd(&io).is_none(), is_direct, "round {round}");
        harness.send(&io, b"hello").expect("the peer is there");
        let mut came = [0; 5];
        peer.read_exact(&mut came).expect("bytes come");
        assert_eq!(&came, b"hello");
        peer.write_all(b"welcome").expect("the connection is open");
        drop(peer);
        assert_eq!(harness.recv_all(&io), b"welcome");
        harness.close(io);
    }
}

fn a_refused_connection_is_an_error(io: IoChoice) {
    let mut harness = Harness::open(io);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let to = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
    drop(listener);
    let error = connect(&mut harness, &to, None).expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

fn a_connection_to_a_unix_socket_is_made(io: IoChoice) {
    let mut harness = Harness::open(io);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("socket");
    let nobody = connect(&mut harness, &Endpoint::Unix(path.clone()), None);
    assert_eq!(nobody.map(drop).expect_err("there is no file").kind(), ErrorKind::NotFound);
    let listener = UnixListener::bind(&path).expect("the folder is writable");
    let io = connect(&mut harness, &Endpoint::Unix(path), None).expect("somebody listens");
    let (mut peer, _) = listener.accept().expect("the connection is made");
    peer.write_all(b"hello").expect("the connection is open");
    assert_eq!(harness.recv(&io).expect("bytes come"), b"hello");
}

fn readiness_to_read_comes_with_the_bytes_and_takes_none(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (io, mut client) = harness.pair();
    assert!(harness.reactor.ready(&io, Interest::Read, 5).is_pending());
    harness.turn_for(10);
    assert!(harness.reactor.ready(&io, Interest::Read, 5).is_pending(), "nothing has come yet");
    client.write_all(b"bytes").expect("the connection is open");
    harness.finish("readiness", |reactor, token| reactor.ready(&io, Interest::Read, token));
    assert_eq!(harness.recv(&io).expect("they are still there"), b"bytes");
}

/// The caller reads by itself: a ring that receives as well would take the bytes first.
fn readiness_comes_again_for_later_bytes(io: IoChoice) {
    let mut harness = Harness::open(io);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let to = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
    let io = connect(&mut harness, &to, None).expect("somebody listens");
    let (mut peer, _) = listener.accept().expect("the connection is made");
    for round in 0..20_u8 {
        peer.write_all(&[round]).expect("the connection is open");
        let mut came = [0; 4];
        let received = loop {
            harness.finish("readiness", |reactor, token| reactor.ready(&io, Interest::Read, token));
            let fd = harness.reactor.fd(&io).expect("it has a descriptor, for it was adopted");
            match recv(fd, &mut came, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => harness.turn_for(1),
                result => break result,
            }
        };
        let (len, _) = received.expect("the connection is open");
        assert_eq!(came[..len], [round]);
    }
}
