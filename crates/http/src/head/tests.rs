use super::{Decoded, Framing, Head, HeadError, Version};
use crate::fields::HeaderId;
use crate::limits::Limits;
use crate::method::Method;
use crate::request::TargetForm;

fn decode(input: &[u8]) -> Result<Decoded<Head>, HeadError> {
    Head::decode(input, &mut 0, &Limits::default())
}

fn done(input: &[u8]) -> Head {
    match decode(input) {
        Ok(Decoded::Done(head)) => head,
        other => panic!("{other:?}: {}", input.escape_ascii()),
    }
}

fn error(input: &[u8]) -> HeadError {
    decode(input).expect_err(&input.escape_ascii().to_string())
}

#[test]
fn a_head_is_small_plain_data() {
    assert!(size_of::<Head>() <= 64);
}

#[test]
fn a_whole_request_is_read_through_its_bytes() {
    let bytes =
        b"GET /a/b?c=d?e HTTP/1.1\r\nHost: example.com:80\r\naccept:\t x y \t\r\nEmpty:\r\n\
        If-None-Match: \"x\"\r\nRANGE: bytes=0-\r\nrange: bytes=9-\r\n\r\nbody";
    let head = done(bytes);
    let request = head.on(bytes);
    assert_eq!(head.len(), bytes.len() - 4);
    assert_eq!(request.method(), Method::Get);
    assert_eq!(request.version(), Version::Http11);
    assert_eq!(request.target(), b"/a/b?c=d?e");
    assert_eq!(request.path(), b"/a/b");
    assert_eq!(request.query(), Some(b"c=d?e".as_slice()));
    assert_eq!(request.host(), Some(b"example.com:80".as_slice()));
    assert_eq!(request.known(HeaderId::IfNoneMatch), Some(b"\"x\"".as_slice()));
    assert_eq!(request.known(HeaderId::Range), Some(b"bytes=0-".as_slice()));
    assert_eq!(request.known(HeaderId::IfRange), None);
    assert_eq!(request.known(HeaderId::Accept), Some(b"x y".as_slice()));
    assert_eq!(request.known(HeaderId::Cookie), None);
    assert_eq!(request.field("Accept"), Some(b"x y".as_slice()));
    assert_eq!(request.field("empty"), Some(b"".as_slice()));
    assert_eq!(request.field("absent"), None);
    assert_eq!(request.fields().count(), 6);
    assert_eq!(head.framing(), Framing::None);
    assert!(head.keep_alive() && !head.expects_continue());
}

#[test]
fn every_known_field_is_found_in_any_case() {
    for (known, name) in [
        (HeaderId::Host, "hOst"),
        (HeaderId::IfMatch, "if-MATCH"),
        (HeaderId::IfNoneMatch, "IF-none-match"),
        (HeaderId::IfModifiedSince, "If-Modified-Since"),
        (HeaderId::IfUnmodifiedSince, "if-unmodified-since"),
        (HeaderId::IfRange, "IF-RANGE"),
        (HeaderId::Range, "Range"),
    ] {
        let bytes = format!("GET / HTTP/1.0\r\n{name}: v\r\nother-name-here: w\r\n\r\n");
        let head = done(bytes.as_bytes());
        assert_eq!(head.on(bytes.as_bytes()).known(known), Some(b"v".as_slice()), "{name}");
        let changes_the_answer = !matches!(known, HeaderId::Host | HeaderId::IfRange);
        assert_eq!(head.is_conditional(), changes_the_answer, "{name}");
    }
}

#[test]
fn each_target_form_gives_path_query_and_host() {
    type Row = (&'static str, TargetForm, &'static str, Option<&'static str>, &'static str);
    let rows: [Row; 9] = [
        ("GET /", TargetForm::Origin, "/", None, "h"),
        ("GET /?", TargetForm::Origin, "/", Some(""), "h"),
        ("GET //x/y?", TargetForm::Origin, "//x/y", Some(""), "h"),
        ("OPTIONS *", TargetForm::Asterisk, "*", None, "h"),
        ("CONNECT a.b:443", TargetForm::Authority, "/", None, "a.b:443"),
        ("GET http://a.b:8/c?d", TargetForm::Absolute, "/c", Some("d"), "a.b:8"),
        ("GET http://a.b?d", TargetForm::Absolute, "/", Some("d"), "a.b"),
        ("GET HTTPS://[::1]", TargetForm::Absolute, "/", None, "[::1]"),
        ("GET http://a.b/?", TargetForm::Absolute, "/", Some(""), "a.b"),
    ];
    for (line, form, path, query, host) in rows {
        for empty_lines in ["", "\r\n", "\r\n\r\n\r\n\r\n"] {
            let bytes = format!("{empty_lines}{line} HTTP/1.1\r\nHost: h\r\n\r\n");
            let head = done(bytes.as_bytes());
            let request = head.on(bytes.as_bytes());
            assert_eq!(request.form(), form, "{line}");
            assert_eq!(request.path(), path.as_bytes(), "{line}");
            assert_eq!(request.query(), query.map(str::as_bytes), "{line}");
            assert_eq!(request.host(), Some(host.as_bytes()), "{line}");
            assert_eq!(head.len(), bytes.len());
        }
    }
}

#[test]
fn the_connection_goes_on_as_the_versions_say() {
    for (version, fields, goes_on) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, CLOSE ,y\r\n", false),
        ("1.1", "Connection: x\r\nconnection: Close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: te , keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(done(bytes.as_bytes()).keep_alive(), goes_on, "{version} {fields}");
    }
}

#[test]
fn framing_is_what_the_fields_say() {
    for (fields, framing) in [
        ("", Framing::None),
        ("Content-Length: 0\r\n", Framing::Length(0)),
        ("content-length:  12\t\r\n", Framing::Length(12)),
        ("Content-Length: 07\r\n", Framing::Length(7)),
        ("Content-Length: 18446744073709551615\r\n", Framing::Length(u64::MAX)),
        ("Transfer-Encoding: chunked\r\n", Framing::Chunked),
        ("TRANSFER-ENCODING:CHUNKED\r\n", Framing::Chunked),
    ] {
        let bytes = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(done(bytes.as_bytes()).framing(), framing, "{fields}");
    }
}

#[test]
fn an_upgrade_is_wanted_where_connection_says_so() {
    for (version, fields, is_wanted) in [
        ("1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n", true),
        ("1.1", "Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\n", true),
        ("1.1", "Upgrade: websocket\r\n", false),
        ("1.1", "Connection: upgraded\r\n", false),
        ("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
        let head = done(bytes.as_bytes());
        assert_eq!(head.wants_upgrade(), is_wanted, "{version} {fields}");
        let view = head.on(bytes.as_bytes());
        assert_eq!(view.head().wants_upgrade(), is_wanted, "{version} {fields}");
    }
}

#[test]
fn a_minor_version_above_1_is_served_as_1_1() {
    for minor in 1..=9 {
        let bytes = format!("GET /?a\\b HTTP/1.{minor}\r\nHost: h\r\n\r\n");
        let head = done(bytes.as_bytes());
        assert_eq!(head.version(), Version::Http11, "{minor}");
        assert!(head.keep_alive() && head.len() == bytes.len());
        assert_eq!(head.on(bytes.as_bytes()).query(), Some(b"a\\b".as_slice()));
        let without_host = format!("GET / HTTP/1.{minor}\r\n\r\n");
        assert_eq!(error(without_host.as_bytes()), HeadError::HostMissing, "{minor}");
    }
}

#[test]
fn what_can_become_no_head_is_refused_at_once() {
    for (bytes, status) in [
        ("\r\n\r\n\r\n\r\n\r", 400),
        ("\n", 400),
        ("GET a", 400),
        ("GET /a\\", 400),
        ("GET http://u@", 400),
        ("GET http://[1:2:3:4:5:6:7:8:", 400),
        ("GET http://a:65536", 400),
        ("GET * ", 400),
        ("OPTIONS **", 400),
        ("CONNECT /", 400),
        ("GET / \r\n", 400),
        ("GET / \r\n\r\n", 400),
        ("GET / HTTP/1.1\n", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET / H2", 400),
        ("GET / HTTP/1.1\r\n\n", 400),
        ("GET / HTTP/1.1\r\n ", 400),
        ("GET / HTTP/1.1\r\n:", 400),
        ("GET / HTTP/1.1\r\n\r", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX ", 400),
        ("GET / HTTP/1.1\r\nHost: h\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nHost:", 400),
        ("GET / HTTP/1.1\r\nHost: h/", 400),
        ("GET / HTTP/1.1\r\nHost: %g", 400),
        ("GET / HTTP/1.1\r\nHost: \r", 400),
        ("GET / HTTP/1.1\r\nExpect: 101", 417),
        ("GET / HTTP/1.1\r\nExpect: 100\r", 417),
        ("POST / HTTP/1.1\r\nContent-Length: 5,", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length:", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding:", 400),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length:", 400),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked,", 400),
        ("POST / HTTP/1.0\r\nTransfer-Encoding:", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r", 400),
    ] {
        assert_eq!(error(bytes.as_bytes()).status().code(), status, "{bytes:?}");
    }
}

#[test]
fn a_client_is_told_to_go_on_only_if_it_waits_with_a_body() {
    for (version, fields, waits) in [
        ("1.1", "Expect: 100-continue\r\nContent-Length: 1\r\n", true),
        ("1.1", "Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n", true),
        ("1.1", "Expect: 100-continue\r\n", false),
        ("1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n", false),
        ("1.1", "Content-Length: 1\r\n", false),
        ("1.0", "Expect: 100-continue\r\nContent-Length: 1\r\n", false),
    ] {
        let bytes = format!("PUT / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(done(bytes.as_bytes()).expects_continue(), waits, "{version} {fields}");
    }
}

#[test]
fn a_method_without_a_name_is_kept_as_it_was_sent() {
    let longest = "M".repeat(64);
    for token in ["PROPFIND", "get", "M-SEARCH", "!", "GETT", "GE", &longest] {
        for before in ["", "\r\n", "\r\n\r\n"] {
            let bytes = format!("{before}{token} /a?b HTTP/1.1\r\nHost: h\r\n\r\n");
            let head = done(bytes.as_bytes());
            let request = head.on(bytes.as_bytes());
            assert_eq!((head.method(), request.target()), (Method::Other, b"/a?b".as_slice()));
            assert_eq!(request.method_token(), token.as_bytes(), "{bytes:?}");
        }
    }
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Connect) {
        let name = method.as_str().expect("one of the nine");
        let bytes = format!("{name} / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(done(bytes.as_bytes()).on(bytes.as_bytes()).method_token(), name.as_bytes());
    }
}

#[test]
fn each_bad_request_line_has_its_status() {
    for (line, status) in [
        ("BREW * HTTP/1.1", 400),
        ("get a HTTP/1.1", 400),
        ("BREW a HTTP/2.0", 505),
        ("PRI * HTTP/2.0", 505),
        (&format!("{} / HTTP/1.1", "M".repeat(65)), 501),
        (&format!("{} / HTTP/2.0", "M".repeat(64)), 505),
        (&format!("{} / HTTP/2.0", "M".repeat(65)), 501),
        (&"M".repeat(100_000), 501),
        ("GET / HTTP/2.0", 505),
        ("GET a HTTP/2.0", 400),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/11.1", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET / HTTP/1", 400),
        ("GET / http/1.1", 400),
        ("GET /", 400),
        ("GET", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /  HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        (" GET / HTTP/1.1", 400),
        ("G@T / HTTP/1.1", 400),
        ("GET / a HTTP/1.1", 400),
        ("GET /a#b HTTP/1.1", 400),
        ("GET /a\"b HTTP/1.1", 400),
        ("GET /<a> HTTP/1.1", 400),
        ("GET /a?<b HTTP/1.1", 400),
        ("GET /\x7f HTTP/1.1", 400),
        ("GET /\0 HTTP/1.1", 400),
        ("GET /a\\b HTTP/1.1", 400),
        ("GET \\a HTTP/1.1", 400),
        ("GET http://a/b\\c HTTP/1.1", 400),
        ("GET /a\\b?c HTTP/1.1", 400),
        ("GET /é HTTP/1.1", 400),
        ("GET a/b HTTP/1.1", 400),
        ("GET ?a HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        ("GET a:80 HTTP/1.1", 400),
        ("OPTIONS ** HTTP/1.1", 400),
        ("CONNECT / HTTP/1.1", 400),
        ("CONNECT a HTTP/1.1", 400),
        ("GET http://u@a/ HTTP/1.1", 400),
        ("GET http:///a HTTP/1.1", 400),
        ("GET gopher://a/ HTTP/1.1", 400),
        ("GET / HTTP/1.1\r", 400),
        ("GET / HTTP/1.1\nX: y", 400),
        ("GET / HTTP/1.1\rX: y", 400),
        ("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1", 400),
        ("\nGET / HTTP/1.1", 400),
        ("\rGET / HTTP/1.1", 400),
    ] {
        let bytes = format!("{line}\r\nHost: h\r\n\r\n");
        assert_eq!(error(bytes.as_bytes()).status().code(), status, "{line:?}");
    }
}

#[test]
fn each_bad_field_has_its_status() {
    for (fields, status) in BAD_FIELDS {
        let bytes = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(error(bytes.as_bytes()).status().code(), *status, "{fields:?}");
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(error(old), HeadError::CodingInOldVersion);
}

/// Lines of fields, and what a request with them is answered.
const BAD_FIELDS: &[(&str, u16)] = &[
    ("X : y\r\n", 400),
    ("X\t: y\r\n", 400),
    (": y\r\n", 400),
    ("X\r\n", 400),
    ("X y\r\n", 400),
    ("X(: y\r\n", 400),
    ("X\0: y\r\n", 400),
    ("é: y\r\n", 400),
    (" X: y\r\n", 400),
    ("X: y\r\n z\r\n", 400),
    ("X: y\r\n\tz\r\n", 400),
    ("X: y\rz\r\n", 400),
    ("X: y\r\r\n", 400),
    ("X: y\n", 400),
    ("X: y\nZ: a\r\n", 400),
    ("X: a\0b\r\n", 400),
    ("X: a\x0bb\r\n", 400),
    ("X: a\x7fb\r\n", 400),
    ("X: a value of more than sixteen bytes, then \x01 and more\r\n", 400),
    ("\n", 400),
    ("Host: h\r\n", 400),
    ("hOST: h\r\n", 400),
    ("Expect: 200-ok\r\n", 417),
    ("Expect: 100-continue, x\r\n", 417),
    ("Content-Length: \r\n", 400),
    ("Content-Length: +1\r\n", 400),
    ("Content-Length: -1\r\n", 400),
    ("Content-Length: 1 2\r\n", 400),
    ("Content-Length: 1,\r\n", 400),
    ("Content-Length: ,1\r\n", 400),
    ("Content-Length: 1_0\r\n", 400),
    ("Content-Length: 0x1\r\n", 400),
    ("Content-Length: 1.0\r\n", 400),
    ("Content-Length: \u{b2}\r\n", 400),
    ("Content-Length: 1, 2\r\n", 400),
    ("Content-Length: 5, 5\r\n", 400),
    ("Content-Length: 1\r\nContent-Length: 2\r\n", 400),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", 400),
    ("Content-Length: 0\r\nContent-Length: 0\r\n", 400),
    ("Content-Length: 18446744073709551616\r\n", 400),
    ("Content-Length: 99999999999999999999999999\r\n", 400),
    ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
    ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", 400),
    ("Transfer-Encoding: gzip\r\nContent-Length: 1\r\n", 400),
    ("Transfer-Encoding: gzip\r\n", 400),
    ("Transfer-Encoding: identity\r\n", 400),
    ("Transfer-Encoding: xchunked\r\n", 400),
    ("Transfer-Encoding: \r\n", 400),
    ("Transfer-Encoding: , chunked\r\n", 400),
    ("Transfer-Encoding: chunked,\r\n", 400),
    ("Transfer-Encoding: chunked, chunked\r\n", 400),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400),
    ("Transfer-Encoding: chunked, gzip\r\n", 400),
    ("Transfer-Encoding: chunked;q=1\r\n", 400),
    ("Transfer-Encoding: chunked x\r\n", 400),
    ("Transfer-Encoding: \"chunked\"\r\n", 400),
    ("Transfer-Encoding:\x0bchunked\r\n", 400),
    ("Transfer-Encoding : chunked\r\n", 400),
    ("Transfer-Encoding: gzip, chunked\r\n", 501),
    ("Transfer-Encoding: gzip;q=1\r\nTransfer-Encoding: chunked\r\n", 501),
    ("Transfer-Encoding: identity, chunked\r\n", 501),
];

#[test]
fn host_is_there_once_and_well_formed() {
    let with = |version: &str, fields: &str| {
        let bytes = format!("GET / HTTP/{version}\r\n{fields}Accept: */*\r\n\r\n");
        decode(bytes.as_bytes()).map(|_| ())
    };
    assert_eq!(with("1.1", ""), Err(HeadError::HostMissing));
    assert_eq!(with("1.0", ""), Ok(()));
    for host in ["a", "a.b:80", "127.0.0.1:54321", "[::1]:1", "a:", "a_b", "a.b.", "\t h \t"] {
        assert_eq!(with("1.1", &format!("Host: {host}\r\n")), Ok(()), "{host}");
        assert_eq!(with("1.1", &format!("X: y\r\nhost:{host}\r\n")), Ok(()), "{host}");
    }
    for host in [
        "", ":80", "a b", "a,b", "a/b", "u@a", "a:b", "a:99999", "[::1", "a:1:2", "a\\b", "a?b",
        "é",
    ] {
        let refused = if host == "a,b" { Ok(()) } else { Err(HeadError::HostSyntax) };
        for version in ["1.1", "1.0"] {
            assert_eq!(with(version, &format!("Host: {host}\r\n")), refused, "{host}");
            assert_eq!(with(version, &format!("X: y\r\nhOst:  {host}\r\n")), refused, "{host}");
        }
    }
    let twice = "Host: a\r\nHost: a\r\n";
    assert_eq!(with("1.1", twice), Err(HeadError::HostRepeated));
    assert_eq!(with("1.0", twice), Err(HeadError::HostRepeated));
}

#[test]
fn each_limit_is_kept_to_the_byte() {
    let limits =
        Limits { head_bytes_max: 200, target_bytes_max: 20, fields_max: 3, body_bytes_max: 0 };
    let decode = |bytes: &str| Head::decode(bytes.as_bytes(), &mut 0, &limits).map(|_| ());
    let target = |len: usize| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(len - 1));
    assert_eq!(decode(&target(20)), Ok(()));
    assert_eq!(decode(&target(21)), Err(HeadError::TargetTooLong { limit_bytes: 20 }));
    let query = format!("GET /?{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(19));
    assert_eq!(decode(&query), Err(HeadError::TargetTooLong { limit_bytes: 20 }));
    let unfinished = format!("GET /{}", "a".repeat(20));
    assert_eq!(decode(&unfinished), Err(HeadError::TargetTooLong { limit_bytes: 20 }));

    let fields =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a: b\r\n".repeat(count - 1));
    assert_eq!(decode(&fields(3)), Ok(()));
    assert_eq!(decode(&fields(4)), Err(HeadError::TooManyFields { limit: 3 }));
    let none = Limits { fields_max: 0, ..limits };
    let got = Head::decode(fields(1).as_bytes(), &mut 0, &none);
    assert_eq!(got, Err(HeadError::TooManyFields { limit: 0 }));

    let head =
        |len: usize| format!("GET / HTTP/1.1\r\nHost: h\r\na: {}\r\n\r\n", "b".repeat(len - 32));
    assert_eq!(head(200).len(), 200);
    assert_eq!(decode(&head(200)), Ok(()));
    assert_eq!(decode(&head(201)), Err(HeadError::TooLarge { limit_bytes: 200 }));
    assert_eq!(decode(&head(400)), Err(HeadError::TooLarge { limit_bytes: 200 }));
    let huge = Limits {
        head_bytes_max: usize::MAX,
        target_bytes_max: usize::MAX,
        fields_max: usize::MAX,
        ..limits
    };
    let got = Head::decode(&vec![b'a'; 70_000], &mut 0, &huge);
    assert_eq!(got, Err(HeadError::MethodUnknown));
    let long = format!("GET /{}", "a".repeat(70_000));
    assert_eq!(
        Head::decode(long.as_bytes(), &mut 0, &huge),
        Err(HeadError::TooLarge { limit_bytes: 65_535 })
    );
}

#[test]
fn a_head_that_trickles_in_is_refused_as_soon_as_it_can_be() {
    let limits = Limits::default();
    let mut seen = 0;
    let long = format!("GET /{}", "a".repeat(20_000)).into_bytes();
    let refused =
        (1..long.len()).find(|len| Head::decode(&long[..*len], &mut seen, &limits).is_err());
    assert!(refused.is_some_and(|len| len <= limits.target_bytes_max + 72), "{refused:?}");
    for garbage in [b"\x16\x03\x01".as_slice(), b"{\"a\":1}", b"GET \x01", b"SSH-2.0-x\r\n"] {
        assert!(decode(garbage).is_err(), "{}", garbage.escape_ascii());
    }
}

#[test]
fn every_error_says_what_it_is() {
    let errors =
        [HeadError::MethodSyntax, HeadError::TooLarge { limit_bytes: 9 }, HeadError::Expectation];
    for error in errors {
        let text = error.to_string();
        assert!(text.starts_with(char::is_lowercase), "{text}");
        assert!(error.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    }
}
