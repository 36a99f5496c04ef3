//! `Http11Probe`'s suite of compliance: lines, fields, bodies, methods, what responses carry.

use super::{
    Answer, BAD, Case, Fail, Pass, REFUSED, Rule, STRICT, SUCCEEDS, SUCCESS, Verdict, Warn,
};

const REFUSED_BY_METHOD: Rule = Rule::pass(&[BAD, (405, 405), (501, 501)]);
const NOT_TRACED: Rule = Rule::pass(&[(405, 405), (501, 501)]).warn(&[SUCCESS]);
const NOT_UPGRADED: Rule = Rule::pass(&[(100, 100), (102, 599)]);
const NEWER_WEBSOCKET: Rule = Rule::pass(&[(426, 426), (300, 599)]).warn(&[SUCCESS]);
const CLOSED: Rule = SUCCEEDS.also(|answer| passes_if(answer.closes()));
const ECHOED: Rule = SUCCEEDS.also(|answer| passes_if(answer.body == b"hello"));
const DATED: Rule = SUCCEEDS.also(|answer| passes_if(answer.field("date").is_some()));
const ALLOWS: Rule =
    Rule::pass(&[(405, 405)]).also(|answer| passes_if(answer.field("allow").is_some()));
const LENGTHLESS: Rule = Rule::pass(&[(204, 204)])
    .also(|answer| passes_if(answer.field("content-length").is_none()))
    .warn(&[(100, 599)]);

const fn passes_if(holds: bool) -> Verdict {
    if holds { Pass } else { Fail }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, in which only letters and digits differ.
fn is_fixdate(answer: &Answer) -> Verdict {
    let date = answer.field("date").unwrap_or_default();
    let shape: String = date
        .chars()
        .map(|c| match c {
            '0'..='9' => '0',
            'a'..='z' | 'A'..='Z' => 'a',
            other => other,
        })
        .collect();
    if shape == "aaa, 00 aaa 0000 00:00:00 aaa" && date.ends_with("GMT") { Pass } else { Warn }
}

fn warns_unless(name: &str, answer: &Answer) -> Verdict {
    if answer.field(name).is_some() { Pass } else { Warn }
}

pub(super) const CASES: [Case; 75] = [
    // --- Lines.
    Case::new("COMP-BASELINE", get!(), SUCCEEDS, 200),
    Case::new("RFC9112-2.2-BARE-LF-REQUEST-LINE", "GET / HTTP/1.1\nHost: h\r\n\r\n", STRICT, 400),
    Case::new(
        "RFC9112-2.2-BARE-LF-HEADER",
        "GET / HTTP/1.1\r\nHost: h\nX-Test: value\r\n\r\n",
        STRICT,
        400,
    ),
    Case::new("RFC9112-3-MULTI-SP-REQUEST-LINE", line!("GET  / HTTP/1.1"), STRICT, 400),
    Case::new("COMP-REQUEST-LINE-TAB", line!("GET\t/ HTTP/1.1"), STRICT, 400),
    Case::new(
        "RFC9112-2.3-INVALID-VERSION",
        line!("GET / HTTP/9.9"),
        Rule::pass(&[BAD, (505, 505)]),
        505,
    ),
    Case::new("RFC9112-3-CR-ONLY-LINE-ENDING", "GET / HTTP/1.1\rHost: h\r\n\r\n", REFUSED, 400),
    Case::new("RFC9112-3-MISSING-TARGET", line!("GET HTTP/1.1"), REFUSED, 400),
    Case::new("RFC9112-3.2-FRAGMENT-IN-TARGET", line!("GET /path#frag HTTP/1.1"), STRICT, 400),
    Case::new("RFC9112-2.3-HTTP09-REQUEST", "GET /\r\n", super::WAITS, 400),
    Case::new("COMP-ASTERISK-WITH-GET", line!("GET * HTTP/1.1"), REFUSED, 400),
    Case::new("COMP-OPTIONS-STAR", line!("OPTIONS * HTTP/1.1"), SUCCEEDS, 204),
    Case::new("COMP-LEADING-CRLF", concat!("\r\n\r\n", get!()), STRICT, 200)
        .warned("RFC 9112 §2.2: a server SHOULD ignore an empty line before a request"),
    Case::new("COMP-ABSOLUTE-FORM", line!("GET http://h/ HTTP/1.1"), SUCCEEDS.warn(&[BAD]), 200)
        .unscored(),
    Case::new("COMP-VERSION-MISSING-MINOR", line!("GET / HTTP/1"), REFUSED, 400),
    Case::new("COMP-VERSION-LEADING-ZEROS", line!("GET / HTTP/01.01"), REFUSED, 400),
    Case::new("COMP-VERSION-WHITESPACE", line!("GET / HTTP/ 1.1"), REFUSED, 400),
    Case::new("COMP-VERSION-CASE", line!("GET / http/1.1"), REFUSED, 400),
    Case::new("COMP-SPACE-IN-TARGET", line!("GET /pa th HTTP/1.1"), REFUSED, 400),
    Case::new(
        "COMP-HTTP12-VERSION",
        line!("GET / HTTP/1.2"),
        Rule::pass(&[]).warn(&[SUCCESS, (505, 505)]),
        200,
    )
    .unscored()
    .warned("no response passes here; RFC 9110 §6.2: a minor version is compatible"),
    Case::new("COMP-HTTP10-NO-HOST", "GET / HTTP/1.0\r\n\r\n", STRICT, 200)
        .unscored()
        .warned("HTTP/1.0 has no Host"),
    Case::new("COMP-HTTP10-DEFAULT-CLOSE", line!("GET / HTTP/1.0"), CLOSED, 200),
    // --- Fields.
    Case::new("RFC9112-5.1-OBS-FOLD", get!("X-Test: value\r\n continued"), REFUSED, 400),
    Case::new("RFC9110-5.6.2-SP-BEFORE-COLON", get!("X-Test : value"), REFUSED, 400),
    Case::new("RFC9112-7.1-MISSING-HOST", "GET / HTTP/1.1\r\n\r\n", REFUSED, 400),
    Case::new("RFC9112-5-EMPTY-HEADER-NAME", get!(": empty-name"), REFUSED, 400),
    Case::new("RFC9112-5-INVALID-HEADER-NAME", get!("Bad[Name: value"), REFUSED, 400),
    Case::new("RFC9112-5-HEADER-NO-COLON", get!("NoColonHere"), REFUSED, 400),
    Case::new("RFC9110-5.4-DUPLICATE-HOST", get!("Host: other.example.com"), REFUSED, 400),
    Case::new("COMP-DUPLICATE-HOST-SAME", get!("Host: h"), REFUSED, 400),
    Case::new(
        "COMP-WHITESPACE-BEFORE-HEADERS",
        "GET / HTTP/1.1\r\n \r\nHost: h\r\n\r\n",
        REFUSED,
        400,
    ),
    Case::new("COMP-HOST-WITH-USERINFO", "GET / HTTP/1.1\r\nHost: user@h\r\n\r\n", REFUSED, 400),
    Case::new("COMP-HOST-WITH-PATH", "GET / HTTP/1.1\r\nHost: h/path\r\n\r\n", REFUSED, 400),
    Case::new("COMP-HOST-EMPTY-VALUE", "GET / HTTP/1.1\r\nHost: \r\n\r\n", REFUSED, 400),
    Case::new(
        "COMP-DUPLICATE-CT",
        post!("Content-Length: 5\r\nContent-Type: text/plain\r\nContent-Type: text/html", "hello"),
        STRICT,
        200,
    )
    .warned("a handler sees both lines; RFC 9110 §5.3 binds the sender"),
    Case::new(
        "COMP-EXPECT-UNKNOWN",
        get!("Expect: 200-ok"),
        Rule::pass(&[(417, 417)]).warn(&[SUCCESS]),
        417,
    ),
    Case::new("COMP-CONNECTION-CLOSE", get!("Connection: close"), CLOSED, 200),
    Case::new(
        "COMP-ACCEPT-NONSENSE",
        get!("Accept: application/x-nonsense"),
        Rule::pass(&[(406, 406)]).warn(&[SUCCESS]),
        200,
    )
    .unscored()
    .warned("RFC 9110 §12.5.1: the only form of a page is better than 406"),
    // --- Bodies.
    Case::new("RFC9112-6.1-CL-NON-NUMERIC", post!("Content-Length: abc", ""), REFUSED, 400),
    Case::new("RFC9112-6.1-CL-PLUS-SIGN", post!("Content-Length: +5", "hello"), REFUSED, 400),
    Case::new(
        "COMP-UNKNOWN-TE-501",
        post!("Transfer-Encoding: gzip", ""),
        Rule::pass(&[BAD, (501, 501)]),
        400,
    ),
    Case::new("COMP-POST-CL-BODY", post!("Content-Length: 5", "hello"), ECHOED, 200),
    Case::new("COMP-POST-CL-ZERO", post!("Content-Length: 0", ""), SUCCEEDS, 200),
    Case::new("COMP-POST-NO-CL-NO-TE", line!("POST / HTTP/1.1"), SUCCEEDS, 200),
    Case::silent("COMP-POST-CL-UNDERSEND", post!("Content-Length: 10", "hello")),
    Case::new("COMP-CHUNKED-BODY", chunked!("5\r\nhello\r\n0\r\n\r\n"), ECHOED, 200),
    Case::new(
        "COMP-CHUNKED-MULTI",
        chunked!("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
        SUCCEEDS.also(|answer| passes_if(answer.body == b"hello world")),
        200,
    ),
    Case::new("COMP-CHUNKED-EMPTY", chunked!("0\r\n\r\n"), SUCCEEDS, 200),
    Case::silent("COMP-CHUNKED-NO-FINAL", chunked!("5\r\nhello\r\n")),
    Case::new(
        "COMP-CHUNKED-EXTENSION",
        chunked!("5;ext=value\r\nhello\r\n0\r\n\r\n"),
        ECHOED.warn(&[BAD]),
        200,
    ),
    Case::new(
        "COMP-CHUNKED-TRAILER-VALID",
        chunked!("5\r\nhello\r\n0\r\nX-Checksum: abc\r\n\r\n"),
        ECHOED,
        200,
    ),
    Case::new(
        "COMP-CHUNKED-HEX-UPPERCASE",
        chunked!("A\r\nhelloworld\r\n0\r\n\r\n"),
        SUCCEEDS.also(|answer| passes_if(answer.body == b"helloworld")),
        200,
    ),
    Case::new("COMP-GET-WITH-CL-BODY", concat!(get!("Content-Length: 5"), "hello"), STRICT, 200)
        .unscored()
        .warned("RFC 9110 §9.3.1 allows it; the body is read to its end"),
    Case::new(
        "COMP-POST-UNSUPPORTED-CT",
        post!("Content-Length: 5\r\nContent-Type: application/x-nonsense", "hello"),
        Rule::pass(&[SUCCESS, (415, 415)]).warn(&[(100, 599)]),
        200,
    )
    .unscored(),
    Case::new(
        "COMP-RANGE-POST",
        post!("Content-Length: 5\r\nRange: bytes=0-10", "hello"),
        Rule::pass(&[(200, 205), (207, 299)]),
        200,
    ),
    Case::new(
        "COMP-RANGE-INVALID",
        get!("Range: bytes=abc-xyz"),
        Rule::pass(&[(200, 205), (207, 299), (416, 416)]).warn(&[(100, 599)]),
        200,
    )
    .unscored(),
    Case::new(
        "COMP-NO-1XX-HTTP10",
        "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        Rule::pass(&[(200, 599)]),
        200,
    ),
    // --- Methods.
    Case::new("COMP-METHOD-CASE", line!("get / HTTP/1.1"), REFUSED_BY_METHOD.warn(&[SUCCESS]), 405),
    Case::new(
        "COMP-METHOD-CONNECT",
        "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
        REFUSED_BY_METHOD,
        405,
    ),
    Case::new("COMP-METHOD-TRACE", line!("TRACE / HTTP/1.1"), NOT_TRACED, 405).unscored(),
    Case::new(
        "COMP-TRACE-WITH-BODY",
        "TRACE / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        REFUSED_BY_METHOD.warn(&[SUCCESS]),
        405,
    )
    .unscored(),
    Case::new(
        "COMP-TRACE-SENSITIVE",
        "TRACE / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret-token-123\r\n\r\n",
        NOT_TRACED,
        405,
    )
    .unscored(),
    Case::new(
        "COMP-UNKNOWN-METHOD",
        line!("FOOBAR / HTTP/1.1"),
        REFUSED_BY_METHOD.warn(&[SUCCESS]),
        405,
    ),
    Case::new(
        "COMP-405-ALLOW",
        line!("DELETE / HTTP/1.1"),
        ALLOWS.warn(&[(100, 404), (406, 599)]),
        405,
    ),
    Case::new("COMP-HEAD-NO-BODY", line!("HEAD / HTTP/1.1"), SUCCEEDS, 200),
    Case::new("COMP-NO-CL-IN-204", line!("OPTIONS / HTTP/1.1"), LENGTHLESS, 204),
    Case::new(
        "COMP-OPTIONS-ALLOW",
        line!("OPTIONS / HTTP/1.1"),
        SUCCEEDS.also(|answer| warns_unless("allow", answer)),
        204,
    ),
    // --- What every response carries.
    Case::new("COMP-DATE-HEADER", get!(), DATED, 200),
    Case::new("COMP-DATE-FORMAT", get!(), SUCCEEDS.also(is_fixdate), 200).unscored(),
    Case::new(
        "COMP-CONTENT-TYPE",
        get!(),
        SUCCEEDS.also(|answer| warns_unless("content-type", answer)),
        200,
    ),
    // --- Upgrades.
    Case::new(
        "COMP-UPGRADE-POST",
        post!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13",
            ""
        ),
        NOT_UPGRADED,
        200,
    ),
    Case::new(
        "COMP-UPGRADE-MISSING-CONN",
        get!(
            "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Version: 13"
        ),
        NOT_UPGRADED,
        200,
    ),
    Case::new(
        "COMP-UPGRADE-UNKNOWN",
        get!("Connection: Upgrade\r\nUpgrade: totally-made-up/1.0"),
        NOT_UPGRADED,
        200,
    ),
    Case::new(
        "COMP-UPGRADE-INVALID-VER",
        get!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 99"
        ),
        NEWER_WEBSOCKET,
        200,
    )
    .warned("the route has no WebSocket; RFC 9110 §7.8: a server may ignore Upgrade"),
    Case::new(
        "COMP-UPGRADE-HTTP10",
        "GET / HTTP/1.0\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        NOT_UPGRADED,
        200,
    ),
];

/// A request line of 8,000 bytes. RFC 9112 §3: a server should take it.
pub(super) fn long() -> [Case; 1] {
    let target = "a".repeat(7_900);
    let sent = format!("GET /{target} HTTP/1.1\r\nHost: h\r\n\r\n");
    let rule = Rule::pass(&[(100, 413), (415, 599)]);
    [Case::made("COMP-LONG-URL-OK", sent.into_bytes(), rule, 404)]
}
