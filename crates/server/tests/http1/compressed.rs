//! Responses that are compressed while they are sent. RFC 9110 §8.4, §12.5.5; RFC 9111 §5.2.2.6.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use flate2::{Decompress, FlushDecompress};
use futures_core::Stream;
use gustnado::config::{Compress, Config};
use gustnado::{Appender, Request, Response, Routes, Status, route};

use crate::harness::client::{get, request};
use crate::harness::{Answer, Client, Server, Setup};

on_every_server!(
    a_response_is_compressed_for_those_who_accept_it,
    long_content_and_streams_come_whole,
    an_event_is_there_at_once,
    what_must_not_be_compressed_is_not,
    fields_say_what_was_done,
    head_and_http_1_0_get_what_they_understand,
    a_stream_that_fails_is_cut_and_not_ended,
    a_stream_that_is_not_as_long_as_it_says_is_cut,
    streams_that_memory_is_not_free_for_are_sent_as_they_are,
    routes_have_settings_of_their_own,
);

const ACCEPTED: &str = "Accept-Encoding: gzip\r\n";

/// Text that becomes fewer.
fn text(bytes: usize) -> String {
    let lines: Vec<String> = (0..bytes / 8).map(|at| format!("{at:7}\n")).collect();
    lines.concat()
}

fn config(setup: Setup) -> Config {
    let mut config = setup.config();
    config.routes.compress = Compress::On;
    config
}

fn ask(server: &Server, target: &str, fields: &str) -> Answer {
    server.ask(request("GET", target, fields))
}

/// Returns what gzip holds so far.
fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let (mut decoder, mut out) = (Decompress::new_gzip(15), Vec::with_capacity(64 << 10));
    loop {
        let at = usize::try_from(decoder.total_in()).expect("a short body");
        let before = (decoder.total_in(), decoder.total_out());
        decoder.decompress_vec(&bytes[at..], &mut out, FlushDecompress::None).expect("it is gzip");
        if before == (decoder.total_in(), decoder.total_out()) {
            return out;
        }
        out.reserve(64 << 10);
    }
}

fn a_response_is_compressed_for_those_who_accept_it(setup: Setup) {
    let routes = Routes::new()
        .get("/inline", |_: &Request| Response::text(text(2_000)))
        .get("/task", async |_: Request| Response::text(text(2_000)))
        .get("/short", |_: &Request| Response::text("short"));
    let server = Server::routes(config(setup), routes);
    for target in ["/inline", "/task"] {
        for _ in 0..2 {
            let answer = ask(&server, target, ACCEPTED);
            assert_eq!(answer.field("content-encoding"), Some("gzip"), "{answer:?}");
            assert!(gunzipped(&answer.body) == text(2_000).as_bytes());
            let length = answer.body.len().to_string();
            assert_eq!(answer.field("content-length"), Some(&*length));
            assert!(answer.body.len() < 1_000);
        }
        let zstd = ask(&server, target, "Accept-Encoding: gzip, zstd, br\r\n");
        assert_eq!(zstd.field("content-encoding"), Some("zstd"));
        assert_eq!(zstd.body[..4], [0x28, 0xb5, 0x2f, 0xfd]);
        for fields in ["", "Accept-Encoding: br\r\n", "Accept-Encoding: gzip;q=0\r\n"] {
            let plain = ask(&server, target, fields);
            assert_eq!(plain.field("content-encoding"), None);
            assert_eq!(plain.field("vary"), Some("Accept-Encoding"), "{fields}");
            assert_eq!(plain.text(), text(2_000));
        }
    }
    assert_eq!(ask(&server, "/short", ACCEPTED).text(), "short");
    let stats = server.stats();
    assert_eq!((stats.responses_gzip, stats.responses_zstd, stats.responses_brotli), (4, 2, 0));
    assert_eq!((stats.compressions, stats.compress_bytes_in), (6, 6 * 2_000));
    assert!(stats.compress_bytes_out > 0 && stats.compress_bytes_out < 6_000, "{stats:?}");
    assert_eq!((stats.compress_refused, stats.variants_cached, stats.variant_bytes), (0, 0, 0));
}

fn long_content_and_streams_come_whole(setup: Setup) {
    let long = text(1_000_000);
    // The first is compressed as a whole, the second is longer than what is.
    let (whole, twice, pieces) = (long.clone(), long.repeat(2), long.clone());
    let routes = Routes::new()
        .get("/long", move |_: &Request| Response::text(whole.clone()))
        .get("/longer", move |_: &Request| Response::text(twice.clone()))
        .get("/pieces", move |_: &Request| {
            let (appender, response) = Response::append(2);
            let pieces = pieces.clone();
            let sending = gustnado_tasks::spawn(async move {
                let mut rest = pieces.as_bytes();
                for count in [1, 10, 5_000, 40_000, 400_000].into_iter().cycle() {
                    let (piece, left) = rest.split_at(count.min(rest.len()));
                    if piece.is_empty() || appender.append(piece.to_vec()).await.is_err() {
                        return;
                    }
                    rest = left;
                }
            });
            drop(sending);
            response
        });
    let server = Server::routes(config(setup), routes);
    for (target, times) in [("/long", 1), ("/longer", 2), ("/pieces", 1)] {
        let answer = ask(&server, target, ACCEPTED);
        assert_eq!(answer.field("content-encoding"), Some("gzip"), "{target}");
        assert_eq!(answer.field("content-length"), None);
        assert!(gunzipped(&answer.body) == long.repeat(times).as_bytes(), "{target}");
    }
}

fn an_event_is_there_at_once(setup: Setup) {
    let sent: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let times = Arc::clone(&sent);
    let routes = Routes::new().get("/", move |_: &Request| {
        let (appender, response) = Response::append(2);
        let times = Arc::clone(&times);
        let sending = gustnado_tasks::spawn(async move {
            for number in 0..20 {
                times.lock().expect("no test panics with it").push(Instant::now());
                if appender.append(format!("data: number {number}\n\n")).await.is_err() {
                    return;
                }
                gustnado_tasks::sleep(Duration::from_millis(30)).await;
            }
        });
        drop(sending);
        response.content_type("text/event-stream")
    });
    let server = Server::routes(config(setup), routes);
    let mut client = server.connect();
    client.send(request("GET", "/", ACCEPTED));
    assert_eq!(client.read_head().field("content-encoding"), Some("gzip"));
    let (mut received, mut soonest) = (Vec::new(), Duration::MAX);
    for number in 0..20 {
        let event = format!("data: number {number}\n\n");
        while !gunzipped(&received).ends_with(event.as_bytes()) {
            received.extend(read_chunk(&mut client));
        }
        let at = sent.lock().expect("no test panics with it")[number];
        soonest = soonest.min(at.elapsed());
    }
    // (The machine may be busy with other tests, but not all the time.)
    assert!(soonest < Duration::from_millis(10), "{soonest:?}");
}

/// Reads the next chunk.
fn read_chunk(client: &mut Client) -> Vec<u8> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(client.take(1).expect("a chunk size"));
    }
    let digits = std::str::from_utf8(&line).expect("digits").trim();
    let count = usize::from_str_radix(digits, 16).expect("a chunk size");
    let chunk = client.take(count).expect("a chunk");
    assert_eq!(client.take(2).expect("its end"), b"\r\n");
    chunk
}

/// A stream of these items.
struct Items(VecDeque<Result<String, ()>>);

impl Stream for Items {
    type Item = Result<String, ()>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

fn what_must_not_be_compressed_is_not(setup: Setup) {
    let with = |name: &'static str, value: &'static str| {
        move |_: &Request| Response::text(text(4_000)).header(name, value)
    };
    let routes = Routes::new()
        .get("/coded", with("Content-Encoding", "br"))
        .get("/fixed", with("Cache-Control", "max-age=1, No-Transform"))
        .get("/cookie", with("Set-Cookie", "id=1"))
        .get("/digest", with("Content-Digest", "sha-256=:x:"))
        .get("/of-representation", with("Repr-Digest", "sha-256=:x:"))
        .get("/of-instance", with("Digest", "SHA-256=x"))
        .get("/md5", with("Content-MD5", "x"))
        .get("/part", |_: &Request| {
            let part = Response::text(text(4_000)).status(Status::PARTIAL_CONTENT);
            part.header("Content-Range", "bytes 0-3999/9999")
        })
        .get("/picture", |_: &Request| Response::bytes(text(4_000)).content_type("image/png"))
        .get("/other", |_: &Request| Response::bytes(text(4_000)))
        .get("/error", |_: &Request| Response::text(text(4_000)).status(Status::NOT_FOUND));
    let server = Server::routes(config(setup), routes);
    let digests = ["/digest", "/of-representation", "/of-instance", "/md5"];
    let others = ["/coded", "/fixed", "/cookie", "/part", "/picture", "/other"];
    for target in digests.into_iter().chain(others) {
        let answer = ask(&server, target, ACCEPTED);
        assert_ne!(answer.field("content-encoding"), Some("gzip"), "{target}");
        assert!(answer.text() == text(4_000), "{target}");
        assert_eq!(answer.field("vary"), None, "{target}");
    }
    assert_eq!(ask(&server, "/error", ACCEPTED).field("content-encoding"), Some("gzip"));
}

fn fields_say_what_was_done(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        let response = Response::text(text(2_000)).header("ETag", "\"one\"");
        response.header("Vary", "Cookie").header("Accept-Ranges", "bytes")
    });
    let weak = |_: &Request| Response::text(text(2_000)).header("ETag", "W/\"one\"");
    let routes = routes.get("/weak", weak);
    let all = |_: &Request| Response::text(text(2_000)).header("Vary", "Accept-Encoding");
    let same = |_: &Request| Response::new(Status::NOT_MODIFIED).header("ETag", "\"one\"");
    let routes = routes.get("/same", same);
    let server = Server::routes(config(setup), routes.get("/vary", all));
    let answer = ask(&server, "/", ACCEPTED);
    assert_eq!(answer.field("etag"), Some("W/\"one\""));
    assert_eq!((answer.count("vary"), answer.field("accept-ranges")), (2, None));
    assert_eq!(ask(&server, "/weak", ACCEPTED).field("etag"), Some("W/\"one\""));
    assert_eq!(ask(&server, "/vary", ACCEPTED).count("vary"), 1);
    let same = ask(&server, "/same", ACCEPTED);
    assert_eq!((same.status, same.field("vary")), (304, Some("Accept-Encoding")));
    for (named, tag) in [
        ("W/\"one\"", "W/\"one\""),
        ("\"two\", W/\"one\"", "W/\"one\""),
        ("\"one\"", "\"one\""),
        ("\"one\", W/\"one\"", "\"one\""),
        ("W/\"two\"", "\"one\""),
        ("*", "\"one\""),
    ] {
        let same = ask(&server, "/same", &format!("{ACCEPTED}If-None-Match: {named}\r\n"));
        assert_eq!((same.status, same.field("etag")), (304, Some(tag)), "{named}");
    }
    let plain = ask(&server, "/", "");
    assert_eq!((plain.field("etag"), plain.count("vary")), (Some("\"one\""), 2));
    assert_eq!(plain.field("accept-ranges"), Some("bytes"));
}

fn head_and_http_1_0_get_what_they_understand(setup: Setup) {
    let routes = Routes::new()
        .get("/short", |_: &Request| Response::text(text(2_000)))
        .get("/long", |_: &Request| Response::text(text(200_000)));
    let server = Server::routes(config(setup), routes);
    for target in ["/short", "/long"] {
        let mut client = server.connect();
        client.send(request("HEAD", target, ACCEPTED));
        let head = client.read_head();
        assert_eq!((head.status, head.field("content-encoding")), (200, Some("gzip")));
        assert_eq!(
            (head.field("content-length"), head.field("vary")),
            (None, Some("Accept-Encoding"))
        );
        // Nothing follows it.
        client.send(get("/short"));
        assert_eq!(client.read_answer().text(), text(2_000));
    }
    if Setup::is_http2() {
        return;
    }
    let old = server.ask(format!("GET /long HTTP/1.0\r\n{ACCEPTED}\r\n"));
    assert_eq!(
        (old.field("content-encoding"), old.field("transfer-encoding")),
        (Some("gzip"), None)
    );
    assert!(gunzipped(&old.body) == text(200_000).as_bytes());
}

fn a_stream_that_fails_is_cut_and_not_ended(setup: Setup) {
    let routes = Routes::new().get("/", |_: &Request| {
        let pieces = [Ok(text(2_000)), Ok(text(9_000)), Err(())];
        Response::stream(Items(pieces.into())).content_type("text/plain")
    });
    let server = Server::routes(config(setup), routes);
    let mut client = server.connect();
    client.send(request("GET", "/", ACCEPTED));
    assert!(client.try_answer().is_err(), "a whole answer");
}

fn a_stream_that_is_not_as_long_as_it_says_is_cut(setup: Setup) {
    let of_length = |length: u64| {
        move |_: &Request| {
            let pieces = [Ok(text(2_000)), Ok(text(9_000))];
            Response::stream_of_length(Items(pieces.into()), length).content_type("text/plain")
        }
    };
    let routes = Routes::new()
        .get("/right", of_length(11_000))
        .get("/short", of_length(11_001))
        .get("/long", of_length(10_999));
    let server = Server::routes(config(setup), routes);
    for target in ["/short", "/long"] {
        let mut client = server.connect();
        client.send(request("GET", target, ACCEPTED));
        assert!(client.try_answer().is_err(), "{target}: a whole answer");
    }
    let right = ask(&server, "/right", ACCEPTED);
    assert_eq!(right.field("content-encoding"), Some("gzip"));
    assert_eq!(gunzipped(&right.body).len(), 11_000);
}

fn streams_that_memory_is_not_free_for_are_sent_as_they_are(setup: Setup) {
    let kept: Arc<Mutex<Vec<Appender>>> = Arc::default();
    let routes = Routes::new().get("/", move |_: &Request| {
        let (appender, response) = Response::append(2);
        kept.lock().expect("no test panics with it").push(appender);
        response.content_type("text/event-stream")
    });
    let mut config = config(setup);
    config.limit_send_memory = 4 << 20;
    let server = Server::routes(config, routes);
    let mut clients = Vec::new();
    let mut compressed = 0;
    for _ in 0..12 {
        let mut client = server.connect();
        client.send(request("GET", "/", "Accept-Encoding: zstd\r\n"));
        compressed += u32::from(client.read_head().field("content-encoding").is_some());
        clients.push(client);
    }
    // An encoder holds two thirds of a mebibyte.
    assert!((2..=7).contains(&compressed), "{compressed}");
}

fn routes_have_settings_of_their_own(setup: Setup) {
    let handler = |_: &Request| Response::text(text(2_000)).header("Set-Cookie", "id=1");
    let own = route().get(handler).tune(|settings| {
        (settings.compress, settings.compress_cookies) = (Compress::Gzip, true);
    });
    let css = route().get(|_: &Request| Response::text(text(2_000))).tune(|settings| {
        settings.compress = Compress::On;
        settings.compress_types = vec!["text/css".to_owned()];
    });
    let high = route().get(|_: &Request| Response::text(text(2_000))).tune(|settings| {
        (settings.compress, settings.compress_bytes_min) = (Compress::On, 3_000);
    });
    let strong = route().get(|_: &Request| Response::text(text(20_000))).tune(|settings| {
        settings.compress = Compress::On;
        (settings.compress_gzip_level, settings.compress_zstd_level) = (9, 19);
    });
    let routes = Routes::new().route("/own", own).route("/css", css).route("/high", high);
    let routes = routes.route("/strong", strong);
    let server = Server::routes(setup.config(), routes.get("/plain", handler));
    let fields = "Accept-Encoding: gzip, zstd\r\n";
    assert_eq!(ask(&server, "/own", fields).field("content-encoding"), Some("gzip"));
    for target in ["/css", "/high", "/plain"] {
        assert_eq!(ask(&server, target, fields).field("content-encoding"), None, "{target}");
    }
    assert_eq!(ask(&server, "/strong", fields).field("content-encoding"), Some("zstd"));
    let gzip = ask(&server, "/strong", ACCEPTED);
    assert!(gunzipped(&gzip.body) == text(20_000).as_bytes());
}
