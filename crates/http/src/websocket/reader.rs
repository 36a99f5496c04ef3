//! Bytes to pieces of messages and control frames (RFC 6455 §5.4, §5.5, §6.2).
#![expect(clippy::mut_mut, reason = "what is left of the input is handed back")]

use std::mem;

use super::close::{CloseReason, Violation};
use super::frame::{LEN, LEN_OF_2, MASKED, Opcode, WHOLE_BINARY, WHOLE_TEXT, WebSocketHeader};
use super::mask;

/// Which end reads. Clients have to mask what they send, servers must not (RFC 6455 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads what a client has sent.
    Server,
    /// It reads what a server has sent.
    Client,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// How long messages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of a frame.
    pub frame_bytes_max: u64,
    /// Bytes of a message, as they are sent.
    pub message_bytes_max: u64,
    /// Frames of a message.
    pub fragments_max: u32,
    /// Messages may be compressed: it was agreed on.
    pub may_be_compressed: bool,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum WebSocketEvent<'a> {
    /// A piece of a message.
    Data(WebSocketPiece<'a>),
    /// A ping, to be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The peer closes. It sends nothing more.
    Close(CloseReason<'a>),
}

/// A piece of a message, unmasked. It may be cut anywhere.
#[derive(Debug, PartialEq, Eq)]
pub struct WebSocketPiece<'a> {
    /// What the message is.
    pub kind: MessageKind,
    /// The message is compressed.
    pub is_compressed: bool,
    /// Its bytes; empty only where a message ends without any more.
    pub bytes: &'a mut [u8],
    /// The message ends behind it.
    pub is_last: bool,
}

/// Reads the frames of one end of a WebSocket.
#[derive(Clone, Debug)]
pub struct MessageReader {
    role: Role,
    /// The message that is under way, and whether it is compressed.
    message: Option<(MessageKind, bool)>,
    /// The frame that is under way is its last one.
    is_last_frame: bool,
    /// The mask of the next byte; zeros do nothing.
    mask: [u8; 4],
    /// Frames of the message so far.
    fragments: u32,
    /// Bytes of the frame that have not come.
    left: u64,
    /// Bytes of the message that the frames so far have or announce.
    message_bytes: u64,
}

impl MessageReader {
    /// - `role`: which end this is.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            message: None,
            is_last_frame: false,
            mask: [0; 4],
            fragments: 0,
            left: 0,
            message_bytes: 0,
        }
    }

    /// Returns whether a message has begun that has not ended.
    pub fn is_within_message(&self) -> bool {
        self.message.is_some()
    }

    /// Returns which end this is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns what the message is that has begun and has not ended, and whether it is compressed.
    pub fn message(&self) -> Option<(MessageKind, bool)> {
        self.message
    }

    /// Returns whether nothing has begun that has not ended.
    pub fn is_idle(&self) -> bool {
        self.message.is_none() && self.left == 0
    }

    /// Reads what comes next; `None`: it needs more. What was read is cut off `input`, and what is
    /// left of it, 130 bytes at most, has to come again with more behind it.
    ///
    /// # Errors
    /// The peer has broken a rule or a limit. The WebSocket has to be closed.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a mut [u8],
        limits: &ReadLimits,
    ) -> Result<Option<WebSocketEvent<'a>>, Violation> {
        loop {
            if self.left > 0 {
                return Ok(self.piece(input));
            }
            let Some((header, header_bytes)) = WebSocketHeader::read(input)? else {
                return Ok(None);
            };
            if header.mask.is_some() != (self.role == Role::Server) {
                return Err(Violation::protocol(match self.role {
                    Role::Server => "a frame that is not masked",
                    Role::Client => "a frame that is masked",
                }));
            }
            if header.opcode.is_control() {
                return control(header, header_bytes, input);
            }
            self.begin_frame(header, limits)?;
            cut(input, header_bytes);
            if header.len == 0 && header.is_final {
                return Ok(Some(self.data(&mut [])));
            }
        }
    }

    /// Reads a message that has come whole, in one frame that is not compressed: the usual case.
    /// Returns what it is, its bytes, which are still masked, their masking key, and the length of
    /// the frame. `None`: what comes next is something else, and is for [`MessageReader::next`].
    #[inline]
    pub fn whole<'a>(
        &self,
        input: &'a [u8],
        limits: &ReadLimits,
    ) -> Option<(MessageKind, &'a [u8], [u8; 4], usize)> {
        let (kind, masked, short) = match input {
            [WHOLE_TEXT, second, ..] => (MessageKind::Text, second & MASKED, second & LEN),
            [WHOLE_BINARY, second, ..] => (MessageKind::Binary, second & MASKED, second & LEN),
            _ => return None,
        };
        let (len, rest) = match short {
            LEN_OF_2 => {
                let len = u16::from_be_bytes(*input.get(2..)?.first_chunk()?);
                (len.into(), input.get(4..)?)
            }
            len => (usize::from(len), &input[2..]),
        };
        // Lengths of eight bytes, and those that are written longer than they have to be, are
        // left to the other function; and so is what breaks a rule or a limit.
        let is_usual = short < LEN_OF_2 || (short == LEN_OF_2 && len >= usize::from(LEN_OF_2));
        let is_within = len as u64 <= limits.frame_bytes_max.min(limits.message_bytes_max);
        let is_masked = masked != 0;
        if !is_usual || !is_within || !self.is_idle() || is_masked != (self.role == Role::Server) {
            return None;
        }
        let (key, rest) = if is_masked {
            let (key, rest) = rest.split_first_chunk()?;
            (*key, rest)
        } else {
            ([0; 4], rest)
        };
        let bytes = rest.get(..len)?;
        Some((kind, bytes, key, input.len() - rest.len() + len))
    }

    /// Takes note of a frame of a message.
    fn begin_frame(
        &mut self,
        header: WebSocketHeader,
        limits: &ReadLimits,
    ) -> Result<(), Violation> {
        let begins = match header.opcode {
            Opcode::Text => Some(MessageKind::Text),
            Opcode::Binary => Some(MessageKind::Binary),
            _ => None,
        };
        match (begins, self.message) {
            (Some(_), Some(_)) => {
                return Err(Violation::protocol("a message begins within another"));
            }
            (None, None) => {
                return Err(Violation::protocol("a frame that continues no message"));
            }
            (None, Some(_)) if header.is_compressed => {
                return Err(Violation::protocol("a reserved bit is set"));
            }
            (Some(_), None) if header.is_compressed && !limits.may_be_compressed => {
                return Err(Violation::protocol("a compressed message, and none was agreed on"));
            }
            (Some(kind), None) => {
                self.message = Some((kind, header.is_compressed));
                (self.fragments, self.message_bytes) = (0, 0);
            }
            (None, Some(_)) => {}
        }
        self.fragments += 1;
        self.message_bytes = self.message_bytes.saturating_add(header.len);
        if header.len > limits.frame_bytes_max {
            return Err(Violation::too_big("a frame is too long"));
        }
        if self.message_bytes > limits.message_bytes_max {
            return Err(Violation::too_big("a message is too long"));
        }
        if self.fragments > limits.fragments_max {
            return Err(Violation::too_big("a message has too many frames"));
        }
        (self.left, self.is_last_frame) = (header.len, header.is_final);
        self.mask = header.mask.unwrap_or_default();
        Ok(())
    }

    /// Returns what has come of the frame that is under way.
    fn piece<'a>(&mut self, input: &mut &'a mut [u8]) -> Option<WebSocketEvent<'a>> {
        let len = usize::try_from(self.left).map_or(input.len(), |left| left.min(input.len()));
        if len == 0 {
            return None;
        }
        let bytes = cut(input, len);
        if self.role == Role::Server {
            self.mask = mask::apply(self.mask, bytes);
        }
        self.left -= len as u64;
        Some(self.data(bytes))
    }

    /// Returns a piece of the message that is under way, and ends it where it ends.
    fn data<'a>(&mut self, bytes: &'a mut [u8]) -> WebSocketEvent<'a> {
        let is_last = self.is_last_frame && self.left == 0;
        let message = if is_last { self.message.take() } else { self.message };
        // A frame begins only within a message, or begins one.
        let (kind, is_compressed) = message.unwrap_or((MessageKind::Binary, false));
        WebSocketEvent::Data(WebSocketPiece { kind, is_compressed, bytes, is_last })
    }
}

/// Reads a control frame, which has to be whole.
#[cold]
fn control<'a>(
    header: WebSocketHeader,
    header_bytes: usize,
    input: &mut &'a mut [u8],
) -> Result<Option<WebSocketEvent<'a>>, Violation> {
    let len = usize::try_from(header.len).unwrap_or(usize::MAX);
    if input.len() - header_bytes < len {
        return Ok(None);
    }
    cut(input, header_bytes);
    let payload = cut(input, len);
    mask::apply(header.mask.unwrap_or_default(), payload);
    Ok(Some(match header.opcode {
        Opcode::Ping => WebSocketEvent::Ping(payload),
        Opcode::Close => WebSocketEvent::Close(CloseReason::read(payload)?),
        _ => WebSocketEvent::Pong(payload),
    }))
}

/// Cuts the first bytes off.
fn cut<'a>(input: &mut &'a mut [u8], len: usize) -> &'a mut [u8] {
    let (first, rest) = mem::take(input).split_at_mut(len);
    *input = rest;
    first
}
