//! What reaches a service, and what is left to it: methods, limits, time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Multipart};
use axum::http::{Method, Uri};
use axum::routing::{any, get, post};
use gustnado::{
    Middleware, Request, Response, Routes, ServiceError, StartError, Status, route, tower,
};
use http::StatusCode;
use std::net::SocketAddr;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::harness::client::{get as asking, request};
use crate::harness::{Server, Setup, wait_until};
use crate::streams::Alive;
use crate::{Plain, serve};

const HOST: &str = "Host: gust.example\r\n";

fn echo() -> Router {
    Router::new().fallback(async |method: Method, uri: Uri| format!("{method} {uri}"))
}

pub(crate) fn every_method_reaches_a_service(setup: Setup) {
    let longest = "M".repeat(64);
    let routes = Routes::new().service("/dav", tower(echo())).fallback(tower(echo()));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for method in ["PROPFIND", "PURGE", "QUERY", "get", "M-SEARCH", "TRACE", &longest] {
        for target in ["/", "/dav/a"] {
            let answer = client.ask(request(method, target, "Content-Length: 2\r\n") + "hi");
            assert_eq!((answer.status, answer.text()), (200, format!("{method} {target}")));
        }
    }
    assert_eq!(server.ask(request(&"M".repeat(65), "/", "")).status, 501);
    // A router answers a method that its route lacks itself.
    let server = serve(setup, Router::new().route("/", get(async || "got")));
    let answer = server.ask(request("PROPFIND", "/", ""));
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET,HEAD")));
}

pub(crate) fn what_asks_about_the_whole_server_reaches_a_fallback(setup: Setup) {
    let star = format!("OPTIONS * HTTP/1.1\r\n{HOST}\r\n");
    let server = serve(setup, echo());
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.ask(&star).text(), "OPTIONS *");
        assert_eq!(client.get("/").text(), "GET /");
    }
    // Native handlers are asked where their route says so.
    let method = |request: &Request| format!("own {}", request.method_str());
    let wide = route().any(method).server_wide(true);
    let server = Server::routes(setup.config(), Routes::new().fallback_route(wide));
    assert_eq!(server.ask(&star).text(), "own OPTIONS");
    let server = Server::routes(setup.config(), Routes::new().fallback(method));
    assert_eq!(server.ask(&star).status, 204);
    // Below a path, a service is asked about that path.
    let server = Server::routes(setup.config(), Routes::new().service("/api", tower(echo())));
    assert_eq!(server.ask(&star).status, 204);
}

pub(crate) fn a_tunnel_that_no_function_takes_is_closed(setup: Setup) {
    if Setup::http1_only("a refused CONNECT ends its stream alone") {
        return;
    }
    let ask = |authority: &str, fields: &str| {
        format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n")
    };
    let answers = Plain(async |request: http::Request<gustnado::Body>| {
        let authority = request.uri().authority().expect("it names a host").clone();
        if authority.host() == "slow" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let refused = authority.port_u16() != Some(443);
        let status = if refused { StatusCode::FORBIDDEN } else { StatusCode::OK };
        let mut answer = http::Response::new(Body::from(authority.to_string()));
        *answer.status_mut() = status;
        Ok::<_, ServiceError>(answer)
    });
    let server = Server::routes(setup.config(), Routes::new().fallback(tower(answers)));
    for host in ["quick", "slow"] {
        for (port, status) in [(80, 403), (443, 200)] {
            let authority = format!("{host}:{port}");
            let mut client = server.connect();
            // What follows is not HTTP, and is never taken for a request.
            client.send(ask(&authority, "Content-Length: 5\r\n") + &asking("/"));
            if status == 200 {
                // The service does not take it, so it ends.
                assert_eq!(client.read_head().status, 200, "{authority}");
            } else {
                let answer = client.read_answer();
                assert_eq!((answer.status, answer.text()), (status, authority.clone()));
                assert!(answer.closes(), "{authority}");
            }
            client.shut_write();
            assert!(client.read_to_end().is_empty(), "{authority}");
        }
    }
    // Without a service, the server refuses.
    let server = Server::routes(setup.config(), Routes::new().fallback(|_: &Request| "x"));
    assert_eq!(server.ask(ask("h:443", "")).status, 405);
}

/// A request with a body in chunks of 64 KiB.
fn chunked(target: &str, bytes: usize) -> String {
    let mut text = request("POST", target, "Transfer-Encoding: chunked\r\n");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x1_0000));
    for _ in 0..bytes.div_ceil(0x1_0000) {
        text.push_str(&chunk);
    }
    text + "0\r\n\r\n"
}

fn sized(target: &str, bytes: usize) -> String {
    request("POST", target, &format!("Content-Length: {bytes}\r\n")) + &"x".repeat(bytes)
}

fn takes_bodies() -> Router {
    let count = async |body: Bytes| body.len().to_string();
    let parts = async |mut parts: Multipart| match parts.next_field().await {
        Ok(Some(field)) => match field.bytes().await {
            Ok(bytes) => (StatusCode::OK, bytes.len().to_string()),
            Err(error) => (error.status(), error.body_text()),
        },
        Ok(None) => (StatusCode::BAD_REQUEST, "no part".to_owned()),
        Err(error) => (error.status(), error.body_text()),
    };
    Router::new()
        .route("/", post(count))
        .route("/any", post(count).layer(DefaultBodyLimit::disable()))
        .route("/parts", post(parts).layer(DefaultBodyLimit::disable()))
}

pub(crate) fn the_limits_of_a_service_are_its_own(setup: Setup) {
    const MIB: usize = 1 << 20;
    let server = serve(setup, takes_bodies());
    for body in [chunked, sized] {
        let mut client = server.connect();
        let answer = client.ask(body("/", MIB + MIB / 2));
        assert_eq!((answer.status, &*answer.text()), (200, "1572864"));
        assert_eq!(client.ask(body("/any", 5 * MIB)).text(), "5242880");
        // axum's own limit has 2 MB.
        assert_eq!(server.ask(body("/", 3 * MIB)).status, 413);
    }
}

pub(crate) fn a_limit_that_is_asked_for_is_one_that_frameworks_know(setup: Setup) {
    const LIMIT: usize = 100_000;
    let by_service = Routes::new().fallback(tower(takes_bodies()).limit_body_bytes(LIMIT as u64));
    let limited = route().any(tower(takes_bodies())).limit_body_bytes(LIMIT as u64);
    let by_route = Routes::new().fallback_route(limited.clone());
    let mounted = Routes::new().mount("/", limited);
    for routes in [by_service, by_route, mounted] {
        let server = Server::routes(setup.config(), routes);
        for body in [chunked, sized] {
            assert_eq!(server.ask(body("/", 1 << 16)).text(), "65536");
            assert_eq!(server.ask(body("/any", 2 * LIMIT)).status, 413);
        }
        let head =
            "Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n";
        let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
        let part = format!("{:x}\r\n{part}\r\n", part.len());
        let long = format!("{:x}\r\n{}\r\n", 2 * LIMIT, "x".repeat(2 * LIMIT));
        let answer = server.ask(request("POST", "/parts", head) + &part + &long);
        assert_eq!(answer.status, 413, "{}", answer.text());
    }
    // A setting that was given a value of its own was asked for, too.
    let config = gustnado::config::Config { limit_body_bytes: LIMIT as u64, ..setup.config() };
    let server = Server::routes(config, Routes::new().fallback(tower(takes_bodies())));
    assert_eq!(server.ask(sized("/any", 2 * LIMIT)).status, 413);
    assert_eq!(server.ask(chunked("/any", 2 * LIMIT)).status, 413);
}

pub(crate) fn a_client_that_closes_drops_the_service_at_once(setup: Setup) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let waits = move || {
        let alive = Alive::new(&counted);
        async move {
            let _alive = alive;
            tokio::time::sleep(Duration::from_millis(100)).await;
            "answered"
        }
    };
    let native = async |_: Request| {
        gustnado_tasks::sleep(Duration::from_millis(100)).await;
        "answered"
    };
    let app = || Router::new().route("/", get(waits.clone()));
    let nested = Router::new().nest("/patient", app());
    let patient = tower(nested).half_close_timeout(Duration::from_mins(1));
    let routes =
        Routes::new().get("/native", native).service("/patient", patient).fallback(tower(app()));
    let server = Server::routes(setup.patient_config(), routes);
    let mut client = server.connect();
    client.send(asking("/"));
    wait_until("it is asked", || count.load(Ordering::SeqCst) == 1);
    client.shut_write();
    assert!(client.read_to_end().is_empty(), "its future was dropped");
    if Setup::is_http2() {
        // The connection does not wait for the tasks of its streams.
        wait_until("it is dropped", || count.load(Ordering::SeqCst) == 0);
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    // The others keep the setting, or what they were given.
    for target in ["/native", "/patient"] {
        let mut client = server.connect();
        client.send(asking(target));
        client.shut_write();
        assert_eq!(client.read_answer().text(), "answered", "{target}");
    }
}

pub(crate) fn a_time_out_strikes_around_a_busy_future(setup: Setup) {
    let busy = async || {
        let permits = Semaphore::new(1);
        let endless = async {
            loop {
                drop(permits.acquire().await);
            }
        };
        let struck = timeout(Duration::from_millis(50), endless).await.is_err();
        format!("struck: {struck}")
    };
    let app = Router::new().route("/busy", get(busy)).route("/", get(async || "quick"));
    let config = gustnado::config::Config { workers: 1, ..setup.config() };
    let server = Server::routes(config, Routes::new().fallback(tower(app)));
    let (mut slow, mut quick) = (server.connect(), server.connect());
    slow.send(asking("/busy"));
    // Others have their turns meanwhile.
    assert_eq!(quick.get("/").text(), "quick");
    assert_eq!(slow.read_answer().text(), "struck: true");
}

pub(crate) fn a_runtime_of_one_thread_is_refused_at_the_start(setup: Setup) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let handle: Handle = runtime.handle().clone();
    let server =
        gustnado::Server::new().config(setup.config()).fallback(tower(echo()).on_tokio(handle));
    let error = server.start().expect_err("nothing would drive it");
    assert!(matches!(error, StartError::Routes(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("current_thread") && text.contains("multi_thread"), "{text}");
}

pub(crate) fn trailers_are_for_those_who_wait_for_them(setup: Setup) {
    let make = async || {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", http::HeaderValue::from_static("42"));
        let frames = crate::streams::with_trailers(["one", "two"], trailers);
        ([("trailer", "x-sum")], frames)
    };
    let native = |_: &Request| {
        let pieces = crate::streams::Pieces::new(["one", "two"]);
        Response::stream(pieces)
            .header("Trailer", "x-sum")
            .trailers(|| vec![("x-sum".to_owned(), "42".to_owned())])
    };
    let app = Router::new().route("/", any(make));
    let routes = Routes::new().get("/native", native).fallback(tower(app));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("GET", "/", "TE: gzip, trailers\r\nConnection: TE\r\n"));
    assert_eq!(client.read_head().field("trailer"), Some("x-sum"));
    let expected = b"3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 42\r\n\r\n";
    let read = client.take(expected.len()).expect("all of it");
    assert_eq!(read.to_ascii_lowercase(), expected);
    if Setup::is_http2() {
        // There every client takes them.
        return;
    }
    client.send(asking("/"));
    assert_eq!(client.read_head().field("trailer"), None);
    let expected = b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";
    assert_eq!(client.take(expected.len()).expect("all of it"), expected);
    for target in ["/", "/native"] {
        let old = server.ask(format!("GET {target} HTTP/1.0\r\nTE: trailers\r\n\r\n"));
        assert_eq!((&*old.text(), old.field("trailer")), ("onetwo", None), "{target}");
        client.send(request("HEAD", target, "TE: trailers\r\n"));
        assert_eq!(client.read_head().field("trailer"), None, "{target}");
    }
}

pub(crate) fn a_service_is_told_its_peer_as_axum_tells_it(setup: Setup) {
    let told = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let app = Router::new().route("/", get(told));
    let routes = Routes::new().fallback(tower(app).with_connect_info(ConnectInfo));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    let (own, _) = client.ends();
    assert_eq!(client.get("/").text(), own.to_string());
}

pub(crate) fn a_fallback_has_all_that_a_route_may_have(setup: Setup) {
    let dressed =
        route().any(tower(echo())).post(|_: &Request| "own").header("X-Dressed", "yes").middleware(
            Middleware::after(|_, response| {
                *response =
                    std::mem::replace(response, Response::new(Status::OK)).header("X-Link", "yes");
            }),
        );
    let server = Server::routes(setup.config(), Routes::new().fallback_route(dressed));
    let answer = server.get("/a");
    assert_eq!((&*answer.text(), answer.field("x-dressed")), ("GET /a", Some("yes")));
    assert_eq!(answer.field("x-link"), Some("yes"));
    assert_eq!(server.ask(request("POST", "/", "")).text(), "own");
}
