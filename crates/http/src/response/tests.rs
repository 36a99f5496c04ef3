use super::{ResponseBody, ResponseError, ResponseFraming, ResponseHead};
use crate::head::{Decoded, Version};
use crate::limits::Limits;
use crate::method::Method;

const LIMITS: Limits =
    Limits { head_bytes_max: 200, target_bytes_max: 10, fields_max: 4, body_bytes_max: 100 };

fn decode(method: Method, text: &str) -> Result<Decoded<ResponseHead>, ResponseError> {
    let whole = ResponseHead::decode(text.as_bytes(), &mut 0, method, &LIMITS);
    let mut seen = 0;
    for end in 0..=text.len() {
        match ResponseHead::decode(&text.as_bytes()[..end], &mut seen, method, &LIMITS) {
            Ok(Decoded::NeedMore) => {}
            verdict => {
                assert_eq!(verdict, whole, "cut at {end}: {text:?}");
                return whole;
            }
        }
    }
    assert_eq!(whole, Ok(Decoded::NeedMore), "{text:?}");
    whole
}

fn head(method: Method, text: &str) -> ResponseHead {
    match decode(method, text) {
        Ok(Decoded::Done(head)) => head,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn get(fields: &str) -> ResponseHead {
    head(Method::Get, &format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))
}

fn refused(fields: &str) -> ResponseError {
    let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    decode(Method::Get, &text).expect_err(&text)
}

#[test]
fn a_head_is_read_part_by_part() {
    let text = "HTTP/1.1 404 Not Found\r\nServer:  x y \t\r\nSet-Cookie: a\r\nset-cookie:b\r\n\
                Empty:\r\n\r\nbody";
    let head = head(Method::Get, text);
    assert_eq!(head.len(), text.len() - 4);
    let response = head.on(text.as_bytes());
    assert_eq!((response.status(), response.version()), (404, Version::Http11));
    assert_eq!(response.reason(), b"Not Found");
    assert_eq!(response.field("SERVER"), Some(b"x y".as_slice()));
    assert_eq!(response.values("Set-Cookie").collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(response.field("empty"), Some(b"".as_slice()));
    assert_eq!(response.field("missing"), None);
    assert_eq!(response.fields().count(), 4);
    assert_eq!(format!("{response:?}"), "404 Not Found");
}

#[test]
fn status_lines_are_taken_or_refused_as_the_grammar_says() {
    for (line, code, reason) in [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.0 200 OK", 200, "OK"),
        ("HTTP/1.2 200 OK", 200, "OK"),
        ("HTTP/1.9 200 OK", 200, "OK"),
        ("HTTP/1.1 200 ", 200, ""),
        ("HTTP/1.1 200", 200, ""),
        ("HTTP/1.1 999 \tz\u{e9} ", 999, "\tz\u{e9} "),
        ("HTTP/1.1 100 Continue", 100, "Continue"),
    ] {
        let text = format!("{line}\r\n\r\n");
        let head = head(Method::Get, &text);
        let response = head.on(text.as_bytes());
        assert_eq!((response.status(), response.reason()), (code, reason.as_bytes()), "{line}");
    }
    for (line, error) in [
        ("HTTP/1.1  200 OK", ResponseError::StatusLine),
        ("HTTP/1.1 20 OK", ResponseError::StatusLine),
        ("HTTP/1.1 2000 OK", ResponseError::StatusLine),
        ("HTTP/1.1 099 OK", ResponseError::StatusLine),
        ("HTTP/1.1 2x0 OK", ResponseError::StatusLine),
        ("HTTP/1.1 -20 OK", ResponseError::StatusLine),
        ("HTTP/1.1\t200 OK", ResponseError::StatusLine),
        ("HTTP/1.1 200\tOK", ResponseError::StatusLine),
        ("HTTP/1.1 200 O\0K", ResponseError::StatusLine),
        ("HTTP/1.1 200 O\rK", ResponseError::StatusLine),
        ("HTTP/1.1 200 OK\r", ResponseError::StatusLine),
        ("HTTP/1.1", ResponseError::StatusLine),
        ("HTTP/1", ResponseError::StatusLine),
        ("HTTP/11 200 OK", ResponseError::StatusLine),
        ("HTTP/1.10 200 OK", ResponseError::StatusLine),
        ("HTTP/2 200", ResponseError::VersionUnknown),
        ("HTTP/2.0 200 OK", ResponseError::VersionUnknown),
        ("http/1.1 200 OK", ResponseError::NotHttp),
        ("", ResponseError::NotHttp),
        (" HTTP/1.1 200 OK", ResponseError::NotHttp),
        ("220 mail.example ESMTP", ResponseError::NotHttp),
    ] {
        assert_eq!(decode(Method::Get, &format!("{line}\r\n\r\n")), Err(error), "{line:?}");
    }
}

#[test]
fn each_bad_field_line_has_its_error() {
    for (fields, error) in [
        ("X : y\r\n", ResponseError::FieldName),
        (": y\r\n", ResponseError::FieldName),
        ("X\r\n", ResponseError::FieldName),
        ("é: y\r\n", ResponseError::FieldName),
        ("X: \0\r\n", ResponseError::FieldValue),
        ("X: a\rb\r\n", ResponseError::FieldValue),
        ("X: a\r\r\n", ResponseError::FieldValue),
        ("X: a\r\n b\r\n", ResponseError::Folded),
        ("X: a\r\n\tb\r\n", ResponseError::Folded),
        (" X: a\r\n", ResponseError::Folded),
        ("X: a\nY: b\r\n", ResponseError::LineEnd),
        ("X: a\n\n", ResponseError::LineEnd),
        ("A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\n", ResponseError::TooManyFields { limit: 4 }),
        ("Content-Length: \r\n", ResponseError::LengthSyntax),
        ("Content-Length: -1\r\n", ResponseError::LengthSyntax),
        ("Content-Length: +1\r\n", ResponseError::LengthSyntax),
        ("Content-Length: 1 2\r\n", ResponseError::LengthSyntax),
        ("Content-Length: 0x10\r\n", ResponseError::LengthSyntax),
        ("Content-Length: 1,\r\n", ResponseError::LengthConflict),
        ("Content-Length: 18446744073709551616\r\n", ResponseError::LengthSyntax),
        ("Content-Length: 1, 2\r\n", ResponseError::LengthConflict),
        ("Content-Length: 1\r\nContent-Length: 2\r\n", ResponseError::LengthConflict),
        ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", ResponseError::LengthWithCoding),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", ResponseError::LengthWithCoding),
        ("Transfer-Encoding: gzip, chunked\r\n", ResponseError::CodingUnknown),
        ("Transfer-Encoding: gzip\r\n", ResponseError::CodingUnknown),
        ("Transfer-Encoding: identity\r\n", ResponseError::CodingUnknown),
        ("Transfer-Encoding: chunked, chunked\r\n", ResponseError::CodingSyntax),
        ("Transfer-Encoding: chunked, gzip\r\n", ResponseError::CodingSyntax),
        ("Transfer-Encoding: chunked;a=b\r\n", ResponseError::CodingSyntax),
        ("Transfer-Encoding:\r\n", ResponseError::CodingSyntax),
        ("Transfer-Encoding: \x0bchunked\r\n", ResponseError::FieldValue),
    ] {
        assert_eq!(refused(fields), error, "{fields:?}");
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(decode(Method::Get, old), Err(ResponseError::CodingInOldVersion));
}

#[test]
fn the_end_of_the_body_is_found_by_the_rules_in_their_order() {
    let length = "Content-Length: 5\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let of = |method, status: &str, fields: &str| {
        head(method, &format!("HTTP/1.1 {status} X\r\n{fields}\r\n")).framing()
    };
    for fields in ["", length, chunked] {
        assert_eq!(of(Method::Head, "200", fields), ResponseFraming::None);
        assert_eq!(of(Method::Connect, "200", fields), ResponseFraming::Tunnel);
        for status in ["100", "103", "199", "204", "304"] {
            assert_eq!(of(Method::Get, status, fields), ResponseFraming::None, "{status}");
        }
    }
    for (method, status) in [(Method::Get, "200"), (Method::Connect, "407"), (Method::Put, "205")] {
        assert_eq!(of(method, status, ""), ResponseFraming::UntilClose);
        assert_eq!(of(method, status, length), ResponseFraming::Length(5));
        assert_eq!(of(method, status, chunked), ResponseFraming::Chunked);
    }
    assert_eq!(get("Content-Length: 5, 5\r\nContent-Length: 5\r\n").content_length(), Some(5));
    assert_eq!(head(Method::Head, "HTTP/1.1 200\r\nContent-Length: 7\r\n\r\n").content_length(), {
        Some(7)
    });
}

#[test]
fn whether_the_connection_goes_on_is_found_by_version_and_word() {
    let length = "Content-Length: 5\r\n";
    assert!(get(length).keep_alive());
    assert!(get("Transfer-Encoding: chunked\r\n").keep_alive());
    assert!(!get("").keep_alive());
    assert!(!get("Content-Length: 5\r\nConnection: x, Close\r\n").keep_alive());
    assert!(
        !get("Connection: close\r\nConnection: keep-alive\r\nContent-Length: 0\r\n").keep_alive()
    );
    let old = |fields: &str| head(Method::Get, &format!("HTTP/1.0 200 OK\r\n{fields}\r\n"));
    assert!(!old(length).keep_alive());
    assert!(old("Content-Length: 5\r\nConnection: Keep-Alive\r\n").keep_alive());
    assert!(!old("Connection: keep-alive\r\n").keep_alive());
    let tunnel = head(Method::Connect, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert!(!tunnel.keep_alive());
}

#[test]
fn a_head_past_the_limit_is_refused_as_soon_as_it_is_reached() {
    let text = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(300));
    assert_eq!(
        decode(Method::Get, &text),
        Err(ResponseError::TooLarge { limit_bytes: LIMITS.head_bytes_max })
    );
    let room = LIMITS.head_bytes_max - "HTTP/1.1 200 OK\r\nX: \r\n\r\n".len();
    let text = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(room));
    assert_eq!(head(Method::Get, &text).len(), LIMITS.head_bytes_max);
}

/// The data, the bytes used up, and the body in the state it came to.
fn read(framing: ResponseFraming, input: &str, step: usize) -> (Vec<u8>, usize, ResponseBody) {
    let mut body = ResponseBody::new(framing, &LIMITS);
    let (mut data, mut at, mut there) = (Vec::new(), 0, 0);
    loop {
        let piece = body.decode(&input.as_bytes()[at..there]).expect("a good body");
        data.extend_from_slice(piece.data);
        at += piece.consumed;
        assert_eq!(body.received(), data.len() as u64);
        if piece.done || at == input.len() {
            return (data, at, body);
        }
        if at == there {
            there = input.len().min(there.saturating_add(step));
        }
    }
}

#[test]
fn trailers_are_kept_and_nothing_else() {
    for (input, data, trailers) in [
        ("0\r\n\r\n", "", vec![]),
        ("1\r\na\r\n0\r\n\r\n", "a", vec![]),
        ("0\r\nX: y\r\n\r\n", "", vec![("X", "y")]),
        (
            "2\r\n\r\n\r\n1;e=f\r\nb\r\n0 ;e\r\nX: y \r\nZ:\r\n\r\n",
            "\r\nb",
            vec![("X", "y"), ("Z", "")],
        ),
    ] {
        for step in 1..=input.len() {
            let input = format!("{input}next");
            let (read, at, body) = read(ResponseFraming::Chunked, &input, step);
            assert_eq!((read.as_slice(), at), (data.as_bytes(), input.len() - 4), "{input:?}");
            let found: Vec<_> = body.trailers().expect("the body is done").collect();
            let want: Vec<_> = trailers.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
            assert_eq!(found, want, "{input:?} by {step}");
        }
    }
    let (_, _, body) = read(ResponseFraming::Chunked, "1\r\na\r\n0\r\nX: y\r\n", 3);
    assert!(body.trailers().is_none());
}

#[test]
fn a_body_until_the_end_of_the_connection_is_whole_only_then() {
    let (data, at, mut body) = read(ResponseFraming::UntilClose, "anything\r\n0\r\n\r\n", 3);
    assert_eq!((data.as_slice(), at), (b"anything\r\n0\r\n\r\n".as_slice(), 15));
    assert!(!body.is_done() && body.trailers().is_none());
    assert!(body.close() && body.is_done());
    assert_eq!(body.trailers().map(Iterator::count), Some(0));
    let piece = body.decode(b"late").expect("nothing to read");
    assert!(piece.done && piece.consumed == 0);

    let (_, _, mut body) = read(ResponseFraming::Length(9), "short", 2);
    assert!(!body.close(), "a length that was not reached");
    let (_, _, mut body) = read(ResponseFraming::Chunked, "5\r\nshort\r\n", 2);
    assert!(!body.close(), "no last chunk");
    let (_, _, mut body) = read(ResponseFraming::Length(5), "shortnext", 2);
    assert!(body.close());
    assert_eq!(body.trailers().map(Iterator::count), Some(0));
}

#[test]
fn the_limit_holds_for_a_body_without_length_too() {
    let mut body = ResponseBody::new(ResponseFraming::UntilClose, &LIMITS);
    body.decode(&[b'a'; 100]).expect("the limit is not passed");
    let error = body.decode(b"a").expect_err("one too many");
    assert_eq!(error.to_string(), "the body is longer than 100 bytes");
}

#[test]
fn heads_without_a_body_find_none() {
    for framing in [ResponseFraming::None, ResponseFraming::Tunnel, ResponseFraming::Length(0)] {
        let mut body = ResponseBody::new(framing, &LIMITS);
        assert!(body.is_done());
        let piece = body.decode(b"HTTP/1.1 200 OK").expect("nothing to read");
        assert!(piece.done && piece.consumed == 0 && piece.data.is_empty());
    }
}
