//! `Http11Probe`'s suites of cookies and of normalization: what reaches a handler, and under which
//! name. `/echo` returns the fields that a handler sees, `/cookie` the cookies.

use super::{Answer, BAD, Case, Fail, Pass, Rule, SUCCEEDS, SUCCESS, Verdict, Warn};

/// A request of the echo of fields.
macro_rules! echo {
    ($fields:expr) => {
        concat!("GET /echo HTTP/1.1\r\nHost: h\r\n", $fields, "\r\n\r\n")
    };
}

/// A request of the list of cookies.
macro_rules! cookies {
    ($value:expr) => {
        concat!("GET /cookie HTTP/1.1\r\nHost: h\r\nCookie: ", $value, "\r\n\r\n")
    };
}

/// A POST of a body to the echo of fields.
macro_rules! hello_world {
    ($field:expr) => {
        concat!(
            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n",
            $field,
            "\r\n\r\nhello world"
        )
    };
}

const SURVIVED: Rule = Rule::pass(&[SUCCESS, BAD]);
const SURVIVED_LONG: Rule = Rule::pass(&[SUCCESS, BAD, (431, 431)]);
const ECHOES_COOKIE: Rule = SUCCEEDS.also(|answer| {
    if answer.text().to_ascii_lowercase().contains("cookie: foo=bar") { Pass } else { Fail }
});
const BOTH_COOKIES: Rule = SUCCEEDS.also(|answer| warns_without(answer, &["a=1", "b=2"]));
const ONE_PARSED: Rule = SUCCEEDS.also(|answer| warns_without(answer, &["foo=bar"]));
const THREE_PARSED: Rule = SUCCEEDS.also(|answer| warns_without(answer, &["a=1", "b=2", "c=3"]));
/// Refused, or not handed on; under its own name it is a warning, under the usual one a fault.
const UNDERSCORED_LENGTH: Rule = KEPT.also(|answer| kept(answer, "content-length", "99"));
const UNDERSCORED_CODING: Rule = KEPT.also(|answer| kept(answer, "transfer-encoding", "chunked"));
const KEPT: Rule = Rule::pass(&[SUCCESS, (400, 599)]);

const ANOTHER_NAME: &str = "a field of another name; it is handed on under its own";

fn warns_without(answer: &Answer, texts: &[&str]) -> Verdict {
    if texts.iter().all(|text| answer.text().contains(text)) { Pass } else { Warn }
}

/// Where a value went that was sent under a name with an underscore.
fn kept(answer: &Answer, name: &str, value: &str) -> Verdict {
    let text = answer.text().to_ascii_lowercase();
    let has = |name: &str| text.lines().any(|line| line == format!("{name}: {value}"));
    match (has(name), has(&name.replace('-', "_"))) {
        (true, _) => Fail,
        (false, true) => Warn,
        (false, false) => Pass,
    }
}

pub(super) const CASES: [Case; 15] = [
    Case::new("COOK-ECHO", echo!("Cookie: foo=bar"), ECHOES_COOKIE, 200).unscored(),
    Case::new("COOK-EMPTY", echo!("Cookie: "), SURVIVED, 200).unscored(),
    Case::new("COOK-NUL", echo!("Cookie: foo=\0bar"), SURVIVED, 400).unscored(),
    Case::new("COOK-CONTROL-CHARS", echo!("Cookie: foo=\u{1}\u{2}\u{3}"), SURVIVED, 400).unscored(),
    Case::new("COOK-MALFORMED", echo!("Cookie: ===;;;"), SURVIVED, 200).unscored(),
    Case::new("COOK-MULTI-HEADER", echo!("Cookie: a=1\r\nCookie: b=2"), BOTH_COOKIES, 200)
        .unscored(),
    Case::new("COOK-PARSED-BASIC", cookies!("foo=bar"), ONE_PARSED, 200).unscored(),
    Case::new("COOK-PARSED-MULTI", cookies!("a=1; b=2; c=3"), THREE_PARSED, 200).unscored(),
    Case::new("COOK-PARSED-EMPTY-VAL", cookies!("foo="), SURVIVED, 200).unscored(),
    Case::new("COOK-PARSED-SPECIAL", cookies!("a=hello world; b=x=y"), SURVIVED, 200).unscored(),
    Case::new("NORM-UNDERSCORE-CL", hello_world!("Content_Length: 99"), UNDERSCORED_LENGTH, 200)
        .warned(ANOTHER_NAME),
    Case::new(
        "NORM-UNDERSCORE-TE",
        hello_world!("Transfer_Encoding: chunked"),
        UNDERSCORED_CODING,
        200,
    )
    .warned(ANOTHER_NAME),
    Case::new("NORM-SP-BEFORE-COLON-CL", hello_world!("Content-Length : 5"), KEPT_OUT, 400),
    Case::new("NORM-TAB-IN-NAME", hello_world!("Content\tLength: 99"), KEPT_OUT, 400),
    Case::new("NORM-CASE-TE", hello_world!("TRANSFER-ENCODING: chunked"), KEPT_OUT, 400).unscored(),
];

/// Refused: success would need a look at what the handler saw.
const KEPT_OUT: Rule = Rule::pass(&[(400, 599)]);

/// A cookie of 64 KiB, and a thousand of them.
pub(super) fn long() -> [Case; 2] {
    let with = |cookie: &str| {
        format!("GET /echo HTTP/1.1\r\nHost: h\r\nCookie: {cookie}\r\n\r\n").into_bytes()
    };
    let pairs: Vec<String> = (0..1_000).map(|at| format!("k{at}=v{at}")).collect();
    let large = with(&format!("big={}", "A".repeat(65_536)));
    [
        Case::made("COOK-OVERSIZED", large, SURVIVED_LONG, 431).unscored(),
        Case::made("COOK-MANY-PAIRS", with(&pairs.join("; ")), SURVIVED_LONG, 200).unscored(),
    ]
}
