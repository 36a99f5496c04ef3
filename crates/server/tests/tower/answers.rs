//! What becomes of a service's status and fields, and of its faults.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::response::{AppendHeaders, IntoResponse};
use axum::routing::get;
use gustnado::{Routes, ServiceError, Status, tower};

use crate::harness::client::request;
use crate::harness::{Server, Setup};
use crate::{Plain, serve};

fn answer(status: u16, fields: &[(&str, &str)], body: &'static str) -> Response<Body> {
    let made = fields
        .iter()
        .fold(Response::builder().status(status), |made, (name, value)| made.header(*name, *value));
    made.body(Body::from(body)).expect("good fields")
}

pub(crate) fn fields_of_the_connection_stay_the_servers(setup: Setup) {
    let fields = [
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("server", "app/1"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("x-own", "kept \t verbatim"),
    ];
    let cookies = AppendHeaders([("set-cookie", "a=1"), ("set-cookie", "b=2")]);
    let app = Router::new()
        .route("/", get(async move || answer(200, &fields, "text")))
        .route("/cookies", get(async move || (cookies, "text")))
        .route("/kind", get(async || ([("content-type", "image/png")], "text")))
        .route(
            "/raw",
            get(async || {
                let mut fields = HeaderMap::new();
                fields.insert("x-raw", HeaderValue::from_bytes(b"caf\xc3\xa9").expect("a value"));
                fields
            }),
        );
    let server = serve(setup, app);
    let mut client = server.connect();
    let all = client.get("/");
    assert_eq!((&*all.text(), all.expect_field("content-length")), ("text", "4"));
    assert_eq!((all.count("date"), all.count("server")), (1, 1));
    assert_eq!(all.expect_field("date"), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(all.expect_field("server"), "app/1");
    for gone in ["keep-alive", "transfer-encoding", "upgrade", "connection"] {
        assert_eq!(all.field(gone), None, "{gone}");
    }
    assert_eq!(all.expect_field("x-own"), "kept \t verbatim");
    let cookies = client.get("/cookies");
    assert_eq!(cookies.count("set-cookie"), 2);
    assert_eq!(cookies.expect_field("content-type"), "text/plain; charset=utf-8");
    assert_eq!(cookies.count("content-type"), 1);
    let kind = client.get("/kind");
    assert_eq!((kind.expect_field("content-type"), kind.count("content-type")), ("image/png", 1));
    assert_eq!(client.get("/raw").expect_field("x-raw"), "caf\u{e9}");
}

pub(crate) fn a_service_may_end_the_connection(setup: Setup) {
    let app = Router::new()
        .route("/last", get(async || ([("connection", "x-y, Close")], "bye")))
        .route("/426", get(async || answer(426, &[("upgrade", "websocket")], "")));
    let server = serve(setup, app);
    let mut client = server.connect();
    let upgrade = client.get("/426");
    // HTTP/2 knows neither of the two fields.
    let offered = (!Setup::is_http2()).then_some("websocket");
    assert_eq!((upgrade.status, upgrade.field("upgrade")), (426, offered));
    if Setup::is_http2() {
        return;
    }
    let last = client.get("/last");
    assert_eq!((&*last.text(), last.closes(), last.count("connection")), ("bye", true, 1));
    client.expect_end("it was said");
}

pub(crate) fn every_status_is_sent_as_it_is(setup: Setup) {
    let said = async |axum::extract::Path(code): axum::extract::Path<u16>| {
        (StatusCode::from_u16(code).expect("a status"), "why").into_response()
    };
    let server = serve(setup, Router::new().route("/{code}", get(said)));
    let mut client = server.connect();
    for code in [200, 201, 299, 418, 451, 499, 502, 599, 999] {
        let answer = client.get(&format!("/{code}"));
        assert_eq!((answer.status, &*answer.text()), (code, "why"));
    }
    client.send(request("GET", "/418", ""));
    if !Setup::is_http2() {
        let head = b"HTTP/1.1 418 I'm a teapot\r\n";
        assert_eq!(client.take(head.len()).expect("a head"), head);
    }
    // An interim answer stands for nothing; and nothing is upgraded here.
    for code in [100, 101, 103] {
        assert_eq!(server.get(&format!("/{code}")).status, 500, "{code}");
    }
}

pub(crate) fn answers_without_content_say_what_they_may(setup: Setup) {
    let app = Router::new()
        .route("/sized", get(async || "sized"))
        .route("/stream", get(async || Body::from_stream(crate::streams::Pieces::new(["x"]))))
        .route("/204", get(async || answer(204, &[("content-length", "3")], "abc")))
        .route("/304", get(async || answer(304, &[("etag", "\"x\""), ("content-length", "7")], "")))
        .route("/plain-304", get(async || answer(304, &[("etag", "\"x\"")], "")))
        .route("/404", get(async || StatusCode::NOT_FOUND));
    let server = serve(setup, app);
    let mut client = server.connect();
    client.send(request("HEAD", "/sized", ""));
    let head = client.read_head();
    assert_eq!((head.status, head.expect_field("content-length")), (200, "5"));
    client.send(request("HEAD", "/stream", ""));
    let head = client.read_head();
    assert_eq!((head.field("content-length"), head.field("transfer-encoding")), (None, None));
    let none = client.get("/204");
    assert_eq!((none.status, none.field("content-length")), (204, None));
    let same = client.get("/304");
    assert_eq!((same.status, same.field("content-length")), (304, Some("7")));
    let same = client.get("/plain-304");
    assert_eq!((same.expect_field("etag"), same.field("content-length")), ("\"x\"", None));
    let missing = client.get("/404");
    assert_eq!(
        (missing.status, &*missing.text()),
        (404, ""),
        "an empty page is the service's wish"
    );
    assert_eq!(server.stats().connections_accepted, 1);
}

pub(crate) fn a_length_that_the_service_says_is_kept_or_the_connection_is_cut(setup: Setup) {
    let of = async |axum::extract::Path(said): axum::extract::Path<u64>| {
        let body = Body::from_stream(crate::streams::Pieces::new(["12", "345"]));
        Response::builder().header("content-length", said).body(body).expect("a good answer")
    };
    let app = Router::new()
        .route("/{said}", get(of))
        .route("/wrong", get(async || answer(200, &[("content-length", "77")], "true")));
    let server = serve(setup, app);
    let kept = server.get("/5");
    assert_eq!((&*kept.text(), kept.expect_field("content-length")), ("12345", "5"));
    assert_eq!(kept.field("transfer-encoding"), None);
    assert_eq!(server.get("/2").text(), "12", "what comes behind is not asked for");
    for said in [3, 6] {
        let mut client = server.connect();
        client.send(request("GET", &format!("/{said}"), ""));
        client.try_answer().expect_err("the connection is cut");
    }
    let wrong = server.get("/wrong");
    assert_eq!((&*wrong.text(), wrong.expect_field("content-length")), ("true", "4"));
}

pub(crate) fn a_service_that_fails_is_answered_with_500(setup: Setup) {
    let fails = |_| async { Err::<Response<Body>, ServiceError>("no luck".into()) };
    let routes = Routes::new().service("/plain", tower(Plain(fails))).service(
        "/told",
        tower(Plain(fails))
            .on_error(|error: ServiceError| (Status::SERVICE_UNAVAILABLE, error.to_string())),
    );
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    assert_eq!(client.get("/plain").status, 500);
    let told = client.get("/told");
    assert_eq!((told.status, &*told.text()), (503, "no luck"));
    assert_eq!(server.stats().panics, 0);
}

pub(crate) fn a_service_that_panics_is_answered_with_500(setup: Setup) {
    let now = |_| -> std::future::Ready<Result<Response<Body>, ServiceError>> { panic!("at once") };
    let app = Router::new().route("/", get(async || "fine")).route(
        "/later",
        get(async || -> &str {
            tokio::task::yield_now().await;
            panic!("later")
        }),
    );
    let routes = Routes::new().service("/now", tower(Plain(now))).fallback(tower(app));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (target, status) in [("/now", 500), ("/later", 500), ("/", 200)] {
        assert_eq!(client.get(target).status, status, "{target}");
    }
    assert_eq!((server.stats().panics, server.stats().connections_accepted), (2, 1));
}

pub(crate) fn what_a_service_responds_is_compressed_where_that_is_asked_for(setup: Setup) {
    let text = "a line of text\n".repeat(1_000);
    let whole = text.clone();
    let app = Router::new()
        .route("/", get(async move || whole))
        .route("/cookie", get(async || ([("set-cookie", "a=1")], "text ".repeat(1_000))));
    let mut config = setup.config();
    config.routes.compress = gustnado::config::Compress::On;
    let server = Server::routes(config, Routes::new().fallback(tower(app)));
    let answer = server.ask(request("GET", "/", "Accept-Encoding: gzip\r\n"));
    assert_eq!(answer.field("content-encoding"), Some("gzip"));
    let (mut decoder, mut out) = (flate2::Decompress::new_gzip(15), Vec::with_capacity(20_000));
    let finish = flate2::FlushDecompress::Finish;
    decoder.decompress_vec(&answer.body, &mut out, finish).expect("it is gzip");
    assert!(out == text.as_bytes());
    let cookie = server.ask(request("GET", "/cookie", "Accept-Encoding: gzip\r\n"));
    assert_eq!((cookie.field("content-encoding"), cookie.body.len()), (None, 5_000));
}
