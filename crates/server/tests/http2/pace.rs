//! Pace: of connections and of single streams. What is not paced goes on beside it.

use std::time::{Duration, Instant};

use gustnado::config::{Config, Pace};
use gustnado::task::sleep;
use gustnado::{Request, Response, Route, Routes, Tunnel, route};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::setting;

use crate::harness::echo::echo as echo_bytes;
use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::{Folder, PATIENCE, Server, Setup};
use crate::tunnels::{expect, open, opened};
use crate::{in_clear, of_folder};

on_every_server!(
    a_connection_is_sent_no_more_than_its_rate,
    streams_share_the_rate_of_their_connection,
    a_paced_route_slows_no_other_stream,
    streams_of_a_route_share_its_bucket,
    a_route_may_have_a_pace_for_all_its_connections,
    a_connection_is_received_at_its_rate,
    a_route_paces_the_bodies_for_it,
    the_first_byte_waits_for_its_time,
    the_end_of_a_paced_tunnel_needs_no_window,
    the_end_of_a_paced_tunnel_waits_for_no_other,
    the_first_byte_of_a_tunnel_waits_too,
    who_asks_too_often_gets_429,
    our_own_pace_is_nobodys_slowness,
    a_drain_lets_paced_answers_finish,
);

/// What may come before its time: a window, and one receive.
const AHEAD: u64 = (64 << 10) + (32 << 10);

fn paced(setup: Setup, change: impl FnOnce(&mut Pace)) -> Config {
    let mut config = in_clear(setup);
    change(&mut config.pace);
    config
}

fn expect_pace(began: Instant, bytes: usize, rate: u64, burst: u64) {
    let (took, bytes) = (began.elapsed(), u64::try_from(bytes).expect("a few bytes"));
    let least = Duration::from_millis(bytes.saturating_sub(burst) * 900 / rate);
    assert!(took >= least, "{bytes} bytes at {rate}/s in {took:?}, which is not {least:?}");
    assert!(took < PATIENCE, "{bytes} bytes at {rate}/s took {took:?}");
}

fn a_connection_is_sent_no_more_than_its_rate(setup: Setup) {
    let folder = Folder::new();
    let (small, large) = (noise(1, 6_000), noise(2, 400_000));
    folder.file("small", &small);
    folder.file("large", &large);
    for (name, content, rate, burst) in
        [("/small", &small, 10_000, 1_000), ("/large", &large, 800_000, 50_000)]
    {
        let mut config = of_folder(setup, &folder);
        (config.pace.write_rate, config.pace.write_burst) = (rate, burst);
        let server = Server::start(config);
        let mut client = Http2Client::connect(server.address());
        let began = Instant::now();
        assert!(client.ask(name).body == *content, "{name}");
        expect_pace(began, content.len(), rate, burst);
    }
}

fn streams_share_the_rate_of_their_connection(setup: Setup) {
    let config = paced(setup, |pace| (pace.write_rate, pace.write_burst) = (20_000, 1_000));
    let wait = async |_: Request| {
        sleep(Duration::from_millis(10)).await;
        "x".repeat(2_000)
    };
    let routes = Routes::new().get("/", |_: &Request| "x".repeat(2_000)).get("/task", wait);
    let server = Server::routes(config, routes);
    let mut client = Http2Client::connect(server.address());
    let began = Instant::now();
    let ids: Vec<_> =
        (0..10).map(|number| client.get(if number % 2 == 0 { "/" } else { "/task" })).collect();
    for id in ids {
        assert_eq!(client.answer(id).body.len(), 2_000);
    }
    expect_pace(began, 20_000, 20_000, 1_000);
    assert_eq!(server.stats().answers_2xx, 10);
}

fn a_paced_route_slows_no_other_stream(setup: Setup) {
    let long = |_: &Request| "long ".repeat(2_000);
    let pieces = async |request: Request| Response::stream(request.into_body());
    let routes = Routes::new()
        .route("/slow", route().get(long).bytes_per_second(100))
        .route("/pieces", route().post(pieces).bytes_per_second(100))
        .route("/short", route().get(|_: &Request| "short").bytes_per_second(100).burst(1_000))
        .get("/fast", long);
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    // Ten kilobytes at this pace would be a minute and a half.
    let slow = client.get("/slow");
    let pieces = client.request("POST", "/pieces", &[], false);
    client.send_data(pieces, &noise(1, 10_000), true);
    client.wait_for(slow, |answer| answer.status == 200);
    for _ in 0..20 {
        assert_eq!(client.ask("/fast").body.len(), 10_000);
    }
    assert_eq!(client.ask("/short").text(), "short", "it has a burst of its own");
    assert!(client.so_far(slow).body.len() < 5_000 && !client.so_far(slow).is_whole);
    assert!(client.so_far(pieces).body.len() < 5_000 && !client.so_far(pieces).is_whole);
}

fn streams_of_a_route_share_its_bucket(setup: Setup) {
    let folder = Folder::new();
    let file = noise(1, 40_000);
    folder.file("file", &file);
    let files = route().files(folder.root()).bytes_per_second(200_000).burst(10_000);
    let routes = Routes::new().route("/files", files);
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let began = Instant::now();
    let ids: Vec<_> = (0..4).map(|_| client.get("/files/file")).collect();
    for id in ids {
        assert!(client.answer(id).body == file);
    }
    expect_pace(began, 160_000, 200_000, 10_000);
}

fn a_route_may_have_a_pace_for_all_its_connections(setup: Setup) {
    let route = route().get(|_: &Request| "x".repeat(1_500));
    let route = route.bytes_per_second_in_all(15_000).burst(1_000);
    let server = Server::routes(in_clear(setup), Routes::new().route("/", route));
    let mut clients: Vec<_> = (0..5).map(|_| Http2Client::connect(server.address())).collect();
    let began = Instant::now();
    let ids: Vec<_> = clients.iter_mut().map(|client| client.get("/")).collect();
    for (client, id) in clients.iter_mut().zip(ids) {
        assert_eq!(client.answer(id).body.len(), 1_500);
    }
    expect_pace(began, 5 * 1_500, 15_000, 1_000);
}

fn echo() -> Routes {
    let task = async |request: Request| {
        let body = request.into_body().bytes(1 << 20).await?;
        Ok::<_, gustnado::BodyError>(body.len().to_string())
    };
    Routes::new()
        .post("/inline", |request: &Request| request.bytes().len().to_string())
        .post("/task", task)
}

fn a_connection_is_received_at_its_rate(setup: Setup) {
    let config = paced(setup, |pace| (pace.read_rate, pace.read_burst) = (300_000, 20_000));
    let server = Server::routes(config, echo());
    for target in ["/inline", "/task"] {
        let mut client = Http2Client::connect(server.address());
        let began = Instant::now();
        let answer = client.post_within_windows(target, &noise(1, 200_000));
        assert_eq!(answer.text(), "200000", "{target}");
        expect_pace(began, 200_000, 300_000, 20_000 + AHEAD);
        assert_eq!(client.post(target, b"short").text(), "5", "the connection goes on");
    }
}

fn a_route_paces_the_bodies_for_it(setup: Setup) {
    let whole = |request: &Request| request.bytes().len().to_string();
    let task = async |request: Request| {
        let body = request.into_body().bytes(1 << 20).await?;
        Ok::<_, gustnado::BodyError>(body.len().to_string())
    };
    let paced = || route().read_bytes_per_second(500_000).burst(20_000);
    let routes = Routes::new()
        .route("/inline", paced().post(whole))
        .route("/task", paced().post(task))
        .post("/fast", whole);
    let server = Server::routes(in_clear(setup), routes);
    for target in ["/inline", "/task"] {
        let mut client = Http2Client::connect(server.address());
        client.ping();
        let began = Instant::now();
        let answer = client.post_within_windows(target, &noise(1, 400_000));
        assert_eq!(answer.text(), "400000", "{target}");
        expect_pace(began, 400_000, 500_000, 20_000 + AHEAD);
        let began = Instant::now();
        assert_eq!(client.post_within_windows("/fast", &noise(1, 160_000)).text(), "160000");
        assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
    }
}

fn the_first_byte_waits_for_its_time(setup: Setup) {
    const DELAY: Duration = Duration::from_millis(200);
    const AT_LEAST: Duration = Duration::from_millis(180);
    let server = Server::start(paced(setup, |pace| pace.first_byte_delay = DELAY));
    let mut client = Http2Client::connect(server.address());
    for _ in 0..2 {
        let began = Instant::now();
        assert_eq!(client.ask("/").status, 200);
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
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let began = Instant::now();
    let ids = ["/inline", "/late"].map(|target| (client.get(target), &target[1..]));
    assert_eq!(client.ask("/fast").text(), "fast");
    assert!(began.elapsed() < AT_LEAST, "it waited too: {:?}", began.elapsed());
    for (id, text) in ids {
        assert_eq!(client.answer(id).text(), text);
        assert!(began.elapsed() >= AT_LEAST, "{text}: {:?}", began.elapsed());
    }
}

fn the_first_byte_of_a_tunnel_waits_too(setup: Setup) {
    const DELAY: Duration = Duration::from_millis(200);
    const AT_LEAST: Duration = Duration::from_millis(180);
    let greet = async |mut tunnel: Tunnel| {
        tunnel.send("hello").await.expect("the client reads");
        echo_bytes(tunnel).await;
    };
    let delayed = route().first_byte_delay(DELAY);
    let delayed = delayed.get(move |_: &Request| Response::upgrade("echo", greet));
    let server = Server::routes(in_clear(setup), Routes::new().route("/", delayed));
    let mut client = Http2Client::connect(server.address());
    let (began, id) = (Instant::now(), open(&mut client, "/"));
    client.send_data(id, b", early", false);
    expect(&mut client, id, b"hello, early");
    assert!(began.elapsed() >= AT_LEAST, "{:?}", began.elapsed());
    client.send_data(id, b", late", true);
    let answer = client.answer(id);
    assert_eq!((answer.status, &*answer.text()), (200, "hello, early, late"));
}

/// A route at a low pace, whose tunnels wait for the client's end.
fn paced_tunnels(act: impl Fn(Tunnel) + Send + Sync + Copy + 'static) -> Route {
    let silent = async move |mut tunnel: Tunnel| {
        while tunnel.recv().await.is_ok_and(|bytes| !bytes.is_empty()) {}
        act(tunnel);
    };
    let paced = route().get(move |_: &Request| Response::upgrade("echo", silent));
    paced.bytes_per_second(1_000).burst(1_000)
}

fn the_end_of_a_paced_tunnel_needs_no_window(setup: Setup) {
    let routes = Routes::new()
        .route("/returns", paced_tunnels(drop))
        .route("/panics", paced_tunnels(|_| panic!("on purpose")));
    let server = Server::routes(in_clear(setup), routes);
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    for (target, reset) in [("/returns", None), ("/panics", Some(ErrorCode::InternalError))] {
        let id = opened(&mut client, target);
        client.send_data(id, b"", true);
        assert_eq!(client.answer(id).reset, reset, "{target}");
        client.ping();
    }
}

fn the_end_of_a_paced_tunnel_waits_for_no_other(setup: Setup) {
    let loud = async |mut tunnel: Tunnel| _ = tunnel.send(noise(1, 50_000)).await;
    let both = move |request: &Request| match request.query_value("loud") {
        Some(_) => Response::upgrade("echo", loud),
        None => Response::upgrade("echo", async |mut tunnel: Tunnel| _ = tunnel.recv().await),
    };
    let route = route().get(both).bytes_per_second(1_000).burst(1_000);
    let server = Server::routes(in_clear(setup), Routes::new().route("/", route));
    let mut client = Http2Client::connect(server.address());
    let quiet = opened(&mut client, "/");
    let loud = opened(&mut client, "/?loud=1");
    client.wait_for(loud, |answer| !answer.body.is_empty());
    client.send_data(quiet, b"", true);
    assert_eq!(client.answer(quiet).reset, None);
    client.ping();
    assert!(!client.so_far(loud).is_whole, "it has its pace");
}

fn who_asks_too_often_gets_429(setup: Setup) {
    let config = paced(setup, |pace| (pace.requests_per_second, pace.requests_burst) = (1, 3));
    let server = Server::routes(config, echo());
    let mut client = Http2Client::connect(server.address());
    let ids: Vec<_> = (0..6).map(|_| client.get("/none")).collect();
    let answers: Vec<_> = ids.into_iter().map(|id| client.answer(id)).collect();
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [404, 404, 404, 429, 429, 429]);
    assert!(answers[5].field("retry-after").is_some());
    assert_eq!(server.stats().too_many_requests, 3);
    std::thread::sleep(Duration::from_millis(2_100));
    assert_eq!(client.post("/inline", b"four").text(), "4", "it may stay");
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
    let server = Server::routes(config, echo().get("/", |_: &Request| "x".repeat(3_000)));
    let mut client = Http2Client::connect(server.address());
    assert_eq!(client.ask("/").body.len(), 3_000);
    for target in ["/inline", "/task"] {
        assert_eq!(client.post(target, &noise(1, 40_000)).text(), "40000", "{target}");
    }
    assert_eq!(server.stats().timeouts, 0);
}

fn a_drain_lets_paced_answers_finish(setup: Setup) {
    let config = paced(setup, |pace| (pace.write_rate, pace.write_burst) = (10_000, 500));
    let server = Server::routes(config, Routes::new().get("/", |_: &Request| "x".repeat(5_000)));
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    client.wait_for(id, |answer| !answer.body.is_empty());
    let running = server.running();
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| running.drain(PATIENCE));
        assert_eq!(client.answer(id).body.len(), 5_000);
        drop(client);
        assert_eq!(drain.join().expect("no panic").cut, 0);
    });
}
