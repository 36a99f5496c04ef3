//! The HTTP client by HTTP/2: with our own server, and with a peer that sends frames by hand.
//! RFC 9113.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gustnado::client::{
    Client, ClientError, ClientOptions, ClientResponse, Http2Use, TimeoutPhase,
};
use gustnado::config::Config;
use gustnado::{Request, Routes, Version};
use gustnado_http::h2::frame::{self, FrameHeader, PREFACE, flag, kind, setting};
use gustnado_http::h2::hpack::Encoder;
use gustnado_http::h2::{ErrorCode, H2Error};
use gustnado_tasks::{sleep, spawn};

use crate::harness::{Server, Setup};
use crate::script::{Act, Peer, Pieces, Script, act, in_task, refused, text};

on_every_server!(
    requests_at_once_share_a_connection,
    bodies_are_streamed_both_ways,
    a_client_that_may_speaks_http_1_to_others,
    no_more_streams_are_open_than_the_server_allows,
    a_response_that_is_dropped_ends_its_stream_alone,
    what_was_not_looked_at_is_sent_again,
    a_body_that_is_a_stream_is_not_sent_again,
    time_outs_end_their_stream_alone,
    interim_responses_trailers_and_continue_are_read,
    a_connection_that_is_lost_is_said,
    a_server_that_breaks_the_rules_is_told,
    a_kept_connection_that_was_closed_is_made_anew,
);

fn client() -> Client {
    hasty(|_| {})
}

fn hasty(change: impl FnOnce(&mut ClientOptions)) -> Client {
    let mut options = ClientOptions { http2: Http2Use::Always, ..ClientOptions::default() };
    change(&mut options);
    Client::new(options)
}

fn server(setup: Setup, change: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config { h2c: true, limit_body_bytes: 8 << 20, ..setup.config() };
    change(&mut config);
    let routes = Routes::new()
        .get("/hello", |_: &Request| "hello")
        .post("/echo", |request: &Request| request.bytes().to_vec())
        .get("/slow", async |_: Request| {
            sleep(Duration::from_millis(50)).await;
            "slow"
        });
    Server::routes(config, routes)
}

/// The end of a connection by HTTP/2 that a script plays.
struct H2Peer<'p> {
    peer: &'p mut Peer,
    encoder: Encoder,
    /// The stream of the last request.
    id: u32,
}

impl<'p> H2Peer<'p> {
    fn begin(peer: &'p mut Peer, settings: &[(u16, u32)]) -> Self {
        assert_eq!(peer.read(PREFACE.len()), PREFACE);
        let mut out = Vec::new();
        frame::write_settings(settings, &mut out);
        peer.send(out);
        Self { peer, encoder: Encoder::new(), id: 0 }
    }

    fn frame(&mut self) -> (FrameHeader, Vec<u8>) {
        let bytes = self.peer.read(9);
        let (header, _) = FrameHeader::read(&bytes).expect("nine bytes");
        (header, self.peer.read(header.len))
    }

    /// Reads up to the next frame of a kind.
    fn until(&mut self, wanted: u8) -> (FrameHeader, Vec<u8>) {
        loop {
            let (header, payload) = self.frame();
            if header.kind == wanted {
                return (header, payload);
            }
        }
    }

    /// Reads the next request's head.
    fn request(&mut self) -> u32 {
        self.id = self.until(kind::HEADERS).0.stream;
        self.id
    }

    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        frame::write(kind, flags, stream, payload, &mut out);
        self.peer.send(out);
    }

    fn head(&mut self, id: u32, is_end: bool, status: u16, fields: &[(&str, &str)]) {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        if status > 0 {
            self.encoder.status(status, &mut block);
        }
        for (name, value) in fields {
            self.encoder.field((*name).into(), value.as_bytes(), &mut block);
        }
        let end = if is_end { flag::END_STREAM } else { 0 };
        self.write(kind::HEADERS, end | flag::END_HEADERS, id, &block);
    }

    fn respond(&mut self, id: u32, body: &str) {
        self.head(id, false, 200, &[]);
        self.write(kind::DATA, flag::END_STREAM, id, body.as_bytes());
    }

    fn reset(&mut self, id: u32, code: ErrorCode) {
        let mut out = Vec::new();
        frame::write_reset(id, code, &mut out);
        self.peer.send(out);
    }

    fn go_away(&mut self, last: u32, code: ErrorCode) {
        let mut out = Vec::new();
        frame::write_goaway(last, code, "", &mut out);
        self.peer.send(out);
    }
}

/// A connection by HTTP/2.
fn talk(act_of: impl FnOnce(&mut H2Peer<'_>) + Send + 'static) -> Act {
    act(move |peer| act_of(&mut H2Peer::begin(peer, &[])))
}

async fn get(client: &Client, url: &str) -> Result<String, ClientError> {
    client.get(url).send().await?.text(1 << 20).await
}

fn requests_at_once_share_a_connection(setup: Setup) {
    let server = server(setup, |_| {});
    let base = format!("http://{}", server.address());
    in_task(setup, async move {
        let client = client();
        let mut tasks = Vec::new();
        for _ in 0..20 {
            let (client, url) = (client.clone(), format!("{base}/slow"));
            tasks.push(spawn(async move { get(&client, &url).await }).expect("room for a task"));
        }
        for task in tasks {
            assert_eq!(task.await.expect("no panic").expect("a response"), "slow");
        }
        let response = client.get(&format!("{base}/hello")).send().await.expect("a response");
        assert_eq!((response.status(), response.version()), (200, Version::Http2));
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(text(Ok(response)).await, "hello");
        assert_eq!(client.connections_kept(), 1);
    });
    // One for each thread that has asked: where workers share tasks, that is one here, too.
    assert_eq!(server.stats().connections_accepted, 1);
    server.wait_until_empty();
}

fn bodies_are_streamed_both_ways(setup: Setup) {
    let server = server(setup, |_| {});
    let url = format!("http://{}/echo", server.address());
    in_task(setup, async move {
        let client = client();
        let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let pieces: Vec<Bytes> = body.chunks(70_000).map(Bytes::copy_from_slice).collect();
        for length in [None, Some(3_000_000)] {
            let request = client.post(&url).stream(length, Pieces::new(pieces.clone()));
            let mut response = request.send().await.expect("a response");
            let echo = response.bytes(8 << 20).await.expect("a body");
            assert!(echo == body, "{} bytes come back", echo.len());
        }
        let mut response = client.post(&url).body(body.clone()).send().await.expect("a response");
        assert!(response.bytes(8 << 20).await.expect("a body") == body);
        let mut response = client.post(&url).body("").send().await.expect("a response");
        assert_eq!(response.bytes(9).await.expect("a body"), "");
        let broken = client.post(&url).stream(None, Pieces::new(["a"]).broken()).send().await;
        assert!(matches!(refused(broken), ClientError::Source(_)));
        let mut response = client.post(&url).body(body).send().await.expect("a response");
        let error = response.bytes(1_000).await.expect_err("it is longer");
        assert!(matches!(error, ClientError::TooLong { .. }), "{error}");
        assert_eq!(text(client.post(&url).body("still here").send().await).await, "still here");
    });
    assert_eq!(server.stats().connections_accepted, 1);
    server.wait_until_empty();
}

fn a_client_that_may_speaks_http_1_to_others(setup: Setup) {
    let server = server(setup, |_| {});
    let url = format!("http://{}/hello", server.address());
    in_task(setup, async move {
        for http2 in [Http2Use::Never, Http2Use::ByAlpn] {
            let client = hasty(|options| options.http2 = http2);
            let response = client.get(&url).send().await.expect("a response");
            assert_eq!(response.version(), Version::Http11);
        }
        let response = client().get(&url).alone().send().await.expect("a response");
        assert_eq!(response.version(), Version::Http2);
    });
    assert_eq!(server.stats().connections_accepted, 3);
}

fn no_more_streams_are_open_than_the_server_allows(setup: Setup) {
    let script = Script::start(vec![act(|peer| {
        let mut peer = H2Peer::begin(peer, &[(setting::MAX_CONCURRENT_STREAMS, 2)]);
        for _ in 0..3 {
            let first = peer.request();
            let second = peer.request();
            // A third one would be here by now.
            std::thread::sleep(Duration::from_millis(20));
            peer.respond(second, "ok");
            peer.respond(first, "ok");
        }
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = hasty(|options| options.kept_per_host_max = 1);
        // The settings have come once there was a response.
        let mut tasks = Vec::new();
        for _ in 0..6 {
            let (client, url) = (client.clone(), url.clone());
            tasks.push(spawn(async move { get(&client, &url).await }).expect("room for a task"));
            sleep(Duration::from_millis(5)).await;
        }
        for task in tasks {
            assert_eq!(task.await.expect("no panic").expect("a response"), "ok");
        }
    });
    script.end();
}

fn a_response_that_is_dropped_ends_its_stream_alone(setup: Setup) {
    let script = Script::start(vec![talk(|peer| {
        let id = peer.request();
        peer.head(id, false, 200, &[]);
        peer.write(kind::DATA, 0, id, &[0; 1_000]);
        let (header, payload) = peer.until(kind::RST_STREAM);
        assert_eq!(
            (header.stream, payload),
            (id, (ErrorCode::Cancel as u32).to_be_bytes().to_vec())
        );
        // What was under way does no harm.
        peer.write(kind::DATA, flag::END_STREAM, id, &[0; 1_000]);
        let id = peer.request();
        peer.respond(id, "next");
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let mut response = client.get(&url).send().await.expect("a head");
        assert_eq!(response.next().await.expect("bytes").expect("bytes").len(), 1_000);
        drop(response);
        assert_eq!(get(&client, &url).await.expect("a response"), "next");
    });
    script.end();
}

fn what_was_not_looked_at_is_sent_again(setup: Setup) {
    let goes_away = || {
        talk(|peer: &mut H2Peer<'_>| {
            let first = peer.request();
            peer.respond(first, "first");
            let second = peer.request();
            peer.go_away(second - 2, ErrorCode::NoError);
        })
    };
    let refuses = talk(|peer| {
        let id = peer.request();
        peer.reset(id, ErrorCode::RefusedStream);
        let id = peer.request();
        peer.respond(id, "second");
    });
    let script = Script::start(vec![goes_away(), refuses]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        assert_eq!(get(&client, &url).await.expect("a response"), "first");
        // A POST is safe, too: nothing was done about it.
        assert_eq!(text(client.post(&url).body("x").send().await).await, "second");
    });
    script.end();
}

fn a_body_that_is_a_stream_is_not_sent_again(setup: Setup) {
    let script = Script::start(vec![talk(|peer| {
        let id = peer.request();
        peer.reset(id, ErrorCode::RefusedStream);
        for _ in 0..4 {
            let id = peer.request();
            peer.reset(id, ErrorCode::RefusedStream);
        }
        let id = peer.request();
        peer.reset(id, ErrorCode::InternalError);
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let request = client.post(&url).stream(None, Pieces::new(["a"]));
        let code = |error: ClientError| match error {
            ClientError::Reset { code, .. } => code,
            other => panic!("{other}"),
        };
        assert_eq!(code(refused(request.send().await)), ErrorCode::RefusedStream);
        // Four times in all.
        assert_eq!(code(refused(client.get(&url).send().await)), ErrorCode::RefusedStream);
        assert_eq!(code(refused(client.get(&url).send().await)), ErrorCode::InternalError);
    });
    script.end();
}

fn time_outs_end_their_stream_alone(setup: Setup) {
    let script = Script::start(vec![talk(|peer| {
        let silent = peer.request();
        let cut = peer.request();
        peer.head(cut, false, 200, &[]);
        peer.write(kind::DATA, 0, cut, b"some");
        let mut reset =
            [peer.until(kind::RST_STREAM).0.stream, peer.until(kind::RST_STREAM).0.stream];
        reset.sort_unstable();
        assert_eq!(reset, [silent, cut]);
        let id = peer.request();
        peer.respond(id, "in time");
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = hasty(|options| {
            options.head_timeout = Duration::from_millis(200);
            options.idle_timeout = Duration::from_millis(300);
        });
        let began = Instant::now();
        let other = (client.clone(), url.clone());
        let silent = spawn(async move { refused(other.0.get(&other.1).send().await) });
        sleep(Duration::from_millis(50)).await;
        let mut response = client.get(&url).send().await.expect("a head");
        assert_eq!(response.next().await.expect("bytes").expect("bytes"), "some");
        let cut = response.next().await.expect("an error").expect_err("no more comes");
        let silent = silent.expect("room for a task").await.expect("no panic");
        for (error, phase) in [(silent, TimeoutPhase::Head), (cut, TimeoutPhase::Bytes)] {
            assert!(
                matches!(error, ClientError::Timeout { waiting, .. } if waiting == phase),
                "{error}"
            );
        }
        assert!(began.elapsed() >= Duration::from_millis(300));
        let total = client.get(&url).total_timeout(Duration::from_secs(5)).send().await;
        assert_eq!(text(total).await, "in time");
    });
    script.end();
}

fn interim_responses_trailers_and_continue_are_read(setup: Setup) {
    let script = Script::start(vec![talk(|peer| {
        let id = peer.request();
        peer.head(id, false, 100, &[]);
        let (header, payload) = peer.until(kind::DATA);
        assert_eq!((header.stream, payload), (id, b"body".to_vec()));
        peer.head(id, false, 103, &[("link", "</a.css>")]);
        peer.head(id, false, 200, &[("x-a", "b"), ("content-length", "5")]);
        peer.write(kind::DATA, 0, id, b"hello");
        peer.head(id, true, 0, &[("x-sum", "7")]);
        // A response that comes before the body ends it.
        let id = peer.request();
        peer.head(id, true, 413, &[]);
        let (header, payload) = peer.until(kind::RST_STREAM);
        assert_eq!((header.stream, payload), (id, vec![0; 4]));
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let request = client.post(&url).body("body").expect_continue().accept_trailers();
        let mut response = request.send().await.expect("a response");
        let links: Vec<_> = response.interim().map(|of| (of.status(), of.field("link"))).collect();
        assert_eq!(links, [(103, Some(&b"</a.css>"[..]))]);
        assert_eq!((response.header("X-A"), response.content_length()), (Some("b"), Some(5)));
        assert!(response.trailers().is_none());
        assert_eq!(response.text(5).await.expect("a body"), "hello");
        let trailers: Vec<_> = response.trailers().expect("they have come").collect();
        assert_eq!(trailers, [("x-sum", &b"7"[..])]);
        let request = client.post(&url).body("body").expect_continue();
        let mut response: ClientResponse = request.send().await.expect("a response");
        assert_eq!(
            (response.status(), response.text(5).await.expect("none")),
            (413, String::new())
        );
    });
    script.end();
}

fn a_connection_that_is_lost_is_said(setup: Setup) {
    let script = Script::start(vec![
        talk(|peer| {
            let id = peer.request();
            // To close on unread bytes would reset the connection.
            assert_eq!(peer.until(kind::SETTINGS).0.flags, flag::ACK);
            peer.head(id, false, 200, &[]);
            peer.write(kind::DATA, 0, id, b"some");
        }),
        talk(|peer| _ = peer.request()),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let cut = get(&client, &url).await.expect_err("it is cut off");
        assert!(matches!(cut, ClientError::Truncated { received: 4, .. }), "{cut}");
        let lost = get(&client, &url).await.expect_err("nothing comes");
        assert!(
            matches!(lost, ClientError::Closed { received: 0, .. } | ClientError::Broken { .. }),
            "{lost}"
        );
    });
    script.end();
}

fn a_server_that_breaks_the_rules_is_told(setup: Setup) {
    let script = Script::start(vec![
        talk(|peer| {
            let id = peer.request();
            peer.head(id, true, 200, &[("connection", "close")]);
            assert_eq!(peer.request(), 3);
            peer.write(kind::PUSH_PROMISE, flag::END_HEADERS, 3, &[0, 0, 0, 2]);
            let (_, payload) = peer.until(kind::GOAWAY);
            assert_eq!(payload[4..8], (ErrorCode::ProtocolError as u32).to_be_bytes());
        }),
        act(|peer| {
            peer.read(PREFACE.len());
            peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
        }),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        for part in ["HTTP/1 connection", "switched off", "longer than 16,384 bytes"] {
            let error = get(&client, &url).await.expect_err("it cannot be read");
            let ClientError::Http2 { error: H2Error { reason, .. }, .. } = &error else {
                panic!("{error}");
            };
            assert!(reason.contains(part), "{part}: {reason}");
        }
    });
    script.end();
}

fn a_kept_connection_that_was_closed_is_made_anew(setup: Setup) {
    let once = |body: &'static str| {
        talk(move |peer: &mut H2Peer<'_>| {
            let id = peer.request();
            peer.respond(id, body);
        })
    };
    let late = talk(|peer| {
        let id = peer.request();
        peer.respond(id, "two");
        peer.request();
    });
    let script = Script::start(vec![once("one"), late, once("three")]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        assert_eq!(get(&client, &url).await.expect("a response"), "one");
        sleep(Duration::from_millis(50)).await;
        assert_eq!(client.connections_kept(), 0);
        assert_eq!(get(&client, &url).await.expect("a response"), "two");
        // It closes just when the request has come: once more, as GET does no harm.
        assert_eq!(get(&client, &url).await.expect("a response"), "three");
    });
    script.end();
}
