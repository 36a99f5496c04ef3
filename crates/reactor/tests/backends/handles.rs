//! What safe code may do with a socket's handle and its name, at the wrong time or on two threads:
//! the bytes of one socket never reach another.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_reactor::{
    BackendKind, BufferAccount, Clock, Endpoint, Io, IoChoice, IoId, Options, Reactor,
};
use rustix::net::sockopt;

use crate::harness::{Harness, PATIENCE, has_uring};

on_both_backends!(
    a_socket_that_sends_does_not_move_in,
    a_socket_with_bytes_to_read_does_not_move_in,
    a_socket_moves_in_with_the_names_it_was_given,
    a_socket_is_exported_while_it_is_in_use,
);

const LEN: usize = 120_000;

/// A connection whose peer has room for a few kilobytes only; on a reactor that listens to nothing.
fn narrow_pair(harness: &mut Harness) -> (Io, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    sockopt::set_socket_recv_buffer_size(&listener, 4_096).expect("a small buffer");
    let address = listener.local_addr().expect("it is bound");
    let own = TcpStream::connect(address).expect("it listens");
    sockopt::set_socket_send_buffer_size(&own, 4_096).expect("a small buffer");
    own.set_nonblocking(true).expect("a socket takes this");
    let (peer, _) = listener.accept().expect("a connection waits");
    peer.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is valid");
    (harness.reactor.adopt(OwnedFd::from(own)).expect("its number is below the limit"), peer)
}

/// Reads what `peer` is sent, while the reactor turns.
fn read_all(harness: &mut Harness, mut peer: TcpStream, len: usize) -> Vec<u8> {
    let reader = thread::spawn(move || {
        let mut bytes = vec![0; len];
        peer.read_exact(&mut bytes).expect("it was all sent");
        bytes
    });
    while !reader.is_finished() {
        harness.turn_for(1);
    }
    reader.join().expect("it reads within its time")
}

fn a_socket_that_sends_does_not_move_in(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (mut first, first_peer) = narrow_pair(&mut harness);
    let mut out = Some(harness.outgoing(&vec![b'a'; LEN]));
    assert!(harness.reactor.send(&first, &mut out, 1).is_pending());
    harness.turn_for(5);
    let before = first.id();
    let moved = harness.reactor.make_direct(&mut first);
    match io {
        IoChoice::Epoll => moved.expect("there it always stays as it is"),
        _ => assert_eq!(moved.expect_err("it sends").kind(), ErrorKind::ResourceBusy),
    }
    assert_eq!(first.id(), before, "it is what it was");
    let (second, second_peer) = narrow_pair(&mut harness);
    let mut other = Some(harness.outgoing(&vec![b'b'; LEN]));
    assert!(harness.reactor.send(&second, &mut other, 2).is_pending());
    harness.turn_for(5);
    let reader = thread::spawn({
        let mut peer = first_peer.try_clone().expect("a descriptor is free");
        move || {
            let mut bytes = vec![0; LEN];
            peer.read_exact(&mut bytes).map(|()| bytes)
        }
    });
    let sent =
        harness.finish("the first send", |reactor, token| reactor.send(&first, &mut out, token));
    sent.expect("the peer reads");
    let bytes = reader.join().expect("it reads").expect("it was all sent");
    let foreign = bytes.iter().filter(|byte| **byte != b'a').count();
    assert_eq!(foreign, 0, "so many bytes of {LEN} were another socket's");
    drop(first_peer);
    let reader = thread::spawn(move || {
        let (mut peer, mut bytes) = (second_peer, vec![0; LEN]);
        peer.read_exact(&mut bytes).map(|()| bytes)
    });
    let sent = harness
        .finish("the second send", |reactor, token| reactor.send(&second, &mut other, token));
    sent.expect("the peer reads");
    assert!(reader.join().expect("it reads").expect("all was sent") == vec![b'b'; LEN]);
    // Nothing is under way any more.
    harness.reactor.make_direct(&mut first).expect("it is at rest");
    harness.reactor.close(first);
    harness.reactor.close(second);
}

fn a_socket_with_bytes_to_read_does_not_move_in(io: IoChoice) {
    let mut harness = Harness::with(io, 64, 8);
    for _ in 0..20 {
        let (mut own, mut peer) = narrow_pair(&mut harness);
        assert!(harness.reactor.recv(&own, 1).is_pending());
        if io == IoChoice::Uring {
            harness.reactor.make_direct(&mut own).expect_err("it receives");
        }
        peer.write_all(b"bytes").expect("the connection is open");
        harness.turn_for(2);
        if io == IoChoice::Uring {
            harness.reactor.make_direct(&mut own).expect_err("it has received");
        }
        assert_eq!(harness.recv(&own).expect("nothing was lost"), b"bytes");
        harness.reactor.close(own);
    }
}

fn a_socket_moves_in_with_the_names_it_was_given(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (mut own, peer) = narrow_pair(&mut harness);
    let addrs = harness.reactor.addrs(own.id(), &mut harness.woken).expect("it is open");
    let told = Endpoint::Tcp("192.0.2.1:5".parse().expect("an address"));
    let addrs = gustnado_reactor::SocketAddrs { peer: Some(told), ..addrs };
    harness.reactor.override_addrs(&own, addrs.clone());
    harness.reactor.make_direct(&mut own).expect("nothing is under way");
    assert_eq!(harness.reactor.addrs(own.id(), &mut harness.woken).expect("it is open"), addrs);
    harness.send(&own, b"as before").expect("the peer is there");
    assert_eq!(read_all(&mut harness, peer, 9), b"as before");
    harness.reactor.close(own);
}

fn a_socket_is_exported_while_it_is_in_use(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (own, mut peer) = narrow_pair(&mut harness);
    assert!(harness.reactor.recv(&own, 1).is_pending());
    // Not submitted yet: the receive names the socket by its number.
    let away = harness.finish("export", |reactor, token| reactor.export(&own, token));
    let away = TcpStream::from(away.expect("a descriptor is free"));
    drop(away);
    // Whoever has that number next is not received from.
    let other = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    peer.write_all(b"own").expect("the connection is open");
    assert_eq!(harness.recv(&own).expect("it was not closed"), b"own");
    drop(other);
    harness.reactor.close(own);
}

/// The memory that the kernel writes to is laid out for a power of two.
#[test]
fn a_number_of_buffers_that_no_ring_can_have_is_refused() {
    if !has_uring("handles::a_number_of_buffers_that_no_ring_can_have_is_refused") {
        return;
    }
    for buffers in [0, 3, 1_000, u16::MAX] {
        let options = Options {
            io: IoChoice::Uring,
            direct_max: 8,
            buffers,
            installed_max: 0,
            clock: Clock::start(),
            account: BufferAccount::default(),
        };
        let (reactor, refused) = Reactor::new(&options).expect("epoll stands in");
        let refused = refused.expect("a ring cannot have so many");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        assert_eq!(reactor.backend(), BackendKind::Epoll);
    }
}

#[test]
#[should_panic = "after it was taken"]
fn a_handle_that_was_taken_is_no_socket() {
    let mut harness = Harness::open(IoChoice::Epoll);
    let (mut own, _peer) = narrow_pair(&mut harness);
    let taken = own.take();
    harness.reactor.close(taken);
    assert_eq!(own.id(), IoId::NONE);
    let _ = harness.reactor.recv(&own, 1);
}

/// Of a reactor that two threads share, one opens and closes sockets, which get the same number
/// again and again. The other asks for the names of what may be closed by then.
#[test]
fn names_are_never_another_socket_s_while_its_owner_closes() {
    let options = Options {
        io: IoChoice::Epoll,
        direct_max: 0,
        buffers: 8,
        installed_max: 0,
        clock: Clock::start(),
        account: BufferAccount::default(),
    };
    let (_alert, seeds) = Reactor::shared(&options, 2).expect("a reactor can be had");
    let [owner, asker] = <[_; 2]>::try_from(seeds).ok().expect("two were asked for");
    let newest = Mutex::new((IoId::NONE, None));
    let is_over = AtomicBool::new(false);
    let (mut answered, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut reactor = owner.grow(BufferAccount::default());
            let until = Instant::now() + Duration::from_millis(700);
            while Instant::now() < until {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
                let local = Endpoint::Tcp(socket.local_addr().expect("it is bound"));
                let io = reactor.adopt(OwnedFd::from(socket)).expect("it is below the limit");
                *newest.lock().expect("nobody panics") = (io.id(), Some(local.clone()));
                let addrs = reactor.addrs(io.id(), &mut Vec::new()).expect("it is open");
                assert_eq!(addrs.local, local, "its own owner was told of another");
                reactor.close(io);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let mut reactor = asker.grow(BufferAccount::default());
        while !is_over.load(Ordering::Relaxed) {
            let (id, local) = newest.lock().expect("nobody panics").clone();
            match reactor.addrs(id, &mut Vec::new()) {
                Ok(addrs) => {
                    assert_eq!(Some(addrs.local), local, "told of another socket");
                    answered += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound);
                    refused += 1;
                }
            }
        }
    });
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
}
