//! Listening and accepting.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::task::Poll;

use gustnado_reactor::{Accepted, Endpoint, Io, IoChoice, bind};

use crate::harness::{Harness, address, connect};

on_both_backends!(
    every_client_is_accepted_once,
    a_full_descriptor_table_pauses_accepting_and_loses_nobody,
    without_room_a_connection_comes_as_a_descriptor_for_another_reactor,
    accepting_can_change_its_mind_about_room,
    what_was_accepted_before_unlisten_can_still_be_had,
    after_unlisten_nobody_is_accepted_and_the_port_is_free,
    ipv6_works,
    unix_sockets_work,
);

/// Answers each connection with the byte it sends.
fn echo_byte(harness: &mut Harness, io: &Io) {
    let byte = harness.recv(io).expect("a byte comes");
    harness.send(io, &byte).expect("the client is there");
}

fn assert_echoed(client: &mut TcpStream, byte: u8) {
    let mut came = [0];
    client.read_exact(&mut came).expect("an echo comes");
    assert_eq!(came, [byte], "another client's byte");
}

fn greet(client: &mut TcpStream, number: usize) -> u8 {
    let byte = u8::try_from(number).expect("tests have few clients");
    client.write_all(&[byte]).expect("the connection is made");
    byte
}

fn every_client_is_accepted_once(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    let mut clients: Vec<_> = (0..30).map(|_| None).collect();
    for wave in clients.chunks_mut(10) {
        for client in &mut *wave {
            *client = Some(connect(address));
        }
        let accepted: Vec<_> = wave.iter().map(|_| harness.accept(&listener)).collect();
        for (number, client) in wave.iter_mut().enumerate() {
            greet(client.as_mut().expect("it is connected"), number);
        }
        for io in &accepted {
            echo_byte(&mut harness, io);
        }
        for (number, client) in wave.iter_mut().enumerate() {
            let byte = u8::try_from(number).expect("ten are few");
            assert_echoed(client.as_mut().expect("it is connected"), byte);
        }
        for io in accepted {
            harness.close(io);
        }
    }
    let more = harness.reactor.accept(&listener, 8, 1);
    assert!(more.is_pending(), "nobody is left");
}

fn a_full_descriptor_table_pauses_accepting_and_loses_nobody(io: IoChoice) {
    const TABLE: usize = 4;
    let mut harness = Harness::with(io, TABLE, 64);
    let (listener, address) = harness.listen();
    let mut clients: Vec<_> = (0..14).map(|_| connect(address)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        greet(client, number);
    }
    let mut open = VecDeque::new();
    for _ in 0..clients.len() {
        if open.len() == TABLE {
            // Nobody asks while the table is full; turns must not accept by themselves.
            harness.turn_for(5);
            let first = open.pop_front().expect("four are open");
            echo_byte(&mut harness, &first);
            harness.close(first);
            harness.turn_until("its slot is free", |reactor| !reactor.has_unfinished());
        }
        let room = TABLE - open.len();
        let accepted =
            harness.finish("accept", |reactor, token| reactor.accept(&listener, room, token));
        let io = harness.take_in(accepted.expect("a connection is accepted"));
        open.push_back(io);
    }
    for io in open {
        echo_byte(&mut harness, &io);
        harness.close(io);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_echoed(client, u8::try_from(number).expect("fourteen are few"));
    }
}

fn without_room_a_connection_comes_as_a_descriptor_for_another_reactor(io: IoChoice) {
    let (mut harness, mut other) = (Harness::open(io), Harness::open(io));
    let (listener, address) = harness.listen();
    for number in 0..3 {
        let mut client = connect(address);
        let byte = greet(&mut client, number);
        let accepted =
            harness.finish("accept", |reactor, token| reactor.accept(&listener, 0, token));
        let Ok(Accepted::Away(fd)) = accepted else { panic!("it came into the table") };
        let io = other.reactor.adopt(fd).expect("its number is below the limit");
        assert!(other.reactor.fd(&io).is_some());
        echo_byte(&mut other, &io);
        assert_echoed(&mut client, byte);
        other.close(io);
        assert_eq!(client.read(&mut [0; 4]).expect("the end comes"), 0);
    }
}

fn accepting_can_change_its_mind_about_room(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    let mut clients = Vec::new();
    for (number, room) in [1, 0, 60, 1, 60, 0, 0, 2, 1, 60].into_iter().enumerate() {
        // What was asked for with other room is under way already.
        for room in [60, 0, 1, room] {
            assert!(harness.reactor.accept(&listener, room, 7).is_pending());
            if number % 2 == 0 {
                harness.turn_for(1);
            }
        }
        let mut client = connect(address);
        greet(&mut client, number);
        let accepted =
            harness.finish("accept", |reactor, token| reactor.accept(&listener, room, token));
        let io = harness.take_in(accepted.expect("a connection is accepted"));
        echo_byte(&mut harness, &io);
        assert_echoed(&mut client, u8::try_from(number).expect("ten are few"));
        clients.push((client, io));
    }
    for (_, io) in clients {
        harness.close(io);
    }
}

fn what_was_accepted_before_unlisten_can_still_be_had(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    assert!(harness.reactor.accept(&listener, 60, 1).is_pending());
    let mut clients: Vec<_> = (0..3).map(|_| connect(address)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        greet(client, number);
    }
    harness.turn_for(20);
    harness.reactor.unlisten(&listener);
    let mut accepted = Vec::new();
    loop {
        match harness.reactor.accept(&listener, 60, 1) {
            Poll::Ready(Ok(connection)) => accepted.push(harness.take_in(connection)),
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending if harness.reactor.is_listening(&listener) => harness.turn(),
            Poll::Pending => break,
        }
    }
    assert_eq!(accepted.len(), 3);
    for io in &accepted {
        echo_byte(&mut harness, io);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_echoed(client, u8::try_from(number).expect("three are few"));
    }
}

fn after_unlisten_nobody_is_accepted_and_the_port_is_free(io: IoChoice) {
    let mut harness = Harness::open(io);
    let (listener, address) = harness.listen();
    assert!(harness.reactor.accept(&listener, 8, 1).is_pending());
    harness.turn_for(5);
    harness.reactor.unlisten(&listener);
    harness.turn_until("nothing listens", |reactor| !reactor.is_listening(&listener));
    drop(listener);
    harness.turn_until("nothing is under way", |reactor| !reactor.has_unfinished());
    assert!(TcpStream::connect(address).is_err(), "somebody still listens");
    assert!(bind(&Endpoint::Tcp(address), 2, 4).is_ok(), "the port is still taken");
}

fn ipv6_works(io: IoChoice) {
    let wanted = Endpoint::Tcp(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)));
    let (mut sockets, bound) = match bind(&wanted, 1, 16) {
        Ok(bound) => bound,
        Err(error) => return println!("skipped: no IPv6 on this machine ({error})"),
    };
    let mut harness = Harness::open(io);
    let listener = harness.listen_on(sockets.pop().expect("one was asked for"));
    let mut client = connect(address(&bound));
    let byte = greet(&mut client, 6);
    let io = harness.accept(&listener);
    echo_byte(&mut harness, &io);
    assert_echoed(&mut client, byte);
}

fn unix_sockets_work(io: IoChoice) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("socket");
    let (mut sockets, bound) =
        bind(&Endpoint::Unix(path.clone()), 3, 16).expect("the folder is writable");
    assert_eq!((sockets.len(), &bound), (1, &Endpoint::Unix(path.clone())));
    let mut harness = Harness::open(io);
    let listener = harness.listen_on(sockets.pop().expect("one was asked for"));
    for _ in 0..3 {
        let mut client = UnixStream::connect(&path).expect("somebody listens");
        client.write_all(b"unix").expect("the connection is made");
        let io = harness.accept(&listener);
        assert_eq!(harness.recv(&io).expect("bytes come"), b"unix");
        harness.send(&io, b"socket").expect("the client is there");
        harness.close(io);
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("the answer ends");
        assert_eq!(answer, "socket");
    }
}
