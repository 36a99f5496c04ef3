//! Request bodies: both framings, their limits, and `Expect`. RFC 9112 §6 and §7, RFC 9110 §10.1.1.

use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Routes};

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup};

on_every_server!(
    a_body_of_known_length_comes_back,
    a_chunked_body_comes_back,
    a_body_cut_at_any_byte_comes_back_alike,
    a_big_body_comes_back_whole,
    chunk_extensions_and_trailers_are_read_over,
    a_malformed_chunk_is_refused,
    chunk_extensions_and_trailers_are_bounded,
    a_client_that_waits_is_told_to_continue,
    a_client_that_waits_in_vain_is_told_at_once,
    a_refusal_of_head_has_no_content,
    an_expectation_that_nobody_can_meet_fails,
    http_1_0_is_never_told_to_continue,
    a_body_over_the_limit_is_refused_in_both_framings,
    a_body_of_just_the_limit_is_taken,
    a_body_that_nobody_wants_is_not_taken_for_a_request,
    a_body_broken_off_leaves_nothing_behind,
    bodies_that_come_with_their_heads_are_read_by_tasks_in_order,
);

/// Why a test is none over HTTP/2.
const CHUNKS: &str = "HTTP/2 has no chunks";

fn post(fields: &str) -> String {
    request("POST", "/echo", fields)
}

fn sized(body: &str) -> String {
    post(&format!("Content-Length: {}\r\n", body.len())) + body
}

fn chunked(chunks: &str) -> String {
    post("Transfer-Encoding: chunked\r\n") + chunks
}

fn a_body_of_known_length_comes_back(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    for body in ["hello", "", "a\r\n\r\nb", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let answer = client.ask(sized(body));
        assert_eq!((answer.status, &*answer.text()), (200, body));
    }
    let answer = client.ask(post(""));
    assert_eq!((answer.status, &*answer.text()), (200, ""), "no framing means no body");
    let answer = client.ask(post("Content-Length: 0000000005\r\n") + "hello");
    assert_eq!(answer.text(), "hello", "leading zeros are digits");
    assert_eq!(client.get("/").status, 200);
}

fn a_chunked_body_comes_back(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    for (chunks, body) in [
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("0\r\n\r\n", ""),
        ("1\r\na\r\n2\r\nbc\r\n00003\r\ndef\r\n000\r\n\r\n", "abcdef"),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
        ("4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"),
    ] {
        let answer = client.ask(chunked(chunks));
        assert_eq!((answer.status, &*answer.text()), (200, body), "{chunks:?}");
    }
    let shouted = post("TRANSFER-ENCODING: CHUNKED\r\n") + "1\r\nx\r\n0\r\n\r\n";
    assert_eq!(client.ask(shouted).text(), "x");
    assert_eq!(client.get("/").status, 200);
}

fn a_body_cut_at_any_byte_comes_back_alike(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    let pieces = "5;e=\"v\"\r\nhello\r\n7\r\n, world\r\n0\r\nT: v\r\n\r\n";
    for whole in [sized("hello, world"), chunked(pieces)] {
        for cut in 1..whole.len() {
            client.send_cut(whole.as_bytes(), cut);
            let answer = client.read_answer();
            assert_eq!((answer.status, &*answer.text()), (200, "hello, world"), "cut at {cut}");
        }
        client.trickle(whole.as_bytes(), Duration::ZERO);
        assert_eq!(client.read_answer().text(), "hello, world");
    }
}

fn a_big_body_comes_back_whole(setup: Setup) {
    let server = setup.default_site();
    let body = noise(3, 1 << 20);
    let head = post(&format!("Content-Length: {}\r\n", body.len()));
    let mut whole = head.into_bytes();
    whole.extend_from_slice(&body);
    let mut pieces = post("Transfer-Encoding: chunked\r\n").into_bytes();
    for (index, piece) in body[..900_000].chunks(7_001).enumerate() {
        pieces.extend_from_slice(format!("{:x};n={index}\r\n", piece.len()).as_bytes());
        pieces.extend_from_slice(piece);
        pieces.extend_from_slice(b"\r\n");
    }
    pieces.extend_from_slice(b"0\r\n\r\n");
    let mut client = server.connect();
    for (bytes, expected) in [(whole, &body[..]), (pieces, &body[..900_000])] {
        let mut writer = client.second_handle();
        let sending = thread::spawn(move || writer.send(bytes));
        assert!(client.read_answer().body == expected, "another body came back");
        sending.join().expect("the body was taken");
    }
    assert_eq!(client.get("/").status, 200);
}

fn chunk_extensions_and_trailers_are_read_over(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    for chunks in [
        "5;name\r\nhello\r\n0\r\n\r\n",
        "5;name=value;other=\"quoted; \\\" text\"\r\nhello\r\n0;last\r\n\r\n",
        "5\r\nhello\r\n0\r\nTrailer: value\r\nOther:\r\n\r\n",
        "5\r\nhello\r\n0\r\nContent-Length: 99\r\nTransfer-Encoding: gzip\r\nHost: y\r\n\r\n",
    ] {
        assert_eq!(client.ask(chunked(chunks)).text(), "hello", "{chunks:?}");
    }
}

fn a_malformed_chunk_is_refused(setup: Setup) {
    if Setup::http1_only(CHUNKS) {
        return;
    }
    let server = setup.default_site();
    for chunks in [
        "x\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5 5\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        ";a\r\nhello\r\n0\r\n\r\n",
        "5\nhello\n0\n\n\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5\r\nhelloo\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;a\0b\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nno colon\r\n\r\n",
        "5\r\nhello\r\n0\r\nA : b\r\n\r\n",
        "5\r\nhello\r\n0\r\n A: b\r\n\r\n",
        "5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n",
        "5\r\nhello\r\n0\r\nA: b\nC: d\r\n\r\n",
        "5\r\nhello\r\n0\r\nA: b\0\r\n\r\n",
    ] {
        let mut client = server.connect();
        let answer = client.ask(chunked(chunks));
        assert_eq!(answer.status, 400, "{chunks:?}");
        assert!(answer.closes(), "{chunks:?}: {answer:?}");
        client.expect_end(chunks);
    }
    for size in ["fffffffffffffffff", "ffffffffffffffff", "7fffffffffffffff", "10000000000000000"] {
        let mut client = server.connect();
        let answer = client.ask(chunked(&format!("{size}\r\nhello\r\n")));
        assert!([400, 413].contains(&answer.status), "{size}: {answer:?}");
        client.expect_end(size);
    }
}

fn chunk_extensions_and_trailers_are_bounded(setup: Setup) {
    if Setup::http1_only(CHUNKS) {
        return;
    }
    let server = setup.default_site();
    let extension = format!("5;{}\r\nhello\r\n0\r\n\r\n", "e".repeat(100_000));
    let extensions = format!("1;{}\r\nx\r\n", "e".repeat(200)).repeat(2_000) + "0\r\n\r\n";
    let zeros = format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(100_000));
    let trailer = format!("0\r\nT: {}\r\n\r\n", "v".repeat(100_000));
    let trailers = format!("0\r\n{}\r\n", "T: v\r\n".repeat(20_000));
    let endless = format!("0\r\nT: {}", "v".repeat(100_000));
    for chunks in [extension, extensions, zeros, trailer, trailers, endless] {
        let mut client = server.connect();
        client.send_unless_closed(chunked(&chunks));
        let answer = client.read_answer();
        assert!([400, 413, 431].contains(&answer.status), "{}: {answer:?}", &chunks[..20]);
        client.expect_end(&chunks[..20]);
    }
}

fn a_client_that_waits_is_told_to_continue(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    for (framing, body) in [
        ("Content-Length: 5\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        ("Content-Length: 5\r\nX: y\r\n", "hello"),
    ] {
        client.send(post(&format!("{framing}Expect: 100-Continue\r\n")));
        let go_on = client.take(25).expect("the interim answer alone");
        assert_eq!(String::from_utf8_lossy(&go_on), "HTTP/1.1 100 Continue\r\n\r\n");
        client.expect_silence(Duration::from_millis(20));
        let answer = client.ask(body);
        assert_eq!((answer.status, &*answer.text()), (200, "hello"), "{framing:?}");
    }
    assert_eq!(client.ask(request("GET", "/", "Expect: 100-continue\r\n")).status, 200);
}

fn a_client_that_waits_in_vain_is_told_at_once(setup: Setup) {
    let server = Server::start(Config { limit_body_bytes: 1_000, ..setup.config() });
    let mut client = server.connect();
    let answer = client.ask(post("Content-Length: 1001\r\nExpect: 100-continue\r\n"));
    assert_eq!(answer.status, 413, "not 100");
    client.expect_as_said(&answer, "a body that was never sent");
}

fn a_refusal_of_head_has_no_content(setup: Setup) {
    if Setup::http1_only("there it is the end of the stream") {
        return;
    }
    let routes = Routes::new().any("/", async |_: Request| "never");
    let server = Server::routes(Config { limit_body_bytes: 10, ..setup.config() }, routes);
    let mut client = server.connect();
    client.send(request("HEAD", "/", "Content-Length: 11\r\n"));
    let head = client.read_head();
    assert_eq!((head.status, head.field("content-length").is_some()), (413, true));
    client.expect_end("a head alone");
}

fn an_expectation_that_nobody_can_meet_fails(setup: Setup) {
    let server = setup.default_site();
    for value in ["200-ok", "100-continues", "100", "100-continue, tea"] {
        let mut client = server.connect();
        let answer = client.ask(request("GET", "/", &format!("Expect: {value}\r\n")));
        assert_eq!(answer.status, 417, "{value}");
        client.expect_as_said(&answer, value);
    }
}

fn http_1_0_is_never_told_to_continue(setup: Setup) {
    if Setup::http1_only("it is about HTTP/1.0") {
        return;
    }
    let server = setup.default_site();
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    client.expect_silence(Duration::from_millis(50));
    assert_eq!(client.ask("hello").text(), "hello");
}

fn a_body_over_the_limit_is_refused_in_both_framings(setup: Setup) {
    let server = Server::start(Config { limit_body_bytes: 1_000, ..setup.config() });
    let long = "x".repeat(20_000);
    let in_chunks = format!("3e8\r\n{}\r\n1\r\nx\r\n0\r\n\r\n", &long[..1_000]);
    let mut requests = vec![
        sized(&long[..1_001]),
        sized(&long),
        post("Content-Length: 1001\r\n"),
        chunked(&in_chunks),
        chunked(&format!("4e20\r\n{long}\r\n0\r\n\r\n")),
    ];
    if !Setup::is_http2() {
        // Nothing of HTTP/2 says how long a chunk will be.
        requests.push(chunked("3e9\r\n"));
    }
    for request in requests {
        let mut client = server.connect();
        client.send_unless_closed(&request);
        let answer = client.read_answer();
        assert_eq!(answer.status, 413, "{answer:?}");
        assert!(answer.closes(), "{answer:?}");
        client.expect_end("a body over the limit");
    }
    assert_eq!(server.get("/").status, 200);
}

fn a_body_of_just_the_limit_is_taken(setup: Setup) {
    let server = Server::start(Config { limit_body_bytes: 1_000, ..setup.config() });
    let body = "x".repeat(1_000);
    let mut client = server.connect();
    assert_eq!(client.ask(sized(&body)).text(), body);
    assert_eq!(client.ask(chunked(&format!("3e8\r\n{body}\r\n0\r\n\r\n"))).text(), body);
    let halves = format!("1f4\r\n{0}\r\n1f4\r\n{0}\r\n0\r\n\r\n", &body[..500]);
    assert_eq!(client.ask(chunked(&halves)).text(), body);
}

fn a_body_that_nobody_wants_is_not_taken_for_a_request(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "front");
    folder.file("smuggled", "never");
    let server = setup.files(&folder);
    let inner = get("/smuggled").repeat(50);
    let by_length = format!("Content-Length: {}\r\n", inner.len());
    let in_chunks = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
    for (method, status) in [("POST", 405), ("PUT", 405), ("GET", 200), ("BREW", 405)] {
        for (framing, body) in
            [(&*by_length, &*inner), ("Transfer-Encoding: chunked\r\n", &in_chunks)]
        {
            let mut client = server.connect();
            let head = request(method, "/", framing);
            let answer = client.ask(head + body);
            assert_eq!(answer.status, status, "{method}, {framing:?}");
            client.expect_as_said(&answer, method);
            client.shut_write();
            let rest = client.read_to_end();
            assert!(rest.is_empty(), "{method}: {:?}", String::from_utf8_lossy(&rest));
        }
    }
}

fn a_body_broken_off_leaves_nothing_behind(setup: Setup) {
    let server = setup.default_site();
    for framing in ["Content-Length: 50\r\n", "Transfer-Encoding: chunked\r\n"] {
        for leave in [drop::<Client>, Client::reset] {
            let mut client = server.connect();
            client.send(post(framing) + "5\r\nhello\r\n");
            leave(client);
        }
        let mut client = server.connect();
        client.send(post(framing) + "5\r\nhello\r\n");
        client.shut_write();
        let (answer, _) = client.read_until_ended();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "half is not a body");
    }
    server.wait_until_empty();
    assert_eq!(server.get("/").status, 200);
}

fn posted(target: &str, body: &str) -> String {
    request("POST", target, &format!("Content-Length: {}\r\n", body.len())) + body
}

fn bodies_that_come_with_their_heads_are_read_by_tasks_in_order(setup: Setup) {
    let read = async |mut request: Request| {
        let lengths = (request.bytes().len(), request.body_mut().length());
        let body = request.body_mut().bytes(100).await.expect("a whole body");
        let end = request.body_mut().next().await.is_none();
        format!("{body:?} {lengths:?} {} {end}", request.body_mut().received())
    };
    let late = async |request: Request| {
        sleep(Duration::from_millis(5)).await;
        request.into_body().bytes(100).await
    };
    let unread = async |_: Request| "unread";
    let routes = Routes::new().post("/read", read).post("/late", late).post("/unread", unread);
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    let all =
        [posted("/read", "one"), posted("/late", "two"), posted("/unread", "3"), get("/none")];
    for rounds in [1, 3] {
        let sent = all.concat().repeat(rounds) + &posted("/read", "last");
        // Whole, and cut inside of a body, so that its rest comes later.
        for cut in [sent.len(), sent.len() - 2] {
            client.send(&sent[..cut]);
            for _ in 0..rounds {
                assert_eq!(client.read_answer().text(), "b\"one\" (0, Some(3)) 3 true");
                assert_eq!(client.read_answer().text(), "two");
                assert_eq!(client.read_answer().text(), "unread");
                assert_eq!(client.read_answer().status, 404);
            }
            client.send(&sent[cut..]);
            assert_eq!(client.read_answer().text(), "b\"last\" (0, Some(4)) 4 true");
        }
    }
    let closing =
        "POST /unread HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(client.ask(closing).text(), "unread");
    client.expect_end("it was asked for");
    assert_eq!(server.stats().connections_accepted, 1);
}
