//! What has come, read as messages, within its limits.

use std::mem;

use bytes::{Bytes, BytesMut};
use gustnado_http::websocket::{CloseCode, MessageKind, Opcode, Violation, WebSocketEvent};
use gustnado_tasks::{Charge, MemoryKind, now};

use super::Core;
use crate::error::WebSocketError;
use crate::message::{MessagePiece, WebSocketMessage};

/// So much of a WebSocket belongs to its connection, and is not charged.
const UNCHARGED_BYTES: usize = 4 << 10;

/// What a pong counts for besides its payload.
const PONG_BYTES: usize = 6;

/// While memory is short, a message that is longer than this is refused.
const SHORT_BYTES_MAX: usize = 64 << 10;

impl Core {
    /// Reads the next piece of what has come. `None`: there is none, or the WebSocket has ended.
    pub(super) fn read_piece(&mut self, gathers: bool) -> Result<Option<MessagePiece>, Violation> {
        let Some(traffic) = self.traffic.as_mut().filter(|traffic| !traffic.unread.is_empty())
        else {
            return Ok(None);
        };
        let mut unread = mem::take(&mut traffic.unread);
        let may_be_compressed = self.deflate().is_some();
        let limits = self.options.read_limits(may_be_compressed);
        let mut input = &mut unread[..];
        let found = loop {
            let Some(event) = self.traffic().reader.next(&mut input, &limits)? else { break None };
            match event {
                WebSocketEvent::Ping(payload) => {
                    self.admit()?;
                    let payload = Bytes::copy_from_slice(payload);
                    self.traffic().pong_bytes += PONG_BYTES + payload.len();
                    self.control(Opcode::Pong, &payload);
                }
                WebSocketEvent::Pong(_) => self.admit()?,
                WebSocketEvent::Close(close) => {
                    self.after_close(close);
                    input = &mut [];
                    break None;
                }
                WebSocketEvent::Data(piece) => {
                    let (kind, is_last) = (piece.kind, piece.is_last);
                    if is_last {
                        self.admit()?;
                        self.traffic().received += 1;
                    }
                    if kind == MessageKind::Text && !piece.is_compressed {
                        // A text that comes at once is checked when it is made a string.
                        if !(gathers && is_last && self.message_bytes() == 0) {
                            self.traffic().text.check(piece.bytes)?;
                        }
                    }
                    if gathers || piece.is_compressed {
                        self.traffic().message.extend_from_slice(piece.bytes);
                    }
                    let bytes = if piece.is_compressed {
                        if !is_last {
                            continue;
                        }
                        self.inflate(kind, gathers)?
                    } else if gathers {
                        Bytes::new()
                    } else {
                        Bytes::copy_from_slice(piece.bytes)
                    };
                    if is_last && !piece.is_compressed {
                        self.traffic().text.end()?;
                    }
                    break Some(MessagePiece { kind, bytes, is_last });
                }
            }
        };
        if !gathers && let Some(piece) = &found {
            self.traffic().is_in_pieces = !piece.is_last;
        }
        let left = input.len();
        self.keep(unread, left);
        self.check_memory()?;
        Ok(found)
    }

    /// Takes out what was gathered of a message that is wanted in pieces now.
    pub(super) fn take_begun(&mut self) -> Option<MessagePiece> {
        let traffic = self.traffic.as_mut().filter(|traffic| !traffic.message.is_empty())?;
        let Some((kind, false)) = traffic.reader.message() else { return None };
        traffic.is_in_pieces = true;
        let bytes = mem::take(&mut traffic.message).into();
        Some(MessagePiece { kind, bytes, is_last: false })
    }

    /// Counts a message, or a control frame, of which a peer may send so many per second.
    fn admit(&mut self) -> Result<(), Violation> {
        let Some(rate) = self.options.rate else { return Ok(()) };
        let now_ms = now().mono_ms;
        if self.extras().allowance.take(rate, now_ms, 1) > now_ms {
            let code = CloseCode::POLICY_VIOLATION;
            return Err(Violation { code, reason: "too many messages per second" });
        }
        Ok(())
    }

    /// Inflates the message that has come, and checks its text.
    fn inflate(&mut self, kind: MessageKind, gathers: bool) -> Result<Bytes, Violation> {
        let message = mem::take(&mut self.traffic().message);
        let most = self.options.message_bytes_max;
        let Some(deflate) = self.deflate() else { return Ok(message.into()) };
        let inflated = deflate.inflate(&message, most)?;
        if gathers {
            self.traffic().message = inflated;
            return Ok(Bytes::new());
        }
        if kind == MessageKind::Text {
            self.traffic().text.check(&inflated)?;
            self.traffic().text.end()?;
        }
        Ok(inflated.into())
    }

    /// Returns a message that has come whole.
    pub(super) fn whole(
        &mut self,
        kind: MessageKind,
        bytes: Vec<u8>,
    ) -> Result<WebSocketMessage, WebSocketError> {
        match kind {
            MessageKind::Binary => Ok(WebSocketMessage::Binary(bytes)),
            MessageKind::Text => {
                String::from_utf8(bytes).map(WebSocketMessage::Text).map_err(|_| {
                    let violation = Violation::data("a text is not UTF-8");
                    self.refuse(violation);
                    // It is told now.
                    _ = self.end_of_input();
                    WebSocketError::Violation(violation)
                })
            }
        }
    }

    /// Keeps the last bytes of what was read.
    fn keep(&mut self, mut bytes: BytesMut, left: usize) {
        if left > 0 {
            self.traffic().unread = bytes.split_off(bytes.len() - left);
        }
    }

    pub(super) fn append(&mut self, bytes: Bytes) {
        // Nobody else has what was just received, so it is not copied.
        let bytes = BytesMut::from(bytes);
        let unread = &mut self.traffic().unread;
        if unread.is_empty() {
            *unread = bytes;
        } else {
            unread.extend_from_slice(&bytes);
        }
    }

    /// Refuses a long message that is not whole while memory is short.
    fn check_memory(&mut self) -> Result<(), Violation> {
        if self.message_bytes() <= UNCHARGED_BYTES {
            return Ok(());
        }
        self.recharge();
        if self.message_bytes() > SHORT_BYTES_MAX && self.is_short_of_memory() {
            let code = CloseCode::TRY_AGAIN_LATER;
            return Err(Violation { code, reason: "the server is short of memory" });
        }
        Ok(())
    }

    pub(super) fn is_short_of_memory(&self) -> bool {
        let charge = self.traffic.as_ref().and_then(|traffic| traffic.charge.as_ref());
        charge.is_some_and(|charge| charge.is_over_budget())
    }

    /// Charges what is held of messages in both directions.
    pub(super) fn recharge(&mut self) {
        let Some(traffic) = &mut self.traffic else { return };
        let held = traffic.message.capacity() + traffic.unread.len() + traffic.out.own_bytes();
        if held <= UNCHARGED_BYTES {
            traffic.charge = None;
            return;
        }
        let charge =
            traffic.charge.get_or_insert_with(|| Charge::new(MemoryKind::WebSockets).into());
        charge.set(held);
    }

    /// Gives back what is only of use while messages come and go.
    #[cold]
    pub(super) fn give_back(&mut self) {
        if let Some(deflate) = self.deflate() {
            deflate.give_back();
        }
    }
}
