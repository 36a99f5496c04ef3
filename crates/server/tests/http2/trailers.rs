//! Trailer fields of requests (RFC 9113 §8.1): handlers get them behind the body.

use gustnado::config::Config;
use gustnado::{Request, RequestTrailers, Routes, blocking};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{StreamId, flag, kind};

use crate::harness::http2::Http2Client;
use crate::harness::http2::heads::literal;
use crate::harness::{Server, Setup};
use crate::in_clear;

on_every_server!(
    every_kind_of_handler_gets_trailers_behind_the_body,
    trailers_of_streams_are_their_own,
    trailers_behind_a_body_of_known_length_and_behind_none,
    trailers_have_the_limits_of_a_head,
    long_trailers_are_charged_while_their_handler_has_them,
);

/// Says what came: the body, and the trailers behind it.
fn told(body: &[u8], trailers: Option<&RequestTrailers>) -> String {
    let fields = trailers.map(|trailers| {
        let all = trailers.iter().map(|(name, value)| format!("{name}={}", value.escape_ascii()));
        all.collect::<Vec<_>>().join(" ")
    });
    format!("{} {fields:?}", body.escape_ascii())
}

fn routes() -> Routes {
    Routes::new()
        .post("/inline", |request: &Request| told(request.bytes(), request.trailers().as_ref()))
        .post("/task", async |mut request: Request| {
            assert!(request.trailers().is_none(), "the body was not read");
            let body = request.body_mut().bytes(1 << 20).await?;
            Ok::<_, gustnado::BodyError>(told(&body, request.trailers().as_ref()))
        })
        .post("/pieces", async |request: Request| {
            let (mut body, mut all) = (request.into_body(), Vec::new());
            while let Some(Ok(piece)) = body.next().await {
                all.extend_from_slice(&piece);
            }
            told(&all, body.trailers().as_ref())
        })
        .post(
            "/blocking",
            blocking(|request: Request| told(request.bytes(), request.trailers().as_ref())),
        )
}

const TARGETS: [&str; 4] = ["/inline", "/task", "/pieces", "/blocking"];

/// Ends a request with these fields.
fn send_trailers(client: &mut Http2Client, id: StreamId, fields: &[(&str, &str)]) {
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, &block);
}

fn every_kind_of_handler_gets_trailers_behind_the_body(setup: Setup) {
    let server = Server::routes(in_clear(setup), routes());
    let mut client = Http2Client::connect(server.address());
    for target in TARGETS {
        let id = client.request("POST", target, &[], false);
        client.send_data(id, b"body", false);
        client.ping();
        send_trailers(&mut client, id, &[("checksum", "1a2b"), ("host", "evil"), ("checksum", "")]);
        let answer = client.answer(id);
        let wanted = r#"body Some("checksum=1a2b host=evil checksum=")"#;
        assert_eq!((&*answer.text(), answer.reset), (wanted, None), "{target}");
        assert_eq!(client.post(target, b"body").text(), "body None", "{target}");
        let id = client.request("POST", target, &[], false);
        client.send_data(id, b"body", false);
        send_trailers(&mut client, id, &[]);
        assert_eq!(client.answer(id).text(), "body None", "{target}: an empty block");
    }
}

fn trailers_of_streams_are_their_own(setup: Setup) {
    let server = Server::routes(in_clear(setup), routes());
    let mut client = Http2Client::connect(server.address());
    for target in TARGETS {
        let ids: Vec<_> = (0..10).map(|_| client.request("POST", target, &[], false)).collect();
        for id in &ids {
            client.send_data(*id, b"b", false);
        }
        for id in ids.iter().rev() {
            send_trailers(&mut client, *id, &[("stream", &id.to_string())]);
        }
        for id in ids {
            assert_eq!(client.answer(id).text(), format!("b Some(\"stream={id}\")"), "{target}");
        }
    }
}

fn trailers_behind_a_body_of_known_length_and_behind_none(setup: Setup) {
    let server = Server::routes(in_clear(setup), routes());
    let mut client = Http2Client::connect(server.address());
    for target in TARGETS {
        let id = client.request("POST", target, &[("content-length", "4")], false);
        client.send_data(id, b"body", false);
        send_trailers(&mut client, id, &[("a", "b")]);
        assert_eq!(client.answer(id).text(), r#"body Some("a=b")"#, "{target}");
        let id = client.request("POST", target, &[], false);
        send_trailers(&mut client, id, &[("a", "b")]);
        assert_eq!(client.answer(id).text(), r#" Some("a=b")"#, "{target}");
    }
}

fn trailers_have_the_limits_of_a_head(setup: Setup) {
    let config = Config { limit_head_bytes: 1_000, limit_header_fields: 4, ..in_clear(setup) };
    let server = Server::routes(config, routes());
    let mut client = Http2Client::connect(server.address());
    for target in TARGETS {
        let mut of = |fields: &[(&str, &str)]| {
            let id = client.request("POST", target, &[], false);
            client.send_data(id, b"a", false);
            send_trailers(&mut client, id, fields);
            let answer = client.answer(id);
            answer.reset.map_or_else(|| answer.text(), |code| code.name().to_owned())
        };
        let refused = ErrorCode::ProtocolError.name();
        assert_eq!(of(&[("a", "b"); 4]), r#"a Some("a=b a=b a=b a=b")"#, "{target}");
        assert_eq!(of(&[("a", "b"); 5]), refused, "{target}: too many");
        assert_eq!(of(&[("a", &"b".repeat(1_000))]), refused, "{target}: too long");
        assert_eq!(of(&[(":path", "/")]), refused, "{target}: a pseudo field");
        assert_eq!(of(&[("A", "b")]), refused, "{target}: capitals");
    }
    assert_eq!(client.post("/inline", b"on").text(), "on None", "the connection goes on");
}

fn long_trailers_are_charged_while_their_handler_has_them(setup: Setup) {
    let routes = Routes::new().post("/", async |mut request: Request| {
        _ = request.body_mut().bytes(100).await;
        let trailers = request.trailers();
        gustnado::task::sleep(std::time::Duration::from_millis(200)).await;
        trailers.map_or(0, |trailers| trailers.get("a").map_or(0, str::len)).to_string()
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client = Http2Client::connect(server.address());
    let id = client.request("POST", "/", &[], false);
    client.send_data(id, b"a", false);
    send_trailers(&mut client, id, &[("a", &"b".repeat(10_000))]);
    server.wait_until("they are charged", |stats| stats.memory_heads >= 10_000);
    assert_eq!(client.answer(id).text(), "10000");
    server.wait_until("nothing is held", |stats| stats.memory_heads == 0);
}
