//! The examples, as they are shown to people.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/async_appender.rs"]
mod async_appender;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/compressed.rs"]
mod compressed;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/echo.rs"]
mod echo;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/four_schedulers.rs"]
mod four_schedulers;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/jobs_page.rs"]
mod jobs_page;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/long_bodies.rs"]
mod long_bodies;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/prefix_to_all.rs"]
mod prefix_to_all;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/sleepy.rs"]
mod sleepy;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/sse_clock.rs"]
mod sse_clock;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/upgrade.rs"]
mod upgrade;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/workloads.rs"]
mod workloads;

use std::io::Read;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use gustnado::config::SchedulerKind;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Server, Setup};

on_every_server!(
    echo_greets_and_sends_back_what_comes,
    the_appender_writes_three_lines_over_time,
    many_sleep_at_once,
    a_heading_is_put_before_what_asks_for_it,
    the_jobs_page_shows_each_worker,
    the_clock_ticks_until_its_client_goes,
    a_connection_goes_on_in_another_protocol,
    the_workloads_give_what_other_languages_give,
    a_long_body_is_one_slice_from_the_disk,
    a_page_is_compressed_for_those_who_accept_it,
);

const TICK: Duration = Duration::from_millis(50);

fn of(setup: Setup, server: gustnado::Server) -> Server {
    Server::built(server.config(setup.config()))
}

fn a_long_body_is_one_slice_from_the_disk(setup: Setup) {
    let server = of(setup, long_bodies::server());
    let body = "a line\n".repeat(300_000);
    let post = |target: &str, body: &str| {
        let length = format!("Content-Length: {}\r\n", body.len());
        server.ask(request("POST", target, &length) + body).text()
    };
    assert_eq!(post("/lines", &body), "300000 lines in 2100000 bytes\n");
    assert_eq!(server.stats().bodies_spooled, 1);
    assert_eq!(post("/note", "short"), "a note of 5 bytes\n");
    assert_eq!(post("/count", "shorter"), "7 bytes\n");
    assert_eq!(server.stats().bodies_spooled, 1);
}

fn a_page_is_compressed_for_those_who_accept_it(setup: Setup) {
    let content: &'static str = "[1, 2, 3]\n".repeat(4_096).leak();
    let server = of(setup, compressed::server("items.json", content));
    assert_eq!(server.get("/items.json").text(), content);
    let mut client = server.connect();
    for _ in 0..3 {
        let answer = client.ask(request("GET", "/items.json", "Accept-Encoding: gzip\r\n"));
        assert_eq!(answer.expect_field("content-encoding"), "gzip");
        assert_eq!(answer.expect_field("content-type"), "application/json");
        let mut found = String::new();
        GzDecoder::new(&*answer.body).read_to_string(&mut found).expect("gzip");
        assert_eq!(found, content);
    }
}

fn echo_greets_and_sends_back_what_comes(setup: Setup) {
    let server = of(setup, echo::server());
    let mut client = server.connect();
    let answer = client.get("/echo");
    assert_eq!((answer.status, answer.body.len()), (200, 19), "{answer:?}");
    for len in [0, 11, 300_000] {
        let body = noise(5, len);
        client.send(request("POST", "/echo", &format!("Content-Length: {len}\r\n")));
        client.send(&body);
        assert!(client.read_answer().body == body, "{len} bytes");
    }
    assert_eq!(client.get("/").status, 404);
}

fn a_connection_goes_on_in_another_protocol(setup: Setup) {
    if Setup::http1_only("an upgrade is a thing of HTTP/1.1 (RFC 9113 §8.6)") {
        return;
    }
    let server = of(setup, upgrade::server());
    for (name, back) in [("echo", b"hi"), ("shout", b"HI")] {
        let mut client = server.connect();
        let fields = format!("Connection: Upgrade\r\nUpgrade: {name}\r\n");
        client.send(request("GET", &format!("/{name}"), &fields) + "hi");
        assert_eq!(client.read_head().status, 101);
        assert_eq!(client.take(2).expect("the echo"), back);
    }
    assert_eq!((server.get("/echo").status, server.get("/shout").status), (426, 200));
}

fn the_appender_writes_three_lines_over_time(setup: Setup) {
    let server = of(setup, async_appender::server(TICK));
    let mut client = server.connect();
    let began = Instant::now();
    client.send(get("/appender"));
    assert_eq!(client.read_head().expect_field("transfer-encoding"), "chunked");
    // The first line does not wait for the others.
    assert_eq!(client.take(3 + 15 + 2).expect("a line"), b"f\r\nthe first line\n\r\n"[..].to_vec());
    assert!(began.elapsed() < TICK * 20, "it came with the rest");
    let rest = b"10\r\nthe second line\n\r\nf\r\nthe third line\n\r\n0\r\n\r\n";
    assert_eq!(client.take(rest.len()).expect("the rest"), rest);
    assert!(began.elapsed() >= TICK * 2, "nothing waited");
}

fn the_workloads_give_what_other_languages_give(setup: Setup) {
    let server = of(setup, workloads::server());
    let mut client = server.connect();
    assert_eq!(client.get("/primes").body, b"2262");
    let sum: u64 = (0..262_144_u64).map(|at| at * 7 % 65_521).sum();
    assert_eq!(client.get("/megabyte").body, sum.to_string().as_bytes());
}

fn many_sleep_at_once(setup: Setup) {
    let server = of(setup, sleepy::server());
    let began = Instant::now();
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(get("/sleepy"));
    }
    for client in &mut clients {
        assert_eq!(client.read_answer().text(), "slept well\n");
    }
    let took = began.elapsed();
    assert!((90..2_500).contains(&took.as_millis()), "50 naps of 100 ms took {took:?}");
}

fn a_heading_is_put_before_what_asks_for_it(setup: Setup) {
    let server = of(setup, prefix_to_all::server());
    let mut client = server.connect();
    assert_eq!(client.get("/hello").text(), "<p>Hello!");
    assert_eq!(client.get("/hello?url").text(), "<h1>/hello?url</h1>\n<p>Hello!");
    let answer = client.get("/%3Cb%3E?url=%22");
    assert_eq!(answer.text(), "<h1>/%3Cb%3E?url=%22</h1>\n<p>This is &lt;b&gt;.");
    assert_eq!(answer.expect_field("content-type"), "text/html; charset=utf-8");
}

fn the_jobs_page_shows_each_worker(setup: Setup) {
    let server = of(setup, jobs_page::server());
    let mut client = server.connect();
    let page = client.get("/jobs").text();
    let json = client.get("/jobs.json").text();
    let columns = page.split_once("const columns = [").expect("the columns").1;
    let columns = columns.split_once("];").expect("their end").0;
    let names: Vec<_> = columns.split('"').skip(1).step_by(2).collect();
    assert_eq!(names.len(), 11, "{names:?}");
    for name in names {
        assert!(json.matches(&format!("\"{name}\":")).count() >= 2, "{name} in {json}");
    }
    for name in ["scheduler", "backend", "connections_open", "tasks_live", "by_worker"] {
        assert!(page.contains(&format!("now.{name}")), "{name}");
        assert!(json.contains(&format!("\"{name}\":")), "{name} in {json}");
    }
}

fn the_clock_ticks_until_its_client_goes(setup: Setup) {
    let server = of(setup, sse_clock::server(TICK));
    assert!(server.get("/").text().contains("EventSource('clock')"));
    let at_first = server.stats().tasks_live;
    let mut client = server.connect();
    client.send(get("/clock"));
    assert_eq!(client.read_head().expect_field("content-type"), "text/event-stream");
    let mut seen = String::new();
    while !seen.contains("id: 2\n\n") {
        seen += &String::from_utf8_lossy(&client.read_some(1_000).expect("a tick"));
    }
    assert_eq!(seen.matches("data: ").count(), 3, "{seen}");
    assert!(seen.contains(" UTC\nid: 0\n\n"), "{seen}");
    drop(client);
    server.wait_until("the task has ended too", |stats| stats.tasks_live <= at_first);
}

/// (It brings its own schedulers, so it runs once.)
#[test]
fn four_servers_have_four_schedulers() {
    let servers = four_schedulers::start(0).expect("four free ports");
    for (running, scheduler) in servers.iter().zip(SchedulerKind::ALL) {
        let address = running.addresses()[0].to_string().parse().expect("an address");
        let mut client = Client::connect_plain(address);
        assert_eq!(client.get("/scheduler").text(), scheduler.as_str());
        assert_eq!(client.get("/slow").text(), "a thread slept for this\n");
        let json = client.get("/jobs.json").text();
        assert!(json.contains(&format!("\"scheduler\":\"{}\"", scheduler.as_str())), "{json}");
    }
    assert_eq!(servers.len(), 4);
}
