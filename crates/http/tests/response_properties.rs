//! What must hold for every response: however it is cut, whatever it is; and that what a client
//! writes is what a server reads.

mod tails;

use std::sync::LazyLock;

use gustnado_http::body::BodyDecodeError;
use gustnado_http::chunk::write_chunk;
use gustnado_http::head::{Decoded, Framing, Head};
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::request_writer::RequestWriter;
use gustnado_http::response::{ResponseBody, ResponseError, ResponseFraming, ResponseHead};
use gustnado_http::response_writer::{Opening, Persist, ResponseWriter};
use gustnado_http::status::Status;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Small enough that random responses reach them.
const LIMITS: Limits =
    Limits { head_bytes_max: 300, target_bytes_max: 60, fields_max: 8, body_bytes_max: 200 };

const NAME: &str = "x-[a-zA-Z0-9!#$%&'*+.^_`|~-]{0,8}";
const VALUE: &str = "([!-~é][ -~\té]{0,12}[!-~é])?";

fn whole(bytes: &[u8], method: Method) -> Result<Decoded<ResponseHead>, ResponseError> {
    ResponseHead::decode(bytes, &mut 0, method, &LIMITS)
}

/// Decodes a head whose bytes come in pieces of these sizes, again and again.
fn trickle(
    bytes: &[u8],
    method: Method,
    sizes: &[usize],
) -> Result<Decoded<ResponseHead>, ResponseError> {
    let (mut seen, mut there) = (0, 0);
    let mut sizes = sizes.iter().cycle();
    loop {
        there = bytes.len().min(there + sizes.next().expect("it cycles"));
        match ResponseHead::decode(&bytes[..there], &mut seen, method, &LIMITS) {
            Ok(Decoded::NeedMore) if there < bytes.len() => assert!(seen <= there),
            verdict => return verdict,
        }
    }
}

/// The data, and either the bytes used up, whether the body ended and its trailers, or the error.
type Verdict = (Vec<u8>, Result<(usize, bool, Option<Vec<Field>>), BodyDecodeError>);
type Field = (Vec<u8>, Vec<u8>);

fn read(framing: ResponseFraming, bytes: &[u8], sizes: &[usize]) -> Verdict {
    let mut body = ResponseBody::new(framing, &LIMITS);
    let (mut data, mut at, mut there) = (Vec::new(), 0, 0);
    let mut sizes = sizes.iter().cycle();
    loop {
        let piece = match body.decode(&bytes[at..there]) {
            Ok(piece) => piece,
            Err(error) => return (data, Err(error)),
        };
        data.extend_from_slice(piece.data);
        assert!(piece.data.len() <= piece.consumed);
        assert!(bytes[..at + piece.consumed].ends_with(piece.data), "data comes last");
        at += piece.consumed;
        if piece.done || (at == there && there == bytes.len()) {
            let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
            let trailers = body.trailers().map(|trailers| trailers.map(owned).collect());
            assert_eq!(trailers.is_some(), piece.done);
            return (data, Ok((at, piece.done, trailers)));
        }
        if at == there {
            there = bytes.len().min(there + sizes.next().expect("it cycles"));
        } else {
            assert!(piece.consumed > 0, "no progress");
        }
    }
}

fn head_soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 304 \r\n",
        "HTTP/1.1 100\r\n\r\n",
        "HTTP/1.1 ",
        "HTTP/1.2 200 ",
        "HTTP/2.0 ",
        "Content-Length: 15, 015 ,",
        "Transfer-Encoding: ",
        "chunked",
        "200",
        "404 Not Found\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 5, 6\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "X: y\r\n",
        "X : y\r\n",
        "Set-Cookie: 0123456789012345678901234567890123456789\r\n",
        "a:\tb\t\r\n",
        " folded\r\n",
        "\r\n",
        "\r",
        "\n",
        "\0",
        ":",
        "é",
        "\r\n\r\n",
    ]);
    prop::collection::vec(piece, 0..10).prop_map(|pieces| {
        // Most of them start well, or little would be reached.
        let text = pieces.concat();
        if text.starts_with('H') { text } else { format!("HTTP/1.1 200 OK\r\n{text}") }.into_bytes()
    })
}

fn body_soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "0\r\n",
        "0\r\n\r\n",
        "1\r\na\r\n",
        "5;x=y\r\nhello\r\n",
        "A\r\n0123456789\r\n",
        "c9\r\n",
        "\r\n",
        "\r",
        "\n",
        "a: b\r\n",
        "X-Long: 012345678901234567890123456789\r\n",
        ";",
        "hello",
        "\0",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

fn methods() -> impl Strategy<Value = Method> {
    select(Method::ALL.to_vec())
}

fn framings() -> impl Strategy<Value = ResponseFraming> {
    prop_oneof![
        Just(ResponseFraming::None),
        Just(ResponseFraming::Chunked),
        Just(ResponseFraming::UntilClose),
        (0..250_u64).prop_map(ResponseFraming::Length),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_head_cut_at_any_byte_reads_the_same(
        bytes in head_soup(),
        method in methods(),
        sizes in prop::collection::vec(1_usize..12, 1..6),
    ) {
        for sizes in [&*sizes, &[1]] {
            // An error in an unfinished head may be told now or later, but no later than the head's
            // end.
            let (cut, uncut) = (trickle(&bytes, method, sizes), whole(&bytes, method));
            prop_assert!(cut == uncut || (cut == Ok(Decoded::NeedMore) && uncut.is_err()));
            let full = [bytes.as_slice(), &[b'a'; 300]].concat();
            prop_assert_eq!(trickle(&full, method, sizes), whole(&full, method));
        }
    }

    #[test]
    fn bytes_that_need_more_can_become_a_head(
        bytes in head_soup(),
        method in methods(),
        cut: Index,
    ) {
        let begun = &bytes[..cut.index(bytes.len() + 1)];
        if whole(begun, method) == Ok(Decoded::NeedMore) {
            let is_end = |tail: &Vec<u8>| is_open(&whole(&[begun, tail].concat(), method));
            prop_assert!(TAILS.iter().any(is_end), "{}", begun.escape_ascii());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        method in methods(),
        framing in framings(),
    ) {
        let _ = whole(&bytes, method);
        let _ = read(framing, &bytes, &[usize::MAX / 2]);
    }

    #[test]
    fn what_follows_a_head_changes_nothing(bytes in head_soup(), more in head_soup()) {
        let first = whole(&bytes, Method::Get);
        if first != Ok(Decoded::NeedMore) {
            prop_assert_eq!(whole(&[bytes, more].concat(), Method::Get), first);
        }
    }

    #[test]
    fn a_flipped_byte_never_makes_the_readers_panic(bytes in head_soup(), at: Index, byte: u8) {
        let mut bytes = [bytes.as_slice(), b"\r\n\r\n"].concat();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Decoded::Done(head)) = whole(&bytes, Method::Get) {
            let response = head.on(&bytes);
            prop_assert!(response.fields().count() <= LIMITS.fields_max);
            prop_assert!((100..1000).contains(&response.status()));
            let clean = |value: &[u8]| !value.iter().any(|byte| b"\r\n\0".contains(byte));
            prop_assert!(response.fields().all(|field| clean(field.1)));
        }
    }

    /// The oracle. What we take, httparse takes, and finds the same in it, but for a minor version
    /// above 1, which it does not know. We are stricter: both bytes at a line's end, no empty lines
    /// in front, no code below 100, and the framing fields are checked.
    #[test]
    fn what_is_taken_httparse_reads_the_same(bytes in head_soup()) {
        if let Ok(Decoded::Done(head)) = whole(&bytes, Method::Get) {
            agree(&bytes, &head);
        }
    }

    #[test]
    fn a_body_cut_at_any_byte_reads_the_same(
        framing in framings(),
        bytes in body_soup(),
        sizes in prop::collection::vec(1_usize..12, 1..6),
    ) {
        let uncut = read(framing, &bytes, &[usize::MAX / 2]);
        // Past a limit, more of the data may have been handed on before the error.
        let same = |cut: &Verdict| match (cut, &uncut) {
            ((_, Err(one)), (_, Err(two))) => one == two,
            (one, two) => one == two,
        };
        prop_assert!(same(&read(framing, &bytes, &sizes)));
        prop_assert!(same(&read(framing, &bytes, &[1])));
    }

    #[test]
    fn a_written_answer_reads_back_as_it_was(
        status in select(Status::ALL.to_vec()),
        fields in prop::collection::vec((NAME, VALUE), 0..5),
        chunks in prop::option::of(prop::collection::vec("[a-z\r\n]{1,9}", 0..4)),
        trailers in prop::collection::vec((NAME, VALUE), 0..3),
        sizes in prop::collection::vec(1_usize..30, 1..6),
        next in "[ -~]{0,20}",
    ) {
        let mut bytes = Vec::new();
        let opening = Opening::new(b"");
        let mut answer = ResponseWriter::start(&mut bytes, status, &opening, Persist::Default);
        for (name, value) in &fields {
            answer.field(name, value.as_bytes()).expect("a good field");
        }
        let data = chunks.clone().unwrap_or_default().concat();
        match chunks {
            Some(_) => answer.chunked(),
            None => answer.content_length(0),
        }
        answer.finish();
        let head_len = bytes.len();
        prop_assume!(head_len <= LIMITS.head_bytes_max);
        let is_chunked = chunks.is_some() && status.may_have_body();
        if is_chunked {
            for chunk in chunks.iter().flatten() {
                write_chunk(&mut bytes, chunk.as_bytes());
            }
            let lines = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
            bytes.extend(format!("0\r\n{}\r\n", lines.collect::<String>()).into_bytes());
        }
        let end = bytes.len();
        bytes.extend_from_slice(next.as_bytes());
        let Ok(Decoded::Done(head)) = trickle(&bytes, Method::Get, &sizes) else { panic!() };
        prop_assert_eq!((head.len(), head.status()), (head_len, status.code()));
        let response = head.on(&bytes);
        prop_assert_eq!(response.reason(), status.reason().as_bytes());
        let read_fields: Vec<_> = response.fields().take(fields.len()).collect();
        let wrote: Vec<_> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        prop_assert_eq!(read_fields, wrote);
        if is_chunked {
            let owned = |(n, v): (String, String)| (n.into_bytes(), v.into_bytes());
            let trailers: Vec<_> = trailers.into_iter().map(owned).collect();
            let body = &bytes[head_len..];
            let want = (data.into_bytes(), Ok((end - head_len, true, Some(trailers))));
            prop_assert_eq!(read(head.framing(), body, &sizes), want);
        }
    }

    #[test]
    fn what_a_client_asks_a_server_reads(
        method in methods(),
        path in "/[a-z0-9%._~-]{0,20}(\\?[a-z=&?/]{0,10})?",
        host in "[a-z][a-z.-]{0,9}(:[1-9][0-9]{0,3})?",
        length in prop::option::of(0..u64::MAX),
        expects: bool,
        closes: bool,
        fields in prop::collection::vec((NAME, VALUE), 0..3),
    ) {
        let target = if method == Method::Connect { "h:443".to_owned() } else { path };
        let mut bytes = Vec::new();
        let mut ask = RequestWriter::start(&mut bytes, method, target.as_bytes(), host.as_bytes())
            .expect("a good target and host");
        for (name, value) in &fields {
            ask.field(name, value.as_bytes()).expect("a good field");
        }
        match length {
            Some(bytes) => ask.content_length(bytes),
            None => ask.chunked(),
        }
        if expects {
            ask.expect_continue();
        }
        if closes {
            ask.close();
        }
        ask.finish();
        prop_assume!(bytes.len() <= LIMITS.head_bytes_max);
        let verdict = Head::decode(&bytes, &mut 0, &LIMITS);
        let Ok(Decoded::Done(head)) = verdict else { panic!("{verdict:?}") };
        let request = head.on(&bytes);
        prop_assert_eq!(head.len(), bytes.len());
        prop_assert_eq!((request.method(), request.target()), (method, target.as_bytes()));
        if method != Method::Connect {
            prop_assert_eq!(request.host(), Some(host.as_bytes()));
        }
        prop_assert_eq!(head.framing(), length.map_or(Framing::Chunked, Framing::Length));
        prop_assert_eq!(head.expects_continue(), expects && length != Some(0));
        prop_assert_eq!(head.keep_alive(), !closes);
        let read: Vec<_> = request.fields().skip(1).take(fields.len()).collect();
        let wrote: Vec<_> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        prop_assert_eq!(read, wrote);
    }

    #[test]
    fn nothing_that_is_written_makes_a_second_request(
        target in ".{0,20}",
        host in ".{0,12}",
        fields in prop::collection::vec((".{0,8}", ".{0,12}"), 0..3),
    ) {
        let mut bytes = Vec::new();
        let (target, host) = (target.as_bytes(), host.as_bytes());
        if let Ok(mut ask) = RequestWriter::start(&mut bytes, Method::Get, target, host)
        {
            for (name, value) in &fields {
                let _ = ask.field(name, value.as_bytes());
            }
            ask.finish();
            prop_assume!(bytes.len() <= LIMITS.head_bytes_max);
            if let Ok(Decoded::Done(head)) = Head::decode(&bytes, &mut 0, &LIMITS) {
                prop_assert_eq!((head.len(), head.framing()), (bytes.len(), Framing::None));
            }
        }
    }
}

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(tails::of_responses);

/// Whether that is a head, or bytes that could not be known to be none before they were whole: past
/// a limit, or with a coding that we do not know.
fn is_open(verdict: &Result<Decoded<ResponseHead>, ResponseError>) -> bool {
    use ResponseError::{CodingUnknown, TooLarge, TooManyFields};
    match verdict {
        Ok(decoded) => *decoded != Decoded::NeedMore,
        Err(error) => matches!(error, TooLarge { .. } | TooManyFields { .. } | CodingUnknown),
    }
}

fn agree(bytes: &[u8], head: &ResponseHead) {
    let mut bytes = bytes.to_vec();
    if bytes[7] > b'1' {
        bytes[7] = b'1';
    }
    let bytes = &*bytes;
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut oracle = httparse::Response::new(&mut fields);
    let verdict = oracle.parse(bytes);
    assert_eq!(verdict, Ok(httparse::Status::Complete(head.len())), "{}", bytes.escape_ascii());
    let response = head.on(bytes);
    assert_eq!(oracle.code, Some(response.status()));
    let ours: Vec<_> = response.fields().collect();
    let theirs: Vec<_> = oracle.headers.iter().map(|f| (f.name.as_bytes(), f.value)).collect();
    assert_eq!(ours, theirs);
}
