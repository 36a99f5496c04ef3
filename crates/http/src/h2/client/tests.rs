//! The client's side without a socket, against frames by hand.

mod against_server;

use proptest::prelude::*;

use super::super::frame::{write, write_goaway, write_reset, write_window as window_frame};
use super::*;
use crate::fields::HeaderId;

/// A client, and the server's table.
struct Talk {
    client: H2Client<&'static str>,
    encoder: Encoder,
    now_ms: u64,
    out: Vec<u8>,
    input: Vec<u8>,
}

impl Talk {
    fn with(limits: H2ClientLimits, settings: &[(u16, u32)]) -> Self {
        let mut out = Vec::new();
        let client = H2Client::new(limits, &mut out);
        let encoder = Encoder::new();
        let mut talk = Self { client, encoder, now_ms: 0, out, input: Vec::new() };
        assert!(talk.out.starts_with(PREFACE));
        write_settings(settings, &mut talk.input);
        assert_eq!(talk.run(), Ok(vec!["window".to_owned()]));
        talk.out.clear();
        talk
    }

    fn begun() -> Self {
        Self::with(H2ClientLimits::default(), &[])
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        write(kind, flags, stream, payload, &mut self.input);
        self
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            match *name {
                ":status" => self.encoder.status(value.parse().expect("a number"), &mut block),
                name => self.encoder.field(name.into(), value.as_bytes(), &mut block),
            }
        }
        block
    }

    fn headers(&mut self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> &mut Self {
        let block = self.block(fields);
        self.frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
    }

    fn get(&mut self, name: &'static str) -> StreamId {
        self.ask("GET", true, name)
    }

    fn ask(&mut self, method: &str, is_end: bool, name: &'static str) -> StreamId {
        let ends = (method == "HEAD", is_end);
        self.client.open(ends, name, &mut self.out, |encoder, out| {
            encoder.request_line((method, false), (b"a", b"/x"), false, out);
        })
    }

    fn run(&mut self) -> Result<Vec<String>, ErrorCode> {
        let input = std::mem::take(&mut self.input);
        let (mut seen, mut used) = (Vec::new(), 0);
        loop {
            let next = self.client.next(&input[used..], self.now_ms, &mut self.out);
            let (more, event) = next.map_err(|error| error.code)?;
            used += more;
            let Some(event) = event else { break };
            seen.push(shown(&event, &self.client));
        }
        self.input = input[used..].to_vec();
        Ok(seen)
    }

    /// The frames that were sent since the last time: kind, flags, stream, bytes.
    fn sent(&mut self) -> Vec<(u8, u8, u32, usize)> {
        let out = std::mem::take(&mut self.out);
        let (mut frames, mut rest) = (Vec::new(), &out[..]);
        while let Some((header, behind)) = FrameHeader::read(rest) {
            frames.push((header.kind, header.flags, header.stream, header.len));
            rest = &behind[header.len..];
        }
        frames
    }
}

fn shown(event: &H2ClientEvent<'_, &'static str>, client: &H2Client<&'static str>) -> String {
    let end = |is_end: bool| if is_end { " end" } else { "" };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = |fields: crate::request::FieldLines<'_>| {
        let field = |(name, value)| format!("{}={}", text(name), text(value));
        fields.map(field).collect::<Vec<_>>().join("|")
    };
    match event {
        H2ClientEvent::Interim { id, head } => {
            let list = fields(head.on(client.head_bytes()).fields());
            format!("{id} interim {} [{list}]", head.status())
        }
        H2ClientEvent::Response { id, head, is_end } => {
            let list = fields(head.on(client.head_bytes()).fields());
            format!("{id} {} [{list}]{}", head.status(), end(*is_end))
        }
        H2ClientEvent::Data { id, bytes, is_end } => {
            format!("{id} data {}{}", bytes.len(), end(*is_end))
        }
        H2ClientEvent::Trailers { id } => format!("{id} trailers [{}]", fields(client.trailers())),
        H2ClientEvent::Reset { stream, code, fault } => {
            let by = fault.map_or(" by peer", |_| "");
            format!("{} {} reset {}{by}", stream.id, stream.state, code.name())
        }
        H2ClientEvent::GoAway { refused, code } => {
            let refused: Vec<_> = refused.iter().map(|stream| stream.state).collect();
            format!("goaway {} {refused:?}", code.name())
        }
        H2ClientEvent::Window => "window".to_owned(),
    }
}

const OK: &[(&str, &str)] = &[(":status", "200"), ("content-length", "5"), ("x-a", "b")];

#[test]
fn a_response_is_read_with_its_interim_ones_and_trailers() {
    let mut talk = Talk::begun();
    let id = talk.get("one");
    assert_eq!(talk.sent()[0].1, flag::END_STREAM | flag::END_HEADERS);
    talk.headers(id, 0, &[(":status", "103"), ("link", "</a>")]);
    talk.headers(id, 0, &[(":status", "200"), ("x-a", "b")]);
    talk.frame(kind::DATA, 0, id, b"hello").frame(kind::DATA, flag::PADDED, id, b"\x02yo\0\0");
    talk.headers(id, flag::END_STREAM, &[("x-sum", "7")]);
    let seen = talk.run().expect("all is well");
    let wanted = [
        "1 interim 103 [link=</a>]",
        "1 200 [x-a=b]",
        "1 data 5",
        "1 data 2",
        "1 trailers [x-sum=7]",
    ];
    assert_eq!(seen, wanted);
    let stream = talk.client.close(id, ErrorCode::Cancel, &mut talk.out).expect("it was open");
    assert!(stream.is_remote_closed && stream.is_local_closed && talk.out.is_empty());
    assert_eq!((talk.client.open_streams(), talk.get("two")), (0, 3));
}

#[test]
fn the_body_agrees_with_its_length() {
    for (method, fields, body, is_good) in [
        ("GET", OK, "hello", true),
        ("GET", OK, "hell", false),
        ("GET", OK, "hello!", false),
        ("GET", OK, "", false),
        ("HEAD", OK, "", true),
        ("HEAD", OK, "hello", false),
        ("GET", &[(":status", "304"), ("content-length", "5")][..], "", true),
        ("GET", &[(":status", "204")][..], "x", false),
        ("GET", &[(":status", "200")][..], "anything", true),
    ] {
        let mut talk = Talk::begun();
        let id = talk.ask(method, true, "one");
        talk.headers(id, 0, fields).frame(kind::DATA, flag::END_STREAM, id, body.as_bytes());
        let seen = talk.run().expect("only the stream breaks").join(", ");
        assert_eq!(!seen.contains("reset PROTOCOL_ERROR"), is_good, "{method} {body}: {seen}");
    }
    let mut talk = Talk::begun();
    let id = talk.get("one");
    talk.headers(id, flag::END_STREAM, OK);
    assert_eq!(talk.run(), Ok(vec!["1 one reset PROTOCOL_ERROR".to_owned()]));
}

#[test]
fn heads_that_break_the_rules_end_their_stream() {
    let long = "x".repeat(40_000);
    let heads: [&[(&str, &str)]; 9] = [
        &[("x-a", "b")],
        &[(":status", "101")],
        &[(":status", "200"), (":status", "200")],
        &[("x-a", "b"), (":status", "200")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "200"), ("content-length", "x")],
        &[(":status", "200"), ("content-length", "1"), ("content-length", "2")],
        &[(":status", "200"), ("x-a", " b")],
        &[(":status", "200"), ("x-a", &long)],
    ];
    for head in heads {
        let mut talk = Talk::begun();
        let id = talk.get("one");
        let block = talk.block(head);
        let (first, second) = block.split_at(block.len() / 2);
        let parts = first.chunks(16_000).chain(second.chunks(16_000)).enumerate();
        for (at, part) in parts {
            let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
            talk.frame(kind, 0, id, part);
        }
        talk.frame(kind::CONTINUATION, flag::END_HEADERS, id, b"");
        assert_eq!(talk.run(), Ok(vec!["1 one reset PROTOCOL_ERROR".to_owned()]), "{head:?}");
        assert_eq!(talk.sent().last(), Some(&(kind::RST_STREAM, 0, id, 4)));
        // The table is still the server's.
        let id = talk.get("two");
        talk.headers(id, flag::END_STREAM, &[(":status", "200"), ("x-b", "c")]);
        assert_eq!(talk.run(), Ok(vec!["3 200 [x-b=c] end".to_owned()]));
    }
}

/// Does something that ends the connection.
type Mischief = fn(&mut Talk);

#[test]
fn what_breaks_the_connection_has_its_code() {
    let mischiefs: [(ErrorCode, Mischief); 14] = [
        (ErrorCode::ProtocolError, |talk| _ = talk.frame(kind::PUSH_PROMISE, 4, 1, b"\0\0\0\x02")),
        (ErrorCode::ProtocolError, |talk| _ = talk.headers(2, 4, OK)),
        (ErrorCode::ProtocolError, |talk| _ = talk.headers(3, 4, OK)),
        (ErrorCode::ProtocolError, |talk| _ = talk.frame(kind::DATA, 0, 3, b"x")),
        (ErrorCode::ProtocolError, |talk| _ = talk.frame(kind::RST_STREAM, 0, 3, &[0; 4])),
        (ErrorCode::FrameSizeError, |talk| _ = talk.frame(kind::RST_STREAM, 0, 1, &[0; 3])),
        (ErrorCode::ProtocolError, |talk| {
            talk.frame(kind::HEADERS, 0, 1, b"\x88").frame(kind::PING, 0, 0, &[0; 8]);
        }),
        (ErrorCode::CompressionError, |talk| _ = talk.frame(kind::HEADERS, 4, 1, b"\xff\xff")),
        (ErrorCode::FrameSizeError, |talk| _ = talk.frame(kind::DATA, 0, 1, &vec![0; 16_385])),
        (ErrorCode::FrameSizeError, |talk| _ = talk.frame(kind::SETTINGS, 0, 0, &[0; 5])),
        (ErrorCode::ProtocolError, |talk| write_settings(&[(2, 1)], &mut talk.input)),
        (ErrorCode::FlowControlError, |talk| write_settings(&[(4, 1 << 31)], &mut talk.input)),
        (ErrorCode::FlowControlError, |talk| window_frame(0, i32::MAX as u32, &mut talk.input)),
        (ErrorCode::EnhanceYourCalm, |talk| {
            (0..1_200).for_each(|_| _ = talk.frame(kind::PING, 0, 0, &[0; 8]));
        }),
    ];
    for (at, (code, mischief)) in mischiefs.into_iter().enumerate() {
        let mut talk = Talk::begun();
        talk.get("one");
        mischief(&mut talk);
        assert_eq!(talk.run(), Err(code), "{at}");
    }
    let mut client = H2Client::<()>::new(H2ClientLimits::default(), &mut Vec::new());
    let mut ping = Vec::new();
    write(kind::PING, 0, 0, &[0; 8], &mut ping);
    let error = client.next(&ping, 0, &mut Vec::new()).expect_err("no SETTINGS");
    assert_eq!(error.code, ErrorCode::ProtocolError);
    client.go_away(error, &mut ping);
    assert!(!client.can_open() && ping.ends_with(error.reason.as_bytes()));
}

#[test]
fn goaway_returns_the_requests_that_were_not_looked_at() {
    let mut talk = Talk::begun();
    for name in ["one", "two", "three"] {
        talk.get(name);
    }
    write_goaway(i32::MAX as u32, ErrorCode::NoError, "soon", &mut talk.input);
    assert_eq!(talk.run(), Ok(vec!["goaway NO_ERROR []".to_owned()]));
    assert!(!talk.client.can_open() && talk.client.is_used_up());
    write_goaway(3, ErrorCode::EnhanceYourCalm, "now", &mut talk.input);
    talk.headers(1, flag::END_STREAM, &[(":status", "204")]);
    write_reset(3, ErrorCode::RefusedStream, &mut talk.input);
    let wanted = [
        "goaway ENHANCE_YOUR_CALM [\"three\"]",
        "1 204 [] end",
        "3 two reset REFUSED_STREAM by peer",
    ];
    assert_eq!(talk.run().expect("all is well"), wanted);
    write_goaway(5, ErrorCode::NoError, "", &mut talk.input);
    assert_eq!(talk.run(), Err(ErrorCode::ProtocolError), "it serves more than it said");
}

#[test]
fn bodies_are_sent_within_the_windows() {
    let mut talk = Talk::with(H2ClientLimits::default(), &[(4, 20_000), (5, 20_000)]);
    let id = talk.ask("POST", false, "one");
    talk.sent();
    let body = vec![7; 70_000];
    let count = talk.client.write_data(id, &body, true, &mut talk.out);
    assert_eq!((count, talk.sent()), (20_000, vec![(kind::DATA, 0, id, 20_000)]));
    assert_eq!(talk.client.write_data(id, &body[count..], true, &mut talk.out), 0);
    // The first window changes, also below what was sent.
    write_settings(&[(4, 10_000)], &mut talk.input);
    window_frame(id, 10_000, &mut talk.input);
    assert_eq!(talk.run(), Ok(vec!["window".to_owned(); 2]));
    assert_eq!(talk.client.sendable(id), 0);
    window_frame(id, 60_000, &mut talk.input);
    talk.run().expect("all is well");
    // The connection's window is the smaller one now.
    assert_eq!(talk.client.sendable(id), 65_535 - 20_000);
    talk.sent();
    let more = talk.client.write_data(id, &body[count..], true, &mut talk.out);
    let lens: Vec<_> = talk.sent().iter().map(|frame| frame.3).collect();
    assert_eq!((more, lens), (45_535, vec![20_000, 20_000, 5_535]));
    window_frame(0, 100_000, &mut talk.input);
    talk.run().expect("all is well");
    talk.client.write_data(id, &body[count + more..], true, &mut talk.out);
    assert_eq!(talk.sent(), [(kind::DATA, flag::END_STREAM, id, 4_465)]);
    assert_eq!(talk.client.write_data(id, b"more", true, &mut talk.out), 0, "it has ended");
}

#[test]
fn windows_are_given_back_as_bodies_are_taken() {
    let limits = H2ClientLimits {
        window_bytes: 20_000,
        window_bytes_max: 60_000,
        connection_window_bytes: 65_535,
        ..H2ClientLimits::default()
    };
    let mut talk = Talk::with(limits, &[]);
    let id = talk.get("one");
    talk.sent();
    talk.headers(id, 0, &[(":status", "200")]).frame(kind::DATA, 0, id, &[0; 15_000]);
    talk.run().expect("all is well");
    assert_eq!(talk.sent(), [], "nothing was taken");
    talk.client.take(id, 15_000, &mut talk.out);
    assert_eq!(talk.sent(), [(kind::WINDOW_UPDATE, 0, id, 4)]);
    // 5,000 were left, 15,000 are given back, and the window grows by 20,000.
    (0..4).for_each(|_| _ = talk.frame(kind::DATA, 0, id, &[0; 10_000]));
    assert_eq!(talk.run().expect("all is well").len(), 4);
    assert_eq!(talk.sent(), [(kind::WINDOW_UPDATE, 0, 0, 4)]);
    talk.frame(kind::DATA, 0, id, &[0; 1]);
    assert_eq!(talk.run(), Ok(vec!["1 one reset FLOW_CONTROL_ERROR".to_owned()]));
}

#[test]
fn what_comes_on_a_stream_that_was_cancelled_is_discarded_within_its_window() {
    let limits = H2ClientLimits { window_bytes: 20_000, ..H2ClientLimits::default() };
    let mut talk = Talk::with(limits, &[]);
    let id = talk.get("one");
    talk.client.close(id, ErrorCode::Cancel, &mut talk.out);
    assert_eq!(talk.sent().last(), Some(&(kind::RST_STREAM, 0, id, 4)));
    talk.headers(id, 0, &[(":status", "200"), ("x-a", "b")]);
    talk.frame(kind::DATA, 0, id, &[0; 10_000]).frame(kind::DATA, 0, id, &[0; 10_000]);
    assert_eq!(talk.run(), Ok(vec![]));
    let id = talk.get("two");
    talk.headers(id, flag::END_STREAM, &[(":status", "200"), ("x-a", "b")]);
    assert_eq!(talk.run(), Ok(vec!["3 200 [x-a=b] end".to_owned()]));
    talk.frame(kind::DATA, 0, 1, &[0; 1]);
    assert_eq!(talk.run(), Err(ErrorCode::StreamClosed));
}

#[test]
fn a_known_block_means_the_same_until_the_table_changes() {
    let mut talk = Talk::begun();
    for at in 0..6 {
        let value = ["b", "b", "b", "c", "c", "b"][at];
        let id = talk.get("one");
        talk.headers(id, flag::END_STREAM, &[(":status", "200"), ("x-a", value)]);
        assert_eq!(talk.run(), Ok(vec![format!("{id} 200 [x-a={value}] end")]), "{at}");
        talk.client.close(id, ErrorCode::Cancel, &mut talk.out);
    }
    // The same bytes after another entry mean another field.
    let id = talk.get("one");
    talk.frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, id, b"\x88\xbe");
    assert_eq!(talk.run(), Ok(vec![format!("{id} 200 [x-a=c] end")]));
    let id = talk.get("one");
    talk.headers(id, flag::END_STREAM, &[(":status", "200"), ("x-b", "d")]);
    talk.run().expect("all is well");
    let id = talk.get("one");
    talk.frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, id, b"\x88\xbe");
    assert_eq!(talk.run(), Ok(vec![format!("{id} 200 [x-b=d] end")]));
}

#[test]
fn a_prepared_request_is_the_same_bytes_from_the_second_time_on() {
    let mut talk = Talk::with(H2ClientLimits::default(), &[(1, 4_096)]);
    let mut block = PreparedBlock::default();
    let (mut encoded, mut lens) = (0, Vec::new());
    for at in 0..5 {
        if at == 3 {
            // The server makes its table smaller: everything is written again.
            write_settings(&[(1, 0), (1, 4_096)], &mut talk.input);
            talk.run().expect("all is well");
            talk.out.clear();
        }
        let out = &mut talk.out;
        talk.client.open_prepared(&mut block, (false, true), "one", out, |encoder, out| {
            encoded += 1;
            encoder.request_line(("GET", true), (b"example.org", b"/a/path"), true, out);
            encoder.field(HeaderId::UserAgent.into(), b"test", out);
        });
        lens.push(talk.sent()[0].3);
    }
    assert_eq!((lens[1], lens[2], lens[4], encoded), (5, 5, 5, 4), "{lens:?}");
    assert!(lens[0] > 20 && lens[3] > 20, "{lens:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_response_cut_anywhere_reads_the_same(cut in 0_usize..400) {
        let mut talk = Talk::begun();
        let id = talk.get("one");
        let flags = flag::END_STREAM | flag::PADDED;
        talk.headers(id, 0, OK).frame(kind::DATA, flags, id, b"\x01hello\0");
        let id = talk.get("two");
        talk.headers(id, 0, &[(":status", "200")]).frame(kind::DATA, 0, id, b"hello");
        talk.headers(id, flag::END_STREAM, &[("x-t", "t")]);
        let input = std::mem::take(&mut talk.input);
        let (first, second) = input.split_at(cut.min(input.len()));
        talk.input = first.to_vec();
        let mut seen = talk.run().expect("all is well");
        talk.input.extend_from_slice(second);
        seen.extend(talk.run().expect("all is well"));
        let bytes: usize = seen.iter().filter_map(|event| {
            event.split_once(" data ")?.1.split(' ').next()?.parse::<usize>().ok()
        }).sum();
        prop_assert_eq!(bytes, 10, "{:?}", seen);
        seen.retain(|event| !event.contains(" data "));
        prop_assert_eq!(seen, ["1 200 [content-length=5|x-a=b]", "3 200 []", "3 trailers [x-t=t]"]);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut talk = Talk::begun();
        talk.get("one");
        talk.input = bytes;
        _ = talk.run();
    }
}
