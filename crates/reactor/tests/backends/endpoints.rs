//! Binding: what is stale, what is taken, who shares a port.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;

use gustnado_reactor::{Endpoint, bind, descriptor_limit};

use crate::harness::{address, anywhere};

#[test]
fn sockets_of_one_endpoint_share_its_port() {
    let (sockets, endpoint) = bind(&anywhere(), 3, 16).expect("a port is free");
    assert_eq!(sockets.len(), 3);
    let wanted = address(&endpoint);
    assert_ne!(wanted.port(), 0);
    for socket in sockets {
        let listener = TcpListener::from(socket);
        assert_eq!(listener.local_addr().expect("it is bound"), wanted);
    }
}

#[test]
fn a_port_in_use_is_refused_although_it_would_be_shared() {
    let (sockets, endpoint) = bind(&anywhere(), 2, 16).expect("a port is free");
    let error = bind(&endpoint, 2, 16).expect_err("the first one has it");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    TcpStream::connect(address(&endpoint)).expect("the first one still listens");
    drop(sockets);
    bind(&endpoint, 2, 16).expect("it is free now");
}

#[test]
fn a_port_is_free_at_once_although_its_connections_linger() {
    let (sockets, endpoint) = bind(&anywhere(), 1, 16).expect("a port is free");
    let client = TcpStream::connect(address(&endpoint)).expect("somebody listens");
    let listener = TcpListener::from(sockets.into_iter().next().expect("one was asked for"));
    listener.set_nonblocking(false).expect("a socket can be made so");
    // The side that closes first is the one whose port lingers.
    drop(listener.accept().expect("a client waits"));
    drop((client, listener));
    bind(&endpoint, 1, 16).expect("lingering does not count");
}

#[test]
fn a_socket_file_that_nobody_answers_at_is_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let endpoint = Endpoint::Unix(folder.path().join("socket"));
    let (left_behind, _) = bind(&endpoint, 1, 16).expect("the folder is writable");
    let error = bind(&endpoint, 1, 16).expect_err("somebody answers there");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    drop(left_behind);
    let (sockets, _) = bind(&endpoint, 1, 16).expect("the file is stale");
    assert_eq!(sockets.len(), 1);
}

#[test]
fn a_socket_that_listens_already_is_taken_over_by_its_number() {
    let theirs = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let wanted = theirs.local_addr().expect("it is bound");
    let endpoint = Endpoint::Inherited(theirs.as_raw_fd());
    let (sockets, bound) = bind(&endpoint, 3, 16).expect("it listens");
    assert_eq!((sockets.len(), &bound), (1, &endpoint));
    assert_eq!(bound.to_string(), format!("fd:{}", theirs.as_raw_fd()));
    // It is another descriptor for the same socket.
    drop(theirs);
    let client = TcpStream::connect(wanted).expect("it still listens");
    let ours = TcpListener::from(sockets.into_iter().next().expect("there is one"));
    ours.set_nonblocking(false).expect("a socket can be made so");
    let (_, peer) = ours.accept().expect("a client waits");
    assert_eq!(peer, client.local_addr().expect("it is connected"));
}

#[test]
fn what_does_not_listen_is_not_taken_over() {
    let idle = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let error = bind(&Endpoint::Inherited(idle.as_raw_fd()), 1, 16).expect_err("it cannot");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let file = std::fs::File::open("/dev/null").expect("it is everywhere");
    for number in [file.as_raw_fd(), -1, i32::MAX] {
        bind(&Endpoint::Inherited(number), 1, 16).expect_err("it is no socket");
    }
}

#[test]
fn a_live_socket_s_file_and_other_files_are_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let live = folder.path().join("live");
    let _listener = UnixListener::bind(&live).expect("the folder is writable");
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").expect("the folder is writable");
    for path in [live, file.clone()] {
        let error = bind(&Endpoint::Unix(path), 1, 16).expect_err("it is not ours");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    }
    assert_eq!(std::fs::read_to_string(file).expect("it is still there"), "precious");
}

#[test]
fn there_is_a_limit_of_descriptors() {
    assert!((64..=1 << 22).contains(&descriptor_limit()));
}
