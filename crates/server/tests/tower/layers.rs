//! Middleware of tower and tower-http around an app.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use flate2::read::GzDecoder;
use gustnado::{Routes, ServiceError, Status, tower};
use tower::ServiceBuilder;
use tower::load_shed::error::Overloaded;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tracing::Span;

use crate::harness::client::request;
use crate::harness::{Answer, Server, Setup, wait_until};
use crate::serve;

pub(crate) fn requests_are_traced(setup: Setup) {
    let tape = Arc::new(Mutex::new(Vec::new()));
    let (asked, answered) = (Arc::clone(&tape), Arc::clone(&tape));
    let note = |tape: &Mutex<Vec<String>>, line| tape.lock().expect("no panics").push(line);
    let trace = TraceLayer::new_for_http()
        .on_request(move |request: &Request<gustnado::Body>, _: &Span| {
            note(&asked, format!("{} {}", request.method(), request.uri()));
        })
        .on_response(move |answer: &Response<Body>, took: Duration, _: &Span| {
            assert!(took < Duration::from_secs(10));
            note(&answered, answer.status().as_str().to_owned());
        });
    let app = Router::new().route("/", get(async || "traced"));
    let service = ServiceBuilder::new().layer(trace).service(app);
    let server = Server::routes(setup.config(), Routes::new().fallback(tower(service)));
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "traced");
    assert_eq!(client.get("/none").status, 404);
    assert_eq!(*tape.lock().expect("no panics"), ["GET /", "200", "GET /none", "404"]);
}

fn unpacked(answer: &Answer) -> String {
    let mut text = String::new();
    GzDecoder::new(&*answer.body).read_to_string(&mut text).expect("gzip");
    text
}

pub(crate) fn answers_are_compressed(setup: Setup) {
    let numbers = (0..60_000).map(|number| (number * 7919 % 10_007).to_string() + "\n");
    let long = numbers.collect::<String>();
    let expected = long.clone();
    let app = Router::new()
        .route("/long", get(async move || long))
        .route("/short", get(async || "short ".repeat(50)));
    let service = ServiceBuilder::new().layer(CompressionLayer::new()).service(app);
    let server = Server::routes(setup.config(), Routes::new().fallback(tower(service)));
    let mut client = server.connect();
    let plain = client.get("/long");
    assert_eq!(plain.expect_field("content-length"), expected.len().to_string());
    assert_eq!((plain.field("content-encoding"), plain.text()), (None, expected.clone()));
    let accepts = "Accept-Encoding: gzip\r\n";
    let packed = client.ask(request("GET", "/long", accepts));
    assert_eq!(packed.expect_field("content-encoding"), "gzip");
    assert_eq!(packed.expect_field("vary"), "accept-encoding");
    assert_eq!(packed.field("content-length"), None);
    assert_eq!(packed.expect_field("transfer-encoding"), "chunked");
    assert!(packed.body.len() < expected.len() / 2);
    assert_eq!(unpacked(&packed), expected);
    let packed = client.ask(request("GET", "/short", accepts));
    assert_eq!(packed.expect_field("content-encoding"), "gzip");
    assert_eq!(unpacked(&packed), "short ".repeat(50));
    assert_eq!(server.stats().connections_accepted, 1);
}

pub(crate) fn a_slow_service_is_timed_out(setup: Setup) {
    let slow = async || tokio::time::sleep(Duration::from_hours(1)).await;
    let limit =
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(50));
    let app =
        Router::new().route("/slow", get(slow)).route("/", get(async || "quick")).layer(limit);
    let server = serve(setup, app);
    let mut client = server.connect();
    assert_eq!(client.get("/slow").status, 504);
    assert_eq!(client.get("/").text(), "quick");
}

/// Waits until it is released, and counts who is inside.
fn gate(inside: &Arc<AtomicUsize>) -> (Router, tokio::sync::watch::Sender<bool>) {
    let (open, opened) = tokio::sync::watch::channel(false);
    let inside = Arc::clone(inside);
    let wait = async move || {
        inside.fetch_add(1, Ordering::SeqCst);
        let mut opened = opened.clone();
        opened.wait_for(|is_open| *is_open).await.expect("the test holds the other end");
        "through"
    };
    (Router::new().route("/", get(wait)), open)
}

pub(crate) fn a_service_that_is_not_ready_is_waited_for(setup: Setup) {
    let inside = Arc::new(AtomicUsize::new(0));
    let (app, open) = gate(&inside);
    let service = ServiceBuilder::new().concurrency_limit(2).service(app);
    let server = Server::routes(setup.config(), Routes::new().fallback(tower(service)));
    let mut clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("GET", "/", ""));
    }
    wait_until("two are inside", || inside.load(Ordering::SeqCst) == 2);
    clients[4].expect_silence(Duration::from_millis(100));
    assert_eq!(inside.load(Ordering::SeqCst), 2);
    open.send(true).expect("the app listens");
    for client in &mut clients {
        assert_eq!(client.read_answer().text(), "through");
    }
    assert_eq!(inside.load(Ordering::SeqCst), 5);
}

pub(crate) fn too_much_load_is_shed(setup: Setup) {
    let inside = Arc::new(AtomicUsize::new(0));
    let (app, open) = gate(&inside);
    let service = ServiceBuilder::new().load_shed().concurrency_limit(1).service(app);
    let service = tower(service).on_error(|error: ServiceError| {
        let is_overloaded = error.is::<Overloaded>();
        if is_overloaded { Status::SERVICE_UNAVAILABLE } else { Status::INTERNAL_SERVER_ERROR }
    });
    let server = Server::routes(setup.config(), Routes::new().fallback(service));
    let mut first = server.connect();
    first.send(request("GET", "/", ""));
    wait_until("one is inside", || inside.load(Ordering::SeqCst) == 1);
    assert_eq!(server.get("/").status, 503);
    open.send(true).expect("the app listens");
    assert_eq!(first.read_answer().text(), "through");
    assert_eq!(server.get("/").text(), "through");
}
