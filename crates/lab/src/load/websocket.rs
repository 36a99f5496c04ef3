//! The end of a WebSocket of the load: its handshake, its frames, and what is sent by itself.

use gustnado_http::head::Decoded;
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::response::ResponseHead;
use gustnado_http::websocket::{
    MessageReader, Opcode, ReadLimits, Role, WebSocketEvent, WebSocketHeader, write,
};

use super::response_reader::BodyHash;
use crate::plan::STAMP_BYTES;

/// A load generator accepts every well-formed response.
const HEAD_LIMITS: Limits = Limits {
    head_bytes_max: u16::MAX as usize,
    target_bytes_max: 0,
    fields_max: 1000,
    body_bytes_max: u64::MAX,
};

/// It offers no extension.
const READ_LIMITS: ReadLimits = ReadLimits {
    frame_bytes_max: u64::MAX >> 1,
    message_bytes_max: u64::MAX >> 1,
    fragments_max: u32::MAX,
    may_be_compressed: false,
};

/// What a stamp begins with. It stands anywhere in a message: a server may put more around it.
const STAMP: &[u8] = b"gust";

/// A message that has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EndedMessage {
    pub(super) len: u64,
    /// Of its bytes, if that was asked for.
    pub(super) hash: Option<u64>,
    pub(super) stamp: Option<MessageStamp>,
}

/// When a message was sent, in nanoseconds since the origin of the run, and by which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageStamp {
    pub(super) sent: u64,
    pub(super) number: u32,
}

impl MessageStamp {
    /// Writes it over the begin of a message.
    pub(super) fn write(self, message: &mut [u8]) {
        let text = format!("gust{:016x}{:08x}", self.sent, self.number);
        message[..STAMP_BYTES].copy_from_slice(text.as_bytes());
    }

    /// Returns the first one in a message, wherever it stands.
    fn find(message: &[u8]) -> Option<Self> {
        message.windows(STAMP_BYTES).find_map(Self::read)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let digits = str::from_utf8(bytes.strip_prefix(STAMP)?).ok()?;
        let (sent, number) = digits.split_at_checked(16)?;
        let sent = u64::from_str_radix(sent, 16).ok()?;
        Some(Self { sent, number: u32::from_str_radix(number, 16).ok()? })
    }
}

/// Why a WebSocket has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebSocketFailure {
    /// The server has responded otherwise than with 101.
    Refused,
    /// The server has sent a close frame.
    Closed,
    /// What it has sent breaks a rule.
    Unreadable,
}

/// The end of a WebSocket whose connection was made.
pub(super) struct LoadSocket {
    reader: MessageReader,
    /// Received; what is before `at` was read.
    unread: Vec<u8>,
    at: usize,
    /// How far the head of the response was searched; `None` once it was read.
    head_seen: Option<usize>,
    /// Pongs.
    out: Vec<u8>,
    /// Of the message that is being received: its bytes so far, those of them that may hold a
    /// stamp, and their hash.
    len: u64,
    begun: Vec<u8>,
    hash: Option<BodyHash>,
    random: u64,
}

impl LoadSocket {
    /// - `number`: of its connection.
    pub(super) fn new(number: u32) -> Self {
        Self {
            reader: MessageReader::new(Role::Client),
            unread: Vec::new(),
            at: 0,
            head_seen: Some(0),
            out: Vec::new(),
            len: 0,
            begun: Vec::new(),
            hash: None,
            random: (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Returns whether the server has accepted the handshake.
    pub(super) fn is_open(&self) -> bool {
        self.head_seen.is_none()
    }

    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    pub(super) fn write_output(&mut self, bytes: &mut Vec<u8>) {
        bytes.append(&mut self.out);
    }

    /// Appends a frame. Its mask differs from the last one; that others can guess it does not
    /// matter to a load.
    pub(super) fn frame(&mut self, opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let [a, b, c, d, ..] = self.random.to_ne_bytes();
        let mask = Some([a, b, c, d]);
        let header = WebSocketHeader { opcode, is_final: true, is_compressed: false, mask, len: 0 };
        write(header, payload, out);
    }

    /// Adds received bytes, which [`LoadSocket::next`] reads.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Reads up to the end of the next message; `None`: it needs more bytes.
    ///
    /// - `has_stamp`: a stamp is looked for in it.
    /// - `hashes`: it is hashed.
    ///
    /// # Errors
    /// [`WebSocketFailure`]: nothing more is read.
    pub(super) fn next(
        &mut self,
        has_stamp: bool,
        hashes: bool,
    ) -> Result<Option<EndedMessage>, WebSocketFailure> {
        if !self.read_head()? {
            return Ok(None);
        }
        if hashes && self.len == 0 {
            self.hash.get_or_insert_with(BodyHash::new);
        }
        let mut unread = std::mem::take(&mut self.unread);
        let mut input = &mut unread[self.at..];
        let ended = loop {
            match self.reader.next(&mut input, &READ_LIMITS) {
                Err(_) => break Err(WebSocketFailure::Unreadable),
                Ok(None) => break Ok(None),
                Ok(Some(WebSocketEvent::Close(_))) => break Err(WebSocketFailure::Closed),
                Ok(Some(WebSocketEvent::Pong(_))) => {}
                Ok(Some(WebSocketEvent::Ping(payload))) => {
                    let mut out = std::mem::take(&mut self.out);
                    self.frame(Opcode::Pong, payload, &mut out);
                    self.out = out;
                }
                Ok(Some(WebSocketEvent::Data(piece))) => {
                    self.len += piece.bytes.len() as u64;
                    if has_stamp {
                        self.begun.extend_from_slice(piece.bytes);
                    }
                    if let Some(hash) = &mut self.hash {
                        hash.take_in(piece.bytes);
                    }
                    if piece.is_last {
                        break Ok(Some(self.end_message()));
                    }
                }
            }
        };
        let left = input.len();
        self.at = unread.len() - left;
        self.unread = unread;
        if matches!(ended, Ok(None)) {
            self.unread.drain(..self.at);
            self.at = 0;
        }
        ended
    }

    /// Reads the response to the handshake. Returns whether it is whole.
    fn read_head(&mut self) -> Result<bool, WebSocketFailure> {
        let Some(seen) = &mut self.head_seen else { return Ok(true) };
        let decoded = ResponseHead::decode(&self.unread, seen, Method::Get, &HEAD_LIMITS);
        let decoded = decoded.map_err(|_| WebSocketFailure::Unreadable)?;
        let Decoded::Done(head) = decoded else { return Ok(false) };
        if head.status() != 101 {
            return Err(WebSocketFailure::Refused);
        }
        (self.at, self.head_seen) = (head.len(), None);
        Ok(true)
    }

    fn end_message(&mut self) -> EndedMessage {
        let stamp = MessageStamp::find(&self.begun);
        self.begun.clear();
        let hash = self.hash.take().map(|hash| hash.value());
        EndedMessage { len: std::mem::take(&mut self.len), hash, stamp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

    fn read(end: &mut LoadSocket, bytes: &[u8], size: usize) -> Vec<EndedMessage> {
        let mut found = Vec::new();
        for piece in bytes.chunks(size) {
            end.receive(piece);
            while let Some(message) = end.next(true, true).expect("it is right") {
                found.push(message);
            }
        }
        found
    }

    #[test]
    fn a_stamp_is_found_behind_what_looks_like_one() {
        let stamp = MessageStamp { sent: 1, number: 2 };
        let mut message = *b"gustnado: ____________________________ gust";
        stamp.write(&mut message[10..]);
        assert_eq!(MessageStamp::find(&message), Some(stamp));
        // A character that is cut where the two numbers meet.
        let other = format!("gust{}é{}", "0".repeat(15), "0".repeat(7));
        assert_eq!(MessageStamp::find(other.as_bytes()), None);
    }

    #[test]
    fn however_it_is_cut_the_same_messages_come() {
        let mut stamped = *b"before____________________________after";
        let stamp = MessageStamp { sent: 0xdead_beef, number: 77 };
        stamp.write(&mut stamped[6..]);
        let text = |payload: &[u8]| {
            let len = u8::try_from(payload.len()).expect("it is short");
            [&[0x81, len][..], payload].concat()
        };
        let all = [HEAD, &text(&stamped), &[0x89, 2, b'h', b'i'], &text(b""), &text(b"x")].concat();
        for size in 1..all.len() {
            let mut end = LoadSocket::new(1);
            let found = read(&mut end, &all, size);
            assert!(end.is_open());
            let seen: Vec<_> = found.iter().map(|all| (all.len, all.stamp)).collect();
            assert_eq!(seen, [(stamped.len() as u64, Some(stamp)), (0, None), (1, None)]);
            assert!(
                found[0].hash != found[2].hash && found[1].hash == Some(BodyHash::new().value())
            );
            let mut out = Vec::new();
            end.write_output(&mut out);
            assert_eq!((out.len(), &out[..2]), (8, &[0x8a, 0x82][..]), "the ping is answered");
        }
    }

    #[test]
    fn what_ends_a_websocket_is_told_apart() {
        for (bytes, failure) in [
            (&b"HTTP/1.1 404 Not Found\r\n\r\n"[..], WebSocketFailure::Refused),
            (b"SSH-2.0\r\n\r\n", WebSocketFailure::Unreadable),
            (&[HEAD, &[0x88, 0]].concat(), WebSocketFailure::Closed),
            (&[HEAD, &[0x81, 0x81, 0, 0, 0, 0, 0]].concat(), WebSocketFailure::Unreadable),
        ] {
            let mut end = LoadSocket::new(1);
            end.receive(bytes);
            assert_eq!(end.next(false, false), Err(failure));
        }
    }
}
