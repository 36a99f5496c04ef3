//! What breaks the grammar of HTTP/1.1 is refused, as soon as that is certain; what it allows is
//! answered. Where an RFC leaves the choice, the strict one is taken.

use std::time::Duration;

use gustnado::{Request, Routes};

use crate::harness::client::{get, request};
use crate::harness::{Folder, Server, Setup};

on_every_server!(http1 "HTTP/2 has a grammar of its own: tests/http2":
    a_head_that_breaks_the_grammar_is_refused,
    a_body_that_breaks_the_grammar_is_refused,
    nothing_behind_a_refused_head_is_answered,
    a_head_too_long_is_refused,
    what_the_grammar_allows_is_answered,
    a_body_the_grammar_allows_comes_back,
    what_is_not_whole_is_not_answered,
    a_head_that_can_never_end_is_refused_before_any_time_out,
);

/// Where the rule stands, what is sent, and the status that is due. The connection then ends.
type Row = (&'static str, &'static str, u16);

const REQUEST_LINES: &[Row] = &[
    ("9112 2.2", "GET / HTTP/1.1\nHost: h\r\n\r\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\rHost: h\r\n\r\n", 400),
    ("9112 2.2", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 2.2", "\n\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 2.2", "   \r\n\r\n", 400),
    ("9112 2.3", "GET / HTTP/9.9\r\nHost: h\r\n\r\n", 505),
    ("9112 2.3", "GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505),
    ("9112 2.3", "GET /\r\n", 400),
    ("9112 2.3", "GET / http/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 2.3", "GET / HTTP/1\r\nHost: h\r\n\r\n", 400),
    ("9112 2.3", "GET / HTTP/1.10\r\nHost: h\r\n\r\n", 400),
    ("9112 2.3", "GET / HTTP/01.01\r\nHost: h\r\n\r\n", 400),
    ("9112 2.3", "GET / HTTP/ 1.1\r\nHost: h\r\n\r\n", 400),
    ("9113 3.4", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("9112 3", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3", "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400),
    ("9112 3", "GET HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3", " GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2.4", "FOOBAR * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9110 5.6.2", "G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2", "GET /path#frag HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2", "GET /pa th HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("3986 3.3", "GET /path\\file HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("3986 3.3", "GET \\path HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("3986 3.3", "GET /\\..\\..\\etc/passwd?a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("3986 3.3", "GET http://h/a\\b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("3986 3.3", "GET /caf\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("3986 3.3", "GET /\0test HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2.1", "GET path HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2.2", "GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9110 4.2.4", "GET http://user@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2.3", "CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2.3", "GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2.4", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
];

const FIELDS: &[Row] = &[
    ("9112 2.2", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\n \r\nHost: h\r\n\r\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\n\r\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nHost: \r\n\r\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nHost: h\r\nHost: other.example\r\n\r\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nHost: user@h\r\n\r\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nHost: h/path\r\n\r\n", 400),
    ("9110 7.2", "GET / HTTP/1.1\r\nHost: h, other.example\r\n\r\n", 400),
    ("9110 7.2", "GET / HTTP/1.1\r\nHost: h:65536\r\n\r\n", 400),
    ("9112 5", "GET / HTTP/1.1\r\nHost: h\r\n: empty\r\n\r\n", 400),
    ("9112 5", "GET / HTTP/1.1\r\nHost: h\r\nBad[Name: y\r\n\r\n", 400),
    ("9112 5", "GET / HTTP/1.1\r\nHost: h\r\nNoColon\r\n\r\n", 400),
    ("9112 5", "GET / HTTP/1.1\r\nHost: h\r\nX-T\u{eb}st: y\r\n\r\n", 400),
    ("9112 5.1", "GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n", 400),
    ("9112 5.1", "POST /echo HTTP/1.1\r\nHost: h\r\nContent\tLength: 5\r\n\r\nhello", 400),
    ("9112 5.2", "GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n z\r\n\r\n", 400),
    ("9110 5.5", "GET / HTTP/1.1\r\nHost: h\r\nX: a\u{7}\u{8}\u{b}b\r\n\r\n", 400),
    ("9110 5.5", "GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", 400),
    ("9110 5.5", "GET / HTTP/1.1\r\nHost: h\r\nCookie: foo=\0bar\r\n\r\n", 400),
    ("9110 5.5", "GET / HTTP/1.1\r\nHost: h\r\nCookie: foo=\u{1}\u{2}\r\n\r\n", 400),
    ("9110 10.1.1", "GET / HTTP/1.1\r\nHost: h\r\nExpect: 200-ok\r\n\r\n", 417),
];

/// What follows `POST /echo HTTP/1.1` and a host, up to the blank line.
const FRAMINGS: &[(&str, &str, u16)] = &[
    ("9110 8.6", "Content-Length: abc", 400),
    ("9110 8.6", "Content-Length: +5", 400),
    ("9110 8.6", "Content-Length: -1", 400),
    ("9110 8.6", "Content-Length: -0", 400),
    ("9110 8.6", "Content-Length: 0x5", 400),
    ("9110 8.6", "Content-Length: 0o5", 400),
    ("9110 8.6", "Content-Length: 1_0", 400),
    ("9110 8.6", "Content-Length: 1 0", 400),
    ("9110 8.6", "Content-Length: ", 400),
    ("9110 8.6", "Content-Length: 5, 10", 400),
    ("9110 8.6", "Content-Length: 5, 5", 400),
    ("9110 8.6", "Content-Length: 5, 5, 5", 400),
    ("9110 8.6", "Content-Length: 5\r\nContent-Length: 10", 400),
    ("9110 8.6", "Content-Length: 5\r\nContent-Length: 5", 400),
    ("9110 8.6", "Content-Length: 0\r\nContent-Length: 0", 400),
    ("9110 8.6", "Content-Length: 99999999999999999999", 400),
    ("9110 15.5.14", "Content-Length: 999999999", 413),
    ("9112 5.1", "Content-Length: 11\r\nContent-Length : 5", 400),
    ("9112 6.1", "Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
    ("9112 6.1", "Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: chunked\r\nContent-Length: +5", 400),
    ("9112 6.1", "Transfer-Encoding: Chunked\r\nContent-Length: 5x", 400),
    ("9112 6.1", "Transfer-Encoding: chunked \r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding:\tchunked\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding : chunked\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: \u{b}chunked\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: \u{c}chunked\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: chunked\0\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: xchunked\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: identity\r\nContent-Length: 5", 400),
    ("9112 6.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 400),
    ("9112 6.1", "Transfer-Encoding: chunked, chunked", 400),
    ("9112 6.1", "Transfer-Encoding: , chunked", 400),
    ("9112 6.1", "Transfer-Encoding: chunked,", 400),
    ("9112 6.1", "Transfer-Encoding: ", 400),
    ("9112 6.1", "Transfer-Encoding: gzip", 400),
    ("9112 6.1", "Transfer-Encoding: gzip, chunked", 501),
    ("9112 6.3", "Transfer-Encoding: chunked, gzip", 400),
    ("9112 7.1", "Transfer-Encoding: chunked;ext=val", 400),
    ("9112 5.2", "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5", 400),
];

/// Bodies in chunks.
const CHUNKS: &[Row] = &[
    ("9112 7.1", "1_0\r\nhello world!!!!!\r\n0\r\n\r\n", 400),
    ("9112 7.1", "0x5\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "+5\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "-1\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "+0\r\n\r\n", 400),
    ("9112 7.1", " 5\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "5 \r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "5\r\nhello0\r\n\r\n", 400),
    ("9112 7.1", "5\r\nhello!!\r\n0\r\n\r\n", 400),
    ("9112 7.1", "5\r\nhello\n0\r\n\r\n", 400),
    ("9112 7.1", "5\rhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "5\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "FFFFFFFFFFFFFFFF0\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1", "5\r\nhello\r\n0\r\n\n", 400),
    ("9112 7.1.1", "5;\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5; \r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;;a\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a;\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;bad[=x\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;=x\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a=\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a=x=y\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a b\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a \r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a=\"x\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a=\"x\"y\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;\0ext\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.1", "5;a\rX\r\nhello\r\n0\r\n\r\n", 400),
    ("9112 7.1.2", "5\r\nhello\r\n0\r\nNoColon\r\n\r\n", 400),
    ("9112 7.1.2", "5\r\nhello\r\n0\r\nX : y\r\n\r\n", 400),
];

/// What is answered on each server, in this order: a folder, the default site, Rust routes.
const ALLOWED: &[(&str, &str, [u16; 3])] = &[
    ("9112 2.2", "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", [200; 3]),
    ("9110 6.2", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", [200; 3]),
    ("9110 6.2", "GET / HTTP/1.9\r\nHost: h\r\n\r\n", [200; 3]),
    ("9112 3.2", "GET / HTTP/1.0\r\n\r\n", [200; 3]),
    ("9112 3.2.2", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", [200; 3]),
    ("9112 3.2.2", "GET http://other.example/ HTTP/1.1\r\nHost: h\r\n\r\n", [200; 3]),
    ("9112 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", [204; 3]),
    ("9110 4.2.1", "GET /?a\\b=[c]{d}|^` HTTP/1.1\r\nHost: h\r\n\r\n", [200; 3]),
    ("9110 9.3.6", "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", [405; 3]),
    ("9110 9.3.8", "TRACE / HTTP/1.1\r\nHost: h\r\nAuthorization: secret\r\n\r\n", [405; 3]),
    ("9110 9.1", "get / HTTP/1.1\r\nHost: h\r\n\r\n", [405; 3]),
    ("9110 9.1", "FOOBAR / HTTP/1.1\r\nHost: h\r\n\r\n", [405; 3]),
    ("9110 15.5.6", "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", [405; 3]),
    (
        "9110 7.8",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x/1\r\n\r\n",
        [200; 3],
    ),
    ("9110 7.8", "GET / HTTP/1.0\r\nHost: h\r\nUpgrade: websocket\r\n\r\n", [200; 3]),
    ("9110 8.6", "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", [200; 3]),
    ("9110 14.2", "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=abc-xyz\r\n\r\n", [200; 3]),
    ("9110 5.3", "GET / HTTP/1.1\r\nHost: h\r\nCookie: ===;;;\r\nCookie: b=2\r\n\r\n", [200; 3]),
    (
        "9110 5.5",
        "GET / HTTP/1.1\r\nHost: h\r\nContent_Length: 99\r\nX:\ta\u{e9}\t\r\n\r\n",
        [200; 3],
    ),
];

/// A head's fields and its body, in which `hello` is sent.
const BODIES: &[(&str, &str, &str)] = &[
    ("9110 8.6", "Content-Length: 5", "hello"),
    ("9110 8.6", "Content-Length: 005", "hello"),
    ("9110 5.5", "Content-Length:\t 5 \t", "hello"),
    ("9110 5.1", "Content-Length: 5\r\nContent_Length: 99\r\nTransfer_Encoding: chunked", "hello"),
    ("9110 10.1.1", "Content-Length: 5\r\nExpect: ", "hello"),
    ("9110 14.2", "Content-Length: 5\r\nRange: bytes=0-1", "hello"),
    ("9112 7.1", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
    ("9112 7.1", "Transfer-Encoding: Chunked", "2\r\nhe\r\n0003\r\nllo\r\n000\r\n\r\n"),
    ("9112 7.1.1", "Transfer-Encoding: chunked", "5;ext=value\r\nhello\r\n0;a;b\r\n\r\n"),
    (
        "9112 7.1.1",
        "Transfer-Encoding: chunked",
        "5 \t; a\t=\t\"; \\\" \\\\\"\r\nhello\r\n0\r\n\r\n",
    ),
    ("9112 7.1.2", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\nX: y\r\n\r\n"),
    ("9110 6.5.1", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"),
];

/// Heads of which no good one can come any more, before any blank line.
const ENDLESS: &[Row] = &[
    ("9112 3", "GET / \r\n\r\n", 400),
    ("9112 3", "GET / \r\n", 400),
    ("9112 3", "GET path", 400),
    ("9112 3", "GET * ", 400),
    ("9112 2.2", "GET / HTTP/1.1\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\n\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\nHost: h\r\n\r\r", 400),
    ("9112 2.2", "GET / HTTP/1.1\r\nHost: h\n", 400),
    ("9112 2.2", "\n", 400),
    ("9112 2.2", "\r\n\r\n\r\n\r\n\r", 400),
    ("9112 5.1", "GET / HTTP/1.1\r\nHost: h\r\n X", 400),
    ("9112 5", "GET / HTTP/1.1\r\nHost: h\r\n:", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nHost: h/\r\n", 400),
    ("9112 3.2", "GET / HTTP/1.1\r\nX: y\r\n\r", 400),
    ("9112 6.1", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
    ("9110 8.6", "GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n", 400),
    ("9110 10.1.1", "GET / HTTP/1.1\r\nExpect: 200-ok\r\n", 417),
];

/// A folder, the default site, and Rust routes.
fn servers(setup: Setup) -> ([(&'static str, Server); 3], Folder) {
    let folder = Folder::new();
    folder.file("index.html", "hello");
    let files = setup.patient_config();
    let files = Server::start(gustnado::config::Config { root: Some(folder.root()), ..files });
    let routes = Routes::new()
        .get("/", |_: &Request| "hello")
        .post("/echo", async |mut request: Request| request.body_mut().bytes(1 << 20).await);
    let routes = Server::routes(setup.patient_config(), routes);
    let site = Server::start(setup.patient_config());
    ([("folder", files), ("default site", site), ("routes", routes)], folder)
}

/// Sends each, expects its status, and then the end of the connection.
fn refuses<'a>(
    name: &str,
    server: &Server,
    rows: impl IntoIterator<Item = (&'a str, String, u16)>,
) {
    for (section, sent, status) in rows {
        let mut client = server.connect();
        client.send_unless_closed(&sent);
        let context = format!("{name}, RFC {section}: {:?}", &sent[..sent.len().min(200)]);
        let answer = client.try_answer().unwrap_or_else(|end| panic!("{context}: {end:?}"));
        assert_eq!(answer.status, status, "{context}");
        assert!(answer.closes(), "{context}: {answer:?}");
        client.expect_end(&context);
    }
}

fn owned(rows: &[Row]) -> impl Iterator<Item = (&str, String, u16)> {
    rows.iter().map(|(section, sent, status)| (*section, (*sent).to_owned(), *status))
}

fn posted(fields: &str, body: &str) -> String {
    request("POST", "/echo", &format!("{fields}\r\n")) + body
}

fn a_head_that_breaks_the_grammar_is_refused(setup: Setup) {
    let (servers, _folder) = servers(setup);
    for (name, server) in &servers {
        refuses(name, server, owned(REQUEST_LINES));
        refuses(name, server, owned(FIELDS));
        let mut bytes = server.connect();
        bytes.send(b"GET /\xc0\xaf HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(bytes.read_answer().status, 400, "{name}: RFC 3986 3.3: not ASCII");
    }
    for (name, server) in &servers[1..] {
        let rows = FRAMINGS.iter().filter(|row| row.2 == 413);
        refuses(
            name,
            server,
            rows.map(|(section, fields, status)| (*section, posted(fields, "hello"), *status)),
        );
    }
}

fn nothing_behind_a_refused_head_is_answered(setup: Setup) {
    let (servers, _folder) = servers(setup);
    let hidden = format!("0\r\n\r\n{}", get("/hidden"));
    for (name, server) in &servers {
        let rows = FRAMINGS.iter().filter(|row| row.2 != 413);
        refuses(
            name,
            server,
            rows.map(|(section, fields, status)| (*section, posted(fields, &hidden), *status)),
        );
    }
}

fn a_body_that_breaks_the_grammar_is_refused(setup: Setup) {
    let (servers, _folder) = servers(setup);
    for (name, server) in &servers[1..] {
        refuses(
            name,
            server,
            owned(CHUNKS).map(|(section, chunks, status)| {
                (section, posted("Transfer-Encoding: chunked", &(chunks + &get("/hidden"))), status)
            }),
        );
    }
}

fn a_head_too_long_is_refused(setup: Setup) {
    let (servers, _folder) = servers(setup);
    let long = "A".repeat(100_000);
    let fields = "X-H: value\r\n".repeat(10_000);
    let rows = [
        ("9110 9.1", format!("{long} / HTTP/1.1\r\nHost: h\r\n\r\n"), 501),
        ("9110 9.1", format!("{} / HTTP/1.1\r\nHost: h\r\n\r\n", &long[..65]), 501),
        ("9112 3", get(&format!("/{long}")), 414),
        ("9112 5", request("GET", "/", &format!("X: {long}\r\n")), 431),
        ("9112 5", request("GET", "/", &format!("{long}: y\r\n")), 431),
        ("9112 5", request("GET", "/", &fields), 431),
        ("9112 5", request("GET", "/", &format!("Cookie: big={long}\r\n")), 431),
    ];
    for (name, server) in &servers {
        refuses(name, server, rows.clone());
        assert_eq!(server.get(&format!("/{}", &long[..7_900])).status, 404, "{name}: RFC 9112 3");
    }
    let chunk = format!("5;ext={}\r\nhello\r\n0\r\n\r\n", "a".repeat(65_536));
    let chunk = posted("Transfer-Encoding: chunked", &chunk);
    refuses("routes", &servers[2].1, [("9112 7.1.1", chunk, 400)]);
}

fn what_the_grammar_allows_is_answered(setup: Setup) {
    let (servers, _folder) = servers(setup);
    for (section, sent, due) in ALLOWED {
        for ((name, server), due) in servers.iter().zip(due) {
            let mut client = server.connect();
            let answer = client.ask(sent);
            let context = format!("{name}, RFC {section}: {sent:?}");
            assert_eq!(answer.status, *due, "{context}: {answer:?}");
            assert!(answer.field("date").is_some(), "{context}");
            assert_eq!(answer.field("allow").is_some(), [204, 405].contains(due), "{context}");
            let ends = sent.contains("HTTP/1.0") || sent.starts_with("CONNECT");
            assert_eq!(answer.closes(), ends, "{context}");
            client.expect_as_said(&answer, &context);
        }
    }
}

fn a_body_the_grammar_allows_comes_back(setup: Setup) {
    let (servers, _folder) = servers(setup);
    for (name, server) in &servers[1..] {
        let mut client = server.connect();
        for (section, fields, body) in BODIES {
            let answer = client.ask(posted(fields, body));
            let context = format!("{name}, RFC {section}: {fields:?} {body:?}");
            assert_eq!((answer.status, &*answer.text()), (200, "hello"), "{context}");
        }
        for none in ["Content-Length: 0", "X: no framing at all"] {
            let answer = client.ask(posted(none, ""));
            assert_eq!((answer.status, &*answer.text()), (200, ""), "{name}: {none}");
        }
    }
}

fn what_is_not_whole_is_not_answered(setup: Setup) {
    let (servers, _folder) = servers(setup);
    let begun = [
        String::new(),
        "GET / HTTP/1.1\r\nHost: h\r\nX: value".to_owned(),
        posted("Content-Length: 10", "hello"),
        posted("Transfer-Encoding: chunked", "5\r\nhello\r\n"),
    ];
    let (_, server) = &servers[2];
    let mut clients = begun.map(|begun| {
        let mut client = server.connect();
        client.send(&begun);
        (client, begun)
    });
    std::thread::sleep(Duration::from_millis(100));
    for (client, begun) in &mut clients {
        client.expect_silence(Duration::from_millis(1));
        client.shut_write();
        if let Ok(answer) = client.try_answer() {
            assert_eq!(answer.status, 400, "{begun:?}");
        }
    }
}

fn a_head_that_can_never_end_is_refused_before_any_time_out(setup: Setup) {
    let server = Server::start(setup.patient_config());
    refuses("at once", &server, owned(ENDLESS));
    // Byte by byte too, where the line or its end tells.
    for (section, sent, status) in ENDLESS.iter().filter(|row| !row.1.ends_with(['h', '*', ' '])) {
        let mut client = server.connect();
        for byte in sent.bytes() {
            client.send_unless_closed([byte]);
        }
        let answer =
            client.try_answer().unwrap_or_else(|end| panic!("{section} {sent:?}: {end:?}"));
        assert_eq!(answer.status, *status, "RFC {section}: {sent:?}");
    }
}
