//! axum's own routing and extractors.

use std::collections::HashMap;

use axum::extract::{DefaultBodyLimit, Form, Json, Multipart, OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, Version};
use axum::routing::{get, post};
use axum::{Extension, Router, response::Redirect};
use gustnado::config::Config;
use gustnado::{ClientInfo, Request, Routes, tower};
use serde::{Deserialize, Serialize};

use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::{Server, Setup, TransportKind};
use crate::serve;

#[derive(Deserialize, Serialize)]
struct User {
    name: String,
    age: u32,
}

pub(crate) fn an_axum_app_routes_and_extracts(setup: Setup) {
    let api = Router::new()
        .route("/user/{id}", get(async |Path(id): Path<u32>| format!("user {id}")))
        .route(
            "/where",
            get(async |OriginalUri(uri): OriginalUri, inner: Uri| format!("{uri} {inner}")),
        )
        .fallback(async || (StatusCode::NOT_FOUND, "no such thing in the api"));
    let app = Router::new()
        .route("/", get(async || "root"))
        .route("/state", get(async |State(word): State<&'static str>| word))
        .route(
            "/find",
            get(async |Query(query): Query<HashMap<String, String>>| query["q"].clone()),
        )
        .route("/files/{*rest}", get(async |Path(rest): Path<String>| rest))
        .route("/old", get(async || Redirect::permanent("/")))
        .nest("/api", api)
        .with_state("stated");
    let server = serve(setup, app);
    let mut client = server.connect();
    for (target, status, text) in [
        ("/", 200, "root"),
        ("/state", 200, "stated"),
        ("/find?q=a%20b", 200, "a b"),
        ("/files/a/b%20c", 200, "a/b c"),
        ("/api/user/7", 200, "user 7"),
        ("/api/where?x=1", 200, "/api/where?x=1 /where?x=1"),
        ("/api/none", 404, "no such thing in the api"),
        ("/none", 404, ""),
    ] {
        let answer = client.get(target);
        assert_eq!((answer.status, &*answer.text()), (status, text), "{target}");
    }
    assert_eq!(client.get("/api/user/x").status, 400);
    let wrong = client.ask(request("DELETE", "/", ""));
    assert_eq!((wrong.status, wrong.expect_field("allow")), (405, "GET,HEAD"));
    let moved = client.get("/old");
    assert_eq!((moved.status, moved.expect_field("location")), (308, "/"));
    assert_eq!(server.stats().connections_accepted, 1);
}

pub(crate) fn bodies_are_extracted(setup: Setup) {
    let app = Router::new()
        .route(
            "/json",
            post(async |Json(user): Json<User>| Json(User { age: user.age + 1, ..user })),
        )
        .route("/form", post(async |Form(user): Form<User>| format!("{} {}", user.name, user.age)))
        .route("/text", post(async |text: String| text))
        .route("/small", post(async |text: String| text).layer(DefaultBodyLimit::max(4)));
    let server = serve(setup, app);
    let mut client = server.connect();
    let json = client.ask(crate::post("/json", "application/json", r#"{"name":"Anna","age":41}"#));
    assert_eq!(json.expect_field("content-type"), "application/json");
    assert_eq!(json.text(), r#"{"name":"Anna","age":42}"#);
    let broken = client.ask(crate::post("/json", "application/json", "{"));
    assert_eq!(broken.status, 400);
    assert_eq!(client.ask(crate::post("/json", "text/plain", "{}")).status, 415);
    let kind = "application/x-www-form-urlencoded";
    assert_eq!(client.ask(crate::post("/form", kind, "name=B%C3%A9a&age=3")).text(), "B\u{e9}a 3");
    assert_eq!(client.ask(crate::post("/form", kind, "name=x")).status, 422);
    let chunks = "Transfer-Encoding: chunked\r\n";
    let chunked =
        request("POST", "/text", chunks) + "3\r\nabc\r\n2\r\nde\r\n0\r\nX-After: 1\r\n\r\n";
    assert_eq!(client.ask(chunked).text(), "abcde");
    assert_eq!(client.ask(crate::post("/small", "text/plain", "1234")).text(), "1234");
    assert_eq!(client.ask(crate::post("/small", "text/plain", "12345")).status, 413);
    assert_eq!(server.stats().connections_accepted, 1);
}

pub(crate) fn forms_of_several_parts_are_extracted(setup: Setup) {
    let read = async |mut form: Multipart| {
        let mut seen = String::new();
        while let Some(part) = form.next_field().await.expect("a good form") {
            let name = part.name().unwrap_or("").to_owned();
            let file = part.file_name().unwrap_or("").to_owned();
            let bytes = part.bytes().await.expect("a whole part");
            seen.extend([name, file, bytes.len().to_string() + "\n"]);
        }
        seen
    };
    let server = serve(setup, Router::new().route("/", post(read)));
    let big = "x".repeat(100_000);
    let body = format!(
        "--B\r\nContent-Disposition: form-data; name=\"one\"\r\n\r\nfirst\r\n\
         --B\r\nContent-Disposition: form-data; name=\"two\"; filename=\"t.txt\"\r\n\r\n{big}\r\n\
         --B--\r\n"
    );
    let answer = server.ask(crate::post("/", "multipart/form-data; boundary=B", &body));
    assert_eq!(answer.text(), "one5\ntwot.txt100000\n");
}

pub(crate) fn a_service_is_told_where_requests_come_from(setup: Setup) {
    let told = async |info: Option<Extension<ClientInfo>>| match info {
        Some(Extension(info)) => {
            let client = info.client.map(|client| client.to_string()).unwrap_or_default();
            format!("{client} {} {}", info.scheme, info.host.unwrap_or_default())
        }
        None => "nothing".to_owned(),
    };
    let app = Router::new().fallback(told);
    let routes = Routes::new()
        .service("/told", tower(app.clone()).with_client_info())
        .service("/untold", tower(app));
    let forwarded_allow_ips = vec!["127.0.0.0/8".to_owned()];
    let server = Server::routes(Config { forwarded_allow_ips, ..setup.config() }, routes);
    let mut client = server.connect();
    let (own, _) = client.ends();
    let scheme = TransportKind::chosen().scheme();
    assert_eq!(client.get("/told").text(), format!("{own} {scheme} gust.example"));
    let fields = "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n";
    let answer = client.ask(request("GET", "/told", fields));
    assert_eq!(answer.text(), "192.0.2.9:0 https gust.example");
    assert_eq!(client.get("/untold").text(), "nothing");
}

pub(crate) fn a_service_has_its_place_among_routes(setup: Setup) {
    let api = Router::new().nest("/api", Router::new().route("/x", get(async || "of axum")));
    let rest = Router::new().fallback(async |uri: Uri| format!("rest {uri}"));
    let routes = Routes::new()
        .get("/own", |_: &Request| "of gustnado")
        .get("/api/own", |_: &Request| "in between")
        .service("/api", tower(api))
        .fallback(tower(rest));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for (target, text) in [
        ("/own", "of gustnado"),
        ("/api/own", "in between"),
        ("/api/x", "of axum"),
        ("/other/a%2fb?c", "rest /other/a%2fb?c"),
    ] {
        assert_eq!(client.get(target).text(), text, "{target}");
    }
    assert_eq!(client.get("/api").status, 404);
    assert_eq!(client.get("/api/none").status, 404);
    let root = Routes::new().service("/", tower(Router::new().fallback(async || "all")));
    let server = Server::routes(setup.config(), root);
    assert_eq!(server.get("/").text(), "all");
    assert_eq!(server.get("/a/b/").text(), "all");
}

pub(crate) fn the_head_arrives_as_it_was_sent(setup: Setup) {
    let tell = async |method: Method, version: Version, uri: Uri, fields: HeaderMap| {
        let all: Vec<String> = fields
            .iter()
            .map(|(name, value)| {
                format!("{name}={:?}", value.as_bytes().escape_ascii().to_string())
            })
            .collect();
        format!("{method} {version:?} {uri} {}", all.join(" "))
    };
    let server = serve(setup, Router::new().fallback(tell));
    let mut client = server.connect();
    let fields = "X-Two: 1\r\nx-two:  2 \r\nX-Raw: \u{e9}\r\nCookie: a=b\r\n";
    let version = if Setup::is_http2() { "HTTP/2.0" } else { "HTTP/1.1" };
    assert_eq!(
        client.ask(request("PATCH", "/p?q", fields)).text(),
        format!(
            "PATCH {version} /p?q host=\"gust.example\" x-two=\"1\" x-two=\"2\" \
             x-raw=\"\\\\xc3\\\\xa9\" cookie=\"a=b\""
        )
    );
    if !Setup::is_http2() {
        let absolute = client.ask("GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(absolute.text(), "GET HTTP/1.1 http://a.example/x host=\"a.example\"");
    }
    let slashes = client.get("//b.example/x");
    assert_eq!(slashes.text(), format!("GET {version} //b.example/x host=\"gust.example\""));
    // What the crate `http` cannot hold never reaches the service.
    let strange = client.get("/a`b");
    assert_eq!((strange.status, strange.closes()), (400, false));
}

pub(crate) fn continue_is_said_when_the_service_reads(setup: Setup) {
    let app = Router::new()
        .route("/read", post(async |text: String| text))
        .route("/refuse", post(async || StatusCode::FORBIDDEN));
    let server = serve(setup, app);
    let fields = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    let mut client = server.connect();
    assert_eq!(client.ask(request("POST", "/read", fields)).status, 100);
    assert_eq!(client.ask("hello").text(), "hello");
    let refused = client.ask(request("POST", "/refuse", fields));
    assert_eq!((refused.status, refused.closes()), (403, !Setup::is_http2()));
}

pub(crate) fn big_bodies_pass_both_ways(setup: Setup) {
    let turn = async |body: axum::body::Bytes| {
        let mut turned = body.to_vec();
        turned.reverse();
        turned
    };
    let app = Router::new().route("/", post(turn)).layer(DefaultBodyLimit::disable());
    let config = Config { limit_body_bytes: 8 << 20, ..setup.config() };
    let server = Server::routes(config, Routes::new().fallback(tower(app)));
    let mut body = noise(1, 3 << 20);
    let mut client = server.connect();
    client.send(request("POST", "/", &format!("Content-Length: {}\r\n", body.len())));
    let mut sending = client.second_handle();
    let sent = body.clone();
    let sender = std::thread::spawn(move || sending.send(sent));
    let answer = client.read_answer();
    sender.join().expect("all is sent");
    body.reverse();
    assert!(answer.body == body, "{answer:?}");
    let announced = client.ask(request("POST", "/", "Content-Length: 8388609\r\n"));
    assert_eq!(announced.status, 413);
}

pub(crate) fn an_old_client_is_served_too(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let stream = async || {
        let pieces = crate::streams::Pieces::new(["one ", "two"]);
        axum::body::Body::from_stream(crate::streams::slowly(pieces))
    };
    let app = Router::new().route("/", get(async || "whole")).route("/stream", get(stream));
    let server = serve(setup, app);
    let mut client = server.connect();
    let kept = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((&*kept.text(), kept.expect_field("connection")), ("whole", "keep-alive"));
    let last = client.ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((&*last.text(), last.closes()), ("one two", true));
    assert_eq!(last.field("transfer-encoding"), None);
}

pub(crate) fn many_requests_in_one_go_are_answered_in_order(setup: Setup) {
    let late = async |Path(number): Path<u64>| {
        if number % 3 == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(number % 5)).await;
        }
        number.to_string()
    };
    let server = serve(setup, Router::new().route("/{number}", get(late)));
    let mut client = server.connect();
    let requests: Vec<String> =
        (0..60).map(|number| request("GET", &format!("/{number}"), "")).collect();
    client.send(requests.concat());
    for number in 0..60 {
        assert_eq!(client.read_answer().text(), number.to_string());
    }
}
