//! A third party between both sides, which reads the frames on their way.

use std::collections::HashMap;

use gustnado_http::h2::frame::{FrameHeader, PREFACE, flag, kind, setting};

/// What a sender may send, as the frames say that have reached it.
#[derive(Debug)]
pub struct SenderWindows {
    pub connection: i64,
    first: i64,
    /// Of each stream, the difference from the first window.
    streams: HashMap<u32, i64>,
}

impl SenderWindows {
    pub fn window(&self, id: u32) -> i64 {
        self.first + self.streams.get(&id).copied().unwrap_or(0)
    }

    fn spend(&mut self, id: u32, bytes: usize) {
        let bytes = i64::try_from(bytes).expect("a frame");
        self.connection -= bytes;
        *self.streams.entry(id).or_default() -= bytes;
        let window = self.window(id);
        assert!(self.connection >= 0, "more is sent than the connection's window");
        assert!(window >= 0 || bytes == 0, "{id}: more is sent than the stream's window");
    }

    /// Takes note of a frame that has reached the sender.
    fn note(&mut self, header: FrameHeader, payload: &[u8]) {
        match header.kind {
            kind::WINDOW_UPDATE => {
                let more = i64::from(number(payload));
                assert!(more > 0);
                if header.stream == 0 {
                    self.connection += more;
                } else {
                    *self.streams.entry(header.stream).or_default() += more;
                }
            }
            kind::SETTINGS => {
                for entry in payload.chunks(6) {
                    if entry[..2] == setting::INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.first = i64::from(number(&entry[2..]));
                    }
                }
            }
            _ => {}
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(*bytes.first_chunk().expect("four bytes"))
}

/// One direction of a connection.
pub struct Wire {
    /// On their way.
    bytes: Vec<u8>,
    /// Sent, and not yet read by the referee: the beginning of a frame.
    sent: Vec<u8>,
    /// Arrived, and not yet read.
    arrived: Vec<u8>,
    /// What the side that sends here may send.
    pub sender: SenderWindows,
    /// Streams that this side has ended.
    ended: Vec<u32>,
    preface: usize,
    arrived_preface: usize,
    pings: usize,
    ping_answers: usize,
    settings: usize,
    settings_answers: usize,
}

impl Wire {
    pub fn to_server() -> Self {
        Self::new(PREFACE.len())
    }

    pub fn to_client() -> Self {
        Self::new(0)
    }

    fn new(preface: usize) -> Self {
        let sender = SenderWindows { connection: 65_535, first: 65_535, streams: HashMap::new() };
        Self {
            bytes: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            sender,
            ended: Vec::new(),
            preface,
            arrived_preface: preface,
            pings: 0,
            ping_answers: 0,
            settings: 0,
            settings_answers: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes what was written: whole frames.
    pub fn send(&mut self, written: &mut Vec<u8>) {
        self.bytes.extend_from_slice(written);
        self.sent.append(written);
        skip(&mut self.sent, &mut self.preface);
        while let Some((header, payload)) = take_frame(&mut self.sent) {
            self.note_sent(header, &payload);
        }
        assert!(self.sent.is_empty(), "whole frames are written");
    }

    fn note_sent(&mut self, header: FrameHeader, payload: &[u8]) {
        let FrameHeader { len, stream, .. } = header;
        assert!(len <= 16_384, "no longer frame was allowed");
        let is_answer = header.has(flag::ACK);
        match header.kind {
            kind::DATA | kind::HEADERS => {
                assert!(!self.ended.contains(&stream), "{stream}: a frame behind the end");
                if header.kind == kind::DATA {
                    self.sender.spend(stream, len);
                }
                if header.has(flag::END_STREAM) {
                    self.ended.push(stream);
                }
            }
            kind::RST_STREAM => self.ended.push(stream),
            kind::PING if is_answer => self.ping_answers += 1,
            kind::PING => self.pings += 1,
            kind::SETTINGS if is_answer => {
                assert!(payload.is_empty());
                self.settings_answers += 1;
            }
            kind::SETTINGS => self.settings += 1,
            _ => {}
        }
    }

    /// Carries up to so many bytes to the other side.
    ///
    /// - `receiver`: the windows of the side that they reach.
    pub fn carry(&mut self, bytes: usize, receiver: &mut SenderWindows) -> Vec<u8> {
        let piece: Vec<u8> = self.bytes.drain(..bytes.min(self.bytes.len())).collect();
        self.arrived.extend_from_slice(&piece);
        skip(&mut self.arrived, &mut self.arrived_preface);
        while let Some((header, payload)) = take_frame(&mut self.arrived) {
            receiver.note(header, &payload);
        }
        piece
    }

    /// Checks that the other side has answered what wants an answer, once all is carried.
    pub fn check_answers(&self, other: &Self) {
        assert_eq!(self.pings, other.ping_answers, "each PING is answered once");
        assert_eq!(self.settings, other.settings_answers, "SETTINGS are acknowledged");
    }
}

fn skip(bytes: &mut Vec<u8>, count: &mut usize) {
    let skipped = bytes.len().min(*count);
    bytes.drain(..skipped);
    *count -= skipped;
}

fn take_frame(bytes: &mut Vec<u8>) -> Option<(FrameHeader, Vec<u8>)> {
    let (header, rest) = FrameHeader::read(bytes)?;
    let payload = rest.get(..header.len)?.to_vec();
    bytes.drain(..bytes.len() - (rest.len() - header.len));
    Some((header, payload))
}
