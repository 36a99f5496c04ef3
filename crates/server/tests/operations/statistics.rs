//! Counters: in sum, by worker, and as a page of JSON.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use gustnado::config::{Config, EarlyHints};
use gustnado::task::{sleep, spawn_detached};
use gustnado::{Request, Response, Routes, stats_page};
use tempfile::TempDir;

use crate::harness::client::{get, post, request};
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    workers_add_up_to_the_sum,
    connections_that_were_idle_are_told_apart,
    live_tasks_are_counted,
    a_worker_that_sleeps_is_seen_to_wait,
    a_page_tells_all_counters,
    the_page_stays_when_routes_are_swapped,
    counters_and_the_log_say_what_clients_received,
    what_a_slow_client_has_left_is_taken_back,
);

fn workers_add_up_to_the_sum(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| "hello");
    let server = Server::routes(setup.config(), routes);
    let mut open: Vec<_> = (0..6).map(|_| server.connect()).collect();
    for (place, client) in open.iter_mut().enumerate() {
        for _ in 0..=place {
            assert_eq!(client.get("/").status, 200);
        }
    }
    drop(open.split_off(4));
    assert_eq!(server.ask("nonsense\r\n\r\n").status, 400);
    server.wait_until("three have ended", |stats| stats.connections_removed == 3);
    let (stats, workers) = (server.stats(), server.running().stats_by_worker());
    assert_eq!((stats.connections_added, stats.connections_open), (7, 4));
    // (By HTTP/2 a malformed one is an error of its stream.)
    if Setup::is_http2() {
        assert_eq!(stats.requests, 1 + 2 + 3 + 4 + 5 + 6);
    } else {
        assert_eq!((stats.requests, stats.bad_requests), (1 + 2 + 3 + 4 + 5 + 6 + 1, 1));
    }
    assert_eq!(workers.iter().map(|worker| worker.worker).collect::<Vec<_>>(), [0, 1]);
    let sum = |of: fn(&gustnado::WorkerStats) -> u64| workers.iter().map(of).sum::<u64>();
    assert_eq!(sum(|worker| worker.connections_added), stats.connections_added);
    assert_eq!(sum(|worker| worker.connections_removed), stats.connections_removed);
    assert_eq!(sum(|worker| worker.requests), stats.requests);
    assert_eq!(sum(|worker| worker.bytes_sent), stats.bytes_sent);
    assert_eq!(sum(|worker| worker.bad_requests), stats.bad_requests);
    assert_eq!(sum(|worker| worker.answers_4xx), stats.answers_4xx);
    if !setup.is_shared() {
        let live = server.running().connections_by_worker();
        for (worker, live) in workers.iter().zip(live) {
            let counted = worker.connections_added - worker.connections_removed;
            assert_eq!(counted, live as u64, "{worker:?}");
        }
    }
}

fn connections_that_were_idle_are_told_apart(setup: Setup) {
    let short = Duration::from_millis(300);
    let server = Server::start(Config {
        timeout_keep_alive: short,
        header_timeout: short,
        defer_accept: false,
        ..setup.config()
    });
    let mut idle = [server.connect(), server.connect()];
    for client in &mut idle {
        assert_eq!(client.get("/").status, 200);
    }
    let mut silent = [server.connect(), server.connect(), server.connect()];
    let mut slow = server.connect();
    slow.send("GET /");
    for client in idle.iter_mut().chain(&mut silent) {
        client.expect_end("too long a pause");
    }
    if Setup::is_http2() {
        slow.expect_end("too slow a head");
    } else {
        assert_eq!(slow.read_answer().status, 408);
    }
    server.wait_until("all are counted", |stats| {
        (stats.idle_closed, stats.never_asked, stats.timeouts) == (2, 3, 6)
    });
}

fn live_tasks_are_counted(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        for _ in 0..10 {
            spawn_detached(sleep(Duration::from_millis(300))).expect("a slot");
        }
        ""
    });
    let server = Server::routes(setup.config(), routes);
    let at_first = if setup.is_shared() { 1 } else { 2 };
    server.wait_until("accepting is a task", |stats| stats.tasks_live == at_first);
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(server.stats().tasks_live, at_first + 11, "a connection and what it started");
    server.wait_until("those have ended", |stats| stats.tasks_live == at_first + 1);
    drop(client);
    server.wait_until("all have ended", |stats| stats.tasks_live == at_first);
}

fn a_worker_that_sleeps_is_seen_to_wait(setup: Setup) {
    let server = setup.default_site();
    let before = server.stats().waits;
    // (On a busy machine a worker may find the next request before it sleeps.)
    wait_until("workers have slept in between", || {
        assert_eq!(server.get("/").status, 200);
        server.stats().waits >= before + 10
    });
    let workers = server.running().stats_by_worker();
    assert!(workers.iter().all(|worker| worker.waits > 0), "{workers:?}");
    // A sleep is no tick: a server that nobody asks does not wake up.
    std::thread::sleep(Duration::from_millis(100));
    let quiet = server.stats().waits;
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.stats().waits <= quiet + 2, "it woke up without a reason");
}

/// All values of a name in a page, in their order.
fn numbers(json: &str, name: &str) -> Vec<u64> {
    let digits = |rest: &str| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().expect("a number")
    };
    json.split(&format!("\"{name}\":")).skip(1).map(digits).collect()
}

fn a_page_tells_all_counters(setup: Setup) {
    let routes = Routes::new().get("/stats", stats_page()).get("/", |_: &Request| "hello");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").status, 200);
    }
    let answer = client.get("/stats");
    assert_eq!(answer.expect_field("content-type"), "application/json");
    assert_eq!(answer.expect_field("cache-control"), "no-store");
    let json = answer.text();
    assert!(json.starts_with("{\"version\":\"") && json.ends_with("]}\n"), "{json}");
    assert_eq!(json.matches('{').count(), json.matches('}').count(), "{json}");
    assert!(json.contains(&format!("\"backend\":\"{}\"", server.running().backend())), "{json}");
    assert!(json.contains(&format!("\"scheduler\":\"{}\"", setup.scheduler.as_str())), "{json}");
    for name in ["requests", "connections_added", "bytes_sent", "waits", "idle_closed", "panics"] {
        let found = numbers(&json, name);
        assert_eq!(found.len(), 3, "{name}: in sum, and for both workers: {json}");
    }
    for name in ["requests", "connections_added", "connections_removed", "bytes_sent"] {
        let found = numbers(&json, name);
        assert_eq!(found[0], found[1] + found[2], "{name}: {json}");
    }
    assert_eq!(numbers(&json, "requests")[0], 5, "{json}");
    // In sum, and for each worker, if a connection belongs to one.
    assert_eq!(numbers(&json, "connections_open")[0], 1, "{json}");
    assert!(numbers(&json, "memory_bytes")[0] > 100_000, "{json}");
    client.send(crate::harness::client::request("HEAD", "/stats", ""));
    assert_eq!(client.read_head().status, 200);
}

fn the_page_stays_when_routes_are_swapped(setup: Setup) {
    let server = Server::routes(setup.config(), Routes::new().get("/one", stats_page()));
    let mut client = server.connect();
    client.send(get("/one"));
    assert_eq!(client.read_answer().status, 200);
    let nested = Routes::new().nest("/two", Routes::new().get("/stats", stats_page()));
    server.running().swap_routes(&nested).expect("good routes");
    assert_eq!(client.get("/one").status, 404);
    assert_eq!(numbers(&client.get("/two/stats").text(), "requests")[0], 2);
}

/// A stream of two pieces.
fn two_pieces() -> Response {
    let (appender, response) = Response::append(4);
    spawn_detached(async move {
        for piece in ["ab", "cde"] {
            appender.append(piece).await.expect("the client reads");
            sleep(Duration::from_millis(5)).await;
        }
    })
    .expect("a slot");
    response
}

fn kinds_of_content(folder: &Folder) -> Routes {
    let appended = async |_: Request| two_pieces();
    let promised = async |request: Request| Response::stream_of_length(request.into_body(), 9);
    let hints = async |request: Request| {
        request.early_hints(&[("Link", "</a.css>; rel=preload")]).expect("a good field");
        sleep(Duration::from_millis(5)).await;
        "late"
    };
    let echo = async |mut request: Request| {
        request.body_mut().bytes(1 << 20).await.map(|bytes| bytes.to_vec()).unwrap_or_default()
    };
    Routes::new()
        .get("/inline", |_: &Request| "inline")
        .get("/long", |_: &Request| vec![b'x'; 200_000])
        .get("/odd", |_: &Request| Response::text("odd").code(299, "Odd").expect("a status"))
        .get("/told", |_: &Request| Response::text("told").on_sent(|_| {}))
        .get("/stream", appended)
        .get("/hints", hints)
        .get("/panic", async |_: Request| -> &'static str { panic!("on purpose") })
        .post("/echo", echo)
        .post("/promised", promised)
        .files("/", folder.root())
}

/// The status and the bytes of content of each answer; how many a page of the server's own has is
/// not said.
type Answers = Vec<(u16, Option<u64>)>;

/// What is sent, and what it is answered with.
fn exchanges(tag: &str) -> Vec<(String, Answers)> {
    let close = "Connection: close\r\n";
    let with = |fields: &str| format!("{fields}{close}");
    let one = |target: &str| request("GET", target, close);
    let ranges = with("Range: bytes=0-1,5-6\r\n");
    vec![
        (one("/inline"), vec![(200, Some(6))]),
        (one("/long"), vec![(200, Some(200_000))]),
        (one("/odd"), vec![(299, Some(3))]),
        (one("/told"), vec![(200, Some(4))]),
        (one("/stream"), vec![(200, Some(5))]),
        ("GET /stream HTTP/1.0\r\n\r\n".to_owned(), vec![(200, Some(5))]),
        (one("/hints"), vec![(200, Some(4))]),
        (one("/panic"), vec![(500, None)]),
        (one("/small"), vec![(200, Some(10))]),
        (one("/large"), vec![(200, Some(300_000))]),
        (request("HEAD", "/large", close), vec![(200, Some(0))]),
        (request("GET", "/large", &with("Range: bytes=5-9\r\n")), vec![(206, Some(5))]),
        (request("GET", "/small", &ranges), vec![(206, None)]),
        (
            request("GET", "/small", &with(&format!("If-None-Match: {tag}\r\n"))),
            vec![(304, Some(0))],
        ),
        (request("GET", "/small", &with("Range: bytes=99-\r\n")), vec![(416, None)]),
        (one("/none"), vec![(404, None)]),
        ("nonsense\r\n\r\n".to_owned(), vec![(400, None)]),
        (
            request("POST", "/echo", &with("Content-Length: 2\r\nExpect: 100-continue\r\n")) + "hi",
            vec![(200, Some(2))],
        ),
        (post("/promised", "short"), vec![(200, Some(5))]),
        (
            [get("/inline"), get("/large"), get("/small"), one("/inline")].concat(),
            vec![(200, Some(6)), (200, Some(300_000)), (200, Some(10)), (200, Some(6))],
        ),
    ]
}

/// Lines of the access log: of each a status, and bytes of content.
fn logged(path: &PathBuf) -> Vec<(u16, u64)> {
    let text = fs::read_to_string(path).expect("the log");
    let pair = |line: &str| {
        let (status, bytes) = line.split_once(' ')?;
        Some((status.parse().ok()?, bytes.parse().ok()?))
    };
    text.lines().map(|line| pair(line).expect("two numbers")).collect()
}

fn counters_and_the_log_say_what_clients_received(setup: Setup) {
    if Setup::http1_only("bytes of HTTP/2 are those of frames") {
        return;
    }
    let (folder, log) = (Folder::new(), TempDir::new().expect("a temporary folder"));
    folder.file("small", "0123456789");
    folder.file("large", vec![b'x'; 300_000]);
    let path = log.path().join("access.log");
    for (access_log, write_rate) in [(None, 0), (Some(path.clone()), 0), (None, 50_000_000)] {
        let is_logged = access_log.is_some();
        let access_log_format = "%(s)s %(B)s".to_owned();
        let early_hints = EarlyHints::Always;
        let mut config = Config { access_log, access_log_format, early_hints, ..setup.config() };
        config.pace.write_rate = write_rate;
        let server = Server::routes(config, kinds_of_content(&folder));
        let first = server.ask(request("GET", "/small", "Connection: close\r\n"));
        let tag = first.expect_field("etag").to_owned();
        server.wait_until_empty();
        let (before, mut line) = (server.stats(), 1);
        wait_until("its line", || !is_logged || logged(&path).len() == 1);
        let (mut received, mut requests) = (0, 0);
        for (sent, answers) in exchanges(&tag) {
            let mut client = server.connect();
            client.send(&sent);
            client.shut_write_unless_closed();
            let (bytes, _) = client.read_until_ended();
            (received, requests) = (received + bytes.len() as u64, requests + answers.len() as u64);
            drop(client);
            server.wait_until_empty();
            let counted = server.stats().bytes_sent - before.bytes_sent;
            assert_eq!(counted, received, "{sent:?}: {}", bytes[..80].escape_ascii());
            assert_eq!(server.stats().requests - before.requests, requests, "{sent:?}");
            if is_logged {
                line += answers.len();
                wait_until("its lines", || logged(&path).len() == line);
                let lines = &logged(&path)[line - answers.len()..];
                for ((status, content), found) in answers.iter().zip(lines) {
                    let wanted = (*status, content.unwrap_or(found.1));
                    assert_eq!(*found, wanted, "{sent:?}");
                }
            }
        }
        let stats = server.stats();
        let of_classes = [stats.answers_2xx, stats.answers_3xx, stats.answers_4xx];
        assert_eq!(of_classes.iter().sum::<u64>() + stats.answers_5xx, stats.requests);
        assert_eq!((stats.answers_3xx, stats.answers_4xx, stats.answers_5xx), (1, 3, 1));
    }
}

/// How many bytes an answer has, its head among them.
fn all_of(server: &Server, target: &str) -> u64 {
    let mut client = server.connect();
    client.send(get(target));
    client.shut_write();
    client.read_until_ended().0.len() as u64
}

fn what_a_slow_client_has_left_is_taken_back(setup: Setup) {
    const CONTENT_BYTES: u64 = 20_000;
    if Setup::http1_only("bytes of HTTP/2 are those of frames") {
        return;
    }
    if Setup::plain_only("what is left of a record is counted with its seal") {
        return;
    }
    let log = TempDir::new().expect("a temporary folder");
    let path = log.path().join("access.log");
    let config = Config {
        access_log: Some(path.clone()),
        access_log_format: "%(s)s %(B)s".to_owned(),
        write_timeout: Duration::from_millis(300),
        send_buffer_bytes: 8192,
        ..setup.config()
    };
    let routes = Routes::new().get("/", |_: &Request| vec![b'x'; 20_000]);
    let server = Server::routes(config, routes);
    let head_bytes = all_of(&server, "/") - CONTENT_BYTES;
    server.wait_until_empty();
    let before = server.stats();
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/").repeat(4));
    // (Who asks meanwhile is told of what is on its way, and totals never fall.)
    wait_until("its lines", || logged(&path).len() == 1 + 4);
    let received = client.read_until_ended().0.len() as u64;
    assert_eq!(server.stats().bytes_sent - before.bytes_sent, received);
    let each = head_bytes + CONTENT_BYTES;
    let content = received / each * CONTENT_BYTES + (received % each).saturating_sub(head_bytes);
    let lines = logged(&path);
    assert_eq!(lines[1..].iter().map(|line| line.1).sum::<u64>(), content, "{lines:?}");
    assert!(received < 4 * each && server.stats().timeouts == 1, "{received}");
}
