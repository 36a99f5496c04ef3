//! Handlers of the three kinds: what they get, what they may answer, what becomes of their faults.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{
    BodyError, IntoResponse, Request, Response, Routes, Sent, Status, blocking, reply_later, route,
};
use gustnado_tasks::{sleep, yield_now};

use crate::harness::alive::Alive;
use crate::harness::client::{get, post, request};
use crate::harness::folder::noise;
use crate::harness::{Folder, Server, Setup, wait_until};

on_every_server!(
    all_kinds_answer_on_one_connection_in_order,
    a_body_comes_whole_to_inline_and_blocking_handlers,
    a_task_streams_a_body_back_as_it_comes,
    a_task_need_not_read_the_body,
    a_body_over_the_limit_is_refused_in_each_kind,
    routes_of_a_path_have_limits_of_their_own,
    an_interim_status_is_no_response,
    a_late_response_that_panics_gives_500,
    a_body_that_breaks_the_rules_is_an_error_in_the_task,
    continue_is_said_when_a_task_looks_at_the_body,
    a_panic_is_answered_with_500_and_the_connection_goes_on,
    big_content_is_sent_whole,
    a_file_is_answered_with_ranges,
    a_header_that_would_split_the_answer_gives_500,
    a_handler_learns_that_the_answer_was_sent,
    a_client_that_goes_drops_the_task,
    a_half_closed_client_is_waited_for_and_then_given_up,
    a_half_closed_client_may_be_taken_for_gone_at_once,
    an_end_does_not_wait_for_a_half_closed_client,
    a_full_pool_is_answered_with_503,
    head_runs_the_handler_and_sends_no_content,
    a_304_claims_no_length,
);

fn echo_routes() -> Routes {
    let whole = |request: &Request| request.bytes().to_vec();
    Routes::new()
        .route("/inline", route().get(whole).post(whole))
        .post("/task", async |request: Request| Response::stream(request.into_body()))
        .get("/task", async |_: Request| {
            yield_now().await;
            "task"
        })
        .post("/pool", blocking(|request: Request| request.bytes().to_vec()))
        .get("/pool", blocking(|_| "pool"))
}

fn all_kinds_answer_on_one_connection_in_order(setup: Setup) {
    let server = Server::routes(setup.config(), echo_routes());
    let mut client = server.connect();
    for round in 0..3 {
        let paths = ["/task", "/inline", "/pool", "/task", "/none"];
        client.send(paths.map(get).concat());
        for (status, text) in [(200, "task"), (200, ""), (200, "pool"), (200, "task")] {
            let answer = client.read_answer();
            assert_eq!((answer.status, &*answer.text()), (status, text), "round {round}");
        }
        assert_eq!(client.read_answer().status, 404);
    }
    assert_eq!(server.stats().connections_accepted, 1);
}

fn a_body_comes_whole_to_inline_and_blocking_handlers(setup: Setup) {
    let server = Server::routes(setup.config(), echo_routes());
    let mut client = server.connect();
    for path in ["/inline", "/pool"] {
        assert_eq!(client.ask(post(path, "hello")).text(), "hello");
        let chunked = request("POST", path, "Transfer-Encoding: chunked\r\n");
        assert_eq!(client.ask(chunked + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").text(), "abcde");
        let long = "x".repeat(200_000);
        assert!(client.ask(post(path, &long)).text() == long, "{path}");
    }
}

fn a_task_streams_a_body_back_as_it_comes(setup: Setup) {
    let server = Server::routes(setup.config(), echo_routes());
    let mut client = server.connect();
    client.send(request("POST", "/task", "Transfer-Encoding: chunked\r\n"));
    for part in ["one", "two", "three"] {
        client.send(format!("{:x}\r\n{part}\r\n", part.len()));
        let echoed = format!("{:x}\r\n{part}\r\n", part.len());
        if part == "one" {
            assert_eq!(client.read_head().status, 200);
        }
        assert_eq!(client.take(echoed.len()).expect("an echo"), echoed.as_bytes());
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.take(5).expect("the end"), b"0\r\n\r\n");
    let long = String::from_utf8(noise(3, 500_000).iter().map(|byte| b'a' + byte % 26).collect());
    let long = long.expect("letters");
    assert!(client.ask(post("/task", &long)).text() == long);
    assert_eq!(client.ask(get("/task")).text(), "task", "the connection goes on");
}

fn a_task_need_not_read_the_body(setup: Setup) {
    let routes = Routes::new().post("/", async |_: Request| "no, thanks");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.ask(post("/", &"x".repeat(10_000))).text(), "no, thanks");
    }
    assert_eq!(server.stats().connections_accepted, 1);
    let mut asking = server.connect();
    let fields = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    let answer = asking.ask(request("POST", "/", fields));
    let closes = !Setup::is_http2();
    assert_eq!((answer.status, answer.closes()), (200, closes), "nobody asked for the body");
}

fn a_body_over_the_limit_is_refused_in_each_kind(setup: Setup) {
    let read = async |request: Request| request.into_body().bytes(usize::MAX).await;
    let routes = echo_routes().post("/read", read).route(
        "/small",
        route().limit_body_bytes(4).post(|request: &Request| request.bytes().to_vec()),
    );
    let server = Server::routes(Config { limit_body_bytes: 1_000, ..setup.config() }, routes);
    for path in ["/inline", "/pool", "/task", "/read"] {
        assert_eq!(server.ask(post(path, &"x".repeat(1_001))).status, 413, "{path}");
        assert_eq!(server.ask(post(path, &"x".repeat(1_000))).status, 200, "{path}");
    }
    let chunked = request("POST", "/read", "Transfer-Encoding: chunked\r\n");
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1_024));
    assert_eq!(server.ask(chunked + &chunk + "0\r\n\r\n").status, 413);
    assert_eq!(server.ask(post("/small", "12345")).status, 413);
    assert_eq!(server.ask(post("/small", "1234")).text(), "1234");
}

/// Each route of a path has limits for its own handlers, in whatever order they come.
fn routes_of_a_path_have_limits_of_their_own(setup: Setup) {
    let length = |request: &Request| request.bytes().len().to_string();
    let (large, small) = (|| route().limit_body_bytes(5_000), || route().limit_body_bytes(5));
    let routes = Routes::new()
        .get("/a", |_: &Request| "page")
        .route("/a", large().post(length))
        .put("/a", length)
        .route("/b", large().post(length))
        .route("/b", small().put(length))
        .route("/b", route().any(length));
    let server = Server::routes(Config { limit_body_bytes: 1_000, ..setup.config() }, routes);
    for (path, method, most) in [
        ("/a", "POST", 5_000),
        ("/a", "PUT", 1_000),
        ("/b", "POST", 5_000),
        ("/b", "PUT", 5),
        ("/b", "PATCH", 1_000),
    ] {
        for (length, status) in [(most, 200), (most + 1, 413)] {
            let fields = format!("Content-Length: {length}\r\n");
            let answer = server.ask(request(method, path, &fields) + &"x".repeat(length));
            assert_eq!(answer.status, status, "{method} {path} {length}");
        }
    }
    assert_eq!(server.get("/a").text(), "page");
}

/// A client would take the next response for it.
fn an_interim_status_is_no_response(setup: Setup) {
    let routes = Routes::new()
        .get("/inline", |_: &Request| Status::EARLY_HINTS)
        .get("/task", async |_: Request| Status::CONTINUE)
        .get("/switch", |_: &Request| Response::text("x").status(Status::SWITCHING_PROTOCOLS))
        .get("/stream", async |_: Request| {
            let (appender, response) = Response::append(1);
            drop(appender);
            response.status(Status::EARLY_HINTS)
        })
        .get("/next", |_: &Request| "next");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/task", "/switch", "/stream"] {
        assert_eq!(client.get(path).status, 500, "{path}");
        assert_eq!(client.get("/next").text(), "next");
    }
}

/// Making it a response panics.
struct Unspeakable;

impl IntoResponse for Unspeakable {
    fn into_response(self) -> Response {
        Response::text("x").header("X", "a\r\nb")
    }
}

fn a_late_response_that_panics_gives_500(setup: Setup) {
    let routes = Routes::new().get("/", |_: Request| {
        let (replier, reply) = reply_later();
        thread::spawn(move || replier.respond(Unspeakable));
        reply
    });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/").status, 500);
    }
}

fn a_body_that_breaks_the_rules_is_an_error_in_the_task(setup: Setup) {
    if Setup::http1_only("HTTP/2 has no chunks") {
        return;
    }
    let read = async |request: Request| match request.into_body().bytes(100).await {
        Err(BodyError::Malformed) => Status::UNPROCESSABLE_CONTENT,
        other => panic!("expected an error, got {other:?}"),
    };
    let server = Server::routes(setup.config(), Routes::new().post("/", read));
    let mut client = server.connect();
    let answer = client.ask(request("POST", "/", "Transfer-Encoding: chunked\r\n") + "zz\r\n");
    assert_eq!((answer.status, answer.closes()), (422, true));
}

fn continue_is_said_when_a_task_looks_at_the_body(setup: Setup) {
    let server = Server::routes(setup.config(), echo_routes());
    let mut client = server.connect();
    client.send(request("POST", "/task", "Content-Length: 3\r\nExpect: 100-continue\r\n"));
    // The answer is a stream of the body: its head comes first, and says that it listens.
    let answer = client.read_head();
    assert!([100, 200].contains(&answer.status), "{answer:?}");
    client.send("abc");
    if answer.status == 100 {
        assert_eq!(client.read_head().status, 200);
    }
    assert_eq!(client.take(13).expect("an echo"), b"3\r\nabc\r\n0\r\n\r\n");
}

fn a_panic_is_answered_with_500_and_the_connection_goes_on(setup: Setup) {
    let routes = Routes::new()
        .get("/inline", |request: &Request| {
            assert_ne!(request.raw_path(), "/inline", "a fault of the handler's own");
            ""
        })
        .get("/task", async |request: Request| {
            yield_now().await;
            assert_ne!(request.raw_path(), "/task", "a fault of the handler's own");
            ""
        })
        .get(
            "/pool",
            blocking(|request: Request| {
                assert_ne!(request.raw_path(), "/pool", "a fault of the handler's own");
                ""
            }),
        )
        .get("/fine", |_: &Request| "fine");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (count, path) in ["/inline", "/task", "/pool"].into_iter().enumerate() {
        assert_eq!(client.get(path).status, 500, "{path}");
        assert_eq!(client.get("/fine").text(), "fine", "after {path}");
        assert_eq!(server.stats().panics, count as u64 + 1);
    }
}

fn big_content_is_sent_whole(setup: Setup) {
    let content = gustnado::Bytes::from(noise(9, 1_000_000));
    let shared = content.clone();
    let routes = Routes::new().get("/", move |_: &Request| shared.clone());
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for _ in 0..3 {
        assert!(client.get("/").body == content);
    }
}

fn a_file_is_answered_with_ranges(setup: Setup) {
    let folder = Folder::new();
    let path = folder.file("data.txt", "0123456789");
    let routes = Routes::new()
        .get("/", move |_: &Request| Response::file(&path).header("X-Own", "1"))
        .get("/none", |_: &Request| Response::file("/no/such/file"));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    let whole = client.get("/");
    assert_eq!((&*whole.text(), whole.expect_field("x-own")), ("0123456789", "1"));
    assert_eq!(whole.expect_field("content-type"), "text/plain; charset=utf-8");
    let part = client.ask(request("GET", "/", "Range: bytes=-3\r\n"));
    assert_eq!((part.status, &*part.text()), (206, "789"));
    let tag = whole.expect_field("etag").to_owned();
    let same = client.ask(request("GET", "/", &format!("If-None-Match: {tag}\r\n")));
    assert_eq!(same.status, 304);
    assert_eq!(client.get("/none").status, 404);
}

fn a_header_that_would_split_the_answer_gives_500(setup: Setup) {
    let routes = Routes::new().get("/", |request: &Request| {
        let to = request.query_value("to").unwrap_or_default().into_owned();
        Response::redirect(Status::FOUND, &to)
    });
    let server = Server::routes(setup.config(), routes);
    assert_eq!(server.get("/?to=/there").expect_field("location"), "/there");
    let split = server.get("/?to=/x%0d%0aSet-Cookie:%20a=b");
    assert_eq!((split.status, split.field("set-cookie")), (500, None));
}

fn a_handler_learns_that_the_answer_was_sent(setup: Setup) {
    let (told, hears) = mpsc::channel();
    let endless = told.clone();
    let routes = Routes::new()
        .get("/", move |_: &Request| {
            let told = told.clone();
            Response::text("x").on_sent(move |sent| told.send(sent).expect("the test listens"))
        })
        .get("/endless", move |_: &Request| {
            let (appender, response) = Response::append(1);
            thread::spawn(move || while appender.blocking_append("more", None).is_ok() {});
            let told = endless.clone();
            response.on_sent(move |sent| told.send(sent).expect("the test listens"))
        });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "x");
    assert_eq!(hears.recv_timeout(crate::harness::PATIENCE), Ok(Sent::Whole));
    client.send(get("/endless"));
    client.read_some(100).expect("it has begun");
    client.reset();
    assert_eq!(hears.recv_timeout(crate::harness::PATIENCE), Ok(Sent::Lost));
}

fn waiting(alive: &Arc<AtomicUsize>) -> Routes {
    let alive = Arc::clone(alive);
    Routes::new().get("/", move |_: Request| {
        let alive = Alive::new(&alive);
        async move {
            sleep(Duration::from_hours(1)).await;
            drop(alive);
            "late"
        }
    })
}

fn a_client_that_goes_drops_the_task(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let server = Server::routes(setup.config(), waiting(&alive));
    let mut client = server.connect();
    client.send(get("/"));
    wait_until("the handler runs", || alive.load(Ordering::SeqCst) == 1);
    client.reset();
    wait_until("the handler is dropped", || alive.load(Ordering::SeqCst) == 0);
    server.wait_until_empty();
}

fn a_half_closed_client_is_waited_for_and_then_given_up(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let brief = Duration::from_millis(100);
    let config = Config { half_close_timeout: brief, ..setup.config() };
    let server = Server::routes(config, waiting(&alive));
    let mut client = server.connect();
    client.send(get("/"));
    wait_until("the handler runs", || alive.load(Ordering::SeqCst) == 1);
    client.shut_write();
    wait_until("the handler is dropped", || alive.load(Ordering::SeqCst) == 0);
    let routes = Routes::new().get("/", async |_: Request| {
        sleep(Duration::from_millis(50)).await;
        "in time"
    });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(get("/"));
    client.shut_write();
    assert_eq!(client.read_answer().text(), "in time");
}

fn a_half_closed_client_may_be_taken_for_gone_at_once(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let config = Config { half_close_timeout: Duration::ZERO, ..setup.config() };
    let server = Server::routes(config, waiting(&alive));
    let mut client = server.connect();
    client.send(get("/"));
    wait_until("the handler runs", || alive.load(Ordering::SeqCst) == 1);
    client.shut_write();
    wait_until("the handler is dropped", || alive.load(Ordering::SeqCst) == 0);
    server.wait_until_empty();
}

fn an_end_does_not_wait_for_a_half_closed_client(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    // (The configuration's half-close time is long.)
    let server = Server::routes(setup.config(), waiting(&alive));
    let mut before = server.connect();
    let mut meanwhile = server.connect();
    for client in [&mut before, &mut meanwhile] {
        client.send(get("/"));
    }
    wait_until("the handlers run", || alive.load(Ordering::SeqCst) == 2);
    before.shut_write();
    let began = Instant::now();
    let report = thread::scope(|scope| {
        let ending = scope.spawn(|| server.running().drain(Duration::from_secs(15)));
        wait_until("one handler is dropped", || alive.load(Ordering::SeqCst) == 1);
        meanwhile.shut_write();
        ending.join().expect("the drain ends")
    });
    assert_eq!(report.cut, 0);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

fn a_full_pool_is_answered_with_503(setup: Setup) {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(std::sync::Mutex::new(gate));
    let held = Arc::new(AtomicUsize::new(0));
    let (inside, waits) = (Arc::clone(&held), Arc::clone(&gate));
    let routes = Routes::new().get(
        "/",
        blocking(move |_| {
            inside.fetch_add(1, Ordering::SeqCst);
            _ = waits.lock().expect("nobody panics").recv();
            "through"
        }),
    );
    let config = Config { blocking_threads: 1, blocking_queue: 2, ..setup.config() };
    let server = Server::routes(config, routes);
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(get("/"));
    }
    wait_until("one runs", || held.load(Ordering::SeqCst) == 1);
    let refused = |stats: &gustnado::Stats| stats.answers_5xx >= 4;
    server.wait_until("some are refused", refused);
    drop(open);
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.read_answer().status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&503), "{statuses:?}");
}

fn head_runs_the_handler_and_sends_no_content(setup: Setup) {
    let routes =
        Routes::new().get("/text", |_: &Request| "four").get("/after", |_: &Request| "after");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("HEAD", "/text", ""));
    assert_eq!(client.read_head().expect_field("content-length"), "4");
    assert_eq!(client.get("/after").text(), "after");
}

fn a_304_claims_no_length(setup: Setup) {
    let routes = Routes::new()
        .get("/inline", |_: &Request| Response::new(Status::NOT_MODIFIED))
        .get("/task", async |_: Request| Response::new(Status::NOT_MODIFIED))
        .get("/empty", |_: &Request| Response::new(Status::OK));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/task"] {
        client.send(get(path));
        let head = client.read_head();
        assert_eq!((head.status, head.field("content-length")), (304, None), "{path}");
    }
    client.send(get("/empty"));
    assert_eq!(client.read_head().expect_field("content-length"), "0");
}
