//! `Http11Probe`'s suite of smuggling: two framings at once, and lengths that can be read two ways.
//!
//! Its cases of a second step, which is sent if the first left the connection open, have their
//! first step here where that has to be refused.

use super::{BAD, Case, REFUSED, Rule, STRICT};

const REFUSED_CODING: Rule = Rule::pass(&[BAD, (501, 501)]);

const ZEROS: &str = "RFC 9110 §8.6: a length is digits, of which the first may be 0";
const BLANKS: &str = "RFC 9112 §5: blanks around a value are no part of it";
const TRAILERS: &str = "RFC 9110 §6.5.1: a trailer is not merged into the head, so it is ignored";
const LENGTHS: &str = "RFC 9110 §8.6: a length is allowed here, and the body is read to its end";

pub(super) const CASES: [Case; 69] = [
    // --- Two framings at once.
    Case::new(
        "SMUG-CL-TE-BOTH",
        post!(
            "Content-Length: 23\r\nTransfer-Encoding: chunked",
            "D\r\nhello-bananas\r\n0\r\n\r\n"
        ),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-CLTE-PIPELINE",
        post!("Content-Length: 4\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-TECL-PIPELINE",
        post!("Transfer-Encoding: chunked\r\nContent-Length: 30", "0\r\n\r\n"),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-CLTE-CONN-CLOSE",
        post!("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TECL-CONN-CLOSE",
        post!("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-CLTE-DESYNC",
        post!("Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\nX"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TECL-DESYNC",
        post!("Transfer-Encoding: chunked\r\nContent-Length: 30", "0\r\n\r\nX"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-OPTIONS-TE-OBS-FOLD",
        "OPTIONS / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\
         \r\n\r\nhello",
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-HTTP10",
        "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\
         \r\n\r\nhello",
        REFUSED,
        400,
    ),
    // --- Lengths.
    Case::new(
        "SMUG-DUPLICATE-CL",
        post!("Content-Length: 5\r\nContent-Length: 10", "helloworld"),
        REFUSED,
        400,
    ),
    Case::new("SMUG-CL-LEADING-ZEROS", post!("Content-Length: 005", "hello"), STRICT, 200)
        .warned(ZEROS),
    Case::new("SMUG-CL-DOUBLE-ZERO", post!("Content-Length: 00", ""), STRICT, 200).warned(ZEROS),
    Case::new("SMUG-CL-NEGATIVE", post!("Content-Length: -1", ""), REFUSED, 400),
    Case::new("SMUG-CL-NEGATIVE-ZERO", post!("Content-Length: -0", ""), REFUSED, 400),
    Case::new("SMUG-CL-OCTAL", post!("Content-Length: 0o5", "hello"), REFUSED, 400),
    Case::new("SMUG-CL-HEX-PREFIX", post!("Content-Length: 0x5", "hello"), REFUSED, 400),
    Case::new("SMUG-CL-UNDERSCORE", post!("Content-Length: 1_0", "helloworld"), REFUSED, 400),
    Case::new("SMUG-CL-INTERNAL-SPACE", post!("Content-Length: 1 0", "hello12345"), REFUSED, 400),
    Case::new("SMUG-CL-TRAILING-SPACE", post!("Content-Length: 5 ", "hello"), STRICT, 200)
        .warned(BLANKS),
    Case::new("SMUG-CL-EXTRA-LEADING-SP", post!("Content-Length:  5", "hello"), STRICT, 200)
        .warned(BLANKS),
    Case::new("SMUG-CL-COMMA-DIFFERENT", post!("Content-Length: 5, 10", "hello"), REFUSED, 400),
    Case::new("SMUG-CL-COMMA-SAME", post!("Content-Length: 5, 5", "hello"), STRICT, 400).unscored(),
    Case::new("SMUG-CL-COMMA-TRIPLE", post!("Content-Length: 5, 5, 5", "hello"), STRICT, 400)
        .unscored(),
    Case::new(
        "SMUG-HEAD-CL-BODY",
        "HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        STRICT,
        200,
    )
    .unscored()
    .warned(LENGTHS),
    Case::new(
        "SMUG-OPTIONS-CL-BODY",
        "OPTIONS / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        STRICT,
        204,
    )
    .unscored()
    .warned(LENGTHS),
    Case::new(
        "SMUG-EXPECT-100-CL",
        post!("Content-Length: 5\r\nExpect: 100-continue", "hello"),
        STRICT,
        200,
    )
    .unscored()
    .warned("RFC 9110 §10.1.1: the body is here, so 100 is left out"),
    // --- Transfer codings.
    Case::new(
        "SMUG-TE-XCHUNKED",
        post!("Transfer-Encoding: xchunked\r\nContent-Length: 5", "hello"),
        REFUSED_CODING,
        400,
    ),
    Case::new(
        "SMUG-TE-TRAILING-SPACE",
        post!("Transfer-Encoding: chunked \r\nContent-Length: 5", "hello"),
        REFUSED_CODING,
        400,
    ),
    Case::new(
        "SMUG-TE-SP-BEFORE-COLON",
        post!("Transfer-Encoding : chunked\r\nContent-Length: 5", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-DOUBLE-CHUNKED",
        post!("Transfer-Encoding: chunked, chunked\r\nContent-Length: 5", "hello"),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-TE-CASE-MISMATCH",
        post!("Transfer-Encoding: Chunked\r\nContent-Length: 5", "hello"),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-TE-NOT-FINAL-CHUNKED",
        post!("Transfer-Encoding: chunked, gzip", "0\r\n\r\n"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-EMPTY-VALUE",
        post!("Transfer-Encoding: \r\nContent-Length: 5", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-LEADING-COMMA",
        post!("Transfer-Encoding: , chunked\r\nContent-Length: 5", "hello"),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-TE-TRAILING-COMMA",
        post!("Transfer-Encoding: chunked,\r\nContent-Length: 5", "hello"),
        STRICT,
        400,
    ),
    Case::new(
        "SMUG-TE-DUPLICATE-HEADERS",
        post!(
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5",
            "hello"
        ),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-VTAB",
        post!("Transfer-Encoding: \u{b}chunked\r\nContent-Length: 5", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-FORMFEED",
        post!("Transfer-Encoding: \u{c}chunked\r\nContent-Length: 5", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-NULL",
        post!("Transfer-Encoding: chunked\0\r\nContent-Length: 5", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-IDENTITY",
        post!("Transfer-Encoding: identity\r\nContent-Length: 5", "hello"),
        REFUSED_CODING,
        400,
    ),
    Case::new(
        "SMUG-TE-OBS-FOLD",
        post!("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-TE-TAB-BEFORE-VALUE",
        post!("Transfer-Encoding:\tchunked\r\nContent-Length: 5", "hello"),
        STRICT,
        400,
    )
    .unscored(),
    Case::new(
        "SMUG-TRANSFER_ENCODING",
        post!("Transfer_Encoding: chunked\r\nContent-Length: 5", "hello"),
        STRICT,
        200,
    )
    .unscored()
    .warned("a field of another name; it is handed on under its own"),
    Case::new(
        "SMUG-CHUNKED-WITH-PARAMS",
        post!("Transfer-Encoding: chunked;ext=val\r\nContent-Length: 5", "hello"),
        STRICT,
        400,
    )
    .unscored(),
    // --- Chunks.
    Case::new("SMUG-CHUNK-BARE-SEMICOLON", chunked!("5;\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new(
        "SMUG-CHUNK-EXT-INVALID-TOKEN",
        chunked!("5;bad[=x\r\nhello\r\n0\r\n\r\n"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-CHUNK-UNDERSCORE",
        chunked!("1_0\r\nhello world!!!!!\r\n0\r\n\r\n"),
        REFUSED,
        400,
    ),
    Case::new("SMUG-CHUNK-HEX-PREFIX", chunked!("0x5\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-SIZE-PLUS", chunked!("+5\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-SIZE-TRAILING-OWS", chunked!("5 \r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-LEADING-SP", chunked!(" 5\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-MISSING-TRAILING-CRLF", chunked!("5\r\nhello0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-EXT-LF", chunked!("5;\nhello\r\n0\r\n\r\n"), STRICT, 400),
    Case::new("SMUG-CHUNK-SPILL", chunked!("5\r\nhello!!\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-LF-TERM", chunked!("5\r\nhello\n0\r\n\r\n"), STRICT, 400),
    Case::new("SMUG-CHUNK-EXT-CTRL", chunked!("5;\0ext\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-EXT-CR", chunked!("5;a\rX\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-LF-TRAILER", chunked!("5\r\nhello\r\n0\r\n\n"), STRICT, 400),
    Case::new("SMUG-CHUNK-NEGATIVE", chunked!("-1\r\nhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-BARE-CR-TERM", chunked!("5\rhello\r\n0\r\n\r\n"), REFUSED, 400),
    Case::new("SMUG-CHUNK-INVALID-SIZE-DESYNC", chunked!("+0\r\n\r\nX"), REFUSED, 400),
    // --- Trailers.
    Case::new(
        "SMUG-TRAILER-CL",
        chunked!("5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"),
        STRICT,
        200,
    )
    .unscored()
    .warned(TRAILERS),
    Case::new(
        "SMUG-TRAILER-TE",
        chunked!("5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        STRICT,
        200,
    )
    .unscored()
    .warned(TRAILERS),
    Case::new(
        "SMUG-TRAILER-HOST",
        chunked!("5\r\nhello\r\n0\r\nHost: evil.example.com\r\n\r\n"),
        STRICT,
        200,
    )
    .unscored()
    .warned(TRAILERS),
    Case::new(
        "SMUG-TRAILER-AUTH",
        chunked!("5\r\nhello\r\n0\r\nAuthorization: Bearer evil\r\n\r\n"),
        STRICT,
        200,
    )
    .unscored()
    .warned(TRAILERS),
    Case::new(
        "SMUG-TRAILER-CONTENT-TYPE",
        chunked!("5\r\nhello\r\n0\r\nContent-Type: text/evil\r\n\r\n"),
        STRICT,
        200,
    )
    .unscored()
    .warned(TRAILERS),
    // --- Heads.
    Case::new(
        "SMUG-BARE-CR-HEADER-VALUE",
        post!("Content-Length: 5\r\nX-Test: val\rue", "hello"),
        REFUSED,
        400,
    ),
    Case::new(
        "SMUG-ABSOLUTE-URI-HOST-MISMATCH",
        line!("GET http://other.example.com/ HTTP/1.1"),
        STRICT,
        200,
    )
    .unscored()
    .warned("RFC 9112 §3.2.2: the host of the target counts, and Host is ignored"),
    Case::new(
        "SMUG-MULTIPLE-HOST-COMMA",
        "GET / HTTP/1.1\r\nHost: h, other.example.com\r\n\r\n",
        REFUSED,
        400,
    ),
];

/// A POST whose body holds a whole request, framed in ways that contradict each other. `{}` is the
/// length of that body.
const EMBEDDED: [(&str, &str); 9] = [
    ("SMUG-CLTE-SMUGGLED-GET", "Content-Length: {}\r\nTransfer-Encoding: chunked"),
    ("SMUG-CLTE-SMUGGLED-HEAD", "Content-Length: {}\r\nTransfer-Encoding: chunked"),
    ("SMUG-CLTE-SMUGGLED-GET-CL-PLUS", "Content-Length: +{}\r\nTransfer-Encoding: chunked"),
    ("SMUG-CLTE-SMUGGLED-GET-CL-NON-NUMERIC", "Content-Length: {}x\r\nTransfer-Encoding: chunked"),
    ("SMUG-CLTE-SMUGGLED-GET-TE-OBS-FOLD", "Transfer-Encoding:\r\n chunked\r\nContent-Length: {}"),
    (
        "SMUG-CLTE-SMUGGLED-GET-TE-TRAILING-SPACE",
        "Content-Length: {}\r\nTransfer-Encoding: chunked ",
    ),
    (
        "SMUG-CLTE-SMUGGLED-GET-TE-LEADING-COMMA",
        "Content-Length: {}\r\nTransfer-Encoding: , chunked",
    ),
    ("SMUG-CLTE-SMUGGLED-GET-TE-CASE-MISMATCH", "Content-Length: {}\r\nTransfer-Encoding: Chunked"),
    (
        "SMUG-TE-DUPLICATE-HEADERS-SMUGGLED-GET",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: {}",
    ),
];

fn posted(fields: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{body}").into_bytes()
}

/// Requests within requests, of which none may get a response, and a length that could be octal.
pub(super) fn embedded() -> Vec<Case> {
    let mut all: Vec<Case> = EMBEDDED
        .iter()
        .map(|(id, fields)| {
            let inner = if id.ends_with("HEAD") { line!("HEAD / HTTP/1.1") } else { get!() };
            let body = format!("0\r\n\r\n{inner}");
            let fields = fields.replace("{}", &body.len().to_string());
            Case::made(id, posted(&fields, &body), REFUSED, 400)
        })
        .collect();
    let inner = get!("Content-Length: 7");
    let size = format!("{:x}", inner.len());
    let fields = format!("Transfer-Encoding: chunked\r\nContent-Length: {}", size.len() + 2);
    let body = format!("{size}\r\n{inner}\r\n0\r\n\r\n");
    all.push(Case::made("SMUG-TECL-SMUGGLED-GET", posted(&fields, &body), REFUSED, 400));
    let body = concat!("PING", get!());
    let fields = format!("Content-Length: 4\r\nContent-Length: {}", body.len());
    all.push(Case::made("SMUG-DUPLICATE-CL-SMUGGLED-GET", posted(&fields, body), REFUSED, 400));
    let octal = posted("Content-Length: 0200", &"A".repeat(200));
    all.push(Case::made("SMUG-CL-LEADING-ZEROS-OCTAL", octal, STRICT, 200).warned(ZEROS));
    all
}
