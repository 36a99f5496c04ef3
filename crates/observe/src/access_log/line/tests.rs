use gustnado_http::head::{Decoded, Head};
use gustnado_http::limits::Limits;
use proptest::prelude::*;

use super::*;

const HEAD: &[u8] = b"GET /a/b?c=%22d HTTP/1.1\r\nHost: h\r\nReferer: http://r/\r\n\
    User-Agent: \"x\\\ty\"\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n";
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: gustnado\r\nX-Both:  a b \r\nx-both: c\r\n\r\n";

fn decoded(bytes: &[u8]) -> Head {
    match Head::decode(bytes, &mut 0, &Limits::default()) {
        Ok(Decoded::Done(head)) => head,
        other => panic!("{other:?}"),
    }
}

fn written(format: &str, line: &Line<'_>) -> String {
    let mut out = Vec::new();
    Format::new(format).expect("a format").write(line, &mut out);
    String::from_utf8(out).expect("lines are UTF-8")
}

fn line(request: LoggedRequest<'_>) -> Line<'_> {
    Line {
        address: Some("127.0.0.1"),
        unix_secs: 784_111_777,
        took: Duration::from_micros(2_003_004),
        request,
        status: Some(200),
        bytes: 17,
        response: RESPONSE,
        tls: None,
        proxy_info: None,
    }
}

#[test]
fn every_atom_has_its_value() {
    let head = decoded(HEAD);
    let line = line(LoggedRequest::Request(head.on(HEAD)));
    for (format, value) in [
        ("%(h)s %(l)s %(u)s", "127.0.0.1 - Aladdin"),
        ("%(t)s", "[06/Nov/1994:08:49:37 +0000]"),
        ("%(r)s", "GET /a/b?c=%22d HTTP/1.1"),
        ("%(m)s|%(U)s|%(q)s|%(H)s", "GET|/a/b|c=%22d|HTTP/1.1"),
        ("%(s)s %(B)s %(b)s", "200 17 17"),
        ("%(f)s %(a)s", r#"http://r/ \"x\\\x09y\""#),
        ("%(T)s %(M)s %(D)s %(L)s", "2 2003 2003004 2.003004"),
        ("%({host}i)s %({none}i)s", "h -"),
        ("%({Server}o)s %({X-Both}o)s %({none}o)s", "gustnado a b -"),
        ("%({ssl_protocol}x)s %({ssl_session_reused}x)s", "- -"),
        ("100%%", "100%"),
    ] {
        assert_eq!(written(format, &line), format!("{value}\n"));
    }
    assert_eq!(
        written("combined", &line),
        "127.0.0.1 - Aladdin [06/Nov/1994:08:49:37 +0000] \"GET /a/b?c=%22d HTTP/1.1\" 200 17 \
         \"http://r/\" \"\\\"x\\\\\\x09y\\\"\"\n"
    );
    assert_eq!(
        written("json", &line),
        "{\"time\":\"1994-11-06T08:49:37Z\",\"remote_address\":\"127.0.0.1\",\"user\":\"Aladdin\",\
         \"method\":\"GET\",\"path\":\"/a/b\",\"query\":\"c=%22d\",\"protocol\":\"HTTP/1.1\",\
         \"status\":200,\"bytes\":17,\"referer\":\"http://r/\",\
         \"user_agent\":\"\\\"x\\\\\\u0009y\\\"\",\"duration_us\":2003004}\n"
    );
}

#[test]
fn what_is_not_known_is_a_dash() {
    let nothing = Line {
        address: None,
        status: None,
        bytes: 0,
        response: b"",
        took: Duration::ZERO,
        ..line(LoggedRequest::Unknown)
    };
    assert_eq!(
        written("combined", &nothing),
        "- - - [06/Nov/1994:08:49:37 +0000] \"-\" - - \"-\" \"-\"\n"
    );
    assert_eq!(
        written("json", &nothing),
        "{\"time\":\"1994-11-06T08:49:37Z\",\"remote_address\":null,\"user\":null,\
         \"method\":null,\"path\":null,\"query\":null,\"protocol\":null,\"status\":null,\
         \"bytes\":0,\"referer\":null,\"user_agent\":null,\"duration_us\":0}\n"
    );
    assert_eq!(written("%(q)s %(B)s %(b)s", &nothing), "- 0 -\n");
}

#[test]
fn a_request_without_a_query_has_an_empty_one() {
    let bytes = b"GET / HTTP/1.0\r\n\r\n";
    let head = decoded(bytes);
    let line = line(LoggedRequest::Request(head.on(bytes)));
    assert_eq!(written("%(U)s?%(q)s %(H)s", &line), "/? HTTP/1.0\n");
}

#[test]
fn a_refused_line_is_taken_apart_if_it_can_be() {
    let line_of = |first: &'static [u8]| line(LoggedRequest::Refused(first));
    let format = "%(r)s|%(m)s|%(U)s|%(q)s|%(H)s|%(a)s";
    for (first, value) in [
        (&b"BREW /pot?a HTTP/9"[..], "BREW /pot?a HTTP/9|BREW|/pot|a|HTTP/9|-"),
        (b"GET /a b c HTTP/1.1", "GET /a b c HTTP/1.1|GET|/a\\x20b\\x20c||HTTP/1.1|-"),
        (b"\x16\x03\x01", "\\x16\\x03\\x01|-|-|-|-|-"),
        (b"GET /", "GET /|-|-|-|-|-"),
        (b"", "-|-|-|-|-|-"),
    ] {
        assert_eq!(written(format, &line_of(first)), format!("{value}\n"));
    }
}

#[test]
fn only_the_name_of_basic_authentication_is_told() {
    for (field, user) in [
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", "Aladdin"),
        ("basic  YSBiOmM=", "a\\x20b"),
        ("Basic Og==", "-"),
        ("Basic bm9jb2xvbg==", "-"),
        ("Basic ?", "-"),
        ("Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ", "-"),
        ("B", "-"),
    ] {
        let bytes = format!("GET / HTTP/1.0\r\nAuthorization: {field}\r\n\r\n").into_bytes();
        let head = decoded(&bytes);
        let line = line(LoggedRequest::Request(head.on(&bytes)));
        assert_eq!(written("%(u)s", &line), format!("{user}\n"), "{field}");
    }
}

proptest! {
    #[test]
    fn no_bytes_of_a_client_forge_a_line(first: Vec<u8>, value: Vec<u8>) {
        // A field as a client may send it, and a refused line of arbitrary bytes.
        let kept = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        let value: Vec<u8> = value.into_iter().filter(kept).collect();
        let start = b"GET /\"?q\\\" HTTP/1.1\r\nHost: h\r\nUser-Agent: ";
        let agent = [&start[..], &value, b"\r\nReferer: ", &value, b"\r\n\r\n"].concat();
        let refused = line(LoggedRequest::Refused(&first));
        let decoded = Head::decode(&agent, &mut 0, &Limits::default());
        let head = match decoded {
            Ok(Decoded::Done(head)) => Some(head),
            _ => None,
        };
        let request = head.as_ref().map(|head| line(LoggedRequest::Request(head.on(&agent))));
        for line in request.iter().chain([&refused]) {
            let text = written("combined", line);
            prop_assert_eq!(text.matches('\n').count(), 1);
            prop_assert!(text[..text.len() - 1].bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(unescaped_quotes(&text), 6, "{}", text);
            let text = written("json", line);
            prop_assert_eq!(text.matches('\n').count(), 1);
            prop_assert_eq!(unescaped_quotes(&text) % 2, 0);
        }
    }
}

fn unescaped_quotes(text: &str) -> usize {
    let (mut quotes, mut bytes) = (0, text.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'"' => quotes += 1,
            _ => {}
        }
    }
    quotes
}
