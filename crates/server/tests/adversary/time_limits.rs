//! Times hold as the docs say them, for every shape of client that stalls: write time-outs for
//! what is sent out of buffers, and bodies that their handler has given up.
//!
//! The goal is a second beyond what is set; these tests allow ten.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Request, Response, Routes, route};
use gustnado_tasks::sleep;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup};

on_every_server!(
    a_pipeline_that_nobody_reads_is_cut_in_the_write_time,
    an_answer_that_nobody_reads_is_cut_in_the_write_time,
    a_reader_that_stops_half_way_is_cut_in_the_write_time,
    a_slow_reader_of_buffered_answers_gets_all,
    a_slow_reader_of_a_large_file_is_not_cut,
    a_handler_that_ignores_a_broken_body_is_ended,
    a_stream_outlives_its_client_for_the_time_of_its_route,
);

const SET: Duration = Duration::from_millis(600);
const ALLOWED: Duration = Duration::from_secs(10);

/// A short write time, and otherwise what is usual.
fn config(setup: Setup) -> Config {
    Config { write_timeout: SET, ..setup.config() }
}

fn big() -> Vec<u8> {
    noise(1, 8 << 20)
}

fn routes() -> Routes {
    Routes::new()
        .get("/short", |_: &Request| noise(2, 1_000))
        .get("/big", |_: &Request| big())
        .get("/task", async |_: Request| {
            sleep(Duration::from_millis(1)).await;
            big()
        })
        .get("/stream", async |_: Request| {
            let (pieces, response) = Response::append(4);
            gustnado_tasks::spawn_detached(async move {
                while pieces.append(noise(3, 10_000)).await.is_ok() {}
            })
            .expect("a task");
            response
        })
}

/// Waits until the server has let its only client go. Returns for how long it was there.
fn time_to_let_go(server: &Server) -> Duration {
    server.wait_until("it is there", |stats| stats.connections_accepted > 0);
    let began = Instant::now();
    while server.stats().connections_open > 0 {
        assert!(began.elapsed() < ALLOWED + SET, "still there after {:?}", began.elapsed());
        thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}

fn a_pipeline_that_nobody_reads_is_cut_in_the_write_time(setup: Setup) {
    if Setup::http1_only("who reads nothing has no more than a hundred streams") {
        return;
    }
    let folder = Folder::new();
    folder.file("short", noise(4, 1_000));
    for server in [
        Server::routes(config(setup), routes()),
        Server::start(Config { root: Some(folder.root()), ..config(setup) }),
    ] {
        let mut client = Client::connect_narrow(server.address());
        client.send_until_blocked(get("/short").repeat(200).as_bytes(), 1 << 20);
        time_to_let_go(&server);
        assert!(server.stats().timeouts >= 1, "counted as too slow: {:?}", server.stats());
    }
}

fn an_answer_that_nobody_reads_is_cut_in_the_write_time(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("large", 64 << 20);
    let by_route = Server::routes(config(setup), routes().files("/files", folder.root()));
    for target in ["/big", "/task", "/stream", "/files/large"] {
        let mut client = Client::connect_narrow(by_route.address());
        client.send(get(target));
        client.wait_for_bytes();
        time_to_let_go(&by_route);
    }
}

fn a_reader_that_stops_half_way_is_cut_in_the_write_time(setup: Setup) {
    let server = Server::routes(config(setup), routes());
    for target in ["/big", "/task", "/stream"] {
        let mut client = Client::connect_narrow(server.address());
        client.send(get(target));
        for _ in 0..5 {
            client.read_some(50_000).expect("it is still sent");
            thread::sleep(Duration::from_millis(20));
        }
        time_to_let_go(&server);
    }
}

/// Three times as long as the write time, but never silent for as long.
fn a_slow_reader_of_buffered_answers_gets_all(setup: Setup) {
    let config = Config { write_timeout: SET * 2, write_rate_min: 0, ..setup.config() };
    let server = Server::routes(config, routes());
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/task"));
    let began = Instant::now();
    let mut received = 0;
    while began.elapsed() < SET * 4 {
        received += client.read_some(40_000).expect("it is still sent").len();
        thread::sleep(Duration::from_millis(60));
    }
    while received < 8 << 20 {
        received += client.read_some(1 << 20).expect("it is still sent").len();
    }
}

/// What the kernel holds of a file is far more than is read in the write time.
fn a_slow_reader_of_a_large_file_is_not_cut(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("large", 64 << 20);
    let config = Config { root: Some(folder.root()), write_timeout: SET * 2, ..setup.config() };
    let server = Server::start(config);
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/large"));
    let began = Instant::now();
    while began.elapsed() < SET * 5 {
        client.read_some(10_000).expect("it is still sent");
        thread::sleep(Duration::from_millis(40));
        assert_eq!(server.stats().timeouts, 0, "after {:?}", began.elapsed());
    }
}

/// The handler is told of the error, and never answers.
fn a_handler_that_ignores_a_broken_body_is_ended(setup: Setup) {
    let routes = Routes::new().post("/", async |request: Request| {
        let mut body = request.into_body();
        while let Some(Ok(_)) = body.next().await {}
        sleep(Duration::from_hours(1)).await;
        "late"
    });
    let server = Server::routes(Config { half_close_timeout: SET, ..setup.config() }, routes);
    let mut client = server.connect();
    client.send(request("POST", "/", "Transfer-Encoding: chunked\r\n"));
    if Setup::is_http2() {
        client.shut_write();
    } else {
        client.send("not a size\r\n");
    }
    time_to_let_go(&server);
}

/// Of a function that is ready at once. It keeps to its route's time, and not to the server's.
fn a_stream_outlives_its_client_for_the_time_of_its_route(setup: Setup) {
    let silent = |_: &Request| {
        let (appender, response) = Response::append(1);
        std::mem::forget(appender);
        response
    };
    let own = route().half_close_timeout(SET).get(silent);
    let config = Config { half_close_timeout: ALLOWED * 2, ..setup.config() };
    let server = Server::routes(config, Routes::new().route("/", own));
    let mut client = server.connect();
    client.send(get("/"));
    client.wait_until_read();
    client.shut_write();
    time_to_let_go(&server);
}
