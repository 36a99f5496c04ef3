//! Frames in, messages out, and the other way round; with bytes cut anywhere.

use proptest::prelude::*;

use super::deflate::{DeflateAgreed, DeflateOptions, InvalidAnswer};
use super::frame::HEADER_BYTES_MAX;
use super::*;

const LIMITS: ReadLimits = ReadLimits {
    frame_bytes_max: 1 << 20,
    message_bytes_max: 1 << 21,
    fragments_max: 64,
    may_be_compressed: false,
};

/// What was read, with bytes of its own. Pieces of a frame are put together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(u16, String),
}

/// Reads bytes that come in pieces of these lengths, and then whole.
fn read_cut(
    role: Role,
    bytes: &[u8],
    cuts: &[usize],
    limits: &ReadLimits,
) -> Result<Vec<Seen>, Violation> {
    let (mut reader, mut unread, mut seen) = (MessageReader::new(role), Vec::new(), Vec::new());
    let (mut message, mut rest) = (Vec::new(), bytes);
    let mut cuts = cuts.iter().copied();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
        rest = behind;
        unread.extend_from_slice(piece);
        let mut input = unread.as_mut_slice();
        while let Some(event) = reader.next(&mut input, limits)? {
            match event {
                WebSocketEvent::Data(piece) => {
                    message.extend_from_slice(piece.bytes);
                    if piece.is_last {
                        seen.push(Seen::Message(piece.kind, std::mem::take(&mut message)));
                    }
                }
                WebSocketEvent::Ping(payload) => seen.push(Seen::Ping(payload.to_vec())),
                WebSocketEvent::Pong(payload) => seen.push(Seen::Pong(payload.to_vec())),
                WebSocketEvent::Close(close) => {
                    seen.push(Seen::Close(close.code.0, close.text.to_owned()));
                }
            }
        }
        unread = input.to_vec();
        assert!(unread.len() <= 130, "{} bytes are kept", unread.len());
    }
    Ok(seen)
}

fn read(bytes: &[u8]) -> Result<Vec<Seen>, Violation> {
    read_cut(Role::Server, bytes, &[], &LIMITS)
}

fn header(opcode: Opcode, is_final: bool) -> WebSocketHeader {
    WebSocketHeader { opcode, is_final, is_compressed: false, mask: Some([1, 2, 3, 4]), len: 0 }
}

fn frame(opcode: Opcode, is_final: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(header(opcode, is_final), payload, &mut out);
    out
}

fn code_of(bytes: &[u8]) -> u16 {
    read(bytes).expect_err("it breaks a rule").code.0
}

/// The examples of RFC 6455 §5.7.
#[test]
fn the_examples_of_the_rfc_are_read() {
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    let hello = Seen::Message(MessageKind::Text, b"Hello".to_vec());
    assert_eq!(read(&masked), Ok(vec![hello.clone()]));
    let of_client = |bytes: &[u8]| read_cut(Role::Client, bytes, &[], &LIMITS);
    assert_eq!(of_client(b"\x81\x05Hello"), Ok(vec![hello.clone()]));
    assert_eq!(of_client(b"\x01\x03Hel\x80\x02lo"), Ok(vec![hello]));
    assert_eq!(of_client(b"\x89\x05Hello"), Ok(vec![Seen::Ping(b"Hello".to_vec())]));
    let pong = [0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(&pong), Ok(vec![Seen::Pong(b"Hello".to_vec())]));
}

#[test]
fn control_frames_come_between_the_frames_of_a_message() {
    let bytes = [
        frame(Opcode::Text, false, b"a"),
        frame(Opcode::Ping, true, b"now"),
        frame(Opcode::Continuation, false, b""),
        frame(Opcode::Continuation, true, b"b"),
        frame(Opcode::Close, true, b"\x03\xe8bye"),
    ];
    let expected = [
        Seen::Ping(b"now".to_vec()),
        Seen::Message(MessageKind::Text, b"ab".to_vec()),
        Seen::Close(1000, "bye".to_owned()),
    ];
    assert_eq!(read(&bytes.concat()).expect("it is right"), expected);
}

#[test]
fn what_breaks_a_rule_of_frames_is_a_protocol_error() {
    let masked = |first: u8, len: u8| vec![first, 0x80 | len, 0, 0, 0, 0];
    let wrong: [(&str, Vec<u8>); 15] = [
        ("RSV1", masked(0x81 | 0x40, 0)),
        ("RSV2", masked(0x81 | 0x20, 0)),
        ("RSV3", masked(0x81 | 0x10, 0)),
        ("opcode 3", masked(0x83, 0)),
        ("opcode 11", masked(0x8b, 0)),
        ("a ping in pieces", masked(0x09, 0)),
        ("a compressed ping", masked(0x89 | 0x40, 0)),
        ("a long ping", [&masked(0x89, 126)[..2], &[0, 126, 0, 0, 0, 0], &[0; 126]].concat()),
        ("not masked", b"\x81\x01a".to_vec()),
        ("a continuation of nothing", masked(0x80, 0)),
        ("a text within a text", [masked(0x01, 0), masked(0x81, 0)].concat()),
        ("RSV1 of a continuation", [masked(0x01, 0), masked(0xc0, 0)].concat()),
        ("5 in two bytes", vec![0x81, 0xfe, 0, 5, 0, 0, 0, 0]),
        ("65,535 in eight bytes", vec![0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]),
        ("64 bits", vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (name, bytes) in wrong {
        assert_eq!(
            read(&bytes).map_err(|error| error.code),
            Err(CloseCode::PROTOCOL_ERROR),
            "{name}"
        );
    }
    let masked_for_client = frame(Opcode::Text, true, b"a");
    let error = read_cut(Role::Client, &masked_for_client, &[], &LIMITS).expect_err("masked");
    assert_eq!(error.code, CloseCode::PROTOCOL_ERROR);
}

#[test]
fn a_length_beyond_a_limit_is_refused_before_its_bytes_come() {
    let announced = |len: u64| {
        let mut out = Vec::new();
        WebSocketHeader { len, ..header(Opcode::Binary, true) }.write(&mut out);
        out
    };
    assert_eq!(code_of(&announced(LIMITS.frame_bytes_max + 1)), 1009);
    assert_eq!(read(&announced(LIMITS.frame_bytes_max)), Ok(vec![]), "its bytes may still come");
    let most = usize::try_from(LIMITS.frame_bytes_max).expect("a small number");
    let (begin, goes_on) = (vec![0; most], frame(Opcode::Continuation, true, b"x"));
    let first = frame(Opcode::Binary, false, &begin);
    let second = frame(Opcode::Continuation, false, &begin);
    assert_eq!(code_of(&[first, second, goes_on].concat()), 1009, "the message is too long");
    let many = frame(Opcode::Continuation, false, b"").repeat(64);
    assert_eq!(code_of(&[frame(Opcode::Text, false, b""), many].concat()), 1009, "many frames");
}

#[test]
fn close_frames_have_codes_that_may_be_sent() {
    let close = |code: u16, text: &[u8]| {
        frame(Opcode::Close, true, &[&code.to_be_bytes()[..], text].concat())
    };
    assert_eq!(read(&frame(Opcode::Close, true, b"")), Ok(vec![Seen::Close(1005, String::new())]));
    assert_eq!(code_of(&frame(Opcode::Close, true, b"x")), 1002);
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        assert_eq!(code_of(&close(code, b"")), 1002, "{code}");
    }
    for code in [1000, 1003, 1007, 1011, 1012, 1014, 3000, 3999, 4000, 4999] {
        assert_eq!(read(&close(code, b"x")), Ok(vec![Seen::Close(code, "x".to_owned())]), "{code}");
    }
    assert_eq!(code_of(&close(1000, b"\xff")), 1007);
}

#[test]
fn a_reason_is_cut_between_characters() {
    let text = "é".repeat(100);
    let mut payload = Vec::new();
    CloseReason { code: CloseCode::NORMAL, text: &text }.write(&mut payload);
    assert_eq!(payload.len(), 2 + 122);
    let read = CloseReason::read(&payload).expect("it may be read");
    assert_eq!(read.text, "é".repeat(61));
    payload.clear();
    CloseReason { code: CloseCode::NO_STATUS, text: "never sent" }.write(&mut payload);
    assert!(payload.is_empty());
}

#[test]
fn a_reader_is_small() {
    assert!(size_of::<MessageReader>() <= 40, "{}", size_of::<MessageReader>());
}

fn chosen(field: &str, wanted: DeflateOptions) -> Option<String> {
    DeflateAgreed::choose([field.as_bytes()], wanted).map(|agreed| agreed.to_string())
}

#[test]
fn the_first_offer_that_can_be_met_is_chosen() {
    let usual = DeflateOptions { keeps_context: false, window_bits_max: 15 };
    let keeps = DeflateOptions { keeps_context: true, window_bits_max: 15 };
    let both = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    for (offer, of_usual, of_keeps) in [
        ("permessage-deflate", Some(both), Some("permessage-deflate")),
        ("permessage-deflate; client_max_window_bits", Some(both), Some("permessage-deflate")),
        (
            "permessage-deflate;server_no_context_takeover",
            Some(both),
            Some("permessage-deflate; server_no_context_takeover"),
        ),
        (
            "permessage-deflate; server_max_window_bits=10",
            None,
            Some("permessage-deflate; server_max_window_bits=10"),
        ),
        (
            "permessage-deflate; client_max_window_bits=\"9\"",
            None,
            Some("permessage-deflate; client_max_window_bits=9"),
        ),
        // The first one has a window that is too small for a compressor.
        ("permessage-deflate; server_max_window_bits=8, permessage-deflate", Some(both), None),
        ("permessage-deflate; server_max_window_bits=8", None, None),
        ("x-webkit-deflate-frame", None, None),
    ] {
        if let Some(expected) = of_usual {
            assert_eq!(chosen(offer, usual).as_deref(), Some(expected), "{offer}");
        }
        if let Some(expected) = of_keeps {
            assert_eq!(chosen(offer, keeps).as_deref(), Some(expected), "{offer}");
        }
    }
    assert_eq!(chosen("permessage-deflate; server_max_window_bits=8", keeps), None);
    let small = DeflateOptions { keeps_context: true, window_bits_max: 11 };
    let offer = "permessage-deflate; client_max_window_bits";
    let expected = "permessage-deflate; server_max_window_bits=11; client_max_window_bits=11";
    assert_eq!(chosen(offer, small).as_deref(), Some(expected));
}

#[test]
fn an_offer_that_breaks_a_rule_is_declined() {
    let wanted = DeflateOptions { keeps_context: true, window_bits_max: 15 };
    for parameter in [
        "unknown",
        "server_no_context_takeover=1",
        "server_max_window_bits",
        "server_max_window_bits=7",
        "server_max_window_bits=16",
        "server_max_window_bits=08",
        "client_max_window_bits=+9",
        "client_no_context_takeover; client_no_context_takeover",
        "server_max_window_bits=9; server_max_window_bits=9",
        "",
    ] {
        assert_eq!(
            chosen(&format!("permessage-deflate; {parameter}"), wanted),
            None,
            "{parameter}"
        );
    }
}

#[test]
fn a_client_takes_answers_that_are_valid() {
    let agreed = DeflateAgreed::of_answer(b"permessage-deflate; server_max_window_bits=8");
    assert_eq!(agreed.map(|agreed| agreed.server_window_bits), Ok(8));
    for wrong in
        [&b"permessage-deflate; client_max_window_bits"[..], b"x", b"", b"permessage-deflate, x"]
    {
        assert_eq!(DeflateAgreed::of_answer(wrong), Err(InvalidAnswer));
    }
}

/// Bytes of characters, and of what is nearly one.
const UTF8_BYTES: [u8; 8] = [0xf0, 0xe2, 0x9f, 0x82, 0xac, 0x24, 0xed, 0xa0];

#[test]
fn what_a_client_offers_is_met_and_answered() {
    for (keeps_context, bits) in [(false, 15), (true, 15), (true, 9), (false, 12)] {
        let wanted = DeflateOptions { keeps_context, window_bits_max: bits };
        let offer = wanted.offer();
        let all = DeflateOptions { keeps_context: true, window_bits_max: 15 };
        let agreed = DeflateAgreed::choose([offer.as_bytes()], all).expect("it can be met");
        assert_eq!(agreed.server_no_context_takeover, !keeps_context, "{offer}");
        assert_eq!((agreed.server_window_bits, agreed.client_window_bits), (bits, bits), "{offer}");
        let answer = agreed.to_string();
        let read = DeflateAgreed::of_answer(answer.as_bytes()).expect("it is valid");
        assert_eq!(read.to_string(), answer);
        assert_eq!(read.client_window_bits, agreed.client_window_bits, "{answer}");
    }
}

/// A message, the number of its frames, and their mask.
fn message() -> impl Strategy<Value = (Vec<u8>, usize, [u8; 4])> {
    (prop::collection::vec(any::<u8>(), 0..400), 1_usize..5, any::<[u8; 4]>())
}

/// Checks that a message that is read at once is what the frames say, and returns whether it was.
fn is_read_at_once(role: Role, input: &[u8]) -> bool {
    let mut reader = MessageReader::new(role);
    let Some((kind, masked, key, frame_bytes)) = reader.whole(input, &LIMITS) else {
        return false;
    };
    let mut bytes = masked.to_vec();
    mask::apply(key, &mut bytes);
    let mut input = input.to_vec();
    let (came, mut rest) = (input.len(), input.as_mut_slice());
    let found = reader.next(&mut rest, &LIMITS).expect("it breaks no rule");
    let bytes = &mut bytes[..];
    let piece = WebSocketPiece { kind, is_compressed: false, bytes, is_last: true };
    assert_eq!(found, Some(WebSocketEvent::Data(piece)));
    assert_eq!(came - rest.len(), frame_bytes);
    assert!(reader.is_idle());
    true
}

proptest! {
    #[test]
    fn any_bytes_are_no_other_message_at_once(
        first in prop::sample::select(&[0x81_u8, 0x82, 0x01, 0x80, 0xc1, 0x88, 0x91][..]),
        second in any::<u8>(),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let input = [&[first, second][..], &rest].concat();
        let (by_server, by_client) =
            (is_read_at_once(Role::Server, &input), is_read_at_once(Role::Client, &input));
        prop_assert!(!(by_server && by_client));
        prop_assert!(first == 0x81 || first == 0x82 || !(by_server || by_client));
    }

    #[test]
    fn a_message_in_one_frame_is_read_at_once(
        payload in prop::collection::vec(any::<u8>(), 0..1_000),
        behind in prop::collection::vec(any::<u8>(), 0..20),
        missing in 1_usize..20,
        is_masked in any::<bool>(),
    ) {
        let role = if is_masked { Role::Server } else { Role::Client };
        let mask = is_masked.then_some([7, 0, 255, 9]);
        let mut bytes = Vec::new();
        write(WebSocketHeader { mask, ..header(Opcode::Binary, true) }, &payload, &mut bytes);
        let cut = bytes.len().saturating_sub(missing);
        prop_assert!(!is_read_at_once(role, &bytes[..cut]), "it is not whole");
        bytes.extend_from_slice(&behind);
        prop_assert!(is_read_at_once(role, &bytes));
    }

    /// Whatever the cuts, the same comes out.
    #[test]
    fn messages_come_whole_however_they_are_cut(
        messages in prop::collection::vec(message(), 0..6),
        cuts in prop::collection::vec(1_usize..40, 0..200),
        is_masked in any::<bool>(),
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (message, frames, mask) in &messages {
            let mask = is_masked.then_some(*mask);
            let len = message.len().div_ceil(*frames).max(1);
            let mut pieces: Vec<&[u8]> = message.chunks(len).collect();
            if pieces.is_empty() {
                pieces.push(&[]);
            }
            for (at, piece) in pieces.iter().enumerate() {
                let opcode = if at == 0 { Opcode::Binary } else { Opcode::Continuation };
                let is_final = at + 1 == pieces.len();
                let header = WebSocketHeader { opcode, is_final, mask, ..header(opcode, true) };
                write(header, piece, &mut bytes);
            }
            expected.push(Seen::Message(MessageKind::Binary, message.clone()));
        }
        let role = if is_masked { Role::Server } else { Role::Client };
        prop_assert_eq!(read_cut(role, &bytes, &cuts, &LIMITS), Ok(expected));
    }

    /// No bytes make it panic.
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec(1_usize..20, 0..50),
    ) {
        let limits = ReadLimits { may_be_compressed: true, ..LIMITS };
        let _ = read_cut(Role::Server, &bytes, &cuts, &limits);
        let _ = read_cut(Role::Client, &bytes, &cuts, &limits);
    }

    #[test]
    fn a_header_is_read_as_it_was_written(
        len in prop_oneof![0_u64..126, 126_u64..70_000, (1_u64 << 16)..(1 << 63)],
        mask in any::<Option<[u8; 4]>>(),
        is_final in any::<bool>(),
        is_compressed in any::<bool>(),
    ) {
        let header = WebSocketHeader { opcode: Opcode::Text, is_final, is_compressed, mask, len };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        prop_assert!(bytes.len() <= HEADER_BYTES_MAX);
        prop_assert_eq!(WebSocketHeader::read(&bytes), Ok(Some((header, bytes.len()))));
        for len in 0..bytes.len() {
            prop_assert_eq!(WebSocketHeader::read(&bytes[..len]), Ok(None));
        }
    }

    /// The verdict on a text does not depend on its cuts, and is known as early as it can be.
    #[test]
    fn utf8_is_checked_as_a_whole_text_is(
        bytes in prop_oneof![
            ".{0,40}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..40),
            prop::collection::vec(prop::sample::select(&UTF8_BYTES[..]), 0..12),
        ],
        cuts in prop::collection::vec(0_usize..5, 0..60),
    ) {
        let (mut check, mut rest, mut at) = (Utf8Check::default(), &bytes[..], 0);
        let mut verdict = Ok(());
        let mut cuts = cuts.into_iter();
        while verdict.is_ok() && !rest.is_empty() {
            let (piece, behind) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
            verdict = check.check(piece);
            at += piece.len();
            let begins_well = match str::from_utf8(&bytes[..at]) {
                Ok(_) => true,
                Err(error) => error.error_len().is_none(),
            };
            prop_assert_eq!(verdict.is_ok(), begins_well);
            rest = behind;
        }
        let verdict = verdict.and_then(|()| check.end());
        prop_assert_eq!(verdict.is_ok(), str::from_utf8(&bytes).is_ok());
    }

    #[test]
    fn a_mask_goes_on_where_it_stopped(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        key in any::<[u8; 4]>(),
        at in 0_usize..100,
    ) {
        let at = at.min(bytes.len());
        let (mut whole, mut cut) = (bytes.clone(), bytes.clone());
        mask::apply(key, &mut whole);
        let next = mask::apply(key, &mut cut[..at]);
        mask::apply(next, &mut cut[at..]);
        prop_assert_eq!(&whole, &cut);
        let pairs = bytes.iter().zip(key.iter().cycle());
        let by_hand: Vec<u8> = pairs.map(|(byte, key)| byte ^ key).collect();
        prop_assert_eq!(whole, by_hand);
    }
}
