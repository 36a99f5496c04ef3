//! Limits that strike are told to the program, which may give more time.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{
    Limit, LimitAction, LimitEvent, Request, Response, Routes, Server as Builder, route,
};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{kind, setting};

use crate::harness::http2::heads::block;
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{PATIENCE, Server, Setup, wait_until};
use crate::in_clear;

on_every_server!(
    every_time_that_strikes_is_told,
    every_size_that_strikes_is_told,
    times_may_be_extended,
    a_handler_may_be_silent_as_long_as_its_route_says,
    a_full_socket_has_the_time_of_its_route,
);

const SHORT: Duration = Duration::from_millis(300);

/// A limit, what is set, what was reached, and the request's target.
type Told = (Limit, u64, u64, Option<String>);

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<Told>>>);

impl Tape {
    fn all(&self) -> Vec<Told> {
        self.0.lock().expect("no panic").clone()
    }

    /// Waits for the one entry that is due, and takes it.
    fn take(&self, limit: Limit) -> (u64, u64, Option<String>) {
        wait_until(limit.name(), || !self.all().is_empty());
        let all = std::mem::take(&mut *self.0.lock().expect("no panic"));
        assert_eq!((all.len(), all[0].0), (1, limit), "{all:?}");
        (all[0].1, all[0].2, all[0].3.clone())
    }
}

/// A server that tells the tape, and does what `verdict` says.
fn telling(
    config: Config,
    routes: Routes,
    verdict: impl Fn(&LimitEvent<'_>) -> LimitAction + Send + Sync + 'static,
) -> (Server, Tape) {
    let tape = Tape::default();
    let noting = tape.clone();
    let builder = Builder::new().config(config).routes(routes).on_limit(move |event| {
        let LimitEvent { limit, configured, reached, target, .. } = *event;
        let entry = (limit, configured, reached, target.map(str::to_owned));
        noting.0.lock().expect("no panic").push(entry);
        verdict(event)
    });
    (Server::built(builder), tape)
}

fn routes() -> Routes {
    let read = async |request: Request| match request.into_body().bytes(1 << 20).await {
        Ok(body) => Response::text(body.len().to_string()),
        Err(error) => Response::new(error.status()),
    };
    let hang = async |_: Request| {
        sleep(PATIENCE).await;
        "late"
    };
    Routes::new()
        .post("/inline", |request: &Request| request.bytes().len().to_string())
        .post("/task", read)
        .get("/large", |_: &Request| vec![b'l'; 100_000])
        .get("/hang", hang)
        .route("/idle", route().idle_timeout(SHORT / 2).get(hang))
}

fn timed(setup: Setup) -> Config {
    Config {
        first_request_timeout: SHORT,
        header_timeout: SHORT + Duration::from_millis(1),
        timeout_keep_alive: SHORT + Duration::from_millis(2),
        body_timeout: SHORT + Duration::from_millis(3),
        write_timeout: SHORT + Duration::from_millis(4),
        half_close_timeout: SHORT + Duration::from_millis(5),
        ..in_clear(setup)
    }
}

fn every_time_that_strikes_is_told(setup: Setup) {
    let (server, tape) = telling(timed(setup), routes(), |_| LimitAction::Close);
    let expect = |limit, configured: u64, reached: u64, target: Option<&str>| {
        assert_eq!(tape.take(limit), (configured, reached, target.map(str::to_owned)));
    };
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ended().map(|goaway| goaway.code), Some(ErrorCode::NoError));
    expect(Limit::FirstRequest, 300, 0, None);
    let mut client = Http2Client::connect(server.address());
    client.send(&frame_of(kind::HEADERS, 0, 1, &block("GET", "/", &[]))[..20]);
    assert_eq!(client.ended().map(|goaway| goaway.code), Some(ErrorCode::EnhanceYourCalm));
    // What it sends until then, which is its acknowledgement of settings, is within that frame.
    let (configured, reached, _) = tape.take(Limit::Head);
    assert!(configured == 301 && [20, 29].contains(&reached), "{reached}");
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/none").status, 404);
    assert!(client.ended().is_some());
    expect(Limit::KeepAlive, 302, 0, None);
    for target in ["/inline", "/task"] {
        let mut client = Http2Client::connect(server.address());
        let id = client.request("POST", target, &[], false);
        client.send_data(id, b"hello", false);
        assert_eq!(client.answer(id).status, 408, "{target}");
        expect(Limit::Body, 303, 5, Some(target));
    }
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1_000)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    client.gives_window = false;
    let id = client.get("/large");
    assert_eq!(client.answer(id).reset, Some(ErrorCode::Cancel));
    expect(Limit::Write, 304, 1_000, None);
    drop(client);
    let mut client = Http2Client::connect(server.address());
    client.get("/hang");
    client.half_close();
    client.ended();
    expect(Limit::HalfClose, 305, 0, None);
}

fn every_size_that_strikes_is_told(setup: Setup) {
    let config = Config {
        limit_head_bytes: 1_000,
        limit_target_bytes: 50,
        limit_header_fields: 8,
        limit_body_bytes: 100,
        ..in_clear(setup)
    };
    let (server, tape) = telling(config, routes(), |_| LimitAction::Close);
    let mut client = Http2Client::connect(server.address());
    let long = "x".repeat(1_000);
    let id = client.request("GET", "/none", &[("x-long", &long)], true);
    assert_eq!(client.answer(id).status, 431);
    let (configured, reached, _) = tape.take(Limit::HeadBytes);
    assert!(configured == 1_000 && reached > 1_000, "{reached}");
    assert_eq!(client.ask(&format!("/{}", &long[..60])).status, 414);
    assert_eq!(tape.take(Limit::TargetBytes), (50, 61, None));
    let many: Vec<_> = (0..9).map(|number| (format!("x-{number}"), "y")).collect();
    let many: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let id = client.request("GET", "/none", &many, true);
    assert_eq!(client.answer(id).status, 431);
    assert_eq!(tape.take(Limit::HeaderFields), (8, 9, None));
    for target in ["/inline", "/task"] {
        let id = client.request("POST", target, &[("content-length", "101")], false);
        assert_eq!(client.answer(id).status, 413);
        assert_eq!(tape.take(Limit::BodyBytes), (100, 101, Some(target.to_owned())));
        let id = client.request("POST", target, &[], false);
        client.send_data(id, &[b'a'; 102], false);
        assert_eq!(client.answer(id).status, 413);
        assert_eq!(tape.take(Limit::BodyBytes), (100, 102, Some(target.to_owned())));
    }
}

fn times_may_be_extended(setup: Setup) {
    let (server, tape) = telling(timed(setup), routes(), |_| LimitAction::Wait(PATIENCE));
    let pause = || std::thread::sleep(2 * SHORT);
    let mut client = Http2Client::connect(server.address());
    pause();
    tape.take(Limit::FirstRequest);
    assert_eq!(client.ask("/none").status, 404);
    for target in ["/inline", "/task"] {
        let id = client.request("POST", target, &[], false);
        client.send_data(id, b"hello", false);
        pause();
        tape.take(Limit::Body);
        client.send_data(id, b" world", true);
        assert_eq!(client.answer(id).text(), "11", "{target}");
    }
    drop(client);
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1_000)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    client.gives_window = false;
    let id = client.get("/large");
    client.wait_for(id, |answer| answer.body.len() == 1_000);
    pause();
    tape.take(Limit::Write);
    client.give(id, 1 << 20);
    client.give(0, 1 << 20);
    assert_eq!(client.answer(id).body.len(), 100_000);
}

fn a_handler_may_be_silent_as_long_as_its_route_says(setup: Setup) {
    let (server, tape) = telling(in_clear(setup), routes(), |_| LimitAction::Close);
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/idle").status, 503);
    assert_eq!(tape.take(Limit::Idle), (150, 0, Some("/idle".to_owned())));
    assert_eq!(client.ask("/none").status, 404, "the connection goes on");
    assert_eq!(server.stats().timeouts, 1);
}

/// Asks for far more than kernels hold, with windows for all of it, and reads the beginning.
fn ask_for_much(server: &Server) -> (Http2Client, u32) {
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1 << 30)];
    let mut client = Http2Client::connect_with(server.address(), &settings);
    client.give(0, 1 << 30);
    client.gives_window = false;
    let id = client.get("/much");
    client.wait_for(id, |answer| !answer.body.is_empty());
    (client, id)
}

fn a_full_socket_has_the_time_of_its_route(setup: Setup) {
    const MUCH: usize = 32 << 20;
    let content = Bytes::from(vec![b'm'; MUCH]);
    let of = |time| {
        let content = content.clone();
        let much = route().write_timeout(time).get(move |_: &Request| content.clone());
        Routes::new().route("/much", much)
    };
    let server = Server::routes(in_clear(setup), of(SHORT));
    let (mut client, id) = ask_for_much(&server);
    server.wait_until_empty();
    assert_eq!(server.stats().timeouts, 1);
    client.ended();
    assert!(client.so_far(id).body.len() < MUCH);
    let server = Server::routes(Config { write_timeout: SHORT, ..in_clear(setup) }, of(PATIENCE));
    let (mut client, id) = ask_for_much(&server);
    thread::sleep(2 * SHORT);
    assert_eq!(client.answer(id).body.len(), MUCH);
}
