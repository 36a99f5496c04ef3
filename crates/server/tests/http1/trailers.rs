//! Trailer fields of requests (RFC 9110 §6.5): handlers get them behind the body.

use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Body, BodyError, Request, RequestTrailers, Routes, blocking};

use crate::harness::client::request;
use crate::harness::{Server, Setup};

on_every_server!(http1 "HTTP/2 has no chunks, and tests of its own":
    every_kind_of_handler_gets_trailers_behind_the_body,
    trailers_cut_at_any_byte_are_the_same,
    trailers_are_there_once_the_body_is_read_to_its_end,
    requests_of_one_connection_do_not_share_trailers,
    trailers_have_the_limits_of_a_head,
    trailers_that_do_not_end_hold_memory_that_is_counted,
);

/// Says what came: the body, and the trailers behind it.
fn told(body: &[u8], trailers: Option<&RequestTrailers>) -> String {
    let fields = trailers.map(|trailers| {
        let all = trailers.iter().map(|(name, value)| format!("{name}={}", value.escape_ascii()));
        all.collect::<Vec<_>>().join(" ")
    });
    format!("{} {fields:?}", body.escape_ascii())
}

async fn piece_by_piece(mut body: Body) -> Result<String, BodyError> {
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(told(&all, body.trailers().as_ref()))
}

fn routes() -> Routes {
    Routes::new()
        .post("/inline", |request: &Request| told(request.bytes(), request.trailers().as_ref()))
        .post("/task", async |mut request: Request| {
            let body = request.body_mut().bytes(1 << 20).await?;
            Ok::<_, BodyError>(told(&body, request.trailers().as_ref()))
        })
        .post("/pieces", async |request: Request| piece_by_piece(request.into_body()).await)
        .post(
            "/blocking",
            blocking(|request: Request| told(request.bytes(), request.trailers().as_ref())),
        )
}

fn chunked(target: &str, chunks: &str) -> String {
    request("POST", target, "Transfer-Encoding: chunked\r\n") + chunks
}

const TARGETS: [&str; 4] = ["/inline", "/task", "/pieces", "/blocking"];
const WITH_TRAILERS: &str =
    "4\r\nbody\r\n0\r\nChecksum: 1a2b\r\nHost:\t evil \r\nchecksum:\r\n\r\n";
const TOLD: &str = r#"body Some("Checksum=1a2b Host=evil checksum=")"#;

fn every_kind_of_handler_gets_trailers_behind_the_body(setup: Setup) {
    let server = Server::routes(setup.config(), routes());
    let mut client = server.connect();
    for target in TARGETS {
        assert_eq!(client.ask(chunked(target, WITH_TRAILERS)).text(), TOLD, "{target}");
        let none = client.ask(chunked(target, "4\r\nbody\r\n0\r\n\r\n"));
        assert_eq!(none.text(), "body None", "{target}");
    }
    let sized = request("POST", "/task", "Content-Length: 4\r\n") + "body";
    assert_eq!(client.ask(sized).text(), "body None");
    assert_eq!(server.stats().connections_accepted, 1);
}

fn trailers_cut_at_any_byte_are_the_same(setup: Setup) {
    let server = Server::routes(setup.config(), routes());
    let mut client = server.connect();
    for target in ["/inline", "/pieces"] {
        let sent = chunked(target, WITH_TRAILERS);
        let body = sent.len() - WITH_TRAILERS.len();
        for cut in body..sent.len() {
            client.send(&sent[..cut]);
            std::thread::sleep(Duration::from_millis(1));
            client.send(&sent[cut..]);
            assert_eq!(client.read_answer().text(), TOLD, "{target} cut at {cut}");
        }
    }
}

fn trailers_are_there_once_the_body_is_read_to_its_end(setup: Setup) {
    let routes = Routes::new().post("/", async |mut request: Request| {
        let before = request.trailers().is_some();
        let first = request.body_mut().next().await.is_some();
        let within = request.trailers().is_some();
        // By now all of it has come, and waits.
        sleep(Duration::from_millis(100)).await;
        let unread = request.trailers().is_some();
        let rest = request.body_mut().bytes(100).await.map(|rest| rest.len());
        format!("{before} {first} {within} {unread} {rest:?} {}", request.trailers().is_some())
    });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(chunked("/", "5\r\nfirst\r\n"));
    std::thread::sleep(Duration::from_millis(20));
    client.send(WITH_TRAILERS);
    assert_eq!(client.read_answer().text(), "false true false false Ok(4) true");
}

fn requests_of_one_connection_do_not_share_trailers(setup: Setup) {
    let server = Server::routes(setup.config(), routes());
    let mut client = server.connect();
    for target in TARGETS {
        let plain = request("POST", target, "Content-Length: 4\r\n") + "next";
        client.send(chunked(target, WITH_TRAILERS) + &plain);
        assert_eq!(client.read_answer().text(), TOLD, "{target}");
        assert_eq!(client.read_answer().text(), "next None", "{target}");
    }
}

fn trailers_have_the_limits_of_a_head(setup: Setup) {
    let config = Config { limit_head_bytes: 1_000, limit_header_fields: 4, ..setup.config() };
    let server = Server::routes(config, routes());
    for target in TARGETS {
        let of = |lines: &str| server.ask(chunked(target, &format!("1\r\na\r\n0\r\n{lines}\r\n")));
        let four = of(&"a: b\r\n".repeat(4));
        assert_eq!(four.text(), r#"a Some("a=b a=b a=b a=b")"#, "{target}");
        assert!(of(&"a: b\r\n".repeat(5)).status >= 400, "{target}");
        assert_eq!(of(&format!("a: {}\r\n", "b".repeat(900))).status, 200, "{target}");
        assert!(of(&format!("a: {}\r\n", "b".repeat(1_000))).status >= 400, "{target}");
        assert!(of("a b: c\r\n").status >= 400, "{target}: no field line");
    }
}

fn trailers_that_do_not_end_hold_memory_that_is_counted(setup: Setup) {
    let server = Server::routes(setup.patient_config(), routes());
    let lines = format!("1\r\na\r\n0\r\na: {}", "b".repeat(10_000));
    let mut clients: Vec<_> = TARGETS
        .iter()
        .map(|target| {
            let mut client = server.connect();
            client.send(chunked(target, &lines));
            client
        })
        .collect();
    server.wait_until("all are charged", |stats| stats.memory_heads >= 4 * 10_000);
    for client in &mut clients {
        client.send("\r\n\r\n");
        assert_eq!(client.read_answer().status, 200);
    }
    server.wait_until("nothing is held", |stats| stats.memory_heads == 0);
}
