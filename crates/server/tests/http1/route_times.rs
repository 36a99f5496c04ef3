//! Times that one route has for itself: a body, an answer, a handler that says nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Response, Route, Routes, blocking, route};

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_route_may_be_less_patient_with_bodies,
    a_route_may_be_more_patient_with_bodies,
    a_route_may_be_less_patient_with_readers,
    a_route_may_be_more_patient_with_readers,
    small_answers_of_such_a_route_are_like_others,
    a_handler_that_says_nothing_is_answered_503,
    a_stream_that_dries_up_is_cut,
    a_body_that_keeps_coming_is_no_idleness,
    what_is_long_in_coming_is_still_sent_in_its_time,
    a_handler_that_is_busy_buys_a_silent_client_no_time,
);

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_mins(1);

fn length(request: &Request) -> String {
    request.bytes().len().to_string()
}

fn half_a_body(path: &str) -> String {
    request("POST", path, "Content-Length: 10\r\n") + "hello"
}

fn a_route_may_be_less_patient_with_bodies(setup: Setup) {
    let read = async |request: Request| request.into_body().bytes(100).await;
    let routes = Routes::new()
        .route("/inline", route().body_timeout(SHORT).post(length))
        .route("/pool", route().body_timeout(SHORT).post(blocking(|_| "pool")))
        .route("/task", route().idle_timeout(SHORT).post(read))
        .route("/idle", route().idle_timeout(SHORT).post(length))
        .post("/other", length);
    let server = Server::routes(setup.patient_config(), routes);
    let mut other = server.connect();
    other.send(half_a_body("/other"));
    let began = Instant::now();
    let mut clients = ["/inline", "/pool", "/task", "/idle"].map(|path| {
        let mut client = server.connect();
        client.send(half_a_body(path));
        (path, client)
    });
    for (path, client) in &mut clients {
        let answer = client.read_answer();
        assert_eq!((answer.status, answer.closes()), (408, true), "{path}");
    }
    assert!(began.elapsed() >= SHORT / 2, "cut at once");
    other.send("world");
    assert_eq!(other.read_answer().text(), "10", "the other route has the server's time");
}

fn a_route_may_be_more_patient_with_bodies(setup: Setup) {
    let routes = Routes::new()
        .route("/inline", route().body_timeout(LONG).post(length))
        .route(
            "/task",
            route().idle_timeout(LONG).post(async |request: Request| {
                request.into_body().bytes(100).await.map(|body| body.len().to_string())
            }),
        )
        .post("/other", length);
    let server = Server::routes(Config { body_timeout: SHORT, ..setup.patient_config() }, routes);
    let mut clients = ["/inline", "/task", "/other"].map(|path| {
        let mut client = server.connect();
        client.send(half_a_body(path));
        client
    });
    assert_eq!(clients[2].read_answer().status, 408);
    for client in &mut clients[..2] {
        client.send("world");
        assert_eq!(client.read_answer().text(), "10");
    }
}

/// More than the kernel holds for a client that does not read.
const MUCH: usize = 32 << 20;

/// Long answers of three sorts, on paths that begin with `prefix`.
fn long_answers(routes: Routes, prefix: &str, special: fn(Route) -> Route) -> Routes {
    let content = Bytes::from(noise(9, MUCH));
    let pieces = content.clone();
    let folder = Arc::new(Folder::new());
    folder.file("long.bin", &content);
    let file = move |_: &Request| Response::file(folder.root().join("long.bin"));
    let stream = move |_: &Request| {
        let (appender, response) = Response::append(2);
        let mut left = pieces.clone();
        gustnado::task::spawn_detached(async move {
            while !left.is_empty() {
                if appender.append(left.split_to(left.len().min(100_000))).await.is_err() {
                    return;
                }
            }
        })
        .expect("a slot");
        response
    };
    routes
        .route(&format!("{prefix}/bytes"), special(route()).get(move |_: &Request| content.clone()))
        .route(&format!("{prefix}/file"), special(route()).get(file))
        .route(&format!("{prefix}/stream"), special(route()).get(stream))
}

const SORTS: [&str; 3] = ["bytes", "file", "stream"];

fn a_route_may_be_less_patient_with_readers(setup: Setup) {
    let routes = long_answers(Routes::new(), "/short", |route| route.write_timeout(SHORT));
    let routes = long_answers(routes, "/idle", |route| route.idle_timeout(SHORT));
    let server = Server::routes(setup.patient_config(), routes);
    for prefix in ["/short", "/idle"] {
        let mut clients = SORTS.map(|sort| {
            let mut client = Client::connect_narrow(server.address());
            client.send(get(&format!("{prefix}/{sort}")));
            client.wait_for_bytes();
            client
        });
        server.wait_until_empty();
        for client in &mut clients {
            assert!(client.read_until_ended().0.len() < MUCH, "all was sent");
        }
    }
    assert_eq!(server.stats().timeouts, 6);
}

fn a_route_may_be_more_patient_with_readers(setup: Setup) {
    let routes = long_answers(Routes::new(), "/long", |route| route.write_timeout(LONG));
    let routes = long_answers(routes, "/other", |route| route);
    let server = Server::routes(Config { write_timeout: SHORT, ..setup.patient_config() }, routes);
    let ask = |prefix: &str, sort: &str| {
        let mut client = Client::connect_narrow(server.address());
        client.send(get(&format!("{prefix}/{sort}")));
        client.wait_for_bytes();
        client
    };
    let mut long = SORTS.map(|sort| ask("/long", sort));
    let _other = SORTS.map(|sort| ask("/other", sort));
    server.wait_until("the others are cut", |stats| stats.connections_open == 3);
    for (client, sort) in long.iter_mut().zip(SORTS) {
        assert!(client.read_answer().body == noise(9, MUCH), "{sort}");
    }
}

fn small_answers_of_such_a_route_are_like_others(setup: Setup) {
    let special = || route().idle_timeout(LONG).limit_body_bytes(4);
    let routes = Routes::new()
        .route("/text", special().get(|_: &Request| "text").post(length))
        .route("/empty", special().get(|_: &Request| gustnado::Status::NO_CONTENT))
        .get("/other", |_: &Request| "other");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(["/text", "/other", "/empty", "/text"].map(get).concat());
    for (status, text) in [(200, "text"), (200, "other"), (204, ""), (200, "text")] {
        let answer = client.read_answer();
        assert_eq!((answer.status, &*answer.text()), (status, text));
    }
    client.send(request("HEAD", "/text", ""));
    assert_eq!(client.read_head().expect_field("content-length"), "4");
    assert_eq!(client.ask(request("POST", "/text", "Content-Length: 3\r\n") + "abc").text(), "3");
    assert_eq!(client.ask(request("DELETE", "/text", "")).status, 405);
    let long = request("POST", "/text", "Content-Length: 5\r\n") + "abcde";
    assert_eq!(client.ask(long).status, 413);
}

fn a_handler_that_says_nothing_is_answered_503(setup: Setup) {
    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let gone = Arc::<AtomicUsize>::default();
    let noted = Arc::clone(&gone);
    let hang = move |_: Request| {
        let gone = Gone(Arc::clone(&noted));
        async move {
            sleep(LONG).await;
            drop(gone);
            "too late"
        }
    };
    let routes = Routes::new()
        .route("/", route().idle_timeout(SHORT).get(hang.clone()).post(hang.clone()))
        .get("/other", async |_: Request| {
            sleep(SHORT * 2).await;
            "in time"
        });
    let server = Server::routes(setup.patient_config(), routes);
    let mut client = server.connect();
    let mut other = server.connect();
    other.send(get("/other"));
    let began = Instant::now();
    client.send(get("/") + &get("/"));
    let answer = client.read_answer();
    assert_eq!((answer.status, answer.closes()), (503, !Setup::is_http2()));
    assert!(began.elapsed() >= SHORT / 2, "at once");
    // A body that nobody reads is no progress either.
    let mut with_body = server.connect();
    let answer = with_body.ask(request("POST", "/", "Content-Length: 5\r\n") + "hello");
    assert_eq!((answer.status, answer.closes()), (503, !Setup::is_http2()));
    // (By HTTP/2 the one behind the first has begun, too.)
    let ended = 2 + usize::from(Setup::is_http2());
    wait_until("the handlers are dropped", || gone.load(Ordering::SeqCst) == ended);
    assert_eq!(other.read_answer().text(), "in time");
    assert_eq!(server.stats().timeouts, ended as u64);
}

/// A stream that brings a piece after each pause.
fn ticking(pauses: Vec<Duration>) -> Response {
    let (appender, response) = Response::append(2);
    gustnado::task::spawn_detached(async move {
        for pause in pauses {
            sleep(pause).await;
            if appender.append("tick").await.is_err() {
                return;
            }
        }
    })
    .expect("a slot");
    response
}

/// One that brings a piece and then nothing.
fn dry() -> Response {
    ticking(vec![Duration::ZERO, LONG])
}

fn a_stream_that_dries_up_is_cut(setup: Setup) {
    let steady = |_: &Request| ticking(vec![SHORT / 2; 6]);
    let routes = Routes::new()
        .route("/inline", route().idle_timeout(SHORT).get(|_: &Request| dry()))
        .route(
            "/task",
            route().idle_timeout(SHORT).get(async |_: Request| {
                sleep(Duration::from_millis(1)).await;
                dry()
            }),
        )
        .route("/steady", route().idle_timeout(SHORT * 2).get(steady));
    let server = Server::routes(setup.patient_config(), routes);
    let mut steady = server.connect();
    steady.send(get("/steady"));
    for path in ["/inline", "/task"] {
        let mut client = server.connect();
        client.send(get(path));
        let (bytes, _) = client.read_until_ended();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.ends_with("tick\r\n"), "{path}: {text}");
    }
    assert_eq!(server.stats().timeouts, 2);
    assert_eq!(steady.read_answer().text(), "tick".repeat(6), "what ticks is not idle");
}

fn a_body_that_keeps_coming_is_no_idleness(setup: Setup) {
    let echo = async |request: Request| Response::stream(request.into_body());
    let count = async |request: Request| {
        request.into_body().bytes(100).await.map(|body| body.len().to_string())
    };
    let special = || route().idle_timeout(SHORT * 2);
    let routes =
        Routes::new().route("/echo", special().post(echo)).route("/count", special().post(count));
    let server = Server::routes(setup.patient_config(), routes);
    for (path, answer) in [("/echo", "12345678"), ("/count", "8")] {
        let mut client = server.connect();
        client.send(request("POST", path, "Content-Length: 8\r\n"));
        client.trickle(b"12345678", SHORT / 2);
        assert_eq!(client.read_answer().text(), answer, "{path}");
    }
}

fn what_is_long_in_coming_is_still_sent_in_its_time(setup: Setup) {
    let slow = async |_: Request| {
        sleep(SHORT * 2).await;
        "at last"
    };
    let steady = |_: &Request| ticking(vec![SHORT * 2; 3]);
    let late = async |_: Request| {
        sleep(SHORT * 2).await;
        ticking(vec![SHORT * 2; 2])
    };
    let routes = Routes::new().get("/slow", slow).get("/steady", steady).get("/late", late);
    let server = Server::routes(Config { write_timeout: SHORT, ..setup.patient_config() }, routes);
    let asked = [("/slow", "at last"), ("/steady", "tickticktick"), ("/late", "ticktick")];
    let mut clients = asked.map(|(path, text)| {
        let mut client = server.connect();
        client.send(get(path));
        (client, text)
    });
    for (client, text) in &mut clients {
        assert_eq!(client.read_answer().text(), *text, "the time counts from where it is sent");
    }
}

fn a_handler_that_is_busy_buys_a_silent_client_no_time(setup: Setup) {
    use gustnado::task::{Either, select2};
    let busy = async |request: Request| {
        let mut body = request.into_body();
        loop {
            // It looks at something else again and again while it waits.
            match select2(body.next(), sleep(SHORT / 10)).await {
                Either::First(Some(Ok(_))) | Either::Second(()) => {}
                Either::First(Some(Err(error))) => return gustnado::Response::new(error.status()),
                Either::First(None) => return Response::text("whole"),
            }
        }
    };
    let routes = Routes::new().post("/", busy);
    let server = Server::routes(Config { body_timeout: SHORT, ..setup.patient_config() }, routes);
    let mut client = server.connect();
    assert_eq!(client.ask(half_a_body("/")).status, 408);
    server.wait_until("it is counted", |stats| stats.timeouts == 1);
}
