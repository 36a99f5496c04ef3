//! PING of the server: who has a request under way and is silent is asked, and has to answer.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{flag, kind};

use crate::harness::http2::{Frame, Http2Client};
use crate::harness::{PATIENCE, Server, Setup};
use crate::in_clear;

on_every_server!(
    a_silent_client_with_a_request_is_asked_and_may_wait_on,
    who_does_not_answer_is_closed,
    anything_that_comes_is_an_answer,
    an_idle_connection_is_not_asked,
    nobody_is_asked_unless_that_is_set,
);

const PING: Duration = Duration::from_millis(150);

fn pinging(setup: Setup, h2_ping_timeout: Duration) -> Config {
    Config { h2_ping: PING, h2_ping_timeout, ..in_clear(setup) }
}

fn slow(time: Duration) -> Routes {
    let wait = move |_: Request| async move {
        sleep(time).await;
        "late"
    };
    let read = async |request: Request| Response::stream(request.into_body());
    Routes::new().get("/", wait).post("/", read).get("/fast", |_: &Request| "fast")
}

fn asks(frame: &Frame) -> bool {
    frame.is(kind::PING) && !frame.header.has(flag::ACK)
}

fn a_silent_client_with_a_request_is_asked_and_may_wait_on(setup: Setup) {
    let server = Server::routes(pinging(setup, PATIENCE), slow(Duration::from_secs(1)));
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    let mut asked = 0;
    while !client.so_far(id).is_whole {
        asked += usize::from(asks(&client.next_frame().expect("an answer")));
    }
    assert!((2..=7).contains(&asked), "{asked} times in a second");
    assert_eq!(client.so_far(id).text(), "late");
    assert_eq!(client.ask("/fast").text(), "fast");
    assert_eq!(server.stats().http2_ping_timeouts, 0);
}

fn who_does_not_answer_is_closed(setup: Setup) {
    let server = Server::routes(pinging(setup, PING), slow(PATIENCE));
    let mut client = Http2Client::connect(server.address());
    client.answers_pings = false;
    client.get("/");
    let began = Instant::now();
    let goaway = client.ended().expect("it says why");
    assert_eq!(goaway.code, ErrorCode::NoError);
    assert!(goaway.reason.contains("PING"), "{goaway:?}");
    assert!(began.elapsed() >= PING, "{:?}", began.elapsed());
    drop(client);
    server.wait_until_empty();
    let stats = server.stats();
    assert_eq!((stats.http2_ping_timeouts, stats.timeouts, stats.http2_errors), (1, 1, 0));
    server.wait_until("its handler has ended", |stats| stats.tasks_live <= 2);
}

fn anything_that_comes_is_an_answer(setup: Setup) {
    let server = Server::routes(pinging(setup, PATIENCE / 4), slow(PATIENCE));
    let mut client = Http2Client::connect(server.address());
    client.answers_pings = false;
    let id = client.request("POST", "/", &[], false);
    for _ in 0..4 {
        while !asks(&client.next_frame().expect("it goes on")) {}
        client.send_data(id, b"still here", false);
    }
    client.send_data(id, b"", true);
    assert_eq!(client.answer(id).body.len(), 40);
    assert_eq!(server.stats().http2_ping_timeouts, 0);
}

fn an_idle_connection_is_not_asked(setup: Setup) {
    let server = Server::routes(pinging(setup, PING), slow(PATIENCE));
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/fast").text(), "fast");
    thread::sleep(4 * PING);
    client.send_frame(kind::PING, 0, 0, b"are here");
    let frame = client.next_frame().expect("it is open");
    assert!(frame.is(kind::PING) && frame.header.has(flag::ACK), "{frame:?}");
}

fn nobody_is_asked_unless_that_is_set(setup: Setup) {
    let server = Server::routes(in_clear(setup), slow(4 * PING));
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    while !client.so_far(id).is_whole {
        let frame = client.next_frame().expect("an answer");
        assert!(!frame.is(kind::PING), "{frame:?}");
    }
}
