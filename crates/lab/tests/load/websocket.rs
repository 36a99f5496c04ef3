//! Loads over `WebSocket`s, against a peer that echoes, sends to all, refuses, closes, or pings.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gustnado_http::websocket::{
    MessageReader, Opcode, ReadLimits, Role, WebSocketEvent, WebSocketHeader, write,
};
use gustnado_lab::outcome::Outcome;
use gustnado_lab::plan::{BackendChoice, LoadModel, LoadPlan, WebSocketLoad};

use crate::{counted, outcome_of, timed};

crate::through_both_doors!(
    messages_come_back_and_are_counted,
    messages_are_due_at_a_rate,
    messages_to_all_are_delivered_to_all,
    held_sockets_get_what_is_sent_to_all,
    pings_are_answered_by_held_sockets_too,
    what_a_server_refuses_is_counted,
    what_a_server_closes_is_counted,
    an_echo_of_something_else_is_found,
    a_message_that_does_not_come_back_is_timed_out,
);

/// What the peer does with a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reaction {
    Echo,
    /// With a ping before it.
    PingAndEcho,
    ToAll,
    /// Something of another length.
    Other,
    Close,
    Silence,
}

const LIMITS: ReadLimits = ReadLimits {
    frame_bytes_max: 1 << 24,
    message_bytes_max: 1 << 24,
    fragments_max: 8,
    may_be_compressed: false,
};

type All = Arc<Mutex<Vec<TcpStream>>>;

struct Peer {
    address: SocketAddr,
    pongs: Arc<AtomicUsize>,
}

impl Peer {
    /// Serves until the test process ends.
    ///
    /// - `react`: to a message, by its number among all; `None`: the handshake gets 404.
    fn start(react: Option<fn(usize) -> Reaction>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let pongs = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&pongs);
        let (all, messages) = (All::default(), Arc::<AtomicUsize>::default());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, messages) = (Arc::clone(&all), Arc::clone(&messages));
                let pongs = Arc::clone(&counted);
                thread::spawn(move || serve(stream, react, &all, [&messages, &pongs]));
            }
        });
        Self { address, pongs }
    }

    fn plan(&self, plan: impl FnOnce(&str) -> LoadPlan) -> LoadPlan {
        let mut plan = plan(&format!("ws://{}/echo", self.address));
        let load = WebSocketLoad { bytes: 64, is_binary: false, is_broadcast: false };
        plan.websocket = Some(load);
        plan.check_every = 1;
        plan
    }
}

fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let header =
        WebSocketHeader { opcode, is_final: true, is_compressed: false, mask: None, len: 0 };
    write(header, payload, &mut out);
    out
}

/// Reads the handshake. Returns the bytes behind it.
fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut unread, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        let len = stream.read(&mut bytes).ok().filter(|len| *len > 0)?;
        unread.extend_from_slice(&bytes[..len]);
        if let Some(at) = unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&unread[..at]).into_owned();
            assert!(head.starts_with("GET /echo HTTP/1.1\r\n"), "{head}");
            for field in ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
            {
                assert!(head.contains(field), "{head}");
            }
            return Some(unread.split_off(at + 4));
        }
    }
}

fn serve(
    mut stream: TcpStream,
    react: Option<fn(usize) -> Reaction>,
    all: &All,
    [messages, pongs]: [&AtomicUsize; 2],
) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut unread = read_head(&mut stream)?;
    let Some(react) = react else {
        let refusal = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        return stream.write_all(refusal).ok();
    };
    all.lock().expect("no panic").push(stream.try_clone().ok()?);
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let (mut reader, mut message) = (MessageReader::new(Role::Server), Vec::new());
    loop {
        let mut input = &mut unread[..];
        let mut whole = Vec::new();
        while let Some(event) = reader.next(&mut input, &LIMITS).expect("the load keeps the rules")
        {
            match event {
                WebSocketEvent::Pong(_) => drop(pongs.fetch_add(1, Ordering::SeqCst)),
                WebSocketEvent::Data(piece) => {
                    message.extend_from_slice(piece.bytes);
                    if piece.is_last {
                        whole.push(std::mem::take(&mut message));
                    }
                }
                _ => {}
            }
        }
        let left = input.len();
        unread.drain(..unread.len() - left);
        for message in whole {
            let number = messages.fetch_add(1, Ordering::SeqCst);
            answer(&mut stream, react(number), &message, all)?;
        }
        let mut bytes = [0; 16 << 10];
        let len = stream.read(&mut bytes).ok().filter(|len| *len > 0)?;
        unread.extend_from_slice(&bytes[..len]);
    }
}

fn answer(stream: &mut TcpStream, reaction: Reaction, message: &[u8], all: &All) -> Option<()> {
    let echo = frame(Opcode::Text, message);
    match reaction {
        Reaction::Silence => Some(()),
        Reaction::Echo => stream.write_all(&echo).ok(),
        Reaction::PingAndEcho => {
            let both = [frame(Opcode::Ping, b"alive?"), echo].concat();
            stream.write_all(&both).ok()
        }
        Reaction::Other => stream.write_all(&frame(Opcode::Text, b"other")).ok(),
        Reaction::Close => {
            stream.write_all(&frame(Opcode::Close, &1001_u16.to_be_bytes())).ok()?;
            None
        }
        Reaction::ToAll => {
            // A server may put more around a message.
            let around = frame(Opcode::Text, &[b"{\"all\": \"", message, b"\"}"].concat());
            all.lock().expect("no panic").retain_mut(|one| one.write_all(&around).is_ok());
            Some(())
        }
    }
}

fn websocket(outcome: &Outcome) -> (u64, u64, u64) {
    let of = outcome.websocket.as_ref().expect("it is a load of messages");
    (of.opened, of.refused, of.closed)
}

fn messages_come_back_and_are_counted(io: BackendChoice) {
    let peer = Peer::start(Some(|_| Reaction::PingAndEcho));
    for (bytes, at_once) in [(64, 1), (64, 8), (0, 1), (70_000, 2)] {
        let mut plan = peer.plan(|url| counted(url, 4, 200, io));
        plan.pipeline = at_once;
        plan.websocket = Some(WebSocketLoad { bytes, is_binary: false, is_broadcast: false });
        let outcome = outcome_of(&plan);
        assert_eq!((outcome.requests, outcome.errors.total()), (200, 0), "{:?}", outcome.errors);
        assert_eq!(websocket(&outcome), (4, 0, 0));
        assert_eq!(outcome.model.protocol, "WebSocket");
        // Header and mask: 6 bytes, 8 from 126 bytes on, 14 from 64 KiB on.
        let header = if bytes < 126 { 6 } else { 14 };
        assert_eq!(outcome.bytes_sent, 200 * (bytes as u64 + header));
        assert!(outcome.statuses.is_empty(), "{outcome:?}");
        assert!(!outcome.warnings.iter().any(|text| text.contains("ipelin")), "{outcome:?}");
    }
    assert!(peer.pongs.load(Ordering::SeqCst) >= 700, "pings are answered");
}

fn messages_are_due_at_a_rate(io: BackendChoice) {
    let peer = Peer::start(Some(|_| Reaction::Echo));
    let mut plan = peer.plan(|url| timed(url, 4, Duration::from_millis(500), io));
    plan.load = LoadModel::Open { rate_per_s: 200.0 };
    let outcome = outcome_of(&plan);
    assert!((99..=100).contains(&outcome.requests), "{outcome:?}");
    assert_eq!((outcome.errors.total(), websocket(&outcome)), (0, (4, 0, 0)));
    assert!(outcome.service_us.is_some());
}

fn messages_to_all_are_delivered_to_all(io: BackendChoice) {
    let peer = Peer::start(Some(|_| Reaction::ToAll));
    let mut plan = peer.plan(|url| timed(url, 10, Duration::from_millis(500), io));
    plan.load = LoadModel::Open { rate_per_s: 100.0 };
    plan.websocket = Some(WebSocketLoad { bytes: 64, is_binary: true, is_broadcast: true });
    let outcome = outcome_of(&plan);
    assert!((49..=50).contains(&outcome.requests), "{outcome:?}");
    let deliveries = outcome.websocket.as_ref().and_then(|all| all.deliveries.as_ref());
    let deliveries = deliveries.expect("it is a load of messages to all");
    // A message of the ramp-up may come within the measured time, and the last one behind it.
    assert!((480..=520).contains(&deliveries.count), "{deliveries:?}");
    assert_eq!(deliveries.latency_us.count, deliveries.count);
    assert!(deliveries.latency_us.max < 400_000.0, "{deliveries:?}");
}

fn held_sockets_get_what_is_sent_to_all(io: BackendChoice) {
    let peer = Peer::start(Some(|_| Reaction::ToAll));
    let mut plan = peer.plan(|url| timed(url, 1, Duration::from_millis(500), io));
    plan.load = LoadModel::Hold { idle: 50, rate_per_s: Some(20.0) };
    plan.websocket = Some(WebSocketLoad { bytes: 64, is_binary: false, is_broadcast: true });
    let outcome = outcome_of(&plan);
    let held = outcome.held.as_ref().expect("connections are held");
    assert_eq!((held.opened, held.lost, websocket(&outcome)), (50, 0, (51, 0, 0)));
    let deliveries = outcome.websocket.as_ref().and_then(|all| all.deliveries.as_ref());
    let count = deliveries.expect("it is a load of messages to all").count;
    assert!((9 * 51..=11 * 51).contains(&count), "{count}: ten messages to 51 connections");
}

fn pings_are_answered_by_held_sockets_too(io: BackendChoice) {
    // The one that sends makes the peer ping all others.
    let peer = Peer::start(Some(|_| Reaction::PingAndEcho));
    let mut plan = peer.plan(|url| counted(url, 1, 5, io));
    plan.load = LoadModel::Hold { idle: 3, rate_per_s: None };
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, websocket(&outcome)), (5, (4, 0, 0)));
    assert!(peer.pongs.load(Ordering::SeqCst) >= 4);
}

fn what_a_server_refuses_is_counted(io: BackendChoice) {
    let peer = Peer::start(None);
    let outcome = outcome_of(&peer.plan(|url| counted(url, 2, 10, io)));
    let (opened, refused, closed) = websocket(&outcome);
    assert_eq!((outcome.requests, opened, closed), (0, 0, 0), "{outcome:?}");
    assert!(refused >= 10 && outcome.errors.status == 10, "{outcome:?}");
}

fn what_a_server_closes_is_counted(io: BackendChoice) {
    let peer =
        Peer::start(Some(|number| if number % 10 == 9 { Reaction::Close } else { Reaction::Echo }));
    let outcome = outcome_of(&peer.plan(|url| counted(url, 1, 100, io)));
    assert_eq!((outcome.requests, outcome.errors.reset), (90, 10), "{outcome:?}");
    let (opened, refused, closed) = websocket(&outcome);
    assert_eq!((refused, closed), (0, 10));
    // (The last one is closed behind the last message.)
    assert!((10..=11).contains(&opened), "those that were closed are opened again: {opened}");
}

fn an_echo_of_something_else_is_found(io: BackendChoice) {
    let peer =
        Peer::start(Some(|number| if number < 5 { Reaction::Echo } else { Reaction::Other }));
    let outcome = outcome_of(&peer.plan(|url| counted(url, 1, 10, io)));
    assert_eq!((outcome.requests, outcome.errors.length), (5, 5), "{outcome:?}");
}

fn a_message_that_does_not_come_back_is_timed_out(io: BackendChoice) {
    let peer =
        Peer::start(Some(|number| if number == 3 { Reaction::Silence } else { Reaction::Echo }));
    let mut plan = peer.plan(|url| counted(url, 1, 10, io));
    plan.response_timeout = Duration::from_millis(200);
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.timed_out), (9, 1), "{outcome:?}");
    assert_eq!(websocket(&outcome).0, 2, "its connection is of no use any more");
}
