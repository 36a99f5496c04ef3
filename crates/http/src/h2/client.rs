//! The client's side of a connection (RFC 9113), without I/O: bytes and the time go in, events and
//! bytes come out.
//!
//! [`H2Client::next`] reads frame after frame up to the next event. What the protocol itself
//! answers is written into the same buffer as requests, so that one send carries all of it. A
//! stream stays until its owner [closes](H2Client::close) it.
//!
//! What it shares with the server's side: frames, header compression, windows, budgets. What a
//! frame means is another thing on each side.

mod control;
mod response_block;
mod responses;
mod sending;
#[cfg(test)]
mod tests;

pub use sending::PreparedBlock;

use std::collections::VecDeque;

use super::budget::{Budget, GlitchLimits};
use super::error::{ErrorCode, Flood, H2Error};
use super::flow::{ConnectionWindows, FIRST_WINDOW, StreamWindows};
use super::frame::{
    FrameHeader, PREFACE, StreamId, flag, kind, setting, write_settings, write_window,
};
use super::hpack::{self, Decoder, Encoder};
use super::incoming::{AnnouncedLength, DataFrame, FieldBlock, check_frame};
use super::payloads::FRAME_BYTES_LEAST;
use crate::response::ResponseHead;

/// What a client keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2ClientLimits {
    /// How much of a response's body the server may send before any of it is taken: 0 to
    /// 2^31 - 1 bytes.
    pub window_bytes: u32,
    /// How far that grows while the body is taken.
    pub window_bytes_max: u32,
    /// How much the server may send on all streams together before this side has read it: 64 KiB
    /// to 2^31 - 1 bytes.
    pub connection_window_bytes: u32,
    /// Bytes of a response's head, and again of its trailers, as RFC 9113 §6.5.2 counts them; no
    /// more than 65,535 count.
    pub head_bytes_max: usize,
    /// Fields of a response's head, and again of its trailers.
    pub fields_max: usize,
    /// Frames that serve no response.
    pub glitches: GlitchLimits,
}

impl Default for H2ClientLimits {
    fn default() -> Self {
        Self {
            window_bytes: 256 << 10,
            window_bytes_max: 4 << 20,
            connection_window_bytes: 8 << 20,
            head_bytes_max: 32 << 10,
            fields_max: 128,
            glitches: GlitchLimits::default(),
        }
    }
}

/// A request that was sent, or is being sent, and whose response is not over.
#[derive(Debug)]
pub struct ClientStream<S> {
    /// Its number.
    pub id: StreamId,
    windows: StreamWindows,
    body_left: AnnouncedLength,
    next: NextPart,
    /// The server has sent all of its response.
    pub is_remote_closed: bool,
    /// All of the request was sent.
    pub is_local_closed: bool,
    /// What the owner of the connection keeps with it.
    pub state: S,
}

/// What comes next of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextPart {
    /// Its head.
    Head,
    /// Its head, and no body: the request is HEAD.
    HeadAlone,
    /// Its body, or the end.
    Body,
}

/// What the owner of a connection has to act on.
#[derive(Debug)]
pub enum H2ClientEvent<'i, S> {
    /// An interim response (RFC 9110 §15.2). Its bytes are those of [`H2Client::head_bytes`].
    Interim {
        /// Its stream.
        id: StreamId,
        /// The head.
        head: ResponseHead,
    },
    /// The head of the final response. Its bytes are those of [`H2Client::head_bytes`].
    Response {
        /// Its stream.
        id: StreamId,
        /// The head.
        head: ResponseHead,
        /// Nothing follows.
        is_end: bool,
    },
    /// Bytes of a response's body. They are to be [taken](H2Client::take).
    Data {
        /// Its stream.
        id: StreamId,
        /// The bytes, perhaps none.
        bytes: &'i [u8],
        /// The response ends with them.
        is_end: bool,
    },
    /// The trailer fields, with which a response ends. See [`H2Client::trailers`].
    Trailers {
        /// Its stream.
        id: StreamId,
    },
    /// A stream that is over before its time. It is closed.
    Reset {
        /// The stream.
        stream: ClientStream<S>,
        /// Why.
        code: ErrorCode,
        /// What was wrong with the response; `None`: the server has ended it.
        fault: Option<&'static str>,
    },
    /// The server serves no more requests than have come so far.
    GoAway {
        /// Streams that it has not looked at, which are closed: their requests may be sent again
        /// (RFC 9113 §8.7).
        refused: Vec<ClientStream<S>>,
        /// Why.
        code: ErrorCode,
    },
    /// More may be sent, or opened.
    Window,
}

/// A connection between two events.
#[derive(Debug)]
pub struct H2Client<S> {
    decoder: Decoder,
    encoder: Encoder,
    strings: hpack::Strings,
    limits: H2ClientLimits,
    /// By their numbers: the oldest one, whose response comes next as a rule, is the first.
    streams: VecDeque<ClientStream<S>>,
    /// The bytes of the last head, or of the last trailers.
    head: Vec<u8>,
    known: responses::KnownBlock,
    /// A block of fields whose end has not come.
    block: Option<Box<FieldBlock>>,
    /// A DATA frame whose end has not come.
    data: DataFrame,
    budget: Budget,
    /// The number of the next stream.
    next_id: StreamId,
    /// No newer stream is served, as the server says.
    last_served: StreamId,
    /// Bytes that may still come on streams that this side has closed.
    discards: u64,
    windows: ConnectionWindows,
    frame_bytes_max: u32,
    streams_max: u32,
    has_settings: bool,
    is_leaving: bool,
    is_connect_protocol: bool,
}

/// Streams at once before the server has said how many: what RFC 9113 §6.5.2 recommends at least.
const FIRST_STREAMS_MAX: u32 = 100;

/// The greatest number of a stream.
const ID_MAX: StreamId = (1 << 31) - 1;

impl<S> H2Client<S> {
    /// Begins a connection, and writes the preface and this side's settings.
    pub fn new(limits: H2ClientLimits, out: &mut Vec<u8>) -> Self {
        let window = limits.window_bytes.min(i32::MAX as u32);
        let connection_window = limits.connection_window_bytes.clamp(FIRST_WINDOW, i32::MAX as u32);
        let limits = H2ClientLimits {
            window_bytes: window,
            connection_window_bytes: connection_window,
            ..limits
        };
        out.extend_from_slice(PREFACE);
        let head_bytes = u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX);
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, window),
            (setting::MAX_HEADER_LIST_SIZE, head_bytes),
        ];
        write_settings(&settings, out);
        if connection_window > FIRST_WINDOW {
            write_window(0, connection_window - FIRST_WINDOW, out);
        }
        Self {
            decoder: Decoder::new(hpack::TABLE_BYTES),
            encoder: Encoder::new(),
            strings: hpack::Strings::default(),
            limits,
            streams: VecDeque::new(),
            head: Vec::new(),
            known: responses::KnownBlock::default(),
            block: None,
            data: DataFrame::default(),
            budget: Budget::default(),
            next_id: 1,
            last_served: ID_MAX,
            discards: 0,
            windows: ConnectionWindows::new(connection_window),
            frame_bytes_max: FRAME_BYTES_LEAST,
            streams_max: FIRST_STREAMS_MAX,
            has_settings: false,
            is_leaving: false,
            is_connect_protocol: false,
        }
    }

    /// Reads frames up to the next event. Returns how many bytes were used, and the event; without
    /// one, the rest is the beginning of a frame, to be given again with more behind it.
    ///
    /// - `out`: what is sent next.
    ///
    /// # Errors
    /// [`H2Error`]: the connection is to end, with a [GOAWAY](H2Client::go_away) that says so.
    #[inline]
    pub fn next<'i>(
        &mut self,
        input: &'i [u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<H2ClientEvent<'i, S>>), H2Error> {
        let mut rest = input;
        loop {
            if self.data.is_open {
                if rest.is_empty() && self.data.left > 0 {
                    return Ok((input.len(), None));
                }
                let (event, behind) = self.data_piece(rest);
                rest = behind;
                if event.is_some() {
                    return Ok((input.len() - rest.len(), event));
                }
                continue;
            }
            let Some((header, payload)) = FrameHeader::read(rest) else { break };
            check_frame(header, self.block.as_deref(), self.has_settings)?;
            if header.kind == kind::DATA {
                let (event, behind) = self.data_frame(header, payload, now_ms, out)?;
                let Some(behind) = behind else { break };
                rest = behind;
                if event.is_some() {
                    return Ok((input.len() - rest.len(), event));
                }
                continue;
            }
            let Some((payload, behind)) = payload.split_at_checked(header.len) else { break };
            rest = behind;
            let event = match header.kind {
                kind::HEADERS => self.headers(header, payload, now_ms, out)?,
                kind::CONTINUATION => self.continuation(header, payload, now_ms, out)?,
                _ => self.control(header, payload, now_ms, out)?,
            };
            if event.is_some() {
                return Ok((input.len() - rest.len(), event));
            }
        }
        Ok((input.len() - rest.len(), None))
    }

    /// Returns the bytes of the head of the last [`H2ClientEvent::Response`] or
    /// [`H2ClientEvent::Interim`].
    pub fn head_bytes(&self) -> &[u8] {
        &self.head
    }

    /// Returns the fields of the last [`H2ClientEvent::Trailers`].
    pub fn trailers(&self) -> crate::request::FieldLines<'_> {
        crate::request::FieldLines::of_records(&self.head)
    }

    /// Returns the stream of a number, if it is open.
    #[inline]
    pub fn stream(&mut self, id: StreamId) -> Option<&mut ClientStream<S>> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// Returns the open streams, the oldest one first.
    pub fn streams(&mut self) -> impl Iterator<Item = &mut ClientStream<S>> {
        self.streams.iter_mut()
    }

    /// Returns the open stream that was opened first.
    pub fn oldest(&self) -> Option<&ClientStream<S>> {
        self.streams.front()
    }

    /// Returns how many streams are open.
    #[inline]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns how many streams the server lets this side have open.
    pub fn streams_max(&self) -> usize {
        usize::try_from(self.streams_max).unwrap_or(usize::MAX)
    }

    /// Returns whether one more request may be sent now.
    #[inline]
    pub fn can_open(&self) -> bool {
        self.streams.len() < self.streams_max() && !self.is_used_up()
    }

    /// Returns whether no more request may ever be sent: the server goes away, or there are no more
    /// numbers.
    #[inline]
    pub fn is_used_up(&self) -> bool {
        self.is_leaving || self.next_id > ID_MAX
    }

    /// Returns whether the server's settings have come.
    pub fn has_settings(&self) -> bool {
        self.has_settings
    }

    /// Returns whether the server takes CONNECT with a protocol (RFC 8441 §3), as its settings say.
    pub fn takes_protocols(&self) -> bool {
        self.is_connect_protocol
    }

    /// Returns whether a block of fields or a frame of DATA has begun and not ended.
    pub fn is_within_frame(&self) -> bool {
        self.block.is_some() || self.data.is_open
    }

    /// Returns whether a stream was never opened.
    fn is_idle(&self, id: StreamId) -> bool {
        id.is_multiple_of(2) || id >= self.next_id
    }

    /// Takes a stream out, which is closed with that.
    fn remove(&mut self, id: StreamId) -> Option<ClientStream<S>> {
        let at = self.streams.iter().position(|stream| stream.id == id)?;
        self.streams.remove(at)
    }

    /// Ends a stream whose response has broken a rule.
    ///
    /// # Errors
    /// It was once too often.
    fn break_stream<'i>(
        &mut self,
        id: StreamId,
        (code, fault): (ErrorCode, &'static str),
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        self.budget.glitch(Flood::StreamErrors, now_ms, self.limits.glitches)?;
        let stream = self.close(id, code, out);
        Ok(stream.map(|stream| H2ClientEvent::Reset { stream, code, fault: Some(fault) }))
    }
}
