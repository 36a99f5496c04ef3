//! How a connection ends: the server drains, the client goes, nobody asks any more.

use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Routes};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::kind;

use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Server, Setup};
use crate::in_clear;

on_every_server!(
    a_drain_says_so_twice_and_lets_streams_finish,
    a_client_that_leaves_gets_what_it_asked_for,
    a_client_that_sends_no_more_gets_what_it_asked_for,
    an_idle_connection_ends_with_a_word,
    a_frame_that_is_kept_open_is_no_request,
    a_connection_that_never_asks_ends,
    a_frame_that_does_not_end_is_timed_out,
    the_limit_of_requests_ends_in_order,
    a_reader_that_takes_nothing_is_cut,
);

fn slow() -> Routes {
    Routes::new().get("/", |_: &Request| "here").get("/slow", async |_: Request| {
        sleep(Duration::from_millis(400)).await;
        "slow"
    })
}

fn a_drain_says_so_twice_and_lets_streams_finish(setup: Setup) {
    let server = Server::routes(in_clear(setup), slow());
    let mut client = Http2Client::connect(server.address());
    let mut idle = Http2Client::connect(server.address());
    assert_eq!(idle.ask("/").text(), "here");
    let under_way = client.get("/slow");
    client.ping();
    thread::scope(|scope| {
        scope.spawn(|| {
            let report = server.running().drain(Duration::from_secs(5));
            assert_eq!(report.cut, 0, "{report:?}");
        });
        // First: it is about to end, and what is under way to it is still served.
        while client.goaway.is_none() {
            client.next_frame().expect("a GOAWAY");
        }
        let first = client.goaway.clone().expect("it is here");
        assert_eq!((first.last, first.code), (i32::MAX.unsigned_abs(), ErrorCode::NoError));
        let late = client.get("/");
        assert_eq!(client.answer(late).text(), "here");
        assert_eq!(client.answer(under_way).text(), "slow");
        let last = client.ended().expect("a GOAWAY");
        assert_eq!((last.last, last.code), (late, ErrorCode::NoError));
        let last = idle.ended().expect("a GOAWAY");
        assert_eq!((last.last, last.code), (1, ErrorCode::NoError));
    });
}

fn a_client_that_leaves_gets_what_it_asked_for(setup: Setup) {
    let server = Server::routes(in_clear(setup), slow());
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/slow");
    client.send_frame(kind::GOAWAY, 0, 0, &[0; 8]);
    assert_eq!(client.answer(id).text(), "slow");
    client.ended();
    server.wait_until_empty();
}

fn a_client_that_sends_no_more_gets_what_it_asked_for(setup: Setup) {
    let server = Server::routes(in_clear(setup), slow());
    let mut client = Http2Client::connect(server.address());
    let ids = [client.get("/slow"), client.get("/")];
    client.half_close();
    assert_eq!(client.answer(ids[0]).text(), "slow");
    assert_eq!(client.answer(ids[1]).text(), "here");
    client.ended();
    server.wait_until_empty();
}

fn an_idle_connection_ends_with_a_word(setup: Setup) {
    let config = Config { timeout_keep_alive: Duration::from_millis(300), ..in_clear(setup) };
    let server = Server::routes(config, slow());
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/slow").text(), "slow", "a handler may take longer");
    let goaway = client.ended().expect("a GOAWAY");
    assert_eq!((goaway.last, goaway.code), (1, ErrorCode::NoError));
    server.wait_until("it is counted", |stats| stats.idle_closed == 1);
}

fn a_frame_that_is_kept_open_is_no_request(setup: Setup) {
    let config = Config { timeout_keep_alive: Duration::from_millis(400), ..in_clear(setup) };
    let server = Server::routes(config, slow());
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/").text(), "here");
    let ping = frame_of(kind::PING, 0, 0, b"are here");
    let (first, last) = ping.split_at(ping.len() - 1);
    client.send(first);
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(50));
        // The end of one and the beginning of the next.
        if !client.try_send(&[last, first].concat()) {
            break;
        }
    }
    server.wait_until("it has ended", |stats| stats.idle_closed == 1);
}

fn a_connection_that_never_asks_ends(setup: Setup) {
    let config = Config { first_request_timeout: Duration::from_millis(300), ..in_clear(setup) };
    let server = Server::routes(config, slow());
    let mut client = Http2Client::connect(server.address());
    let code = client.ended().map(|goaway| goaway.code);
    assert_eq!(code, Some(ErrorCode::NoError));
    server.wait_until("it is counted", |stats| stats.never_asked == 1);
}

fn a_frame_that_does_not_end_is_timed_out(setup: Setup) {
    let config = Config {
        header_timeout: Duration::from_millis(300),
        first_request_timeout: Duration::from_mins(1),
        ..in_clear(setup)
    };
    let server = Server::routes(config, slow());
    let mut client = Http2Client::connect(server.address());
    client.ping();
    client.send(&[0, 0, 100, 1, 4, 0]);
    let code = client.ended().map(|goaway| goaway.code);
    assert_eq!(code, Some(ErrorCode::EnhanceYourCalm));
    assert_eq!(server.stats().timeouts, 1);
}

fn the_limit_of_requests_ends_in_order(setup: Setup) {
    let config = Config { max_requests_per_connection: 3, ..in_clear(setup) };
    let server = Server::routes(config, slow());
    let mut client = Http2Client::connect(server.address());
    for _ in 0..3 {
        assert_eq!(client.ask("/").text(), "here");
    }
    let goaway = client.ended().expect("a GOAWAY");
    assert_eq!(goaway.code, ErrorCode::NoError);
}

fn a_reader_that_takes_nothing_is_cut(setup: Setup) {
    let config = Config { write_timeout: Duration::from_millis(300), ..in_clear(setup) };
    let server = Server::routes(config, Routes::new().get("/", |_: &Request| "x".repeat(200_000)));
    let mut client = Http2Client::connect(server.address());
    client.gives_window = false;
    let id = client.get("/");
    client.wait_for(id, |answer| answer.body.len() == 65_535);
    // Its window stays shut: its stream is over, the connection is not.
    assert_eq!(client.answer(id).reset, Some(ErrorCode::Cancel));
    assert_eq!(server.stats().timeouts, 1);
    client.ping();
}
