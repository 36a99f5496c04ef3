//! What is written and counted of requests by HTTP/2.

use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Sent};
use gustnado_http::h2::ErrorCode;
use tempfile::TempDir;

use crate::harness::http2::Http2Client;
use crate::harness::{Server, Setup, wait_until};
use crate::in_clear;

on_every_server!(each_request_has_its_line, sent_callbacks_know_what_has_left);

/// The request, its status, its bytes, a field of it and two of the response.
const FORMAT: &str = "%(r)s|%(H)s|%(s)s|%(B)s|%({x-asked}i)s|%({x-told}o)s|%({content-type}o)s";

fn each_request_has_its_line(setup: Setup) {
    let folder = TempDir::new().expect("a temporary folder");
    let log = folder.path().join("access.log");
    let routes = Routes::new()
        .get("/inline", |_: &Request| Response::text("hello").header("X-Told", "yes"))
        .get("/task", async |_: Request| {
            sleep(Duration::from_millis(5)).await;
            Response::text("later").header("X-Told", "late")
        })
        .get("/large", |_: &Request| Response::bytes(vec![b'x'; 100_000]))
        .get("/slow", async |_: Request| {
            sleep(Duration::from_secs(20)).await;
            "slow"
        });
    let config = Config {
        access_log: Some(log.clone()),
        access_log_format: FORMAT.to_owned(),
        ..in_clear(setup)
    };
    let server = Server::routes(config, routes);
    let mut client = Http2Client::connect(server.address());
    for target in ["/inline?a=b", "/task", "/large", "/none"] {
        let id = client.request("GET", target, &[("x-asked", "this")], true);
        client.answer(id);
    }
    let too_long = format!("/{}", "a".repeat(9_000));
    for (target, expect) in [("/refused", "miracles"), (&too_long, "100-continue")] {
        let id = client.request("GET", target, &[("expect", expect)], true);
        client.answer(id);
    }
    let id = client.request("GET", "/slow", &[], true);
    client.ping();
    client.reset(id, ErrorCode::Cancel);
    client.ping();
    let wanted = [
        "GET /inline?a=b HTTP/2.0|HTTP/2.0|200|5|this|yes|text/plain; charset=utf-8",
        "GET /task HTTP/2.0|HTTP/2.0|200|5|this|late|text/plain; charset=utf-8",
        "GET /large HTTP/2.0|HTTP/2.0|200|100000|this|-|application/octet-stream",
        "GET /none HTTP/2.0|HTTP/2.0|404|",
        "GET /refused HTTP/2.0|HTTP/2.0|417|",
        "-|-|414|",
        "GET /slow HTTP/2.0|HTTP/2.0|-|",
    ];
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("all lines are there", || lines().lines().count() >= wanted.len());
    // (Shared schedulers run them on several workers, each with lines of its own.)
    let lines = lines();
    for wanted in wanted {
        assert!(lines.lines().any(|line| line.starts_with(wanted)), "{wanted}\n{lines}");
    }
}

fn sent_callbacks_know_what_has_left(setup: Setup) {
    let (tell, told) = std::sync::mpsc::channel();
    let routes = Routes::new().get("/{kind}", move |request: &Request| {
        let tell = tell.clone();
        let length = if request.param("kind") == "large" { 200_000 } else { 5 };
        Response::bytes(vec![b'x'; length]).on_sent(move |sent| {
            _ = tell.send(sent);
        })
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let next = || told.recv_timeout(Duration::from_secs(10)).expect("a word");
    client.ask("/small");
    assert_eq!(next(), Sent::Whole);
    client.ask("/large");
    assert_eq!(next(), Sent::Whole);
    client.gives_window = false;
    let id = client.get("/large");
    client.wait_for(id, |answer| answer.body.len() > 10_000);
    client.reset(id, ErrorCode::Cancel);
    assert_eq!(next(), Sent::Lost);
}
