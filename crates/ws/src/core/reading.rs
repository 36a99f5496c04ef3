//! What has come, read as messages, within its limits.

use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use gustnado_http::websocket::{
    CloseCode, CloseReason, MessageKind, Opcode, ReadLimits, Violation, WebSocketEvent, mask,
};
use gustnado_tasks::{Charge, MemoryKind, now};

use super::Core;
use super::traffic::Traffic;
use crate::error::WebSocketError;
use crate::message::{CloseFrame, MessagePiece, WebSocketMessage};

/// So much of a WebSocket belongs to its connection, and is not charged.
const UNCHARGED_BYTES: usize = 4 << 10;

/// What a pong counts for besides its payload.
const PONG_BYTES: usize = 6;

/// While memory is short, a message that is longer than this is refused.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// What was read next.
enum ReadStep {
    /// More has to come first.
    Starved,
    Piece(MessagePiece),
    /// A piece of a compressed message was gathered.
    Compressed {
        kind: MessageKind,
        is_last: bool,
    },
    Ping(Bytes),
    Pong,
    Close(CloseFrame),
}

impl Core {
    /// Reads the next piece of what has come. `None`: there is none, or the WebSocket has ended.
    pub(super) fn read_piece(&mut self, gathers: bool) -> Result<Option<MessagePiece>, Violation> {
        let may_be_compressed = self.deflate().is_some();
        let limits = self.options.read_limits(may_be_compressed);
        let found = loop {
            match self.read_step(gathers, &limits)? {
                ReadStep::Starved => break None,
                ReadStep::Piece(piece) => {
                    if piece.is_last {
                        self.admit()?;
                        self.traffic().received += 1;
                    }
                    break Some(piece);
                }
                ReadStep::Compressed { is_last: false, .. } => {}
                ReadStep::Compressed { kind, is_last: true } => {
                    self.admit()?;
                    self.traffic().received += 1;
                    let bytes = self.inflate(kind, gathers)?;
                    break Some(MessagePiece { kind, bytes, is_last: true });
                }
                ReadStep::Ping(payload) => {
                    self.admit()?;
                    self.traffic().pong_bytes += PONG_BYTES + payload.len();
                    self.control(Opcode::Pong, &payload);
                }
                ReadStep::Pong => self.admit()?,
                ReadStep::Close(close) => {
                    self.traffic().unread = BytesMut::new();
                    self.after_close(close);
                    break None;
                }
            }
        };
        if !gathers && let Some(piece) = &found {
            self.traffic().is_in_pieces = !piece.is_last;
        }
        self.check_memory()?;
        Ok(found)
    }

    /// Takes a message that has come whole in one frame, if that is what comes next.
    #[inline]
    pub(super) fn take_whole(&mut self) -> Option<(MessageKind, Vec<u8>)> {
        if self.has_end() || self.options.rate.is_some() {
            return None;
        }
        let Traffic { reader, unread, message, received, is_in_pieces, .. } =
            self.traffic.as_deref_mut()?;
        let limits = self.options.read_limits(false);
        let (kind, bytes, key, frame_bytes) = reader.whole(unread, &limits)?;
        if *is_in_pieces || !message.is_empty() {
            return None;
        }
        message.extend_from_slice(bytes);
        mask::apply(key, message);
        *received += 1;
        cut(unread, frame_bytes);
        Some((kind, mem::take(message)))
    }

    /// Reads what comes next.
    fn read_step(&mut self, gathers: bool, limits: &ReadLimits) -> Result<ReadStep, Violation> {
        let Some(Traffic { reader, unread, message, text, .. }) = self.traffic.as_deref_mut()
        else {
            return Ok(ReadStep::Starved);
        };
        let mut input = &mut unread[..];
        let came = input.len();
        let step = match reader.next(&mut input, limits)? {
            None => ReadStep::Starved,
            Some(WebSocketEvent::Data(piece)) => {
                let (kind, is_last) = (piece.kind, piece.is_last);
                // A text that comes at once is checked when it is made a string.
                let is_whole = gathers && is_last && message.is_empty();
                if gathers || piece.is_compressed {
                    message.extend_from_slice(piece.bytes);
                }
                if piece.is_compressed {
                    ReadStep::Compressed { kind, is_last }
                } else {
                    if kind == MessageKind::Text && !is_whole {
                        text.check(piece.bytes)?;
                    }
                    if is_last {
                        text.end()?;
                    }
                    let bytes =
                        if gathers { Bytes::new() } else { Bytes::copy_from_slice(piece.bytes) };
                    ReadStep::Piece(MessagePiece { kind, bytes, is_last })
                }
            }
            Some(WebSocketEvent::Ping(payload)) => ReadStep::Ping(Bytes::copy_from_slice(payload)),
            Some(WebSocketEvent::Pong(_)) => ReadStep::Pong,
            Some(WebSocketEvent::Close(CloseReason { code, text })) => {
                ReadStep::Close(CloseFrame { code, reason: text.to_owned() })
            }
        };
        let used = came - input.len();
        cut(unread, used);
        Ok(step)
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
    #[inline]
    fn admit(&mut self) -> Result<(), Violation> {
        if self.options.rate.is_none() { Ok(()) } else { self.admit_at_rate() }
    }

    fn admit_at_rate(&mut self) -> Result<(), Violation> {
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

/// Cuts off what was read. The memory goes with the last of it.
#[inline]
fn cut(unread: &mut BytesMut, bytes: usize) {
    if bytes == unread.len() {
        *unread = BytesMut::new();
    } else {
        unread.advance(bytes);
    }
}
