//! Answers that come over time: streams, appended answers, events, trailers, early hints.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, EarlyHints};
use gustnado::{Event, Request, Response, Routes, route};
use gustnado_tasks::{sleep, yield_now};

use crate::harness::client::{End, get, post, request};
use crate::harness::{Answer, Folder, Server, Setup, wait_until};

on_every_server!(
    a_stream_of_unknown_length_is_chunked_or_ends_with_the_connection,
    a_stream_of_known_length_says_it_and_keeps_it,
    a_stream_that_fails_cuts_the_connection,
    an_answer_can_be_appended_from_another_thread,
    events_are_sent_one_by_one,
    trailers_follow_a_chunked_answer,
    early_hints_come_before_the_answer,
    a_route_names_what_its_pages_need,
    a_client_that_goes_drops_a_stream_that_was_begun_at_once,
    a_head_request_for_a_stream_gets_its_head_only,
    a_stream_that_always_has_more_lets_others_have_their_turn,
    pieces_of_all_sizes_arrive_whole_however_they_are_framed,
);

fn numbers() -> Response {
    let (appender, response) = Response::append(4);
    let appending = gustnado_tasks::spawn(async move {
        for number in 0..3 {
            appender.append(format!("{number},")).await.expect("the client reads");
            yield_now().await;
        }
    })
    .expect("a task slot is free");
    drop(appending); // It goes on by itself.
    response
}

fn a_stream_of_unknown_length_is_chunked_or_ends_with_the_connection(setup: Setup) {
    let server =
        Server::routes(setup.config(), Routes::new().get("/", async |_: Request| numbers()));
    let mut client = server.connect();
    let answer = client.get("/");
    assert_eq!((&*answer.text(), answer.field("transfer-encoding")), ("0,1,2,", Some("chunked")));
    assert_eq!(client.get("/").text(), "0,1,2,");
    if Setup::is_http2() {
        return;
    }
    let mut old = server.connect();
    old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = old.read_answer();
    assert_eq!((&*answer.text(), answer.field("transfer-encoding")), ("0,1,2,", None));
    assert!(answer.closes());
}

fn a_stream_of_known_length_says_it_and_keeps_it(setup: Setup) {
    let echo = async |request: Request| {
        let length: u64 = request.param("length").parse().expect("a number");
        Response::stream_of_length(request.into_body(), length)
    };
    let server = Server::routes(setup.config(), Routes::new().post("/{length}", echo));
    let mut client = server.connect();
    let answer = client.ask(post("/5", "hello"));
    assert_eq!((&*answer.text(), answer.field("content-length")), ("hello", Some("5")));
    for length in ["/4", "/6"] {
        let mut client = server.connect();
        client.send(post(length, "hello"));
        assert!(client.try_answer().is_err(), "{length}: the client must not take it as whole");
    }
}

fn a_stream_that_fails_cuts_the_connection(setup: Setup) {
    let routes =
        Routes::new().post("/", async |request: Request| Response::stream(request.into_body()));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("POST", "/", "Transfer-Encoding: chunked\r\n") + "2\r\nab\r\n");
    if Setup::is_http2() {
        // There is no such thing as a malformed chunk, but a client that sends no more.
        client.shut_write();
    } else {
        client.send("zz\r\n");
    }
    let (bytes, _) = client.read_until_ended();
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "{}", bytes.escape_ascii());
    if Setup::is_http2() {
        return;
    }
    // Where the end of the connection is the end of the content, it is no end in order.
    let mut old = server.connect();
    old.send("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nab");
    old.shut_write();
    let (bytes, end) = old.read_until_ended();
    assert!(!matches!(end, End::Closed(_)), "{end:?} after {}", bytes.escape_ascii());
}

fn an_answer_can_be_appended_from_another_thread(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        let (appender, response) = Response::append(1);
        thread::spawn(move || {
            for line in ["one\n", "two\n", "three\n"] {
                thread::sleep(Duration::from_millis(20));
                appender.blocking_append(line, None).expect("the client reads");
            }
        });
        response
    });
    let server = Server::routes(setup.config(), routes);
    assert_eq!(server.get("/").text(), "one\ntwo\nthree\n");
}

fn events_are_sent_one_by_one(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        Response::events(Ticks { left: 3, timer: Box::pin(sleep(Duration::ZERO)) })
    });
    let server = Server::routes(setup.config(), routes);
    let answer = server.get("/");
    assert_eq!(answer.expect_field("content-type"), "text/event-stream");
    assert_eq!(
        answer.text(),
        "data: 3\nevent: tick\n\ndata: 2\nevent: tick\n\ndata: 1\nevent: tick\n\n"
    );
}

/// Counts down in steps of 10 ms.
struct Ticks {
    left: u32,
    timer: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl futures_core::Stream for Ticks {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        ready!(self.timer.as_mut().poll(context));
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let event = Event::data(&self.left.to_string()).named("tick");
        self.left -= 1;
        self.timer = Box::pin(sleep(Duration::from_millis(10)));
        Poll::Ready(Some(event))
    }
}

fn trailers_follow_a_chunked_answer(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        numbers().trailers(|| {
            vec![("X-Sum".to_owned(), "3".to_owned()), ("bad\n".to_owned(), String::new())]
        })
    });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("GET", "/", "Connection: close\r\n"));
    let (bytes, _) = client.read_until_ended();
    assert!(bytes.ends_with(b"0\r\nX-Sum: 3\r\n\r\n"), "{}", bytes.escape_ascii());
    if Setup::is_http2() {
        return;
    }
    let old = server.ask("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.text(), "0,1,2,");
}

fn early_hints_come_before_the_answer(setup: Setup) {
    let routes = Routes::new().get("/", async |request: Request| {
        request.early_hints(&[("Link", "</a.css>; rel=preload")]).expect("a good field");
        sleep(Duration::from_millis(30)).await;
        "late"
    });
    let navigation = request("GET", "/", "Sec-Fetch-Mode: navigate\r\n");
    let other = request("GET", "/", "Sec-Fetch-Mode: cors\r\n");
    for (hints, asked) in [
        (EarlyHints::Navigations, &[(&navigation, true), (&other, false)]),
        (EarlyHints::Always, &[(&navigation, true), (&other, true)]),
        (EarlyHints::Never, &[(&navigation, false), (&other, false)]),
    ] {
        let config = Config { early_hints: hints, ..setup.config() };
        let server = Server::routes(config, routes.clone());
        let mut client = server.connect();
        for (asked, is_hinted) in asked {
            client.send(asked);
            // (By HTTP/2 all who may have them.)
            if *is_hinted || Setup::is_http2() && hints != EarlyHints::Never {
                let hints = client.read_head();
                assert_eq!(hints.status, 103);
                assert_eq!(hints.expect_field("link"), "</a.css>; rel=preload");
            }
            let answer = client.read_answer();
            assert_eq!((answer.status, answer.text()), (200, "late".to_owned()), "{hints:?}");
        }
        if !Setup::is_http2() {
            assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n").text(), "late");
        }
    }
}

fn a_route_names_what_its_pages_need(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "<p>a page");
    folder.file("a.css", "p {}");
    let slow = async |_: Request| {
        sleep(Duration::from_millis(30)).await;
        "a page"
    };
    let links = |route: gustnado::Route| {
        route.preload("/a.css; as=style").preload("</b.js>; rel=modulepreload")
    };
    let routes = Routes::new()
        .route("/slow", links(route().get(slow)))
        .route("/at-once", links(route().get(async |_: Request| "a page")))
        .route("/inline", links(route().get(|_: &Request| "a page")))
        .route("/files", links(route().files(folder.root())));
    let server = Server::routes(setup.config(), routes);
    let both = ["</a.css>; rel=preload; as=style", "</b.js>; rel=modulepreload"];
    let links = |answer: &Answer| {
        let same = answer.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("link"));
        same.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let navigation = |target: &str| request("GET", target, "Sec-Fetch-Mode: navigate\r\n");
    let mut client = server.connect();
    client.send(navigation("/slow"));
    let hints = client.read_head();
    assert_eq!((hints.status, links(&hints)), (103, both.map(str::to_owned).to_vec()));
    let answer = client.read_answer();
    assert_eq!((answer.status, links(&answer)), (200, both.map(str::to_owned).to_vec()));
    // To other clients it says so with the page alone.
    assert_eq!(links(&client.ask(get("/slow"))), both);
    if Setup::is_http2() {
        // (By HTTP/2 these were hints.)
        assert_eq!(client.read_answer().text(), "a page");
    }
    for (target, count) in [("/at-once", 2), ("/inline", 2), ("/files/", 2), ("/files/a.css", 0)] {
        // The first time, a file may be waited for.
        client.send(get(target));
        client.read_answer();
        client.send(navigation(target));
        let answer = client.read_answer();
        assert_eq!((answer.status, links(&answer).len()), (200, count), "{target}");
    }
    let bad = Routes::new().route("/", route().get(|_: &Request| "").preload("/a.css"));
    let server = gustnado::Server::new().routes(bad).listen("127.0.0.1:0");
    let error = server.expect_err("what is it?").to_string();
    assert!(error.contains("/a.css") && error.contains("as=style"), "{error}");
}

fn a_client_that_goes_drops_a_stream_that_was_begun_at_once(setup: Setup) {
    for path in ["/inline", "/task"] {
        let alive = Arc::new(AtomicUsize::new(0));
        let (inline, task) = (Arc::clone(&alive), Arc::clone(&alive));
        let routes = Routes::new()
            .get("/inline", move |_: &Request| Response::stream(Silent::new(&inline)))
            .get("/task", move |_: Request| future::ready(Response::stream(Silent::new(&task))));
        let server = Server::routes(setup.config(), routes);
        let mut client = server.connect();
        client.send(get(path));
        wait_until("the stream is made", || alive.load(Ordering::SeqCst) == 1);
        client.reset();
        wait_until("the stream is dropped", || alive.load(Ordering::SeqCst) == 0);
        server.wait_until_empty();
    }
}

/// A stream that never brings anything, and is counted while it lives.
struct Silent(Arc<AtomicUsize>);

impl Silent {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(alive))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl futures_core::Stream for Silent {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

fn a_head_request_for_a_stream_gets_its_head_only(setup: Setup) {
    let routes =
        Routes::new().get("/", async |_: Request| numbers()).get("/after", |_: &Request| "after");
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("HEAD", "/", ""));
    let framing = (!Setup::is_http2()).then_some("chunked");
    assert_eq!(client.read_head().field("transfer-encoding"), framing);
    assert_eq!(client.get("/after").text(), "after");
}

/// Always has more, up to so many pieces; and now and then has what there is sent first.
struct Endless(Arc<AtomicUsize>, bool);

/// A stream that nobody interrupts goes on for longer than a request takes.
const PIECES_MAX: usize = 1_000_000;

impl futures_core::Stream for Endless {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.1 = !self.1;
        if self.1 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let taken = self.0.fetch_add(1, Ordering::Relaxed);
        Poll::Ready((taken < PIECES_MAX).then(|| Ok(vec![b'x'; 1_000])))
    }
}

fn a_stream_that_always_has_more_lets_others_have_their_turn(setup: Setup) {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let routes = Routes::new()
        .get("/endless", move |_: &Request| Response::stream(Endless(Arc::clone(&counted), false)))
        .get("/", |_: &Request| "here");
    let server = Server::routes(Config { workers: 1, ..setup.config() }, routes);
    let mut reader = TcpStream::connect(server.address()).expect("it listens");
    reader.write_all(get("/endless").as_bytes()).expect("it is taken");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = vec![0; 64 << 10];
            while !is_over.load(Ordering::Relaxed) {
                if !reader.read(&mut room).is_ok_and(|bytes| bytes > 0) {
                    return;
                }
            }
        });
        for _ in 0..3 {
            assert_eq!(server.connect().get("/").text(), "here");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(taken.load(Ordering::Relaxed) < PIECES_MAX, "they came only after the stream's end");
}

/// Pieces that are all here.
struct Ready(VecDeque<Vec<u8>>);

impl futures_core::Stream for Ready {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

fn pieces() -> VecDeque<Vec<u8>> {
    const SIZES: [usize; 9] = [1, 0, 4_095, 4_096, 70_000, 3, 600_000, 65_536, 2];
    SIZES.into_iter().zip(b'a'..).map(|(size, letter)| vec![letter; size]).collect()
}

fn pieces_of_all_sizes_arrive_whole_however_they_are_framed(setup: Setup) {
    let whole = pieces().into_iter().collect::<Vec<_>>().concat();
    let length = whole.len() as u64;
    let content = whole.clone();
    let routes = Routes::new()
        .get("/first", |_: &Request| "first")
        .get("/chunked", async |_: Request| Response::stream(Ready(pieces())))
        .get("/sized", move |_: &Request| Response::stream_of_length(Ready(pieces()), length))
        .get("/ready", move |_: &Request| Response::bytes(content.clone()));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/chunked", "/sized", "/ready"] {
        assert!(client.get(path).body == whole, "{path}");
        // Behind another answer, and before one.
        client.send([get("/first"), get(path), get("/first")].concat());
        assert_eq!(client.read_answer().text(), "first");
        assert!(client.read_answer().body == whole, "{path} in a pipeline");
        assert_eq!(client.read_answer().text(), "first");
    }
}
