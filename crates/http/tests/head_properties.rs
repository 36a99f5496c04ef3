//! What must hold for every head: however it is cut, whatever it is.

mod tails;

use std::sync::LazyLock;

use gustnado_http::head::{Decoded, Framing, Head, HeadError, Version};
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Small enough that random heads reach them.
const LIMITS: Limits =
    Limits { head_bytes_max: 300, target_bytes_max: 60, fields_max: 8, body_bytes_max: 100 };

/// A field name of every kind of token byte that is none of the known ones.
const NAME: &str = "x-[a-zA-Z0-9!#$%&'*+.^_`|~-]{0,8}";

/// A field value without space around it; may be empty.
const VALUE: &str = "([!-~é][ -~\té]{0,12}[!-~é])?";

/// Decodes bytes that come in pieces, cut at these places.
fn trickle(bytes: &[u8], cuts: &[usize]) -> Result<Decoded<Head>, HeadError> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(bytes.len());
    let mut seen = 0;
    for cut in cuts {
        match Head::decode(&bytes[..cut], &mut seen, &LIMITS) {
            Ok(Decoded::NeedMore) => assert!(seen <= cut),
            verdict => return verdict,
        }
    }
    Ok(Decoded::NeedMore)
}

fn whole(bytes: &[u8]) -> Result<Decoded<Head>, HeadError> {
    Head::decode(bytes, &mut 0, &LIMITS)
}

/// Pieces of heads, good and bad, that make interesting wholes when strung together.
fn head_soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "GET ",
        "POST ",
        "BREW ",
        "get ",
        "/",
        "/a?b=c",
        "*",
        "http://a/b",
        " ",
        "HTTP/1.1\r\n",
        "HTTP/1.0\r\n",
        "HTTP/1.2\r\n",
        "HTTP/2.0\r\n",
        "CONNECT [::1]:443 HTTP/1.1\r\n",
        "OPTIONS http://[1::]:8?a HTTP/1.1\r\n",
        "GET /a\\b",
        "GET / HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\n",
        "Host: a\r\n",
        "host:b:80\r\n",
        "Host: a_b\r\n",
        "Host: [::ffff:1.2.3.4]:80\r\n",
        "Host: %41.\r\n",
        "Content-Length: 5 \r\n",
        "Content-Length: ",
        "Transfer-Encoding: chunked \r\n",
        "Expect: 100-continue, 100-Continue\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 5, 6\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "X: y\r\n",
        "X : y\r\n",
        "If-None-Match: \"a\"\r\n",
        "Cookie: 0123456789012345678901234567890123456789\r\n",
        "a:\tb\t\r\n",
        " folded\r\n",
        "\r\n",
        "\r",
        "\n",
        "\0",
        "\x7f",
        ":",
        "a",
        "é",
        "\r\n\r\n",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_head_cut_at_any_byte_reads_the_same(
        bytes in head_soup(),
        cuts in prop::collection::vec(0_usize..400, 0..6),
    ) {
        let each: Vec<usize> = (0..bytes.len()).collect();
        for cuts in [&cuts, &each] {
            // An error in an unfinished head may be told now or later, but no later than the head's
            // end.
            let (cut, uncut) = (trickle(&bytes, cuts), whole(&bytes));
            prop_assert!(cut == uncut || (cut == Ok(Decoded::NeedMore) && uncut.is_err()));
            let full = [bytes.as_slice(), &[b'a'; 300]].concat();
            prop_assert_eq!(trickle(&full, cuts), whole(&full));
        }
    }

    #[test]
    fn bytes_that_need_more_can_become_a_head(bytes in head_soup(), cut: Index) {
        let begun = &bytes[..cut.index(bytes.len() + 1)];
        if whole(begun) == Ok(Decoded::NeedMore) {
            let is_end = |tail: &Vec<u8>| is_open(&whole(&[begun, tail].concat()));
            prop_assert!(TAILS.iter().any(is_end), "{}", begun.escape_ascii());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = whole(&bytes);
    }

    #[test]
    fn what_follows_a_head_changes_nothing(bytes in head_soup(), more in head_soup()) {
        let first = whole(&bytes);
        if first != Ok(Decoded::NeedMore) {
            prop_assert_eq!(whole(&[bytes, more].concat()), first);
        }
    }

    #[test]
    fn a_flipped_byte_never_makes_the_readers_panic(bytes in head_soup(), at: Index, byte: u8) {
        let mut bytes = [b"GET /p?q HTTP/1.1\r\nHost: a\r\n".as_slice(), &bytes, b"\r\n"].concat();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Decoded::Done(head)) = whole(&bytes) {
            let request = head.on(&bytes);
            prop_assert!(request.fields().count() <= LIMITS.fields_max);
            prop_assert!(request.path().starts_with(b"/") || request.path() == b"*");
            prop_assert!(request.version() == Version::Http10 || request.host().is_some());
        }
    }

    /// The oracle. What we take, httparse takes, and finds the same in it. We are stricter: methods
    /// are known ones, targets are ASCII without `"#<>` and have one of the four forms, lines end
    /// with both bytes, empty lines are few, Host and the framing fields are checked, and the
    /// limits are kept.
    #[test]
    fn what_is_taken_httparse_reads_the_same(bytes in head_soup()) {
        if let Ok(Decoded::Done(head)) = whole(&bytes) {
            agree(&bytes, &head);
        }
    }

    #[test]
    fn a_written_head_reads_back_as_it_was(
        method in select(Method::ALL.to_vec()),
        target in "/[a-z0-9%._~-]{0,20}(\\?[a-z=&?/]{0,10})?",
        old: bool,
        length in prop::option::of(0..u64::MAX),
        fields in prop::collection::vec((NAME, VALUE), 0..5),
    ) {
        let connect = method == Method::Connect;
        let target = if connect { "host:443".to_owned() } else { target };
        let version = if old { Version::Http10 } else { Version::Http11 };
        let (token, minor) = (method.as_str().expect("one of the nine"), u8::from(!old));
        let mut text = format!("{token} {target} HTTP/1.{minor}\r\nHost: h.example\r\n");
        for (name, value) in &fields {
            text.extend([name, ": ", value, "\r\n"]);
        }
        if let Some(length) = length {
            text.extend(["Content-Length: ", &length.to_string(), "\r\n"]);
        }
        text += "\r\n";
        prop_assume!(text.len() <= LIMITS.head_bytes_max);
        let Ok(Decoded::Done(head)) = whole(text.as_bytes()) else { panic!("{text:?}") };
        let request = head.on(text.as_bytes());
        prop_assert_eq!(head.len(), text.len());
        prop_assert_eq!(request.method(), method);
        prop_assert_eq!(request.version(), version);
        prop_assert_eq!(request.target(), target.as_bytes());
        prop_assert_eq!(head.framing(), length.map_or(Framing::None, Framing::Length));
        if !connect {
            let parts = target.split_once('?');
            let (path, query) = parts.map_or((&*target, None), |(path, query)| (path, Some(query)));
            prop_assert_eq!(request.path(), path.as_bytes());
            prop_assert_eq!(request.query(), query.map(str::as_bytes));
        }
        let read: Vec<_> = request.fields().skip(1).take(fields.len()).collect();
        let wrote: Vec<_> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        prop_assert_eq!(read, wrote);
    }
}

static TAILS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(tails::of_heads);

/// Whether that is a head, or bytes that could not be known to be none before they were whole: past
/// a limit, or with a version or a coding that we do not know.
fn is_open(verdict: &Result<Decoded<Head>, HeadError>) -> bool {
    use HeadError::{
        CodingUnknown, MethodUnknown, TargetTooLong, TooLarge, TooManyFields, VersionUnknown,
    };
    match verdict {
        Ok(decoded) => *decoded != Decoded::NeedMore,
        Err(TargetTooLong { .. } | TooLarge { .. } | TooManyFields { .. }) => true,
        Err(error) => matches!(error, CodingUnknown | MethodUnknown | VersionUnknown),
    }
}

/// The same request in HTTP/1.1: httparse knows no minor version above it.
fn in_1_1(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let version = bytes.windows(8).position(|bytes| bytes == b" HTTP/1.").expect("a request line");
    bytes[version + 8] = bytes[version + 8].min(b'1');
    bytes
}

fn agree(bytes: &[u8], head: &Head) {
    let bytes = &*in_1_1(bytes);
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut oracle = httparse::Request::new(&mut fields);
    let verdict = oracle.parse(bytes);
    assert_eq!(verdict, Ok(httparse::Status::Complete(head.len())), "{}", bytes.escape_ascii());
    let request = head.on(bytes);
    assert_eq!(oracle.method, std::str::from_utf8(request.method_token()).ok());
    assert_eq!(oracle.path.map(str::as_bytes), Some(request.target()));
    assert_eq!(oracle.version, Some(u8::from(request.version() == Version::Http11)));
    let ours: Vec<_> = request.fields().collect();
    let theirs: Vec<_> = oracle.headers.iter().map(|f| (f.name.as_bytes(), f.value)).collect();
    assert_eq!(ours, theirs);
}
