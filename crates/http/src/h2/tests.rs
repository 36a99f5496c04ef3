//! Connections without a socket: frames in, events and frames out.

mod broken;
mod tunnels;

use proptest::prelude::*;

use super::frame::{FrameHeader, PREFACE, flag, kind, setting, write, write_settings};
use super::hpack::{Encoder, Strings};
use super::*;
use crate::fields::FieldName;
use crate::head::{Framing, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::request::FieldLines;
use crate::status::Status;
use crate::target::TargetForm;

/// What a step has brought, as text.
type Seen = Vec<String>;

/// A connection and the client's table.
struct Talk {
    connection: H2Connection<()>,
    encoder: Encoder,
    scratch: H2Scratch,
    h2: H2Limits,
    limits: Limits,
    now_ms: u64,
    out: Vec<u8>,
    input: Vec<u8>,
    /// Requests are kept open, else they are answered at once.
    keeps_open: bool,
}

impl Talk {
    fn silent() -> Self {
        let (h2, limits) = (H2Limits::default(), Limits::default());
        let (mut scratch, mut out) = (H2Scratch::default(), Vec::new());
        let mut step =
            Step { scratch: &mut scratch, h2: &h2, limits: &limits, now_ms: 0, out: &mut out };
        let connection = H2Connection::new(&mut step);
        let encoder = Encoder::new();
        let (input, keeps_open) = (Vec::new(), true);
        Self { connection, encoder, scratch, h2, limits, now_ms: 0, out, input, keeps_open }
    }

    fn begun() -> Self {
        let mut talk = Self::silent();
        talk.input.extend_from_slice(PREFACE);
        write_settings(&[], &mut talk.input);
        assert_eq!(talk.run(), Ok(vec!["window".to_owned()]));
        talk.out.clear();
        talk
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        write(kind, flags, stream, payload, &mut self.input);
        self
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            self.encoder.field(FieldName::from(*name), value.as_bytes(), &mut block);
        }
        block
    }

    fn headers(&mut self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> &mut Self {
        let block = self.block(fields);
        self.frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
    }

    fn get(&mut self, stream: u32) -> &mut Self {
        self.headers(stream, flag::END_STREAM, GET)
    }

    fn post(&mut self, stream: u32) -> &mut Self {
        self.headers(stream, 0, POST)
    }

    /// Reads all of the input. Opens the streams of requests.
    fn run(&mut self) -> Result<Seen, ErrorCode> {
        let input = std::mem::take(&mut self.input);
        let (seen, used) = self.read(&input)?;
        self.input = input[used..].to_vec();
        Ok(seen)
    }

    fn read(&mut self, input: &[u8]) -> Result<(Seen, usize), ErrorCode> {
        let (mut seen, mut used) = (Vec::new(), 0);
        loop {
            let Self { connection, scratch, h2, limits, now_ms, out, .. } = self;
            let mut step = Step { scratch, h2, limits, now_ms: *now_ms, out };
            let (more, event) =
                connection.next(&input[used..], &mut step).map_err(|error| error.code)?;
            used += more;
            let Some(event) = event else { return Ok((seen, used)) };
            seen.push(match event {
                H2Event::Request { id, head, is_end } => {
                    let bytes = step.scratch.head_bytes().to_vec();
                    let view = head.on(&bytes);
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    if self.keeps_open {
                        connection.open(id, (Some((&head, &bytes)), is_end), ());
                    }
                    let fields = view
                        .fields()
                        .map(|(name, value)| format!("{}={}", text(name), text(value)));
                    let protocols = view.upgrade_protocols().map(|name| format!(" {}", text(name)));
                    format!(
                        "{id} {}{} {} [{}]{}",
                        text(view.method_token()),
                        protocols.collect::<String>(),
                        text(view.target()),
                        fields.collect::<Vec<_>>().join("|"),
                        if is_end { " end" } else { "" },
                    )
                }
                H2Event::Refused { id, status, .. } => format!("{id} refused {}", status.code()),
                H2Event::Data { id, bytes, is_end } => {
                    format!("{id} data {}{}", bytes.len(), if is_end { " end" } else { "" })
                }
                H2Event::Trailers { id } => {
                    let records = FieldLines::of_records(step.scratch.trailer_records());
                    let text = |(name, value): (&[u8], &[u8])| {
                        format!(" {}={}", name.escape_ascii(), value.escape_ascii())
                    };
                    format!("{id} trailers{}", records.map(text).collect::<String>())
                }
                H2Event::Reset { stream: Some(stream), code, by_peer } => {
                    let by = if by_peer { " by peer" } else { "" };
                    format!("{} reset {}{by}", stream.id, code.name())
                }
                // It was not open: what was written says it.
                H2Event::Reset { .. } => continue,
                H2Event::Window => "window".to_owned(),
            });
        }
    }

    /// The frames that were written: type, flags, stream, payload.
    fn written(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let out = std::mem::take(&mut self.out);
        let (mut rest, mut frames) = (&out[..], Vec::new());
        while let Some((header, behind)) = FrameHeader::read(rest) {
            let (payload, next) = behind.split_at(header.len);
            frames.push((header.kind, header.flags, header.stream, payload.to_vec()));
            rest = next;
        }
        assert!(rest.is_empty(), "whole frames are written");
        frames
    }

    fn resets(&mut self) -> Vec<(u32, ErrorCode)> {
        let resets = self.written().into_iter().filter(|frame| frame.0 == kind::RST_STREAM);
        let code = |payload: &[u8]| u32::from_be_bytes(*payload.first_chunk().expect("4 bytes"));
        resets.map(|(_, _, id, payload)| (id, ErrorCode::of(code(&payload)))).collect()
    }
}

const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":path", "/a?b"), (":authority", "x.test")];
const POST: &[(&str, &str)] =
    &[(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "x.test")];

#[test]
fn trailers_end_a_request_with_their_fields() {
    let mut talk = Talk::begun();
    talk.post(1).frame(kind::DATA, 0, 1, b"body");
    talk.headers(1, flag::END_STREAM, &[("x-sum", "4"), ("x-none", "")]);
    let wanted = ["1 POST / [host=x.test]", "1 data 4", "1 trailers x-sum=4 x-none="];
    assert_eq!(talk.run(), Ok(wanted.map(str::to_owned).to_vec()));
    talk.post(3).headers(3, flag::END_STREAM, &[]);
    let wanted = ["3 POST / [host=x.test]", "3 trailers"];
    assert_eq!(talk.run(), Ok(wanted.map(str::to_owned).to_vec()));
    assert_eq!(talk.resets(), [], "neither breaks a rule");
}

#[test]
fn a_request_is_read_however_its_bytes_are_cut() {
    let mut whole = Talk::silent();
    whole.input.extend_from_slice(PREFACE);
    write_settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)], &mut whole.input);
    whole.get(1).post(3);
    whole.frame(kind::DATA, flag::END_STREAM | flag::PADDED, 3, b"\x03body...");
    let input = whole.input.clone();
    let wanted =
        ["window", "1 GET /a?b [host=x.test] end", "3 POST / [host=x.test]", "3 data 4 end"];
    assert_eq!(whole.run(), Ok(wanted.map(str::to_owned).to_vec()));
    for cut in 1..input.len() {
        let mut talk = Talk::silent();
        talk.input.extend_from_slice(&input[..cut]);
        let mut seen = talk.run().expect("no error");
        talk.input.extend_from_slice(&input[cut..]);
        seen.extend(talk.run().expect("no error"));
        // (Content may come in two pieces.)
        let pieces = seen.iter().filter(|event| event.contains("data")).count();
        assert!(
            seen.starts_with(&wanted.map(str::to_owned)[..3]) && pieces <= 2,
            "{cut}: {seen:?}"
        );
        assert!(seen.last().is_some_and(|last| last.ends_with("end")), "{cut}: {seen:?}");
    }
}

#[test]
fn a_head_says_what_its_fields_say() {
    let mut talk = Talk::begun();
    let block = talk.block(&[
        (":method", "PROPFIND"),
        (":path", "/x"),
        (":scheme", "https"),
        (":authority", "x.test:8443"),
        ("range", "bytes=0-1"),
        ("cookie", "a=1"),
        ("expect", "100-continue"),
        ("cookie", "b=2"),
        ("host", "X.test:8443"),
        ("content-length", "17"),
    ]);
    let mut bytes = Vec::new();
    let mut spare = Vec::new();
    let mut builder = request_head::HeadBuilder::new(&mut bytes, &mut spare, &talk.limits);
    let mut decoder = hpack::Decoder::new(hpack::TABLE_BYTES);
    let each = |name: &[u8], value: &[u8]| builder.field(name, value);
    decoder.decode(&block, &mut Strings::default(), each).expect("a block");
    let head = builder.finish(true).expect("a head");
    let view = head.on(&bytes);
    assert_eq!(
        (view.version(), view.method(), view.form()),
        (Version::Http2, Method::Other, TargetForm::Origin)
    );
    assert_eq!(
        (view.method_token(), view.path(), view.query()),
        (&b"PROPFIND"[..], &b"/x"[..], None)
    );
    assert_eq!(view.host(), Some(&b"x.test:8443"[..]));
    assert_eq!(view.field("Range"), Some(&b"bytes=0-1"[..]));
    assert_eq!(view.field("cookie"), Some(&b"a=1; b=2"[..]));
    assert!(head.is_conditional() && head.expects_continue() && head.keep_alive());
    assert_eq!(head.framing(), Framing::Length(17));
    assert_eq!(view.fields().count(), 5);
    let (kept, kept_bytes) = view.to_parts();
    assert_eq!(kept.on(&kept_bytes).field("content-length"), Some(&b"17"[..]));
}

#[test]
fn malformed_requests_end_their_stream_alone() {
    let with = |extra: &[(&'static str, &'static str)]| [GET, extra].concat();
    let without =
        |name: &str| GET.iter().copied().filter(|field| field.0 != name).collect::<Vec<_>>();
    for fields in [
        without(":method"),
        without(":scheme"),
        without(":path"),
        without(":authority"),
        with(&[(":path", "/")]),
        with(&[(":status", "200")]),
        with(&[("a", "b"), (":method", "GET")]),
        with(&[("connection", "close")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("te", "gzip")]),
        with(&[("upgrade", "h2c")]),
        with(&[("content-length", "1")]),
        with(&[("host", "other.test")]),
        with(&[("a", " b")]),
        with(&[("a", "b\r\nc: d")]),
        with(&[("a b", "c")]),
        with(&[("", "c")]),
        vec![(":method", "CONNECT"), (":authority", "x.test:1"), (":path", "/")],
        vec![(":method", "GET"), (":scheme", "https"), (":path", "a"), (":authority", "x.test")],
        vec![(":method", "GET"), (":scheme", "https"), (":path", ""), (":authority", "x.test")],
        vec![(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "u@x")],
    ] {
        let mut talk = Talk::begun();
        talk.headers(1, flag::END_STREAM, &fields).get(3);
        let seen = talk.run();
        assert_eq!(seen, Ok(vec!["3 GET /a?b [host=x.test] end".to_owned()]), "{fields:?}");
        assert_eq!(talk.resets(), [(1, ErrorCode::ProtocolError)], "{fields:?}");
    }
    // Capitals, which the encoder of the tests would not write.
    let mut talk = Talk::begun();
    let mut block = talk.block(GET);
    block.extend_from_slice(b"\x00\x01A\x01b");
    talk.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block);
    assert_eq!((talk.run(), talk.resets()), (Ok(vec![]), vec![(1, ErrorCode::ProtocolError)]));
}

#[test]
fn requests_past_a_limit_are_refused_with_a_status() {
    for (limits, extra, status) in [
        (
            Limits { head_bytes_max: 200, ..Limits::default() },
            ("a", "b"),
            Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        (
            Limits { fields_max: 0, ..Limits::default() },
            ("a", "b"),
            Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        (Limits { target_bytes_max: 3, ..Limits::default() }, ("a", "b"), Status::URI_TOO_LONG),
        (Limits::default(), ("expect", "miracles"), Status::EXPECTATION_FAILED),
    ] {
        let mut talk = Talk::begun();
        talk.limits = limits;
        talk.headers(1, flag::END_STREAM, &[GET, &[extra]].concat());
        assert_eq!(talk.run(), Ok(vec![format!("1 refused {}", status.code())]), "{limits:?}");
        // The table is still the client's.
        talk.limits = Limits::default();
        talk.headers(3, flag::END_STREAM, &[GET, &[("a", "b")]].concat());
        assert_eq!(talk.run(), Ok(vec!["3 GET /a?b [host=x.test|a=b] end".to_owned()]));
    }
}

#[test]
fn a_refusal_behind_a_cookie_knows_the_method() {
    // The cookie stands where the method stood; it is shorter than the target was.
    let fields = [(":scheme", "https"), (":path", "/long"), (":method", "HEAD")];
    let rest = [(":authority", "x.test"), ("cookie", "a=1"), ("expect", "miracles")];
    let refused = refused_head(&[&fields[..], &rest[..]].concat());
    assert_eq!(refused, (true, "HEAD /long HTTP/2.0\n".to_owned()));
}

/// Returns whether the method of a head that is refused is HEAD, and its line.
fn refused_head(fields: &[(&str, &str)]) -> (bool, String) {
    let mut talk = Talk::begun();
    let (block, limits) = (talk.block(fields), talk.limits);
    let (mut bytes, mut spare) = (Vec::new(), Vec::new());
    let mut builder = request_head::HeadBuilder::new(&mut bytes, &mut spare, &limits);
    let mut decoder = hpack::Decoder::new(hpack::TABLE_BYTES);
    let each = |name: &[u8], value: &[u8]| builder.field(name, value);
    decoder.decode(&block, &mut Strings::default(), each).expect("a block");
    let refused = builder.finish(false).expect_err("it is refused");
    assert!(matches!(refused, request_head::HeadFault::Refused(..)), "{refused:?}");
    let is_head = builder.is_head();
    builder.write_line();
    (is_head, String::from_utf8(bytes).expect("a text"))
}

#[test]
fn a_refusal_has_the_line_as_far_as_it_has_come() {
    let line_of = |fields: &[(&str, &str)]| refused_head(fields).1;
    let (method, path, scheme) = ((":method", "PROPFIND"), (":path", "/a"), (":scheme", "https"));
    let long = "a".repeat(70);
    // There is not even a Host.
    assert_eq!(line_of(&[method, path, scheme, ("expect", "x")]), "PROPFIND /a HTTP/2.0\n");
    assert_eq!(
        line_of(&[method, scheme, (":path", "/a b"), ("a", "b")]),
        "PROPFIND /a b HTTP/2.0\n"
    );
    assert_eq!(line_of(&[path, scheme, (":method", &long)]), "");
    assert_eq!(line_of(&[(":method", &long), path, scheme]), "");
}

#[test]
fn windows_are_given_back_as_bodies_are_taken() {
    let mut talk = Talk::begun();
    talk.post(1).frame(kind::DATA, 0, 1, &[0; 16_000]).frame(kind::DATA, 0, 1, &[0; 16_000]);
    talk.frame(kind::DATA, 0, 1, &[0; 16_000]);
    assert_eq!(talk.run().map(|seen| seen.len()), Ok(4));
    assert_eq!(talk.written(), [], "nothing was taken yet");
    let Talk { connection, scratch, h2, limits, out, .. } = &mut talk;
    let mut step = Step { scratch, h2, limits, now_ms: 0, out };
    connection.take(1, 16_000, u32::MAX, &mut step);
    connection.take(1, 32_000, u32::MAX, &mut step);
    let given = 48_000 + (64 << 10);
    let wanted = (kind::WINDOW_UPDATE, 0, 1, u32::to_be_bytes(given).to_vec());
    assert_eq!(talk.written(), [wanted], "with as much again, since it is in use");
}

#[test]
fn a_stream_has_the_window_that_its_client_was_told() {
    let mut talk = Talk::begun();
    let told = talk.connection.window_bytes();
    for (stream, other) in [(1, 1 << 20), (3, 16 << 10)] {
        talk.h2.window_bytes = other;
        talk.post(stream);
        for _ in 0..told / 16_384 {
            talk.frame(kind::DATA, 0, stream, &[0; 16_384]);
        }
        talk.frame(kind::DATA, 0, stream, &[0]);
        talk.run().expect("one stream breaks a rule");
        assert_eq!(talk.resets(), [(stream, ErrorCode::FlowControlError)]);
    }
}

#[test]
fn long_heads_are_split_into_frames() {
    let mut talk = Talk::begun();
    let mut out = Vec::new();
    talk.connection.write_head(1, true, &mut out, |encoder, out| {
        encoder.status(200, out);
        for at in 0..3 {
            encoder.field(format!("x-{at}").as_str().into(), &[b'~'; 9_000], out);
        }
    });
    talk.out = out;
    let kinds: Vec<_> =
        talk.written().into_iter().map(|frame| (frame.0, frame.1, frame.3.len())).collect();
    assert_eq!(kinds[0], (kind::HEADERS, flag::END_STREAM, 16_384));
    assert_eq!((kinds[1].0, kinds[1].1, kinds.len()), (kind::CONTINUATION, flag::END_HEADERS, 2));
}

#[test]
fn an_idle_connection_is_small() {
    let bytes = size_of::<H2Connection<Box<()>>>();
    assert!(bytes <= 216, "{bytes} bytes");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        frames in prop::collection::vec(
            (0_u8..18, any::<u8>(), 0_u32..6, prop::collection::vec(any::<u8>(), 0..20)),
            0..40,
        ),
        tail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut talk = Talk::begun();
        talk.get(1).post(3);
        for (kind, flags, stream, payload) in &frames {
            talk.frame(*kind, *flags, *stream, payload);
        }
        talk.input.extend_from_slice(&tail);
        let input = std::mem::take(&mut talk.input);
        if let Ok((_, used)) = talk.read(&input) {
            prop_assert!(input.len() - used < 16_393);
        }
        talk.written();
    }
}
