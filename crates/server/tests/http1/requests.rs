//! What a request may look like, and what each fault is answered with. RFC 9110, RFC 9112.
//!
//! A fault that leaves unclear where the next request begins closes the connection, in order.

use crate::harness::client::{get, request};
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    a_malformed_request_line_is_refused,
    an_unknown_version_is_refused,
    a_malformed_target_is_refused,
    a_host_is_needed_once_and_well_formed,
    every_form_of_host_is_taken,
    malformed_fields_are_refused,
    unusual_fields_are_taken,
    a_content_length_that_is_no_plain_number_is_refused,
    two_framings_at_once_are_refused,
    a_transfer_coding_other_than_chunked_is_refused,
    a_refusal_is_the_same_when_the_bytes_come_one_at_a_time,
    a_head_may_be_as_long_as_its_limit_and_no_longer,
    a_head_may_have_a_hundred_fields_and_no_more,
    a_target_may_be_as_long_as_its_limit_and_no_longer,
    a_method_longer_than_any_that_exists_is_not_implemented,
    a_method_that_a_folder_does_not_serve_is_not_allowed_and_told_which_are,
    options_for_the_whole_server_names_methods,
    absolute_targets_are_served_by_their_own_path,
    each_bad_request_is_counted,
);

/// Why a test is none over HTTP/2.
const GRAMMAR: &str = "HTTP/2 has a grammar of its own: tests/http2";

/// Sends each request on a connection of its own. The answer has one of the statuses and closes.
fn refuses(server: &Server, statuses: &[u16], requests: &[impl AsRef<[u8]>]) {
    for bad in requests {
        let shown = bad.as_ref().escape_ascii().to_string();
        let mut client = server.connect();
        let answer = client.ask(bad);
        assert!(statuses.contains(&answer.status), "{statuses:?} for {shown}, not {answer:?}");
        assert!(answer.closes(), "{shown} leaves the next request unclear: {answer:?}");
        client.expect_end(&shown);
    }
}

/// A GET whose head ends with these lines.
fn with(lines: &str) -> String {
    request("GET", "/", &format!("{lines}\r\n"))
}

/// A POST of five bytes whose head ends with these lines.
fn post_with(lines: &str) -> String {
    request("POST", "/echo", &format!("{lines}\r\n")) + "hello"
}

fn a_malformed_request_line_is_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let lines = [
        "GET",
        "GET /",
        "/ HTTP/1.1",
        " GET / HTTP/1.1",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1 more",
        "GET\t/\tHTTP/1.1",
        "GET /a b HTTP/1.1",
        "G@T / HTTP/1.1",
        "GET: / HTTP/1.1",
        "G\u{e9}T / HTTP/1.1",
        "GET / HTTP/1.1\r",
        "\tGET / HTTP/1.1",
        "(GET) / HTTP/1.1",
    ];
    let requests = lines.map(|line| format!("{line}\r\nHost: x\r\n\r\n"));
    refuses(&setup.default_site(), &[400], &requests);
}

fn an_unknown_version_is_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let line = |version| format!("GET / {version}\r\nHost: x\r\n\r\n");
    let unknown = ["HTTP/2.0", "HTTP/3.0", "HTTP/0.9", "HTTP/9.9"];
    refuses(&server, &[505], &unknown.map(line));
    let malformed =
        ["HTTP/1", "HTTP/11", "HTTP/1.10", "HTTP/1,1", "http/1.1", "HTTP /1.1", "HTTPS/1.1", "X"];
    refuses(&server, &[400, 505], &malformed.map(line));
    refuses(&server, &[400, 501, 505], &["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]);
}

fn a_malformed_target_is_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let targets = [
        "index.html",
        "*",
        "gust.example:80",
        "http:///index.html",
        "http://",
        "/\u{1}",
        "/\u{7f}",
        "/\0",
        "?a=b",
    ];
    refuses(&server, &[400], &targets.map(get));
    let raw: [&[u8]; 2] = [b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", b"GET \x80 HTTP/1.1\r\n\r\n"];
    refuses(&server, &[400], &raw);
    let tunnel = "CONNECT /path HTTP/1.1\r\nHost: x\r\n\r\n";
    refuses(&server, &[400, 405, 501], &[tunnel]);
}

fn a_host_is_needed_once_and_well_formed(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let heads = [
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://gust.example/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nhOST: b\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    ];
    refuses(&server, &[400], &heads);
    let hosts = [
        "a b", "a/b", "a@b", "a:b", "a:80:80", "[::1", "::1", "a?b", "a#b", "a\"b", "a:8\t0",
        "http://a", "a\\b", "<a>", "[::1]80",
    ];
    let requests = hosts.map(|host| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    refuses(&server, &[400], &requests);
}

fn every_form_of_host_is_taken(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    let hosts = [
        "gust.example",
        "GUST.Example:8080",
        "127.0.0.1",
        "[::1]",
        "[2001:db8::7]:443",
        "localhost",
        "a:",
        "xn--gst-hoa.example",
        "a_b",
        "  spaced  ",
        "\ttabbed\t",
        "dotted.example.",
    ];
    for host in hosts {
        let answer = client.ask(format!("GET / HTTP/1.1\r\nHost:{host}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{host:?}");
    }
}

fn malformed_fields_are_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let lines = [
        "Accept : */*",
        "Accept\t: */*",
        " Accept: */*",
        "\tAccept: */*",
        "X-Long: a\r\n b",
        "X-Long: a\r\n\tb: c",
        ": nameless",
        "no colon",
        "X(y): z",
        "X y: z",
        "\"X\": z",
        "X\u{e9}: z",
        "X: a\rb",
        "X: a\r",
        "X: a\0b",
        "X: \u{1}",
        "X: a\u{7f}b",
        "X: a\nY: b",
        "X: a\n",
        "X: a\n\n",
        "\0X: a",
    ];
    refuses(&server, &[400], &lines.map(with));
    let bare_feeds = [
        "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\rHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\nHost: x\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\rGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ];
    refuses(&server, &[400], &bare_feeds);
}

fn unusual_fields_are_taken(setup: Setup) {
    let server = setup.default_site();
    let mut client = server.connect();
    for line in ["X:", "X: ", "X:\ta\t", "!#$%&'*+-.^_`|~09az: z", "X: a\tb", "X: \u{fc}", "X: :"] {
        assert_eq!(client.ask(with(line)).status, 200, "{line:?}");
    }
}

fn a_content_length_that_is_no_plain_number_is_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let values = [
        "+5",
        "-5",
        "5 5",
        "5,6",
        "5, 6",
        "0x5",
        "",
        "5.0",
        "1e0",
        "five",
        "5;",
        "\"5\"",
        "5\u{b}",
        "18446744073709551616",
        "99999999999999999999999999",
        "\u{ff15}",
        "- 5",
        "5,",
    ];
    let lines = values.map(|value| post_with(&format!("Content-Length: {value}")));
    refuses(&server, &[400], &lines);
    let twice = [
        post_with("Content-Length: 5\r\nContent-Length: 6"),
        post_with("Content-Length: 6\r\nX: y\r\ncontent-length: 5"),
        post_with("Content-Length: 5\r\nContent-Length: "),
        post_with("Content-Length : 5"),
    ];
    refuses(&server, &[400], &twice);
    let enormous = post_with("Content-Length: 18446744073709551615");
    refuses(&server, &[413], &[enormous]);
}

fn two_framings_at_once_are_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let lines = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        "Content-Length: 48\r\nX: y\r\ntransfer-encoding: Chunked",
    ];
    let requests = lines.map(|lines| request("POST", "/echo", &format!("{lines}\r\n")) + smuggled);
    refuses(&setup.default_site(), &[400], &requests);
}

fn a_transfer_coding_other_than_chunked_is_refused(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let values = [
        "gzip",
        "identity",
        "xchunked",
        "chunked, gzip",
        "gzip, chunked",
        "chunked, chunked",
        "",
        "chunked;a=b",
        "\"chunked\"",
        "chunked x",
        "\u{b}chunked",
    ];
    let body = "5\r\nhello\r\n0\r\n\r\n";
    let coded = |value: &str| request("POST", "/echo", &format!("Transfer-Encoding: {value}\r\n"));
    let requests = values.map(|value| coded(value) + body);
    refuses(&server, &[400, 501], &requests);
    let twice = coded("chunked\r\nTransfer-Encoding: chunked") + body;
    refuses(&server, &[400, 501], &[twice, coded("chunked\r\nTransfer-Encoding: x") + body]);
    let old = "POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    refuses(&server, &[400, 501], &[old + body]);
}

fn a_refusal_is_the_same_when_the_bytes_come_one_at_a_time(setup: Setup) {
    if Setup::http1_only(GRAMMAR) {
        return;
    }
    let server = setup.default_site();
    let cases = [
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n".to_owned(), 505),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (with("Accept : */*"), 400),
        (with("X: a\r\n b"), 400),
        (with("X: a\rb"), 400),
        (post_with("Content-Length: +5"), 400),
        (post_with("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400),
        (post_with("Transfer-Encoding: chunked") + "\r\n", 400),
    ];
    for (bad, status) in &cases {
        let mut client = server.connect();
        for byte in bad.as_bytes() {
            client.send_unless_closed([*byte]);
        }
        let answer = client.read_answer();
        assert_eq!(answer.status, *status, "{bad:?}");
        client.expect_end(bad);
    }
}

fn a_head_may_be_as_long_as_its_limit_and_no_longer(setup: Setup) {
    if Setup::http1_only("HTTP/2 counts bytes of a head in another way (RFC 9113 §6.5.2)") {
        return;
    }
    let server = setup.default_site();
    let head = |bytes: usize| with(&format!("X: {}", "y".repeat(bytes - with("X: ").len())));
    assert_eq!(head(16_384).len(), 16_384);
    assert_eq!(server.ask(head(16_384)).status, 200);
    refuses(&server, &[431], &[head(16_385), head(17_000), head(100_000)]);
    let endless = &head(40_000)[..20_000];
    refuses(&server, &[431], &[endless]);
}

fn a_head_may_have_a_hundred_fields_and_no_more(setup: Setup) {
    let server = setup.default_site();
    let head = |fields: usize| request("GET", "/", &"X: y\r\n".repeat(fields - 1));
    assert_eq!(server.ask(head(100)).status, 200);
    // (By HTTP/2 the host is no field.)
    let many = 101 + usize::from(Setup::is_http2());
    refuses(&server, &[431], &[head(many), head(1_000)]);
}

fn a_target_may_be_as_long_as_its_limit_and_no_longer(setup: Setup) {
    let server = setup.default_site();
    let target = |bytes: usize| get(&format!("/{}", "y".repeat(bytes - 1)));
    assert_eq!(server.ask(target(8_192)).status, 404);
    let query = get(&format!("/?{}", "y".repeat(8_000)));
    assert_eq!(server.ask(query).status, 200);
    refuses(&server, &[414], &[target(8_193), target(12_000)]);
    // (By HTTP/2, a head of more than 32 KiB ends the connection without a response.)
    let enormous = target(if Setup::is_http2() { 30_000 } else { 100_000 });
    refuses(&server, &[414, 431], &[target(17_000), enormous]);
}

fn a_method_longer_than_any_that_exists_is_not_implemented(setup: Setup) {
    let server = setup.default_site();
    for method in ["B".repeat(65), "get".repeat(50)] {
        let mut client = server.connect();
        let method = &*method;
        let answer = client.ask(request(method, "/", ""));
        assert_eq!(answer.status, 501, "{method}");
        client.expect_as_said(&answer, method);
    }
}

fn a_method_that_a_folder_does_not_serve_is_not_allowed_and_told_which_are(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "untouched");
    let server = setup.files(&folder);
    let named = ["POST", "PUT", "DELETE", "PATCH", "TRACE"];
    for method in named.into_iter().chain(["PROPFIND", "get", "GETT", "GE", "!"]) {
        let mut client = server.connect();
        let answer = client.ask(request(method, "/a.txt", ""));
        assert_eq!(answer.status, 405, "{method}");
        let allowed: Vec<_> = answer.expect_field("allow").split(", ").collect();
        assert!(allowed.contains(&"GET") && allowed.contains(&"HEAD"), "{allowed:?}");
        assert!(!allowed.contains(&method), "{allowed:?}");
        client.expect_as_said(&answer, method);
    }
    if !Setup::is_http2() {
        let tunnel = "CONNECT gust.example:443 HTTP/1.1\r\nHost: gust.example:443\r\n\r\n";
        assert_eq!(server.ask(tunnel).status, 405);
    }
    assert_eq!(server.get("/a.txt").body, b"untouched");
}

fn options_for_the_whole_server_names_methods(setup: Setup) {
    let folder = Folder::new();
    for server in [setup.default_site(), setup.files(&folder)] {
        let mut client = server.connect();
        let answer = client.ask(request("OPTIONS", "*", ""));
        assert!([200, 204, 405].contains(&answer.status), "{answer:?}");
        assert!(answer.expect_field("allow").contains("GET"), "{answer:?}");
        client.expect_as_said(&answer, "OPTIONS *");
    }
}

fn absolute_targets_are_served_by_their_own_path(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "front");
    folder.file("a.txt", "inside");
    let server = setup.files(&folder);
    let mut client = server.connect();
    for (target, body) in [
        ("http://gust.example/a.txt", "inside"),
        ("http://other.example:80/a.txt?query", "inside"),
        ("HTTP://gust.example/a.txt", "inside"),
        ("http://gust.example/", "front"),
        ("http://gust.example", "front"),
        ("http://gust.example?query", "front"),
    ] {
        assert_eq!(client.get(target).text(), body, "{target}");
    }
    assert_eq!(client.get("http://gust.example/b.txt").status, 404);
}

fn each_bad_request_is_counted(setup: Setup) {
    if Setup::http1_only("it is a stream error in HTTP/2") {
        return;
    }
    let server = setup.default_site();
    for count in 1..=5 {
        assert_eq!(server.ask("GET / HTTP/1.1\r\n\r\n").status, 400);
        server.wait_until("it is counted", |stats| stats.bad_requests == count);
    }
    assert_eq!(server.stats().answers_4xx, 5);
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.stats().bad_requests, 5, "a good one is not");
}
