//! HEADERS, CONTINUATION and DATA: requests and their bodies.

use super::{
    CONNECTION_WINDOW, H2Connection, H2Error, H2Event, H2Scratch, Step, Stream, StreamId, flag,
    write_window,
};
use crate::h2::error::{ErrorCode, Flood};
use crate::h2::flow::{FIRST_WINDOW, StreamWindows};
use crate::h2::frame::FrameHeader;
use crate::h2::hpack::HpackError;
use crate::h2::incoming::{AnnouncedLength, DataFrame, DataPart, FieldBlock, block_of};
use crate::h2::priority::Priority;
use crate::h2::request_head::{HeadBuilder, HeadFault, check_field};
use crate::head::{Framing, HEAD_BYTES_MAX, Head};
use crate::method::Method;
use crate::request::write_record;

/// The event of a DATA frame that was not to come, and what follows; `None` if more has to come.
type DataBegun<'i, S> = (Option<H2Event<'i, S>>, Option<&'i [u8]>);

/// Bytes of a block of fields, as it was compressed, and frames that it may come in.
const BLOCK_MAX: (usize, u8) = (32 << 10, 8);

impl From<HpackError> for H2Error {
    fn from(error: HpackError) -> Self {
        let reason = match error {
            HpackError::Truncated => "a block of fields ends in the middle of one",
            HpackError::Integer => "a number in a block of fields is too long",
            HpackError::Padding => "a string in a block of fields has wrong padding",
            HpackError::Index => "a block of fields names an entry that is not in the table",
            HpackError::TableSize => "a block of fields changes the table's size where it may not",
        };
        Self::new(ErrorCode::CompressionError, reason)
    }
}

impl<S> H2Connection<S> {
    /// Reads HEADERS: a whole request, as a rule.
    #[inline]
    pub(super) fn headers<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let id = header.stream;
        if id.is_multiple_of(2) {
            return Err(H2Error::protocol("a client's stream has an odd number"));
        }
        let (block, depends_on) = block_of(header, payload)?;
        if depends_on == Some(id) {
            // The block has to be read all the same: it changes the table.
            self.decoder.decode(block, &mut step.scratch.strings, |_, _| {})?;
            self.last = self.last.max(id);
            return self.break_stream(id, ErrorCode::ProtocolError, step);
        }
        if header.has(flag::END_HEADERS) {
            return self.fields(id, header.has(flag::END_STREAM), block, step);
        }
        let is_end = header.has(flag::END_STREAM);
        self.block = Some(Box::new(FieldBlock::begin(id, is_end, block)));
        Ok(None)
    }

    /// Reads more of a block of fields.
    #[cold]
    pub(super) fn continuation<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let Some(mut block) = self.block.take() else {
            return Err(H2Error::protocol("CONTINUATION continues nothing"));
        };
        block.add(payload, BLOCK_MAX)?;
        if !header.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        self.fields(block.id, block.is_end, &block.bytes, step)
    }

    /// Reads a whole block of fields: of a new stream, or the trailers of an open one.
    #[inline]
    fn fields<'i>(
        &mut self,
        id: StreamId,
        is_end: bool,
        block: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        if id <= self.last {
            return self.later_fields(id, is_end, block, step);
        }
        self.last = id;
        let scratch = &mut *step.scratch;
        let mut builder = HeadBuilder::new(&mut scratch.head, &mut scratch.spare, step.limits);
        let each = |name: &[u8], value: &[u8]| builder.field(name, value);
        self.decoder.decode(block, &mut scratch.strings, each)?;
        if id > self.last_served {
            self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
            return Ok(None);
        }
        if self.streams.len() >= step.h2.streams_max as usize {
            return self.break_stream(id, ErrorCode::RefusedStream, step);
        }
        match builder.finish(!is_end) {
            Ok(head) => {
                self.budget.note_progress();
                Ok(Some(H2Event::Request { id, head, is_end }))
            }
            Err(HeadFault::Refused(status, past)) => {
                self.budget.glitch(Flood::StreamErrors, step.now_ms, step.h2.glitches)?;
                let is_head = builder.is_head();
                builder.write_line();
                Ok(Some(H2Event::Refused { id, status, past, is_head, is_end }))
            }
            Err(HeadFault::Malformed(_)) => self.break_stream(id, ErrorCode::ProtocolError, step),
        }
    }

    /// Reads the trailers of a request: at most as many fields and bytes as its head may have.
    #[cold]
    fn later_fields<'i>(
        &mut self,
        id: StreamId,
        is_end: bool,
        block: &[u8],
        step: &mut Step<'_>,
    ) -> Result<Option<H2Event<'i, S>>, H2Error> {
        let (mut fault, mut cost, mut count) = (false, 0, 0);
        let limits = step.limits;
        let H2Scratch { head: records, strings, .. } = &mut *step.scratch;
        records.clear();
        let each = |name: &[u8], value: &[u8]| {
            cost += name.len() + value.len() + super::hpack::ENTRY_BYTES;
            count += 1;
            fault |= name.starts_with(b":") || check_field(name, value).is_err();
            fault |= cost > limits.head_bytes_max.min(HEAD_BYTES_MAX) || count > limits.fields_max;
            if !fault {
                write_record(name, value, records);
            }
        };
        self.decoder.decode(block, strings, each)?;
        let may_be_under_way = self.may_be_under_way(id);
        let Some(stream) = self.stream(id) else {
            if may_be_under_way {
                self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
                return Ok(None);
            }
            return Err(H2Error::new(ErrorCode::StreamClosed, "HEADERS are on a closed stream"));
        };
        if stream.is_remote_closed {
            return self.break_stream(id, ErrorCode::StreamClosed, step);
        }
        // What is sent on a tunnel has no trailers (RFC 9113 §8.5).
        if fault || !is_end || stream.is_tunnel || !stream.body_left.note(0, true) {
            return self.break_stream(id, ErrorCode::ProtocolError, step);
        }
        stream.is_remote_closed = true;
        Ok(Some(H2Event::Trailers { id }))
    }

    /// Begins a DATA frame. Returns what follows its padding's length; `None` if that has not come.
    pub(super) fn data_frame<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        step: &mut Step<'_>,
    ) -> Result<DataBegun<'i, S>, H2Error> {
        let id = header.stream;
        if id == 0 {
            return Err(H2Error::protocol("DATA is on no stream"));
        }
        if self.is_idle(id) {
            return Err(H2Error::protocol("DATA is on a stream that was never opened"));
        }
        let Some((data, rest)) = DataFrame::begin(header, payload)? else {
            return Ok((None, None));
        };
        let (is_end, bytes) = (header.has(flag::END_STREAM), data.content_bytes());
        let is_small = bytes < SMALL_BYTES && !is_end;
        // What a tunnel carries may be as short as that: a message of a WebSocket.
        if is_small && !(bytes > 0 && self.stream(id).is_some_and(|stream| stream.is_tunnel)) {
            self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        } else {
            self.budget.note_progress();
        }
        let size = i32::try_from(header.len).unwrap_or(i32::MAX);
        self.windows.receive(size, CONNECTION_WINDOW, step.out)?;
        self.data = data;
        let may_be_under_way = self.may_be_under_way(id);
        let fault = match self.stream(id) {
            None if may_be_under_way => return Ok((None, Some(rest))),
            None => Some(ErrorCode::StreamClosed),
            Some(stream) if stream.is_remote_closed => Some(ErrorCode::StreamClosed),
            Some(stream) => {
                if !stream.windows.receive(size) {
                    Some(ErrorCode::FlowControlError)
                } else if !stream.body_left.agrees(bytes, is_end) {
                    Some(ErrorCode::ProtocolError)
                } else {
                    stream.windows.take(header.len - bytes);
                    None
                }
            }
        };
        if let Some(code) = fault {
            return Ok((self.break_stream(id, code, step)?, Some(rest)));
        }
        self.data.id = id;
        Ok((None, Some(rest)))
    }

    /// Hands on what has come of a DATA frame.
    #[inline]
    pub(super) fn data_piece<'i>(&mut self, input: &'i [u8]) -> (Option<H2Event<'i, S>>, &'i [u8]) {
        let DataPart { wanted, rest } = self.data.take(input);
        let Some((id, bytes, is_end)) = wanted else { return (None, rest) };
        let Some(stream) = self.stream(id) else { return (None, rest) };
        stream.body_left.take(bytes.len());
        stream.is_remote_closed |= is_end;
        (Some(H2Event::Data { id, bytes, is_end }), rest)
    }

    /// Opens the stream of a request whose response is not over in this turn.
    ///
    /// - `head`: the request's, if it is served.
    /// - `is_end`: as in the event.
    pub fn open(
        &mut self,
        id: StreamId,
        (head, is_end): (Option<(&Head, &[u8])>, bool),
        state: S,
    ) -> &mut Stream<S> {
        let body_left = match head.map(|(head, _)| head.framing()) {
            Some(Framing::Length(bytes)) => Some(bytes),
            _ => None,
        };
        let (ahead, of_update) = self.ahead;
        let field = head.and_then(|(head, bytes)| head.on(bytes).field("priority"));
        let priority = match field {
            _ if ahead == id => of_update,
            field => field.map_or_else(Priority::default, Priority::of),
        };
        let window = self.window_bytes;
        // Before the client knows the setting, it may send as much as without (RFC 9113 §6.9.2).
        let least = if self.is_acknowledged { 0 } else { FIRST_WINDOW };
        let at = self.streams.len();
        self.streams.push(Stream {
            id,
            windows: StreamWindows::new(self.windows.send_first, window.max(least), window),
            body_left: AnnouncedLength(body_left),
            is_remote_closed: is_end,
            is_tunnel: head.is_some_and(|(head, _)| head.method() == Method::Connect),
            priority,
            state,
        });
        &mut self.streams[at]
    }

    /// Notes that bytes of a body were taken: the client may send as many more.
    ///
    /// - `window_max`: how large its window may become, if there is memory; it never shrinks.
    pub fn take(&mut self, id: StreamId, bytes: usize, window_max: u32, step: &mut Step<'_>) {
        let window_max = window_max.min(step.h2.window_bytes_max);
        let Some(stream) = self.stream(id) else { return };
        stream.windows.take(bytes);
        if stream.is_remote_closed {
            return;
        }
        if let Some(more) = stream.windows.given_back(window_max) {
            write_window(id, more, step.out);
        }
    }
}

/// DATA of fewer bytes, that ends nothing, counts as idle.
const SMALL_BYTES: usize = 16;
