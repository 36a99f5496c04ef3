//! Frames of a client: split-equals-whole, bounds, and the same messages as tungstenite reads.
#![no_main]

use std::io::{self, Cursor, Read, Write};

use gustnado_http::websocket::{
    MessageKind, MessageReader, ReadLimits, Role, Utf8Check, Violation, WebSocketEvent,
};
use libfuzzer_sys::fuzz_target;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

/// Small, so that a fuzzer reaches them.
const LIMITS: ReadLimits = ReadLimits {
    frame_bytes_max: 300,
    message_bytes_max: 500,
    fragments_max: 5,
    may_be_compressed: false,
};

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let whole = read(bytes, usize::MAX / 2);
    assert_eq!(read(bytes, usize::from(*step) % 32 + 1), whole);
    assert_eq!(read(bytes, 1), whole);
    agree(bytes, &whole.0);
});

/// What was read, in a form that both have.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(u16, String),
}

/// Reads frames as they come in pieces of `step` bytes.
fn read(bytes: &[u8], step: usize) -> (Vec<Event>, Option<Violation>) {
    let mut reader = MessageReader::new(Role::Server);
    let (mut events, mut message, mut text) = (Vec::new(), Vec::new(), Utf8Check::default());
    let (mut kept, mut at) = (Vec::new(), 0);
    loop {
        let mut input = &mut kept[..];
        let event = match reader.next(&mut input, &LIMITS) {
            Err(violation) => return (events, Some(violation)),
            Ok(event) => event,
        };
        let Some(event) = event else {
            let left = input.len();
            assert!(left <= 130, "{left} bytes are left of what it has");
            kept.drain(..kept.len() - left);
            if at == bytes.len() {
                return (events, None);
            }
            let end = bytes.len().min(at.saturating_add(step));
            kept.extend_from_slice(&bytes[at..end]);
            at = end;
            continue;
        };
        match event {
            WebSocketEvent::Ping(payload) => events.push(Event::Ping(payload.to_vec())),
            WebSocketEvent::Pong(payload) => events.push(Event::Pong(payload.to_vec())),
            WebSocketEvent::Close(close) => {
                events.push(Event::Close(close.code.0, close.text.to_owned()));
                return (events, None);
            }
            WebSocketEvent::Data(piece) => {
                let (kind, is_last) = (piece.kind, piece.is_last);
                message.extend_from_slice(piece.bytes);
                assert!(message.len() as u64 <= LIMITS.message_bytes_max);
                if kind == MessageKind::Text {
                    let checked = text.check(piece.bytes);
                    let checked = if is_last { checked.and_then(|()| text.end()) } else { checked };
                    if let Err(violation) = checked {
                        return (events, Some(violation));
                    }
                }
                if is_last {
                    events.push(Event::Message(kind, std::mem::take(&mut message)));
                }
            }
        }
        let left = input.len();
        kept.drain(..kept.len() - left);
    }
}

/// What comes from bytes, and goes nowhere.
struct Wire<'a>(Cursor<&'a [u8]>);

impl Read for Wire<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The other one reads the same, up to what we refuse: it takes more than we do.
fn agree(bytes: &[u8], ours: &[Event]) {
    let config = WebSocketConfig::default()
        .max_frame_size(Some(LIMITS.frame_bytes_max as usize))
        .max_message_size(Some(LIMITS.message_bytes_max as usize));
    let role = tungstenite::protocol::Role::Server;
    let mut theirs = WebSocket::from_raw_socket(Wire(Cursor::new(bytes)), role, Some(config));
    for wanted in ours {
        let found = match theirs.read() {
            Ok(Message::Text(text)) => Event::Message(MessageKind::Text, text.as_bytes().to_vec()),
            Ok(Message::Binary(bytes)) => Event::Message(MessageKind::Binary, bytes.to_vec()),
            Ok(Message::Ping(payload)) => Event::Ping(payload.to_vec()),
            Ok(Message::Pong(payload)) => Event::Pong(payload.to_vec()),
            Ok(Message::Close(None)) => Event::Close(1005, String::new()),
            Ok(Message::Close(Some(close))) => {
                Event::Close(close.code.into(), close.reason.to_string())
            }
            Ok(Message::Frame(_)) => unreachable!("it is never read"),
            Err(error) => panic!("{wanted:?}: the other one refuses it: {error}"),
        };
        // It reports a code that it does not know as a violation.
        match (&found, wanted) {
            (Event::Close(1002, _), Event::Close(..)) => {}
            _ => assert_eq!(found, *wanted),
        }
    }
}
