//! Pace: no faster than said, by connection, route, client and server; and nothing else is slower.
//!
//! What is asserted of time is mostly that enough of it has passed: a busy machine can only add to
//! it. Where something must not be slow, the pace beside it would take a minute or more.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/paced_download.rs"]
mod paced_download;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::{Acceptor, Config, Pace};
use gustnado::{Request, Response, Routes, route};
use gustnado_tasks::sleep;
use rustix::net::sockopt;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, PATIENCE, Server, Setup};

on_every_server!(
    a_connection_is_sent_no_more_than_its_rate,
    a_stream_keeps_the_pace,
    pipelined_answers_keep_the_pace_together,
    a_paced_route_slows_nothing_beside_it,
    a_folder_may_have_a_pace,
    a_route_may_have_a_pace_for_all_its_connections,
    connections_of_a_client_share_its_rate,
    the_server_has_a_rate_in_all,
    more_connections_are_paced_than_there_are_workers,
    uploads_keep_their_pace_and_arrive_whole,
    a_route_paces_the_bodies_for_it,
    a_paced_upload_makes_its_client_wait,
    paced_uploads_leave_the_buffers_to_others,
    our_own_pace_is_nobodys_slowness,
    the_first_byte_waits_for_its_time,
    who_asks_too_often_gets_429_and_may_stay,
    each_address_has_requests_of_its_own,
    a_drain_lets_paced_answers_finish_and_cuts_them_at_the_deadline,
    connections_are_accepted_at_their_pace,
    a_drain_does_not_wait_for_the_pace_of_accepting,
    workers_can_be_slowed_down,
    the_example_has_a_slow_route_and_a_fast_one,
);

fn paced(setup: Setup, change: impl FnOnce(&mut Pace)) -> Config {
    let mut config = setup.config();
    change(&mut config.pace);
    config
}

/// So much time at least has passed where so many bytes went at a rate, but for a burst. (A tenth
/// of it is left to clocks of milliseconds, and to what was sent before this clock began.)
fn expect_pace(began: Instant, bytes: usize, rate: u64, burst: u64) {
    let (took, bytes) = (began.elapsed(), u64::try_from(bytes).expect("a few bytes"));
    let least = Duration::from_millis(bytes.saturating_sub(burst) * 900 / rate);
    assert!(took >= least, "{bytes} bytes at {rate}/s in {took:?}, which is not {least:?}");
    assert!(took < PATIENCE, "{bytes} bytes at {rate}/s took {took:?}");
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let length = format!("Content-Length: {}\r\n", body.len());
    [request("POST", path, &length).as_bytes(), body].concat()
}

fn a_connection_is_sent_no_more_than_its_rate(setup: Setup) {
    let folder = Folder::new();
    let (small, large) = (noise(1, 6_000), noise(2, 400_000));
    folder.file("small", &small);
    folder.file("large", &large);
    for (name, content, rate, burst) in
        [("/small", &small, 10_000, 1_000), ("/large", &large, 800_000, 50_000)]
    {
        let mut config = setup.folder_config(&folder);
        (config.pace.write_rate, config.pace.write_burst) = (rate, burst);
        let server = Server::start(config);
        let began = Instant::now();
        let answer = server.get(name);
        assert!(answer.body == *content, "{name}");
        expect_pace(began, content.len(), rate, burst);
    }
}

fn a_stream_keeps_the_pace(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        let (appender, response) = Response::append(1);
        thread::spawn(move || {
            for _ in 0..10 {
                appender.blocking_append("x".repeat(500), None).expect("the client reads");
            }
        });
        response
    });
    let config = paced(setup, |pace| (pace.write_rate, pace.write_burst) = (10_000, 500));
    let server = Server::routes(config, routes);
    let began = Instant::now();
    let answer = server.get("/");
    assert_eq!((answer.body.len(), answer.field("transfer-encoding")), (5_000, Some("chunked")));
    expect_pace(began, 5_000, 10_000, 500);
}

fn pipelined_answers_keep_the_pace_together(setup: Setup) {
    let config = paced(setup, |pace| (pace.write_rate, pace.write_burst) = (10_000, 1_000));
    let routes = Routes::new().get("/{n}", |request: &Request| request.param("n").repeat(200));
    let server = Server::routes(config, routes);
    let mut client = server.connect();
    let began = Instant::now();
    client.send((0..10).map(|n| get(&format!("/{n}"))).collect::<String>());
    for n in 0..10 {
        assert_eq!(client.read_answer().text(), n.to_string().repeat(200));
    }
    expect_pace(began, 10 * 200, 10_000, 1_000);
    assert_eq!(server.stats().answers_2xx, 10);
}

fn a_paced_route_slows_nothing_beside_it(setup: Setup) {
    let long = |_: &Request| "long ".repeat(2_000);
    let routes = Routes::new()
        .route("/slow", route().get(long).bytes_per_second(100))
        .route("/short", route().get(|_: &Request| "short").bytes_per_second(100).burst(1_000))
        .get("/fast", long);
    let server = Server::routes(setup.config(), routes);
    let mut slow: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send(get("/slow"));
        client.wait_for_bytes();
    }
    // Ten kilobytes at this pace would be a minute and a half.
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/fast").body.len(), 10_000);
    }
    assert_eq!(client.get("/short").text(), "short");
    assert_eq!(client.get("/fast").body.len(), 10_000, "also after a paced answer");
    client.send([get("/fast"), get("/short"), get("/fast")].concat());
    for bytes in [10_000, 5, 10_000] {
        assert_eq!(client.read_answer().body.len(), bytes, "also in line with a paced one");
    }
    assert_eq!(server.stats().answers_2xx, 5 + 20 + 2 + 3);
}

fn a_folder_may_have_a_pace(setup: Setup) {
    let folder = Folder::new();
    let (small, large) = (noise(1, 5_000), noise(2, 300_000));
    folder.file("small", &small);
    folder.file("large", &large);
    let paced = |rate, burst| {
        let files = route().files(folder.root());
        Routes::new().route("/", files.bytes_per_second(rate).burst(burst))
    };
    for (name, content, rate) in [("/small", &small, 10_000), ("/large", &large, 1_000_000)] {
        let server = Server::routes(setup.config(), paced(rate, rate / 10));
        let mut client = server.connect();
        let began = Instant::now();
        assert!(client.get(name).body == *content, "{name}");
        expect_pace(began, content.len(), rate, rate / 10);
        let head = client.ask(request("GET", name, "Range: bytes=1-3\r\n"));
        assert!((head.status, &*head.body) == (206, &content[1..4]), "{name}");
    }
}

/// Several connections ask at once; returns when all have their answers.
fn ask_at_once(clients: &mut [Client], path: &str, bytes: usize) {
    for client in &mut *clients {
        client.send(get(path));
    }
    for client in clients {
        assert_eq!(client.read_answer().body.len(), bytes);
    }
}

fn short_answers() -> Routes {
    Routes::new().get("/", |_: &Request| "x".repeat(1_500))
}

/// Five connections that ask for 1,500 bytes each have 15,000 per second together, after 1,000.
fn expect_shared_pace(server: &Server) {
    let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    let began = Instant::now();
    ask_at_once(&mut clients, "/", 1_500);
    expect_pace(began, 5 * 1_500, 15_000, 1_000);
}

fn a_route_may_have_a_pace_for_all_its_connections(setup: Setup) {
    let route = route().get(|_: &Request| "x".repeat(1_500));
    let route = route.bytes_per_second_in_all(15_000).burst(1_000);
    expect_shared_pace(&Server::routes(setup.config(), Routes::new().route("/", route)));
}

fn connections_of_a_client_share_its_rate(setup: Setup) {
    let config = paced(setup, |pace| {
        (pace.client_write_rate, pace.client_write_burst) = (15_000, 1_000);
    });
    expect_shared_pace(&Server::routes(config, short_answers()));
}

fn the_server_has_a_rate_in_all(setup: Setup) {
    let config = paced(setup, |pace| {
        (pace.server_write_rate, pace.server_write_burst) = (15_000, 1_000);
        // The slowest counts, and this is none.
        pace.write_rate = 1_000_000;
    });
    expect_shared_pace(&Server::routes(config, short_answers()));
}

fn more_connections_are_paced_than_there_are_workers(setup: Setup) {
    let route = route().get(|_: &Request| "x".repeat(4_500)).bytes_per_second(10_000).burst(500);
    let server = Server::routes(setup.config(), Routes::new().route("/", route));
    let mut clients: Vec<Client> = (0..60).map(|_| server.connect()).collect();
    let began = Instant::now();
    ask_at_once(&mut clients, "/", 4_500);
    // One after the other on two threads they would take twelve seconds.
    expect_pace(began, 4_500, 10_000, 500);
}

/// What one receive may bring before its time.
const RECEIVE_BYTES: u64 = 32 << 10;
/// What a ring's buffers may hold of a body before its route is known.
const RECEIVED_AHEAD_BYTES: u64 = 64 * 4096;

fn echo_routes() -> Routes {
    let whole = |request: &Request| request.bytes().len().to_string();
    Routes::new().post("/inline", whole).post("/task", async |request: Request| {
        let body = request.into_body().bytes(1 << 20).await?;
        Ok::<_, gustnado::BodyError>(body.len().to_string())
    })
}

fn uploads_keep_their_pace_and_arrive_whole(setup: Setup) {
    let config = paced(setup, |pace| (pace.read_rate, pace.read_burst) = (300_000, 20_000));
    let server = Server::routes(config, echo_routes());
    for path in ["/inline", "/task"] {
        let mut client = server.connect();
        let began = Instant::now();
        assert_eq!(client.ask(post(path, &noise(1, 160_000))).text(), "160000", "{path}");
        expect_pace(began, 160_000, 300_000, 20_000 + RECEIVE_BYTES);
        assert_eq!(client.ask(post(path, b"short")).text(), "5", "the connection goes on");
    }
}

fn a_route_paces_the_bodies_for_it(setup: Setup) {
    let whole = |request: &Request| request.bytes().len().to_string();
    let task = async |request: Request| {
        let body = request.into_body().bytes(1 << 20).await?;
        Ok::<_, gustnado::BodyError>(body.len().to_string())
    };
    let paced = || route().read_bytes_per_second(1_000_000).burst(50_000);
    let routes = Routes::new()
        .route("/inline", paced().post(whole))
        .route("/task", paced().post(task))
        .post("/fast", whole);
    let server = Server::routes(setup.config(), routes);
    for path in ["/inline", "/task"] {
        let mut client = server.connect();
        // The connection is one that is kept, so that more would be received than is asked for.
        assert_eq!(client.ask(post("/fast", b"warm")).text(), "4");
        let began = Instant::now();
        assert_eq!(client.ask(post(path, &noise(1, 700_000))).text(), "700000", "{path}");
        expect_pace(began, 700_000, 1_000_000, 50_000 + RECEIVED_AHEAD_BYTES);
        assert_eq!(client.ask(post("/fast", &noise(1, 160_000))).text(), "160000");
    }
}

fn a_paced_upload_makes_its_client_wait(setup: Setup) {
    const BYTES: usize = 256 << 20;
    let config =
        Config { limit_body_bytes: 1 << 30, ..paced(setup, |pace| pace.read_rate = 10_000) };
    let server = Server::routes(config, echo_routes());
    let mut client = server.connect();
    client.send(request("POST", "/inline", &format!("Content-Length: {BYTES}\r\n")));
    let sent = client.send_until_blocked(&[b'x'; 8 << 10], BYTES);
    assert!(sent < 64 << 20, "{sent} bytes went somewhere");
}

fn paced_uploads_leave_the_buffers_to_others(setup: Setup) {
    let whole = |request: &Request| request.bytes().len().to_string();
    let routes = Routes::new()
        .route("/slow", route().read_bytes_per_second(100).post(whole))
        .post("/fast", whole)
        .get("/", |_: &Request| "hello");
    let server = Server::routes(setup.config(), routes);
    let mut slow: Vec<Client> = (0..150).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.get("/");
        client.send(request("POST", "/slow", "Content-Length: 1000000\r\n"));
        client.send("x".repeat(20_000));
    }
    let mut client = server.connect();
    for _ in 0..10 {
        assert_eq!(client.ask(post("/fast", &noise(1, 100_000))).text(), "100000");
    }
}

fn our_own_pace_is_nobodys_slowness(setup: Setup) {
    let config = Config {
        write_timeout: Duration::from_millis(80),
        write_rate_min: 1 << 20,
        body_timeout: Duration::from_millis(200),
        body_rate_min: 1 << 20,
        header_timeout: Duration::from_millis(500),
        ..paced(setup, |pace| {
            (pace.write_rate, pace.write_burst) = (5_000, 1_000);
            pace.read_rate = 60_000;
        })
    };
    let routes = echo_routes().get("/", |_: &Request| "x".repeat(3_000));
    let server = Server::routes(config, routes);
    let mut client = server.connect();
    assert_eq!(client.get("/").body.len(), 3_000);
    for path in ["/inline", "/task"] {
        assert_eq!(client.ask(post(path, &noise(1, 40_000))).text(), "40000", "{path}");
    }
    assert_eq!(server.stats().timeouts, 0);
}

fn the_first_byte_waits_for_its_time(setup: Setup) {
    const DELAY: Duration = Duration::from_millis(200);
    // On a busy machine the server may have looked at its clock a moment before the request came.
    const AT_LEAST: Duration = Duration::from_millis(180);
    let config = paced(setup, |pace| pace.first_byte_delay = DELAY);
    let server = Server::start(config);
    let mut client = server.connect();
    for _ in 0..2 {
        let began = Instant::now();
        assert_eq!(client.get("/").status, 200);
        assert!(began.elapsed() >= AT_LEAST, "{:?}", began.elapsed());
    }
    let delayed = || route().first_byte_delay(DELAY);
    let late = async |_: Request| {
        sleep(Duration::from_millis(20)).await;
        "late"
    };
    let routes = Routes::new()
        .route("/inline", delayed().get(|_: &Request| "inline"))
        .route("/late", delayed().get(late))
        .get("/fast", |_: &Request| "fast");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/late"] {
        let began = Instant::now();
        assert_eq!(client.get(path).text(), path[1..]);
        assert!(began.elapsed() >= AT_LEAST, "{path}: {:?}", began.elapsed());
    }
    // What was asked for before does not wait for it.
    client.send([get("/fast"), get("/inline")].concat());
    assert_eq!(client.read_answer().text(), "fast");
    assert_eq!(client.read_answer().text(), "inline");
}

fn who_asks_too_often_gets_429_and_may_stay(setup: Setup) {
    let config = paced(setup, |pace| (pace.requests_per_second, pace.requests_burst) = (1, 3));
    let server = Server::routes(config, echo_routes().get("/", |_: &Request| "hello"));
    let mut client = server.connect();
    let began = Instant::now();
    let mut asked = 0;
    let refused = loop {
        let answer = client.get("/");
        asked += 1;
        if answer.status != 200 {
            break answer;
        }
        assert!(asked < 30, "more than the clock allows: {:?}", began.elapsed());
    };
    assert!(asked > 3, "the burst is three");
    assert_eq!((refused.status, refused.closes()), (429, false));
    assert_eq!(refused.expect_field("retry-after"), "1");
    // One with a body, several in one send, and one without content in its answer.
    let refused = client.ask(post("/inline", b"a body that nobody wants"));
    assert_eq!((refused.status, refused.closes()), (429, false));
    client.send(get("/").repeat(3));
    let statuses: Vec<u16> = (0..3).map(|_| client.read_answer().status).collect();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert!(refused >= 1, "{statuses:?} after {:?}", began.elapsed());
    assert_eq!(server.stats().too_many_requests, 2 + refused as u64);
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!(client.get("/").status, 200, "a second later");
    assert_eq!(server.stats().connections_accepted, 1);
}

fn each_address_has_requests_of_its_own(setup: Setup) {
    let config = paced(setup, |pace| (pace.requests_per_second, pace.requests_burst) = (1, 2));
    let server = Server::routes(config, Routes::new().get("/", |_: &Request| "hello"));
    let statuses: Vec<u16> = (0..10).map(|_| server.get("/").status).collect();
    assert!(statuses.contains(&429), "connections of one address count together: {statuses:?}");
    let other = Client::socket();
    sockopt::set_socket_reuseaddr(&other, true).expect("an option");
    let address = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 9), 0));
    rustix::net::bind(&other, &address).expect("an address of this machine");
    rustix::net::connect(&other, &server.address()).expect("a connection");
    assert_eq!(Client::over(TcpStream::from(other)).get("/").status, 200);
}

fn a_drain_lets_paced_answers_finish_and_cuts_them_at_the_deadline(setup: Setup) {
    let routes = || {
        let long = |_: &Request| "x".repeat(4_000);
        Routes::new()
            .route("/soon", route().get(long).bytes_per_second(20_000).burst(1_000))
            .route("/never", route().get(long).bytes_per_second(50).burst(500))
    };
    let server = Server::routes(setup.config(), routes());
    let mut client = server.connect();
    client.send(get("/soon"));
    client.wait_for_bytes();
    let report = server.running().drain(PATIENCE);
    assert_eq!(report.cut, 0);
    assert_eq!(client.read_answer().body.len(), 4_000);
    let paced_too = paced(setup, |pace| pace.write_rate = 100);
    for config in [setup.config(), paced_too] {
        let server = Server::routes(config, routes());
        let mut client = server.connect();
        client.send(get("/never"));
        client.wait_for_bytes();
        let report = server.running().drain(Duration::from_millis(100));
        assert_eq!(report.cut, 1);
        assert!(report.took < Duration::from_secs(5), "{report:?}");
        assert!(client.try_answer().is_err());
    }
}

fn connections_are_accepted_at_their_pace(setup: Setup) {
    for acceptor in Acceptor::ALL {
        // Of six connections, one of at most two acceptors takes three.
        // At twenty a second, two come at once, and each acceptor may be one ahead.
        let by_rate = Pace { accepts_per_second: 20, ..Pace::default() };
        let by_delay = Pace { accept_delay: Duration::from_millis(100), ..Pace::default() };
        for (pace, least_ms) in [(by_rate, 100), (by_delay, 200)] {
            let config = Config { acceptor, pace, ..setup.config() };
            let server = Server::start(config);
            let began = Instant::now();
            let mut clients: Vec<Client> = (0..6).map(|_| server.connect()).collect();
            for client in &mut clients {
                client.send(get("/"));
            }
            for client in &mut clients {
                assert_eq!(client.read_answer().status, 200);
            }
            let took = began.elapsed();
            // (The clock that counts here began a little earlier.)
            assert!(took >= Duration::from_millis(least_ms - 5), "{acceptor:?}: {took:?}");
            assert_eq!(server.stats().connections_accepted, 6);
        }
    }
}

fn a_drain_does_not_wait_for_the_pace_of_accepting(setup: Setup) {
    let config = paced(setup, |pace| pace.accept_delay = Duration::from_mins(1));
    let server = Server::start(Config { workers: 1, ..config });
    assert_eq!(server.get("/").status, 200);
    let mut waiting = server.connect_early();
    waiting.send(get("/"));
    thread::sleep(Duration::from_millis(50));
    let report = server.running().drain(PATIENCE);
    assert!(report.cut == 0 && report.took < Duration::from_secs(5), "{report:?}");
}

fn workers_can_be_slowed_down(setup: Setup) {
    let by_pass = |pace: &mut Pace| pace.pass_delay_us = 40_000;
    let by_wait = |pace: &mut Pace| pace.no_io_wait_us = 40_000;
    let paces: [&dyn Fn(&mut Pace); 2] = [&by_pass, &by_wait];
    for change in paces {
        let config = Config { workers: 1, ..paced(setup, change) };
        let server = Server::start(config);
        let mut client = server.connect();
        let began = Instant::now();
        for _ in 0..5 {
            assert_eq!(client.get("/").status, 200);
        }
        // Each answer is followed by a pause, of which the last may be cut short.
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(3 * 40), "{took:?}");
        let report = server.running().drain(PATIENCE);
        assert!(report.took < Duration::from_secs(5), "{report:?}");
    }
}

fn the_example_has_a_slow_route_and_a_fast_one(setup: Setup) {
    let server = Server::routes(setup.config(), paced_download::site(10_000));
    let mut slow = server.connect();
    let began = Instant::now();
    slow.send(get("/slow"));
    assert_eq!(server.get("/fast").body.len(), 1 << 20);
    assert_eq!(slow.take(6_500).expect("the beginning of it").len(), 6_500);
    expect_pace(began, 6_500, 10_000, 2_500);
    assert_eq!(server.get("/hello").text(), "Hello, world!");
}
