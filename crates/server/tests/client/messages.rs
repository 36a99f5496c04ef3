//! What the HTTP client sends, and what it takes for an answer. RFC 9110 §10.1.1, §15.2; RFC 9112
//! §6, §7.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gustnado::client::ClientError;
use gustnado::config::Config;
use gustnado::{Endpoint, Request, Response, Routes, Status};
use gustnado_http::head::Version;
use gustnado_http::method::Method;
use gustnado_http::response::ResponseView;

use crate::harness::folder::noise;
use crate::harness::{Folder, Server, Setup};
use crate::script::{
    HELLO, Pieces, Script, act, answer, client, get, hasty, in_task, refused, text,
};

on_every_server!(
    our_own_server_answers_on_one_connection,
    a_body_goes_out_and_comes_back_in_each_framing,
    a_large_file_comes_as_it_is,
    a_unix_socket_is_asked_like_any_host,
    interim_answers_come_before_the_final_one,
    chunks_come_with_their_trailers,
    a_body_may_end_with_its_connection,
    a_body_cut_short_is_an_error,
    the_body_waits_for_the_word_that_was_asked_for,
    an_answer_may_begin_before_the_request_has_ended,
    a_server_that_refuses_a_body_is_heard,
    a_stream_that_fails_or_lies_about_its_length_is_an_error,
    answers_against_the_rules_are_refused,
    the_request_says_what_it_was_told_to,
    a_handler_relays_both_bodies_as_they_come,
);

fn our_own_server_answers_on_one_connection(setup: Setup) {
    let server = setup.default_site();
    let url = format!("http://{}", server.address());
    in_task(setup, async move {
        let client = client();
        let mut answer = client.get(&url).send().await.expect("an answer");
        assert_eq!((answer.status(), answer.version()), (200, Version::Http11));
        assert_eq!(answer.reason(), b"OK");
        let page = answer.text(1 << 20).await.expect("the page");
        assert!(page.contains("Gustnado") && answer.trailers().map(Iterator::count) == Some(0));

        let head = client.request(Method::Head, &url).send().await.expect("an answer");
        assert_eq!(head.content_length(), Some(page.len() as u64));
        assert_eq!(head.header("content-TYPE"), Some("text/html; charset=utf-8"));
        assert_eq!(head.header_values("date").count(), 1);
        assert!(head.headers().any(|(name, value)| name == "Date" && value.ends_with(b"GMT")));
        let missing = client.get(&format!("{url}/missing?a=b")).send().await.expect("an answer");
        assert_eq!(missing.status(), 404);
        drop(missing); // its body was short, and is here
        let moved = client.get(&format!("{url}/favicon.ico")).send().await.expect("an answer");
        assert_eq!(moved.status(), 301, "redirects are not followed");
        drop(moved);
        assert_eq!(client.connections_kept(), 1);
    });
    assert_eq!(server.stats().connections_accepted, 1);
    assert_eq!(server.stats().requests, 4);
}

fn a_body_goes_out_and_comes_back_in_each_framing(setup: Setup) {
    let config = Config { limit_body_bytes: 4 << 20, ..setup.config() };
    let server = Server::start(config);
    let url = format!("http://{}/echo", server.address());
    in_task(setup, async move {
        let (client, data) = (client(), Bytes::from(noise(1, 1_000_000)));
        let pieces = || Pieces::new(data.chunks(77_777).map(Bytes::copy_from_slice));
        let length = data.len() as u64;
        for request in [
            client.post(&url).body(data.clone()),
            client.post(&url).stream(Some(length), pieces()),
            client.post(&url).stream(None, pieces()),
            client.post(&url).stream(None, pieces()).expect_continue(),
            client.post(&url).body(data.clone()).expect_continue(),
        ] {
            let mut answer = request.send().await.expect("an answer");
            assert_eq!(answer.status(), 200);
            assert!(answer.bytes(data.len()).await.expect("the echo") == data);
        }
        for request in [client.post(&url), client.post(&url).body("").expect_continue()] {
            assert_eq!(text(request.send().await).await, "");
        }
        let empty = Pieces::new([""; 3]);
        assert_eq!(text(client.post(&url).stream(None, empty).send().await).await, "");
        let mut answer = client.post(&url).body(data).send().await.expect("an answer");
        let error = answer.bytes(999_999).await.expect_err("one byte too many");
        assert!(matches!(error, ClientError::TooLong { limit_bytes: 999_999 }), "{error}");
        assert!(answer.next().await.is_none(), "nothing comes after an error");
    });
    assert_eq!(server.stats().connections_accepted, 1);
}

fn a_large_file_comes_as_it_is(setup: Setup) {
    let folder = Folder::new();
    let data = noise(2, 3 << 20);
    folder.file("large", &data);
    let server = setup.files(&folder);
    let url = format!("http://{}/large", server.address());
    in_task(setup, async move {
        let mut answer = client().get(&url).send().await.expect("an answer");
        assert_eq!(answer.content_length(), Some(data.len() as u64));
        let mut at = 0;
        while let Some(bytes) = answer.next().await {
            let bytes = bytes.expect("the file goes on");
            assert!(!bytes.is_empty() && data[at..].starts_with(&bytes), "wrong after {at}");
            at += bytes.len();
        }
        assert_eq!(at, data.len());
    });
}

fn a_unix_socket_is_asked_like_any_host(setup: Setup) {
    let folder = Folder::new();
    let path = folder.root().join("socket");
    let server = Server::start(Config { uds: Some(path.clone()), ..setup.config() });
    in_task(setup, async move {
        let client = hasty(|options| options.source = Some(([127, 0, 0, 1], 0).into()));
        for _ in 0..3 {
            let request = client.get("http://any.example/").via(Endpoint::Unix(path.clone()));
            assert!(text(request.send().await).await.contains("Gustnado"));
        }
    });
    assert_eq!(server.stats().connections_accepted, 1);
}

fn interim_answers_come_before_the_final_one(setup: Setup) {
    let script = Script::start(vec![
        act(|peer| {
            peer.read_head();
            peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>");
            thread::sleep(Duration::from_millis(20));
            peer.send("\r\nLink: </b>\r\n\r\nHTTP/1.1 103 Again\r\n\r\n");
            peer.send(HELLO);
        }),
        answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
        act(|peer| {
            peer.read_head();
            peer.send_unless_closed("HTTP/1.1 199 Wait\r\n\r\n".repeat(100));
        }),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let mut answer = client.get(&url).send().await.expect("an answer");
        let interim: Vec<u16> = answer.interim().map(ResponseView::status).collect();
        assert_eq!((answer.status(), interim.as_slice()), (200, [103, 103].as_slice()));
        let first = answer.interim().next().expect("two of them");
        assert_eq!(first.values("link").collect::<Vec<_>>(), [b"</a>", b"</b>"]);
        assert_eq!(answer.text(5).await.expect("the body"), "hello");

        let switched = refused(client.get(&url).alone().send().await);
        assert!(matches!(switched, ClientError::Switched { .. }), "{switched}");
        let endless = refused(client.get(&url).alone().send().await);
        assert!(matches!(endless, ClientError::TooManyInterim { limit: 16, .. }), "{endless}");
    });
    script.end();
}

fn chunks_come_with_their_trailers(setup: Setup) {
    let script = Script::start(vec![act(|peer| {
        assert!(peer.read_head().contains("\r\nTE: trailers\r\nConnection: TE\r\n"));
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
                     5;e=f\r\nhello\r\n1\r\n \r\n005\r\nworld\r\n\
                     0\r\nX-Sum: 11\r\nx-sum: b\r\n\r\n";
        for byte in whole.bytes() {
            peer.send([byte]);
        }
        assert!(peer.read_head().starts_with("GET /next "), "the connection is used again");
        peer.send("HTTP/1.1 204 No Content\r\n\r\n");
        peer.read_head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.send("5\r\nhelloworld\r\n0\r\n\r\n");
    })]);
    let (url, next) = (script.url("/"), script.url("/next"));
    in_task(setup, async move {
        let client = client();
        let mut answer = client.get(&url).accept_trailers().send().await.expect("an answer");
        assert!(answer.trailers().is_none());
        assert_eq!(answer.text(99).await.expect("the body"), "hello world");
        let trailers: Vec<_> = answer.trailers().expect("the body is read").collect();
        assert_eq!(trailers, [("X-Sum", &b"11"[..]), ("x-sum", b"b")]);
        let empty = client.get(&next).send().await.expect("an answer");
        assert_eq!(empty.status(), 204);
        let mut broken = client.get(&next).send().await.expect("an answer");
        let error = broken.bytes(99).await.expect_err("more data than the chunk's size says");
        assert!(matches!(error, ClientError::Body { .. }), "{error}");
    });
    script.end();
}

fn a_body_may_end_with_its_connection(setup: Setup) {
    let script = Script::start(vec![
        answer("HTTP/1.1 200 OK\r\n\r\nall of it"),
        answer("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"),
        answer("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold"),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        assert_eq!(get(&client, &url).await, "all of it");
        assert_eq!(get(&client, &url).await, "");
        let mut old = client.get(&url).send().await.expect("an answer");
        assert_eq!(old.version(), Version::Http10);
        assert_eq!(old.text(3).await.expect("the body"), "old");
        assert_eq!(client.connections_kept(), 0);
    });
    script.end();
}

fn a_body_cut_short_is_an_error(setup: Setup) {
    let script = Script::start(vec![
        answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
        answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        answer("HTTP/1.1 200 OK\r\nContent-Le"),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        for _ in 0..2 {
            let mut answer = client.get(&url).send().await.expect("an answer");
            let error = answer.bytes(99).await.expect_err("not all of it came");
            assert!(matches!(error, ClientError::Truncated { received: 5, .. }), "{error}");
            assert!(answer.next().await.is_none() && answer.trailers().is_none());
        }
        let error = refused(client.get(&url).send().await);
        assert!(matches!(error, ClientError::Closed { received: 27, .. }), "{error:?}");
    });
    script.end();
}

fn the_body_waits_for_the_word_that_was_asked_for(setup: Setup) {
    let script = Script::start(vec![
        act(|peer| {
            assert!(peer.read_head().contains("\r\nExpect: 100-continue\r\n"));
            thread::sleep(Duration::from_millis(60));
            peer.send("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(peer.read(4), b"body");
            peer.send(HELLO);
            // Silent: the body comes all the same.
            peer.read_head();
            assert_eq!(peer.read(4), b"body");
            peer.send(HELLO);
            // Not wanted: it never comes, and the connection cannot go on.
            peer.read_head();
            peer.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
            assert!(peer.is_closed());
        }),
        act(|peer| {
            peer.read_head();
            peer.send(HELLO);
        }),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = hasty(|options| options.continue_timeout = Duration::from_millis(300));
        let request = || client.request(Method::Put, &url).body("body").expect_continue();
        assert_eq!(text(request().send().await).await, "hello");
        let began = Instant::now();
        assert_eq!(text(request().send().await).await, "hello");
        assert!(began.elapsed() >= Duration::from_millis(290), "{:?}", began.elapsed());
        assert_eq!(request().send().await.expect("an answer").status(), 417);
        assert_eq!(get(&client, &url).await, "hello");
    });
    script.end();
}

fn an_answer_may_begin_before_the_request_has_ended(setup: Setup) {
    const LEN: usize = 4 << 20;
    let script = Script::start(vec![act(|peer| {
        peer.read_head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        // The very bytes that come, framing and all, go back; more than the kernel would hold.
        let mut last = Vec::new();
        while !last.ends_with(b"\r\n0\r\n\r\n") {
            let bytes = peer.read_some();
            peer.send(&bytes);
            last.extend_from_slice(&bytes);
            last.drain(..last.len().saturating_sub(7));
        }
        peer.read_head();
        peer.send(HELLO);
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let data = noise(3, LEN);
        let pieces = Pieces::new(data.chunks(50_000).map(Bytes::copy_from_slice));
        let mut answer = client.post(&url).stream(None, pieces).send().await.expect("an answer");
        assert!(answer.bytes(LEN).await.expect("the echo") == data);
        assert_eq!(get(&client, &url).await, "hello", "the connection is used again");
    });
    script.end();
}

fn a_server_that_refuses_a_body_is_heard(setup: Setup) {
    let refuse = || {
        act(|peer| {
            peer.read_head();
            peer.read(1_000);
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
            while !peer.read_some().is_empty() {}
        })
    };
    let script = Script::start(vec![refuse(), refuse()]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let endless = std::iter::repeat_n(Bytes::from(vec![b'x'; 60_000]), 200);
        let requests = [
            client.post(&url).body(vec![b'x'; 12_000_000]),
            client.post(&url).stream(None, Pieces::new(endless)),
        ];
        for request in requests {
            let mut answer = request.send().await.expect("an answer comes though");
            assert_eq!(answer.status(), 413);
            assert_eq!(answer.text(2).await.expect("the reason"), "no");
            assert_eq!(client.connections_kept(), 0);
        }
    });
    script.end();
}

fn a_stream_that_fails_or_lies_about_its_length_is_an_error(setup: Setup) {
    let listen = || {
        act(|peer| {
            peer.read_head();
            while !peer.read_some().is_empty() {}
        })
    };
    let script = Script::start(vec![listen(), listen(), listen()]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let broken = Pieces::new(["some", "more"]).broken();
        let error = refused(client.post(&url).stream(None, broken).send().await);
        assert!(matches!(&error, ClientError::Source(_)), "{error}");
        let short = Pieces::new(["some", "more"]);
        let error = refused(client.post(&url).stream(Some(9), short).send().await);
        let (announced, given) = match error {
            ClientError::SourceLength { announced, given } => (announced, given),
            other => panic!("{other}"),
        };
        assert_eq!((announced, given), (9, 8));
        let long = Pieces::new(["some", "more"]);
        let error = refused(client.post(&url).stream(Some(7), long).send().await);
        assert!(matches!(error, ClientError::SourceLength { given: 8, .. }), "{error}");
    });
    script.end();
}

fn answers_against_the_rules_are_refused(setup: Setup) {
    let bad = [
        "SSH-2.0-OpenSSH_9\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
    ];
    let mut acts: Vec<_> = bad.into_iter().map(answer).collect();
    acts.push(act(|peer| {
        peer.read_head();
        peer.send_unless_closed(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(5_000)));
    }));
    let count = acts.len();
    let script = Script::start(acts);
    let url = script.url("/");
    in_task(setup, async move {
        let client = hasty(|options| options.head_bytes_max = 4_096);
        for _ in 0..count {
            let error = refused(client.get(&url).send().await);
            assert!(matches!(error, ClientError::Head { .. }), "{error}");
            assert!(std::error::Error::source(&error).is_some(), "{error}");
        }
    });
    script.end();
}

fn the_request_says_what_it_was_told_to(setup: Setup) {
    let script = Script::start(vec![act(|peer| {
        assert_eq!(peer.from.ip().to_string(), "127.0.0.5");
        let host = "Host: 127.0.0.1:";
        let head = peer.read_head();
        assert!(head.starts_with(&format!("GET /a%20b?c HTTP/1.1\r\n{host}")), "{head}");
        assert!(head.contains("\r\nX-A: 1\r\nx-a: 2\r\nUser-Agent: gustnado/"), "{head}");
        assert!(!head.contains("Content-Length") && !head.contains('#'), "{head}");
        peer.send(HELLO);
        let head = peer.read_head();
        assert!(head.starts_with("PATCH / ") && head.contains("\r\nContent-Length: 0\r\n"));
        assert!(head.contains("\r\nuser-agent: me\r\n") && !head.contains("gustnado"), "{head}");
        peer.send(HELLO);
        let head = peer.read_head();
        assert!(head.starts_with("OPTIONS / ") && head.contains("\r\nContent-Length: 4\r\n"));
        assert_eq!(peer.read(4), b"body");
        peer.send(HELLO);
        assert!(peer.is_closed(), "nothing of a bad request is sent");
    })]);
    let (url, root) = (script.url("/a%20b?c#d"), script.url(""));
    in_task(setup, async move {
        let client = hasty(|options| {
            options.source = Some(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 5), 0)));
        });
        let request = client.get(&url).header("X-A", "1").header("x-a", b"2");
        assert_eq!(text(request.send().await).await, "hello");
        let request = client.request(Method::Patch, &root).header("user-agent", "me");
        assert_eq!(text(request.send().await).await, "hello");
        let request = client.request(Method::Options, &root).body("body");
        assert_eq!(text(request.send().await).await, "hello");
        for (name, value) in [("a b", "c"), ("a", "b\r\nc: d"), ("Host", "x"), ("Expect", "y")] {
            let error = refused(client.get(&root).header(name, value).send().await);
            assert!(matches!(error, ClientError::Field { .. }), "{error}");
        }
        let error = refused(client.request(Method::Connect, &root).send().await);
        assert!(matches!(error, ClientError::Method(Method::Connect)), "{error}");
        let error = refused(client.request(Method::Trace, &root).body("x").send().await);
        assert!(matches!(error, ClientError::Method(Method::Trace)), "{error}");
    });
    script.end();
}

fn a_handler_relays_both_bodies_as_they_come(setup: Setup) {
    const LEN: usize = 3 << 20;
    let routes =
        Routes::new().post("/echo", async |request: Request| Response::stream(request.into_body()));
    let config = Config { limit_body_bytes: 2 * LEN as u64, ..setup.config() };
    let behind = Server::routes(config.clone(), routes);
    let (url, client) = (format!("http://{}/echo", behind.address()), client());
    let routes = Routes::new().post("/relay", move |request: Request| {
        let asked = client.post(&url).stream(None, request.into_body());
        async move {
            match asked.send().await {
                Ok(answer) => Response::stream(answer.into_body()),
                Err(error) => Response::text(error.to_string()).status(Status::BAD_GATEWAY),
            }
        }
    });
    let front = Server::routes(config, routes);
    let url = format!("http://{}/relay", front.address());
    in_task(setup, async move {
        let (client, data) = (self::client(), Bytes::from(noise(4, LEN)));
        for _ in 0..3 {
            let pieces = Pieces::new(data.chunks(99_999).map(Bytes::copy_from_slice));
            let request = client.post(&url).stream(None, pieces);
            let mut answer = request.send().await.expect("an answer");
            assert_eq!(answer.status(), 200);
            assert!(answer.bytes(LEN).await.expect("the echo of the echo") == data);
        }
    });
    behind.stop();
    assert_eq!(front.ask("POST /relay HTTP/1.1\r\nHost: a\r\n\r\n").status, 502);
}
