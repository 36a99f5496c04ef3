//! Bodies that come over time, either way.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::{get, post};
use futures_core::Stream;
use http_body::Frame;

use crate::harness::client::{get as asking, request};
use crate::harness::{Setup, wait_until};
use crate::serve;

/// Pieces that are at hand.
pub(crate) struct Pieces(VecDeque<&'static str>);

impl Pieces {
    pub(crate) fn new<const N: usize>(pieces: [&'static str; N]) -> Self {
        Self(pieces.into())
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(piece.into())))
    }
}

/// Waits a little before each item.
pub(crate) struct Slow<S> {
    inner: S,
    pause: Duration,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

pub(crate) fn slowly<S>(inner: S) -> Slow<S> {
    Slow { inner, pause: Duration::from_millis(20), sleep: None }
}

impl<S: Stream + Unpin> Stream for Slow<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let pause = self.pause;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        ready!(sleep.as_mut().poll(context));
        let item = ready!(Pin::new(&mut self.inner).poll_next(context));
        self.sleep = None;
        Poll::Ready(item)
    }
}

/// Frames that are at hand, the last of which may be trailers, or a failure.
struct Frames(VecDeque<Result<Frame<Bytes>, &'static str>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// A body of pieces with trailers behind them.
pub(crate) fn with_trailers<const N: usize>(pieces: [&'static str; N], fields: HeaderMap) -> Body {
    let pieces = pieces.into_iter().map(|piece| Ok(Frame::data(piece.into())));
    Body::new(Frames(pieces.chain([Ok(Frame::trailers(fields))]).collect()))
}

pub(crate) fn a_stream_is_echoed_as_it_comes(setup: Setup) {
    let app = Router::new().route("/", post(async |body: Body| body));
    let server = serve(setup, app);
    let mut client = server.connect();
    client.send(request("POST", "/", "Transfer-Encoding: chunked\r\n"));
    let head = client.read_head();
    assert_eq!((head.status, head.expect_field("transfer-encoding")), (200, "chunked"));
    for word in ["one", "two", "three"] {
        let chunk = format!("{:x}\r\n{word}\r\n", word.len());
        client.send(&chunk);
        assert_eq!(client.take(chunk.len()).expect("it comes back"), chunk.as_bytes());
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.take(5).expect("the end"), b"0\r\n\r\n");
    // A body of known length comes back with its length.
    let sized = client.ask(crate::post("/", "text/plain", &"x".repeat(70_000)));
    assert_eq!((sized.body.len(), sized.expect_field("content-length")), (70_000, "70000"));
    assert_eq!(server.stats().connections_accepted, 1);
}

struct Ticks(u32);

impl Stream for Ticks {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0 += 1;
        Poll::Ready(
            (self.0 <= 2).then(|| Ok(Event::default().event("tick").data(self.0.to_string()))),
        )
    }
}

pub(crate) fn events_are_sent_one_by_one_and_kept_alive(setup: Setup) {
    let events = async || {
        let ticks = Slow { inner: Ticks(0), pause: Duration::from_millis(300), sleep: None };
        let alive = KeepAlive::new().interval(Duration::from_millis(50)).text("still here");
        Sse::new(ticks).keep_alive(alive)
    };
    let server = serve(setup, Router::new().route("/", get(events)));
    let mut client = server.connect();
    client.send(asking("/"));
    let head = client.read_head();
    assert_eq!(head.expect_field("content-type"), "text/event-stream");
    assert_eq!(head.expect_field("cache-control"), "no-cache");
    let first = String::from_utf8(client.read_some(4096).expect("bytes")).expect("text");
    assert!(first.contains(": still here\n\n"), "before the first event: {first:?}");
    let mut answer = first;
    while !answer.ends_with("0\r\n\r\n") {
        answer += &String::from_utf8(client.read_some(4096).expect("bytes")).expect("text");
    }
    assert!(answer.contains("event: tick\ndata: 1\n\n") && answer.contains("data: 2\n\n"));
}

pub(crate) fn trailers_follow_the_frames(setup: Setup) {
    let make = async || {
        let mut fields = HeaderMap::new();
        fields.insert("x-sum", HeaderValue::from_static("42"));
        with_trailers(["one", "two"], fields)
    };
    let server = serve(setup, Router::new().route("/", get(make)));
    let mut client = server.connect();
    client.send(request("GET", "/", "TE: trailers\r\n"));
    assert_eq!(client.read_head().expect_field("transfer-encoding"), "chunked");
    let expected = b"3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 42\r\n\r\n";
    let read = client.take(expected.len()).expect("all of it");
    assert_eq!(read.to_ascii_lowercase(), expected);
    if !Setup::is_http2() {
        assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n").text(), "onetwo");
    }
}

pub(crate) fn a_body_at_hand_is_sent_with_its_length(setup: Setup) {
    let app = Router::new()
        .route("/one", get(async || Body::from_stream(Pieces::new(["one"]))))
        .route("/none", get(async || Body::from_stream(Pieces::new([]))))
        .route("/two", get(async || Body::from_stream(Pieces::new(["one", "two"]))));
    let server = serve(setup, app);
    let mut client = server.connect();
    for (target, text, length) in
        [("/one", "one", Some("3")), ("/none", "", Some("0")), ("/two", "onetwo", None)]
    {
        let answer = client.get(target);
        assert_eq!((&*answer.text(), answer.field("content-length")), (text, length), "{target}");
    }
}

pub(crate) fn a_body_that_fails_is_noticed(setup: Setup) {
    let fails = async |axum::extract::Path(after): axum::extract::Path<usize>| {
        let mut frames: VecDeque<_> =
            (0..after).map(|_| Ok(Frame::data(Bytes::from_static(b"data")))).collect();
        frames.push_back(Err("broken"));
        Body::new(Frames(frames))
    };
    let server = serve(setup, Router::new().route("/{after}", get(fails)));
    for after in [0, 1] {
        assert_eq!(server.get(&format!("/{after}")).status, 500, "nothing has been sent yet");
    }
    let mut client = server.connect();
    client.send(asking("/4"));
    client.try_answer().expect_err("the connection is cut");
}

/// Counts what is alive.
#[derive(Debug)]
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn a_client_that_goes_drops_the_service(setup: Setup) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let waits = async move || {
        let _alive = Alive::new(&counted);
        tokio::time::sleep(Duration::from_hours(1)).await;
    };
    let server = serve(setup, Router::new().route("/", get(waits)));
    let mut client = server.connect();
    client.send(asking("/"));
    wait_until("it is asked", || count.load(Ordering::SeqCst) == 1);
    client.reset();
    wait_until("it is dropped", || count.load(Ordering::SeqCst) == 0);
}

/// A stream that brings nothing, ever.
struct Nothing(#[expect(dead_code, reason = "counts while it lives")] Alive);

impl Stream for Nothing {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

pub(crate) fn a_client_that_goes_drops_the_stream(setup: Setup) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let make = async move || Body::from_stream(Nothing(Alive::new(&counted)));
    let server = serve(setup, Router::new().route("/", get(make)));
    let mut client = server.connect();
    client.send(asking("/"));
    assert_eq!(client.read_head().expect_field("transfer-encoding"), "chunked");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    client.reset();
    wait_until("it is dropped", || count.load(Ordering::SeqCst) == 0);
}
