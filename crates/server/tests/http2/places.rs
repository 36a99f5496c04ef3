//! Where connections are and how many: spread over the workers, giving way to others, counted for
//! their client, and what is told of their end.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{ClosedConnection, ConnectionFault, Request, Routes, Server as Builder};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::kind;

use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Server, Setup, wait_until};
use crate::in_clear;

on_every_server!(
    connections_that_last_are_spread_over_the_workers,
    idle_connections_give_way_to_newcomers,
    a_part_of_a_frame_gives_way_too,
    what_is_under_way_does_not_give_way,
    a_client_has_its_number_of_connections,
    a_connection_lasts_from_its_accept,
    errors_of_connections_are_told,
);

fn hello() -> Routes {
    Routes::new().get("/", |_: &Request| "hello").get("/wait", async |_: Request| {
        sleep(Duration::from_secs(2)).await;
        "waited"
    })
}

fn connections_that_last_are_spread_over_the_workers(setup: Setup) {
    let server = Server::routes(Config { workers: 4, ..in_clear(setup) }, hello());
    let mut clients: Vec<_> = (0..200).map(|_| Http2Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.ask("/").text(), "hello");
    }
    let open: Vec<u64> =
        server.running().stats_by_worker().iter().map(|worker| worker.connections_open).collect();
    assert_eq!(open.iter().sum::<u64>(), 200, "{open:?}");
    if !setup.is_shared() {
        let most = open.iter().max().copied().unwrap_or(0);
        assert!(most * 4 * 5 <= 200 * 6, "{open:?}: more than 1.2 times the mean");
    }
}

fn idle(server: &Server, count: usize) -> Vec<Http2Client> {
    let mut clients: Vec<_> = (0..count).map(|_| Http2Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.ask("/").text(), "hello");
    }
    clients
}

fn idle_connections_give_way_to_newcomers(setup: Setup) {
    let server = Server::routes(Config { connections_max: 8, ..in_clear(setup) }, hello());
    let clients = idle(&server, 8);
    thread::sleep(Duration::from_millis(1_100));
    let began = Instant::now();
    let mut newcomer = Http2Client::connect(server.address());
    assert_eq!(newcomer.ask("/").text(), "hello");
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    let evicted = server.stats().evicted;
    assert!((1..=4).contains(&evicted), "{evicted} were closed for one");
    let mut told = 0;
    for mut client in clients {
        client.send_frame(kind::PING, 0, 0, b"are here");
        while let Some(frame) = client.next_frame() {
            if frame.is(kind::PING) {
                break;
            }
        }
        if let Some(goaway) = client.goaway {
            assert_eq!((goaway.code, goaway.last), (ErrorCode::NoError, 1));
            told += 1;
        }
    }
    assert_eq!(told, evicted);
}

fn a_part_of_a_frame_gives_way_too(setup: Setup) {
    let server = Server::routes(Config { connections_max: 4, ..in_clear(setup) }, hello());
    let mut clients = idle(&server, 4);
    let ping = frame_of(kind::PING, 0, 0, b"are here");
    for client in &mut clients {
        client.send(&ping[..ping.len() - 1]);
    }
    thread::sleep(Duration::from_millis(1_100));
    let began = Instant::now();
    let mut newcomer = Http2Client::connect(server.address());
    assert_eq!(newcomer.ask("/").text(), "hello");
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}

fn what_is_under_way_does_not_give_way(setup: Setup) {
    let server = Server::routes(Config { connections_max: 3, ..in_clear(setup) }, hello());
    let mut clients: Vec<_> = (0..3).map(|_| Http2Client::connect(server.address())).collect();
    let ids: Vec<_> = clients.iter_mut().map(|client| client.get("/wait")).collect();
    server.wait_until("they are accepted", |stats| stats.connections_open == 3);
    thread::sleep(Duration::from_millis(1_200));
    let mut newcomer = Http2Client::connect(server.address());
    let id = newcomer.get("/");
    for (client, id) in clients.iter_mut().zip(ids) {
        assert_eq!(client.answer(id).text(), "waited");
    }
    // Then they are idle, and give way in time.
    assert_eq!(newcomer.answer(id).text(), "hello");
}

fn a_client_has_its_number_of_connections(setup: Setup) {
    let server = Server::routes(Config { connections_per_client: 3, ..in_clear(setup) }, hello());
    let client_of = |host: u8| {
        let mut client = Http2Client::connect_from(host, server.address());
        assert_eq!(client.ask("/").text(), "hello");
        client
    };
    let first: Vec<_> = (0..3).map(|_| client_of(2)).collect();
    assert_eq!(Http2Client::connect_from(2, server.address()).ended(), None);
    let second: Vec<_> = (0..3).map(|_| client_of(3)).collect();
    server.wait_until("it is counted", |stats| stats.clients_over == 1);
    drop(first);
    server.wait_until("they have gone", |stats| stats.connections_open == 3);
    client_of(2);
    drop(second);
}

fn a_connection_lasts_from_its_accept(setup: Setup) {
    const BEFORE: Duration = Duration::from_millis(300);
    // Clocks of milliseconds.
    const AT_LEAST: Duration = Duration::from_millis(280);
    let closed = Arc::new(Mutex::new(Vec::<ClosedConnection>::new()));
    let noting = Arc::clone(&closed);
    let builder = Builder::new().config(in_clear(setup)).routes(hello());
    let server = Server::built(builder.on_closed(move |end| {
        noting.lock().expect("no panic").push(*end);
    }));
    let mut client = Http2Client::connect_silently(server.address());
    thread::sleep(BEFORE);
    client.begin(&[]);
    for _ in 0..3 {
        assert_eq!(client.ask("/").text(), "hello");
    }
    drop(client);
    wait_until("it is told", || !closed.lock().expect("no panic").is_empty());
    let closed = closed.lock().expect("no panic");
    assert_eq!((closed.len(), closed[0].requests), (1, 3));
    assert!(closed[0].lasted >= AT_LEAST, "{:?}", closed[0]);
}

fn errors_of_connections_are_told(setup: Setup) {
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let noting = Arc::clone(&told);
    let builder = Builder::new().config(in_clear(setup)).routes(hello());
    let server = Server::built(builder.on_connection_error(move |fault: &ConnectionFault<'_>| {
        noting.lock().expect("no panic").push(fault.to_string());
    }));
    let mut fine = Http2Client::connect(server.address());
    assert_eq!(fine.ask("/").text(), "hello");
    drop(fine);
    let mut client = Http2Client::connect(server.address());
    client.send_frame(kind::DATA, 0, 0, b"on no stream");
    let goaway = client.ended().expect("it says why");
    assert_eq!(goaway.code, ErrorCode::ProtocolError);
    server.wait_until_empty();
    let told = told.lock().expect("no panic");
    let line = format!("{}: PROTOCOL_ERROR: {}", client.own_address(), goaway.reason);
    assert_eq!(*told, [line]);
}
