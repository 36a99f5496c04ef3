//! `Http11Probe`'s cases of two requests on one connection, none of which is scored.

use super::{Pass, Verdict, Warn};

/// A body, and what comes behind it.
pub(super) struct Pair {
    pub(super) id: &'static str,
    pub(super) sent: [&'static str; 2],
    pub(super) due: [u16; 2],
    pub(super) verdict: Verdict,
}

const fn pair(id: &'static str, sent: [&'static str; 2], due: [u16; 2]) -> Pair {
    // Accepted, and the next request is read where it begins.
    Pair { id, sent, due, verdict: Pass }
}

pub(super) const PAIRS: [Pair; 6] = [
    pair("SMUG-PIPELINE-SAFE", [get!(), get!()], [200, 200]),
    pair(
        "SMUG-GET-CL-BODY-DESYNC",
        [concat!(get!("Content-Length: 5"), "hello"), get!()],
        [200, 200],
    ),
    pair(
        "SMUG-OPTIONS-CL-BODY-DESYNC",
        ["OPTIONS / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", get!()],
        [204, 200],
    ),
    pair(
        "SMUG-EXPECT-100-CL-DESYNC",
        [post!("Content-Length: 5\r\nExpect: 100-continue", "hello"), get!()],
        [200, 200],
    ),
    pair(
        "SMUG-GET-CL-PREFIX-DESYNC",
        // The body is a head without its blank line, of which the first bytes come then.
        [
            concat!(get!("Content-Length: 25"), "GET / HTTP/1.1\r\nHost: h\r\n"),
            concat!("\r\n", get!()),
        ],
        [200, 200],
    ),
    Pair {
        id: "SMUG-CL0-BODY-POISON",
        sent: [post!("Content-Length: 0", "X"), get!()],
        // The byte is the first of the next request, whose method then is XGET.
        due: [200, 405],
        verdict: Warn,
    },
];

/// A request with conditions, after one that has told the entity tag and the date.
pub(super) struct Condition {
    pub(super) id: &'static str,
    /// With `{etag}`, `{bare}` (the tag without its quotes) and `{date}` filled in.
    pub(super) fields: &'static str,
    pub(super) due: u16,
    passes: u16,
}

impl Condition {
    /// The other status that can be due is a warning.
    pub(super) fn verdict(&self) -> Verdict {
        if self.due == self.passes { Pass } else { Warn }
    }
}

const fn condition(id: &'static str, fields: &'static str, due: u16, passes: u16) -> Condition {
    Condition { id, fields, due, passes }
}

pub(super) const CONDITIONS: [Condition; 9] = [
    condition("CAP-ETAG-304", "If-None-Match: {etag}", 304, 304),
    condition("CAP-ETAG-IN-304", "If-None-Match: {etag}", 304, 304),
    condition("CAP-ETAG-WEAK", "If-None-Match: W/{etag}", 304, 304),
    condition("CAP-INM-WILDCARD", "If-None-Match: *", 304, 304),
    condition("CAP-INM-UNQUOTED", "If-None-Match: {bare}", 200, 200),
    condition(
        "CAP-INM-PRECEDENCE",
        "If-None-Match: {etag}\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
        304,
        304,
    ),
    condition("CAP-LAST-MODIFIED-304", "If-Modified-Since: {date}", 304, 304),
    // (RFC 9110 §13.1.3 has no exception for dates to come.)
    condition("CAP-IMS-FUTURE", "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT", 304, 200),
    condition("CAP-IMS-INVALID", "If-Modified-Since: not-a-date", 200, 200),
];
