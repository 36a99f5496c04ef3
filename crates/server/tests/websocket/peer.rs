//! A client that sends frames and reads them.

use gustnado_http::websocket::{Opcode, WebSocketHeader, write};

use crate::harness::Server;
use crate::harness::answer::Answer;
use crate::harness::client::{Client, End, request};

/// The example of RFC 6455 §1.3.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The handshake of a client. `fields` are whole lines.
pub(crate) fn handshake(target: &str, fields: &str) -> String {
    let usual = format!(
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: {KEY}\r\n{fields}"
    );
    request("GET", target, &usual)
}

/// A frame as a client sends it.
pub(crate) fn frame(opcode: Opcode, is_final: bool, payload: &[u8]) -> Vec<u8> {
    let mask = Some([0x11, 0x22, 0x33, 0x44]);
    let mut out = Vec::new();
    let header = WebSocketHeader { opcode, is_final, is_compressed: false, mask, len: 0 };
    write(header, payload, &mut out);
    out
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    frame(Opcode::Text, true, text.as_bytes())
}

/// The payload of a close frame.
pub(crate) fn close_of(code: u16, reason: &str) -> Vec<u8> {
    [&code.to_be_bytes()[..], reason.as_bytes()].concat()
}

/// A frame as it was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: WebSocketHeader,
    pub(crate) payload: Vec<u8>,
}

/// A client whose handshake was answered.
pub(crate) struct Peer {
    pub(crate) client: Client,
}

impl Peer {
    pub(crate) fn connect(server: &Server, target: &str) -> Self {
        Self::with_fields(server, target, "").0
    }

    /// The same with more fields, and the answer.
    pub(crate) fn with_fields(server: &Server, target: &str, fields: &str) -> (Self, Answer) {
        let mut client = server.connect();
        client.send(handshake(target, fields));
        let answer = client.read_head();
        assert_eq!(answer.status, 101, "{answer:?}");
        (Self { client }, answer)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.client.send(bytes);
    }

    /// Reads the next frame.
    pub(crate) fn try_frame(&mut self) -> Result<Frame, End> {
        let mut bytes = self.client.take(2)?;
        let more = match bytes[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        bytes.extend(self.client.take(more)?);
        let read = WebSocketHeader::read(&bytes).expect("a valid header");
        let (header, _) = read.expect("servers do not mask");
        let len = usize::try_from(header.len).expect("a small frame");
        Ok(Frame { header, payload: self.client.take(len)? })
    }

    pub(crate) fn frame(&mut self) -> Frame {
        self.try_frame().expect("a frame")
    }

    /// Reads a frame that is a whole message of text.
    pub(crate) fn text(&mut self) -> String {
        let frame = self.frame();
        assert_eq!((frame.header.opcode, frame.header.is_final), (Opcode::Text, true), "{frame:?}");
        String::from_utf8(frame.payload).expect("UTF-8")
    }

    /// Reads the close frame, and what is behind it: nothing.
    pub(crate) fn expect_close(&mut self, code: u16) {
        let frame = self.frame();
        assert_eq!(frame.header.opcode, Opcode::Close, "{frame:?}");
        assert_eq!(frame.payload[..2], code.to_be_bytes(), "{frame:?}");
    }
}
