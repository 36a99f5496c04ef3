//! Handlers that take their time: tasks, streams, trailers, panics.

use std::future::{pending, ready};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Event, Request, Response, Routes};
use gustnado_http::h2::ErrorCode;

use crate::harness::alive::Alive;
use crate::harness::http2::Http2Client;
use crate::harness::{Server, Setup, wait_until};
use crate::in_clear;

on_every_server!(
    a_slow_handler_delays_no_other_stream,
    a_reset_ends_the_handler,
    the_end_of_the_connection_ends_its_handlers,
    a_panic_is_the_end_of_one_answer,
    trailers_follow_the_content,
    events_come_one_by_one,
    a_stream_that_fails_is_reset,
    a_stream_without_a_slot_has_one_response,
    a_blocking_handler_holds_up_nobody,
    continue_is_said_when_a_handler_reads,
    a_handler_for_a_client_that_sends_no_more_ends_in_its_time,
);

fn a_slow_handler_delays_no_other_stream(setup: Setup) {
    let routes = Routes::new()
        .get("/slow", async |_: Request| {
            sleep(Duration::from_secs(1)).await;
            "slow"
        })
        .get("/task", async |_: Request| "task")
        .get("/inline", |_: &Request| "inline");
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let began = Instant::now();
    let slow = client.get("/slow");
    for target in ["/task", "/inline"] {
        assert_eq!(client.ask(target).text(), target[1..]);
    }
    let others = began.elapsed();
    assert_eq!(client.answer(slow).text(), "slow");
    assert!(others < Duration::from_millis(500), "they took {others:?}");
}

/// A handler that counts itself, and waits for ever.
fn held(alive: &Arc<AtomicUsize>) -> Routes {
    let (whole, streamed) = (Arc::clone(alive), Arc::clone(alive));
    Routes::new()
        .get("/whole", move |_: Request| {
            let alive = Alive::new(&whole);
            async move {
                let _alive = alive;
                pending::<&str>().await
            }
        })
        .get("/streamed", move |_: Request| {
            let alive = Alive::new(&streamed);
            let (appender, response) = Response::append(4);
            let task = gustnado::task::spawn(async move {
                let _alive = alive;
                while appender.append("piece").await.is_ok() {
                    sleep(Duration::from_millis(5)).await;
                }
            });
            drop(task.expect("a slot"));
            ready(response)
        })
        .get("/", |_: &Request| "here")
}

fn a_reset_ends_the_handler(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let server = Server::routes(in_clear(setup), held(&alive));
    let mut client = Http2Client::connect(server.address());
    for target in ["/whole", "/streamed"] {
        let id = client.get(target);
        wait_until("it runs", || alive.load(Ordering::SeqCst) == 1);
        client.reset(id, ErrorCode::Cancel);
        wait_until("it has ended", || alive.load(Ordering::SeqCst) == 0);
        assert_eq!(client.ask("/").text(), "here", "the connection goes on");
    }
}

fn the_end_of_the_connection_ends_its_handlers(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let server = Server::routes(in_clear(setup), held(&alive));
    let mut client = Http2Client::connect(server.address());
    for _ in 0..5 {
        client.get("/whole");
        client.get("/streamed");
    }
    wait_until("they run", || alive.load(Ordering::SeqCst) == 10);
    client.cut();
    wait_until("they have ended", || alive.load(Ordering::SeqCst) == 0);
    server.wait_until_empty();
}

fn a_panic_is_the_end_of_one_answer(setup: Setup) {
    let routes = Routes::new()
        .get("/inline", |_: &Request| -> &str { panic!("inline") })
        .get("/task", async |_: Request| -> &str { panic!("task") })
        .get("/later", async |_: Request| -> &str {
            sleep(Duration::from_millis(5)).await;
            panic!("later")
        })
        .get("/", |_: &Request| "here");
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let beside = client.get("/");
    for target in ["/inline", "/task", "/later"] {
        assert_eq!(client.ask(target).status, 500, "{target}");
    }
    assert_eq!(client.answer(beside).text(), "here");
    assert_eq!(client.ask("/").text(), "here");
    assert_eq!(server.stats().panics, 3);
}

fn trailers_follow_the_content(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        let (appender, response) = Response::append(4);
        let task = gustnado::task::spawn(async move {
            for number in 0..3 {
                appender.append(format!("{number},")).await.expect("the client reads");
            }
        });
        drop(task.expect("a slot"));
        response.trailers(|| {
            vec![("X-Sum".to_owned(), "3".to_owned()), ("bad\n".to_owned(), String::new())]
        })
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let answer = client.ask("/");
    assert_eq!(answer.text(), "0,1,2,");
    assert_eq!(answer.trailers, [("x-sum".to_owned(), "3".to_owned())]);
}

fn events_come_one_by_one(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        Response::events(Ticks { next: 0, timer: Box::pin(sleep(Duration::ZERO)) })
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    for count in 1..=3 {
        let so_far = client.wait_for(id, |answer| {
            String::from_utf8_lossy(&answer.body).matches("\n\n").count() >= count
        });
        assert_eq!(so_far.field("content-type"), Some("text/event-stream"));
    }
    assert_eq!(client.answer(id).text(), "data: 0\n\ndata: 1\n\ndata: 2\n\n");
}

/// Events, each some time behind the one before.
struct Ticks {
    next: u32,
    timer: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl futures_core::Stream for Ticks {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.next == 3 {
            return Poll::Ready(None);
        }
        std::task::ready!(self.timer.as_mut().poll(context));
        self.timer = Box::pin(sleep(Duration::from_millis(20)));
        self.next += 1;
        Poll::Ready(Some(Event::data(&(self.next - 1).to_string())))
    }
}

/// Some bytes, and then an error.
struct Failing(u32);

impl futures_core::Stream for Failing {
    type Item = Result<&'static str, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0 += 1;
        Poll::Ready(Some(if self.0 == 1 { Ok("some") } else { Err(ErrorKind::Other.into()) }))
    }
}

fn a_stream_that_fails_is_reset(setup: Setup) {
    let routes = Routes::new()
        .get("/", async |_: Request| Response::stream(Failing(0)))
        .get("/here", |_: &Request| "here");
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let answer = client.ask("/");
    assert_eq!((answer.status, &*answer.text()), (200, "some"));
    assert_eq!(answer.reset, Some(ErrorCode::InternalError));
    assert_eq!(client.ask("/here").text(), "here");
}

fn a_stream_without_a_slot_has_one_response(setup: Setup) {
    if !(setup.has_slots() && setup.is_shared()) {
        return; // There is always room for one more.
    }
    let (_appender, endless) = Response::append(1);
    let endless = Mutex::new(Some(endless));
    let routes = Routes::new()
        .get("/held", async |_: Request| pending::<&str>().await)
        .get("/stream", move |_: &Request| endless.lock().expect("no panic").take());
    let server = Server::routes(Config { workers: 1, slots: 4, ..in_clear(setup) }, routes);
    let mut client = Http2Client::connect(server.address());
    let held: Vec<_> = (0..90).map(|_| client.get("/held")).collect();
    client.ping();
    assert!(held.iter().any(|id| client.so_far(*id).status == 503), "all slots are taken");
    let answer = client.ask("/stream");
    assert_eq!((answer.status, answer.reset, answer.trailers), (503, None, Vec::new()));
}

fn a_blocking_handler_holds_up_nobody(setup: Setup) {
    let routes = Routes::new()
        .get(
            "/blocking",
            gustnado::blocking(|_: Request| {
                std::thread::sleep(Duration::from_millis(300));
                "blocking"
            }),
        )
        .get("/", |_: &Request| "here");
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let (began, id) = (Instant::now(), client.get("/blocking"));
    assert_eq!(client.ask("/").text(), "here");
    assert!(began.elapsed() < Duration::from_millis(250));
    assert_eq!(client.answer(id).text(), "blocking");
}

fn continue_is_said_when_a_handler_reads(setup: Setup) {
    let routes = Routes::new()
        .post("/read", async |request: Request| request.into_body().bytes(100).await)
        .post("/unread", async |_: Request| "unread");
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let expects = [("expect", "100-continue"), ("content-length", "5")];
    let read = client.request("POST", "/read", &expects, false);
    client
        .wait_for(read, |answer| answer.interim.first().is_some_and(|(status, _)| *status == 100));
    client.send_data(read, b"hello", true);
    let answer = client.answer(read);
    assert_eq!((&*answer.text(), answer.interim.len()), ("hello", 1));
    let unread = client.request("POST", "/unread", &expects, false);
    let answer = client.answer(unread);
    assert_eq!((&*answer.text(), answer.interim.len()), ("unread", 0));
}

fn a_handler_for_a_client_that_sends_no_more_ends_in_its_time(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let config = Config { half_close_timeout: Duration::from_millis(100), ..in_clear(setup) };
    let server = Server::routes(config, held(&alive));
    let mut client = Http2Client::connect(server.address());
    client.get("/whole");
    wait_until("the handler runs", || alive.load(Ordering::SeqCst) == 1);
    client.half_close();
    wait_until("the handler is dropped", || alive.load(Ordering::SeqCst) == 0);
    server.wait_until_empty();
}
