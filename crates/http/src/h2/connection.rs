//! The server's side of a connection (RFC 9113), without I/O: bytes and the time go in, events and
//! bytes come out.
//!
//! [`H2Connection::next`] reads frame after frame up to the next event. What the protocol itself
//! answers (SETTINGS, PING, windows, resets) is written into the same buffer as responses, so that
//! one send carries all of it. A stream is kept only if its request or response outlasts the turn:
//! most never are.

mod control;
mod requests;
mod sending;

use super::budget::{Budget, GlitchLimits};
use super::error::{ErrorCode, Flood, H2Error};
use super::flow::{ConnectionWindows, FIRST_WINDOW};
use super::frame::{
    FrameHeader, PREFACE, StreamId, flag, kind, setting, write_reset, write_settings, write_window,
};
use super::hpack::{self, Decoder, Encoder};
use super::incoming::{DataFrame, FieldBlock, check_frame};
use super::payloads::FRAME_BYTES_LEAST;
use super::priority::Priority;
use super::request_head::HeadLimit;
use super::stream::Stream;
use crate::head::Head;
use crate::limits::Limits;
use crate::status::Status;

/// What a connection keeps to. The same for all of a server's connections.
#[derive(Clone, Copy, Debug)]
pub struct H2Limits {
    /// Streams at once, whose responses are not over: 1 to 65,535.
    pub streams_max: u32,
    /// How much of a body the client may send before any of it is taken: 16 KiB to 2^31 - 1.
    pub window_bytes: u32,
    /// How far that grows while the body is taken.
    pub window_bytes_max: u32,
    /// Frames and resets that serve no request.
    pub glitches: GlitchLimits,
}

impl Default for H2Limits {
    fn default() -> Self {
        Self {
            streams_max: 100,
            window_bytes: 64 << 10,
            window_bytes_max: 1 << 20,
            glitches: GlitchLimits::default(),
        }
    }
}

/// Memory that a worker's connections use in turn.
#[derive(Debug, Default)]
pub struct H2Scratch {
    /// The bytes of the last request's head, its line if it was refused, or records of trailers.
    head: Vec<u8>,
    spare: Vec<u8>,
    strings: hpack::Strings,
}

impl H2Scratch {
    /// Returns the bytes of the head of the last [`H2Event::Request`]. Of the last
    /// [`H2Event::Refused`], it is the line `GET /path HTTP/2.0` with its end, or nothing if its
    /// method or its path has not come.
    pub fn head_bytes(&self) -> &[u8] {
        &self.head
    }

    /// Returns the records of the last [`H2Event::Trailers`], as
    /// [`FieldLines::of_records`](crate::request::FieldLines::of_records) reads them.
    pub fn trailer_records(&self) -> &[u8] {
        &self.head
    }
}

/// What a step needs besides the bytes that came.
pub struct Step<'s> {
    /// Memory to be reused.
    pub scratch: &'s mut H2Scratch,
    /// The limits of HTTP/2.
    pub h2: &'s H2Limits,
    /// The limits of a request.
    pub limits: &'s Limits,
    /// The time in milliseconds.
    pub now_ms: u64,
    /// What is sent next.
    pub out: &'s mut Vec<u8>,
}

/// What the owner of a connection has to act on.
#[derive(Debug)]
pub enum H2Event<'i, S> {
    /// A request. Its bytes are those of [`H2Scratch::head_bytes`].
    Request {
        /// Its stream, which is to be [opened](H2Connection::open) unless the response is over in
        /// this turn.
        id: StreamId,
        /// The head.
        head: Head,
        /// No body follows, nor bytes of a tunnel.
        is_end: bool,
    },
    /// A request that is to be refused with a status.
    Refused {
        /// Its stream.
        id: StreamId,
        /// The status.
        status: Status,
        /// The limit that it is past, and how much was reached, if that is why.
        past: Option<(HeadLimit, usize)>,
        /// The method is HEAD: no content is sent.
        is_head: bool,
        /// No body follows.
        is_end: bool,
    },
    /// Bytes of a request's body. They are to be [taken](H2Connection::take).
    Data {
        /// Its stream, which is open.
        id: StreamId,
        /// The bytes, perhaps none.
        bytes: &'i [u8],
        /// The body ends with them.
        is_end: bool,
    },
    /// The trailer fields of a request, with which its body ends. They are those of
    /// [`H2Scratch::trailer_records`], perhaps none.
    Trailers {
        /// Its stream, which is open.
        id: StreamId,
    },
    /// A stream that is over: the client has reset it, or it broke a rule.
    Reset {
        /// The stream, if it was open; it is closed now.
        stream: Option<Stream<S>>,
        /// Why.
        code: ErrorCode,
        /// The client has ended it.
        by_peer: bool,
    },
    /// More may be sent.
    Window,
}

/// A connection between two events.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct H2Connection<S> {
    decoder: Decoder,
    encoder: Encoder,
    streams: Vec<Stream<S>>,
    /// A block of fields whose end has not come.
    block: Option<Box<FieldBlock>>,
    /// A DATA frame whose end has not come.
    data: DataFrame,
    budget: Budget,
    /// A priority that came before its request; stream 0: none did.
    ahead: (StreamId, Priority),
    /// The newest stream of the client.
    last: StreamId,
    /// No newer stream is served.
    last_served: StreamId,
    /// The newest stream that this side has reset.
    last_reset: StreamId,
    windows: ConnectionWindows,
    /// The first window of each of the client's streams, as it was told.
    window_bytes: u32,
    frame_bytes_max: u32,
    /// The bytes of the preface that have come.
    preface: u8,
    has_settings: bool,
    /// The client has taken note of this side's settings.
    is_acknowledged: bool,
    /// The client sends no more requests.
    is_peer_leaving: bool,
    /// The client knows that the connection is about to end.
    is_end_known: bool,
}

/// The window of a connection: those of the streams bound what is held.
const CONNECTION_WINDOW: u32 = 1 << 20;

impl<S> H2Connection<S> {
    /// Begins a connection, and writes this side's settings.
    pub fn new(step: &mut Step<'_>) -> Self {
        let head_bytes = u32::try_from(step.limits.head_bytes_max).unwrap_or(u32::MAX);
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, step.h2.streams_max),
            (setting::INITIAL_WINDOW_SIZE, step.h2.window_bytes),
            (setting::MAX_HEADER_LIST_SIZE, head_bytes),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
            (setting::NO_RFC7540_PRIORITIES, 1),
        ];
        write_settings(&settings, step.out);
        write_window(0, CONNECTION_WINDOW - FIRST_WINDOW, step.out);
        Self {
            decoder: Decoder::new(hpack::TABLE_BYTES),
            encoder: Encoder::new(),
            streams: Vec::new(),
            block: None,
            data: DataFrame::default(),
            budget: Budget::default(),
            ahead: (0, Priority::default()),
            last: 0,
            last_served: StreamId::MAX,
            last_reset: 0,
            windows: ConnectionWindows::new(CONNECTION_WINDOW),
            window_bytes: step.h2.window_bytes,
            frame_bytes_max: FRAME_BYTES_LEAST,
            preface: 0,
            has_settings: false,
            is_acknowledged: false,
            is_peer_leaving: false,
            is_end_known: false,
        }
    }

    /// Reads frames up to the next event. Returns how many bytes were used, and the event; without
    /// one, the rest is the beginning of a frame, to be given again with more behind it.
    ///
    /// # Errors
    /// [`H2Error`]: the connection is to end, with a [GOAWAY](H2Connection::go_away) that says so.
    #[inline]
    pub fn next<'i>(
        &mut self,
        input: &'i [u8],
        step: &mut Step<'_>,
    ) -> Result<(usize, Option<H2Event<'i, S>>), H2Error> {
        let mut rest = input;
        if usize::from(self.preface) < PREFACE.len() {
            rest = self.read_preface(rest)?;
        }
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
                let (event, behind) = self.data_frame(header, payload, step)?;
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
                kind::HEADERS => self.headers(header, payload, step)?,
                kind::CONTINUATION => self.continuation(header, payload, step)?,
                _ => self.control(header, payload, step)?,
            };
            if event.is_some() {
                return Ok((input.len() - rest.len(), event));
            }
        }
        Ok((input.len() - rest.len(), None))
    }

    #[cold]
    fn read_preface<'i>(&mut self, input: &'i [u8]) -> Result<&'i [u8], H2Error> {
        let wanted = &PREFACE[usize::from(self.preface)..];
        let count = wanted.len().min(input.len());
        if input[..count] != wanted[..count] {
            return Err(H2Error::protocol("the connection does not begin as HTTP/2 does"));
        }
        self.preface += u8::try_from(count).unwrap_or(u8::MAX);
        Ok(&input[count..])
    }

    /// Returns the stream of a number, if it is open.
    #[inline]
    pub fn stream(&mut self, id: StreamId) -> Option<&mut Stream<S>> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// Returns the open streams.
    pub fn streams(&mut self) -> &mut [Stream<S>] {
        &mut self.streams
    }

    /// Returns how many streams are open.
    #[inline]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns how much the client may send on each stream at first, as it was told: the limits of
    /// later steps may be others.
    pub fn window_bytes(&self) -> u32 {
        self.window_bytes
    }

    /// Returns the number of the client's newest stream.
    pub fn last_stream(&self) -> StreamId {
        self.last
    }

    /// Returns whether the client has said that it sends no more requests.
    pub fn is_peer_leaving(&self) -> bool {
        self.is_peer_leaving
    }

    /// Returns whether the client has taken note of [`H2Connection::announce_end`].
    pub fn is_end_known(&self) -> bool {
        self.is_end_known
    }

    /// Returns whether a block of fields has begun and not ended.
    pub fn is_within_block(&self) -> bool {
        self.block.is_some()
    }

    /// Returns how many bytes are kept of a block of fields whose end has not come.
    pub fn block_bytes(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.heap_bytes())
    }

    /// Returns how much memory it takes behind this value, without the streams' states.
    pub fn heap_bytes(&self) -> usize {
        self.decoder.heap_bytes()
            + self.encoder.heap_bytes()
            + self.streams.capacity() * size_of::<Stream<S>>()
            + self.block_bytes()
    }

    /// Returns whether a stream was never opened.
    fn is_idle(&self, id: StreamId) -> bool {
        id.is_multiple_of(2) || id > self.last
    }

    /// Takes a stream out, which is closed with that.
    fn remove(&mut self, id: StreamId) -> Option<Stream<S>> {
        let at = self.streams.iter().position(|stream| stream.id == id)?;
        let stream = self.streams.swap_remove(at);
        if self.streams.is_empty() {
            // An idle connection keeps no memory for streams.
            self.streams = Vec::new();
        }
        Some(stream)
    }

    /// Ends a stream that has broken a rule.
    ///
    /// # Errors
    /// It was once too often.
    fn break_stream<'i>(
        &mut self,
        id: StreamId,
        code: ErrorCode,
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        self.budget.glitch(Flood::StreamErrors, step.now_ms, step.h2.glitches)?;
        self.write_reset(id, code, step.out);
        let stream = self.remove(id);
        Ok(Some(H2Event::Reset { stream, code, by_peer: false }))
    }

    fn write_reset(&mut self, id: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
        write_reset(id, code, out);
        self.last_reset = self.last_reset.max(id);
    }

    /// Returns whether frames of a closed stream are discarded in silence: the client may have sent
    /// them before it knew that the stream was reset, or is not served after a GOAWAY (RFC 9113
    /// §5.4.2, §6.8). Which streams were reset is not remembered, only how new they were.
    fn may_be_under_way(&self, id: StreamId) -> bool {
        id <= self.last_reset || id > self.last_served
    }
}
