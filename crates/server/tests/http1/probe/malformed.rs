//! `Http11Probe`'s suite of malformed input: garbage, lengths beyond every limit, odd targets.

use super::{BAD, Case, REFUSED, Rule, STRICT, SUCCESS, WAITS};
use crate::harness::folder::noise;

const TOO_LARGE: Rule = Rule::pass(&[BAD, (431, 431)]);
/// 400 is due, and any response but that of a crash is allowed.
const ODD_TARGET: Rule = Rule::pass(&[BAD]).warn(&[(200, 499)]);

pub(super) const CASES: [Case; 17] = [
    Case::new("MAL-NUL-IN-URL", line!("GET /\0test HTTP/1.1"), REFUSED, 400),
    Case::new("MAL-CONTROL-CHARS-HEADER", get!("X-Test: abc\u{7}\u{8}\u{b}def"), REFUSED, 400),
    Case::new("MAL-NUL-IN-HEADER-VALUE", get!("X-Test: val\0ue"), REFUSED, 400),
    Case::new("MAL-NON-ASCII-HEADER-NAME", get!("X-T\u{eb}st: value"), REFUSED, 400),
    Case::new("MAL-NON-ASCII-URL", line!("GET /caf\u{e9} HTTP/1.1"), REFUSED, 400),
    Case::silent("MAL-INCOMPLETE-REQUEST", "GET / HTTP/1.1\r\nHost: h\r\nX-Test: value"),
    Case::silent("MAL-EMPTY-REQUEST", ""),
    Case::new("MAL-WHITESPACE-ONLY-LINE", "   \r\n\r\n", WAITS, 400),
    Case::new(
        "MAL-H2-PREFACE",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        Rule::pass(&[BAD, (505, 505)]),
        505,
    ),
    Case::new("MAL-CL-OVERFLOW", post!("Content-Length: 99999999999999999999", ""), REFUSED, 400),
    Case::new("MAL-CL-EMPTY", post!("Content-Length: ", ""), REFUSED, 400),
    Case::new("MAL-CL-TAB-BEFORE-VALUE", post!("Content-Length:\t5", "hello"), STRICT, 200)
        .warned("RFC 9112 §5: a tab around a value is no part of it"),
    Case::new("MAL-POST-CL-HUGE-NO-BODY", post!("Content-Length: 999999999", ""), WAITS, 413)
        .failed("RFC 9110 §15.5.14: 413 names the reason at once; 400 or waiting would pass"),
    Case::new(
        "MAL-CHUNK-SIZE-OVERFLOW",
        chunked!("FFFFFFFFFFFFFFFF0\r\nhello\r\n0\r\n\r\n"),
        REFUSED,
        400,
    ),
    Case::new("MAL-URL-BACKSLASH", line!("GET /path\\file HTTP/1.1"), ODD_TARGET, 400),
    Case::new("MAL-URL-PERCENT-NULL", line!("GET /path%00.html HTTP/1.1"), ODD_TARGET, 404)
        .warned("RFC 3986 §2.1 allows it; handlers see it encoded, and folders have no such name"),
    Case::new(
        "MAL-URL-PERCENT-CRLF",
        line!("GET /path%0d%0aX-Injected:%20true HTTP/1.1"),
        ODD_TARGET,
        404,
    )
    .warned("RFC 3986 §2.1 allows it; no field of a response can hold a line end"),
];

fn get_with(fields: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n").into_bytes()
}

/// What is too long to be written down, and what is no text.
pub(super) fn made() -> [Case; 9] {
    let long = "A".repeat(100_000);
    let target = format!("GET /{long} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes();
    let method = format!("{long} / HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes();
    let lines: Vec<String> = (0..10_000).map(|at| format!("X-H-{at}: value")).collect();
    let extension = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
         5;ext={}\r\nhello\r\n0\r\n\r\n",
        "a".repeat(65_536)
    );
    let ranges = vec!["0-"; 1_000].join(",");
    let bad_utf8 = b"GET /\xc0\xaf HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
    [
        Case::made("MAL-BINARY-GARBAGE", noise(42, 256), WAITS, 400),
        Case::made("MAL-LONG-URL", target, Rule::pass(&[BAD, (414, 414), (431, 431)]), 414),
        Case::made("MAL-LONG-HEADER-VALUE", get_with(&format!("X-Big: {long}")), TOO_LARGE, 431),
        Case::made("MAL-LONG-HEADER-NAME", get_with(&format!("{long}: val")), TOO_LARGE, 431),
        Case::made("MAL-MANY-HEADERS", get_with(&lines.join("\r\n")), TOO_LARGE, 431),
        Case::made("MAL-LONG-METHOD", method, REFUSED, 501).failed(
            "RFC 9112 §3: a method longer than any that is known SHOULD get 501; 400 would pass",
        ),
        Case::made("MAL-URL-OVERLONG-UTF8", bad_utf8, REFUSED, 400),
        Case::made("MAL-CHUNK-EXT-64K", extension.into_bytes(), TOO_LARGE.warn(&[SUCCESS]), 400),
        Case::made(
            "MAL-RANGE-OVERLAPPING",
            get_with(&format!("Range: bytes={ranges}")),
            Rule::pass(&[]).warn(&[(200, 200), (206, 206), BAD, (416, 416), (431, 431)]),
            200,
        )
        .unscored()
        .warned("no response passes here"),
    ]
}
