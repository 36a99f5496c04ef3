//! How tunnels over streams end that neither side has ended: drains, time-outs, panics.

use std::future::pending;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::spawn;
use gustnado::{Request, Response, Routes, Tunnel, TunnelError};
use gustnado_http::h2::ErrorCode;

use crate::harness::echo::{Echo, echo};
use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::{Server, Setup};
use crate::in_clear;
use crate::tunnels::{expect, open, opened};

on_every_server!(
    a_drain_tells_protocols_and_tunnels,
    no_tunnel_begins_during_a_drain,
    a_tunnel_that_does_not_end_is_cut,
    no_time_limit_of_http_holds_for_a_tunnel,
    a_tunnel_has_a_time_limit_of_its_own,
    a_peer_that_takes_nothing_is_given_up,
    a_tunnel_that_panics_ends_its_stream_only,
    a_protocol_that_gives_up_resets_its_stream,
    a_tunnel_is_for_the_task_of_its_function,
);

fn only(upgrade: impl Fn() -> Response + Send + Sync + 'static) -> Routes {
    Routes::new().get("/", move |_: &Request| upgrade()).get("/text", |_: &Request| "text")
}

fn a_drain_tells_protocols_and_tunnels(setup: Setup) {
    async fn polite(mut tunnel: Tunnel) {
        while let Ok(bytes) = tunnel.recv().await {
            tunnel.send(bytes).await.expect("the peer reads");
        }
        tunnel.send("bye").await.expect("the peer reads");
        let last = tunnel.recv().await.expect("there is still time");
        tunnel.send(last).await.expect("the peer reads");
    }
    let routes = only(|| Response::upgrade("echo", polite)).get("/protocol", |_: &Request| {
        Response::upgrade("echo", async |tunnel: Tunnel| _ = tunnel.run(Echo).await)
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let (protocol, tunnel) = (opened(&mut client, "/protocol"), opened(&mut client, "/"));
    let report = thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(Duration::from_secs(20)));
        let ended = client.answer(protocol);
        assert_eq!((&*ended.body, ended.reset), (&b""[..], None), "it knows of the end");
        expect(&mut client, tunnel, b"bye");
        client.send_data(tunnel, b"thanks", false);
        let ended = client.answer(tunnel);
        assert_eq!((&*ended.text(), ended.reset), ("byethanks", None));
        let last = client.ended().expect("a GOAWAY");
        assert_eq!((last.last, last.code), (tunnel, ErrorCode::NoError));
        draining.join().expect("it ends")
    });
    assert_eq!(report.cut, 0, "{report:?}");
}

fn no_tunnel_begins_during_a_drain(setup: Setup) {
    let routes = only(|| Response::upgrade("echo", echo));
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let held = opened(&mut client, "/");
    thread::scope(|scope| {
        scope.spawn(|| server.running().drain(Duration::from_secs(20)));
        while client.goaway.is_none() {
            client.next_frame().expect("a GOAWAY");
        }
        let late = open(&mut client, "/");
        assert_eq!(client.answer(late).status, 503);
        client.send_data(held, b"", true);
        client.ended();
    });
}

fn a_tunnel_that_does_not_end_is_cut(setup: Setup) {
    let stubborn = async |mut tunnel: Tunnel| {
        while !matches!(tunnel.recv().await, Err(TunnelError::Ending)) {}
        while tunnel.recv().await.is_ok() {}
        pending::<()>().await;
    };
    let server = Server::routes(in_clear(setup), only(move || Response::upgrade("echo", stubborn)));
    let mut client = Http2Client::connect(server.address());
    opened(&mut client, "/");
    let report = server.running().drain(Duration::from_millis(400));
    assert_eq!(report.cut, 1, "{report:?}");
    client.ended();
}

fn no_time_limit_of_http_holds_for_a_tunnel(setup: Setup) {
    let short = Duration::from_millis(50);
    let config = Config {
        timeout_keep_alive: short,
        header_timeout: short,
        body_timeout: short,
        ..in_clear(setup)
    };
    let server = Server::routes(config, only(|| Response::upgrade("echo", echo)));
    let mut client = Http2Client::connect(server.address());
    let id = opened(&mut client, "/");
    thread::sleep(short * 4);
    client.send_data(id, b"late", false);
    expect(&mut client, id, b"late");
}

fn a_tunnel_has_a_time_limit_of_its_own(setup: Setup) {
    let bounded = async |mut tunnel: Tunnel| {
        tunnel.set_timeout(Some(Duration::from_millis(60)));
        let received = tunnel.recv().await;
        assert!(matches!(received, Err(TunnelError::TimedOut)), "{received:?}");
        tunnel.send("late").await.expect("the peer reads");
    };
    let server = Server::routes(in_clear(setup), only(move || Response::upgrade("echo", bounded)));
    let mut client = Http2Client::connect(server.address());
    let id = opened(&mut client, "/");
    assert_eq!(client.answer(id).text(), "late");
}

fn a_peer_that_takes_nothing_is_given_up(setup: Setup) {
    let (sender, receiver) = mpsc::channel();
    let routes = only(move || {
        let sender = sender.clone();
        Response::upgrade("echo", async move |mut tunnel: Tunnel| {
            tunnel.set_timeout(Some(Duration::from_millis(100)));
            sender.send(tunnel.send(noise(4, 300_000)).await).expect("the test waits");
            sender.send(tunnel.send("more").await).expect("the test waits");
        })
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    client.gives_window = false;
    let id = opened(&mut client, "/");
    assert_eq!(client.answer(id).reset, Some(ErrorCode::Cancel));
    let result = receiver.recv().expect("it was tried");
    assert!(matches!(result, Err(TunnelError::TimedOut)), "{result:?}");
    let result = receiver.recv().expect("it was tried");
    assert!(matches!(result, Err(TunnelError::Closed)), "{result:?}");
    assert_eq!(server.stats().timeouts, 1);
    client.ping();
}

fn a_tunnel_that_panics_ends_its_stream_only(setup: Setup) {
    let failing = async |mut tunnel: Tunnel| {
        _ = tunnel.recv().await;
        panic!("of a tunnel");
    };
    let server = Server::routes(in_clear(setup), only(move || Response::upgrade("echo", failing)));
    let mut client = Http2Client::connect(server.address());
    let id = opened(&mut client, "/");
    client.send_data(id, b"x", false);
    assert_eq!(client.answer(id).reset, Some(ErrorCode::InternalError));
    assert_eq!(client.ask("/text").text(), "text");
    assert_eq!(server.stats().panics, 1);
}

/// Cuts its connection once something comes.
struct Abrupt;

impl gustnado::protocol::Protocol for Abrupt {
    fn data_received(&mut self, transport: &mut gustnado::protocol::Transport, _: &[u8]) {
        transport.write(b"lost");
        transport.abort_connection();
    }
}

fn a_protocol_that_gives_up_resets_its_stream(setup: Setup) {
    let abrupt = || {
        Response::upgrade("echo", async |tunnel: Tunnel| {
            let reason = tunnel.run(Abrupt).await.expect("it ran");
            assert_eq!(reason, gustnado::protocol::Reason::Aborted);
        })
    };
    let server = Server::routes(in_clear(setup), only(abrupt));
    let mut client = Http2Client::connect(server.address());
    let id = opened(&mut client, "/");
    client.send_data(id, b"x", false);
    assert_eq!(client.answer(id).reset, Some(ErrorCode::Cancel));
    assert_eq!((client.ask("/text").text(), server.stats().panics), ("text".to_owned(), 0));
}

fn a_tunnel_is_for_the_task_of_its_function(setup: Setup) {
    let (sender, receiver) = mpsc::channel();
    let routes = only(move || {
        let sender = sender.clone();
        Response::upgrade("echo", async move |mut tunnel: Tunnel| {
            let elsewhere = spawn(async move {
                sender.send(tunnel.send("x").await).expect("the test waits");
                sender.send(tunnel.recv().await.map(|_| ())).expect("the test waits");
                tunnel
            });
            let tunnel = elsewhere.expect("there is room").await.expect("it does not panic");
            // It may be dropped anywhere.
            thread::spawn(move || drop(tunnel)).join().expect("it does not panic");
        })
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = opened(&mut client, "/");
    for _ in 0..2 {
        let result = receiver.recv().expect("it was tried");
        assert!(matches!(result, Err(TunnelError::Closed)), "{result:?}");
    }
    let answer = client.answer(id);
    assert_eq!((&*answer.text(), answer.reset), ("", None));
}
