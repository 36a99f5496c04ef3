//! HEADERS, CONTINUATION and DATA: requests and their bodies.

use super::control::depends_on;
use super::{
    BLOCK_BYTES_MAX, BLOCK_FRAMES_MAX, CONNECTION_WINDOW, DataFrame, FIRST_WINDOW, FieldBlock,
    H2Connection, H2Error, H2Event, H2Limits, Step, Stream, StreamId, flag, write_window,
};
use crate::h2::error::{ErrorCode, Flood};
use crate::h2::frame::FrameHeader;
use crate::h2::hpack::HpackError;
use crate::h2::priority::Priority;
use crate::h2::request_head::{HeadBuilder, HeadFault, check_field};
use crate::head::{Framing, Head};

/// The event of a DATA frame that was not to come, and what follows; `None` if more has to come.
type DataBegun<'i, S> = (Option<H2Event<'i, S>>, Option<&'i [u8]>);

/// Bytes of a priority of the old scheme, in front of a block of fields.
const PRIORITY_BYTES: usize = 5;

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
        let (mut block, mut is_self_dependent) = (payload, false);
        if header.has(flag::PADDED | flag::PRIORITY) {
            block = without_padding(header, payload)?;
            if header.has(flag::PRIORITY) {
                let (priority, rest) = block
                    .split_at_checked(PRIORITY_BYTES)
                    .ok_or(H2Error::size("HEADERS are too short for a priority"))?;
                is_self_dependent = depends_on(priority) == Some(id);
                block = rest;
            }
        }
        if is_self_dependent {
            // The block has to be read all the same: it changes the table.
            self.decoder.decode(block, &mut step.scratch.strings, |_, _| {})?;
            self.last = self.last.max(id);
            return self.break_stream(id, ErrorCode::ProtocolError, step);
        }
        if header.has(flag::END_HEADERS) {
            return self.fields(id, header.has(flag::END_STREAM), block, step);
        }
        let is_end = header.has(flag::END_STREAM);
        self.block = Some(Box::new(FieldBlock { id, is_end, frames: 1, bytes: block.to_vec() }));
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
        block.frames += 1;
        if block.frames > BLOCK_FRAMES_MAX || block.bytes.len() + payload.len() > BLOCK_BYTES_MAX {
            return Err(H2Error::flood(Flood::Fields));
        }
        block.bytes.extend_from_slice(payload);
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
            Err(HeadFault::Refused(status)) => {
                self.budget.glitch(Flood::StreamErrors, step.now_ms, step.h2.glitches)?;
                Ok(Some(H2Event::Refused { id, status, is_end }))
            }
            Err(HeadFault::Malformed(_)) => self.break_stream(id, ErrorCode::ProtocolError, step),
        }
    }

    /// Reads the trailers of a request, whose fields nobody asks for.
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
        let each = |name: &[u8], value: &[u8]| {
            cost += name.len() + value.len() + super::hpack::ENTRY_BYTES;
            count += 1;
            fault |= name.starts_with(b":") || check_field(name, value).is_err();
            fault |= cost > limits.head_bytes_max || count > limits.fields_max;
        };
        self.decoder.decode(block, &mut step.scratch.strings, each)?;
        let is_reset = self.reset.contains(&id);
        let Some(stream) = self.stream(id) else {
            if is_reset {
                return Ok(None);
            }
            return Err(H2Error::new(ErrorCode::StreamClosed, "HEADERS are on a closed stream"));
        };
        if stream.is_remote_closed {
            return self.break_stream(id, ErrorCode::StreamClosed, step);
        }
        if fault || !is_end || !stream.note_body(0, true) {
            return self.break_stream(id, ErrorCode::ProtocolError, step);
        }
        stream.is_remote_closed = true;
        Ok(Some(H2Event::Data { id, bytes: b"", is_end: true }))
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
        let (mut padding, mut rest, mut left) = (0, payload, header.len);
        if header.has(flag::PADDED) {
            if header.len == 0 {
                return Err(H2Error::size("DATA is too short for its padding"));
            }
            let [length, behind @ ..] = payload else { return Ok((None, None)) };
            (padding, rest, left) = (*length, behind, left - 1);
            if usize::from(padding) > left {
                return Err(H2Error::protocol("DATA is all padding, and more"));
            }
        }
        let is_end = header.has(flag::END_STREAM);
        let bytes = left - usize::from(padding);
        if bytes < SMALL_BYTES && !is_end {
            self.budget.idle_frame(step.now_ms, step.h2.glitches)?;
        } else {
            self.budget.note_progress();
        }
        let size = i32::try_from(header.len).unwrap_or(i32::MAX);
        self.receive_window -= size;
        if self.receive_window < 0 {
            return Err(H2Error::flow("DATA is more than the connection's window"));
        }
        self.received += size.unsigned_abs();
        self.give_connection_window(step.out);
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        self.data = DataFrame { id: 0, left, padding, is_end, is_open: true };
        let is_reset = self.reset.contains(&id);
        let fault = match self.stream(id) {
            None if is_reset => return Ok((None, Some(rest))),
            None => Some(ErrorCode::StreamClosed),
            Some(stream) if stream.is_remote_closed => Some(ErrorCode::StreamClosed),
            Some(stream) => {
                stream.receive_window -= size;
                if stream.receive_window < 0 {
                    Some(ErrorCode::FlowControlError)
                } else if !stream.note_body(bytes, is_end) {
                    Some(ErrorCode::ProtocolError)
                } else {
                    stream.taken += size.unsigned_abs() - u32::try_from(bytes).unwrap_or(0);
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
        let DataFrame { id, left, padding, is_end, .. } = self.data;
        let left = left as usize;
        let (came, rest) = input.split_at(left.min(input.len()));
        let content = left.saturating_sub(usize::from(padding)).min(came.len());
        let is_whole = came.len() == left;
        self.data.left -= u32::try_from(came.len()).unwrap_or(0);
        self.data.is_open = !is_whole;
        if is_whole {
            self.data = DataFrame::default();
        }
        let ends = is_whole && is_end;
        if id == 0 || content == 0 && !ends {
            return (None, rest);
        }
        let Some(stream) = self.stream(id) else { return (None, rest) };
        stream.is_remote_closed |= ends;
        (Some(H2Event::Data { id, bytes: &came[..content], is_end: ends }), rest)
    }

    /// Gives the connection's window back, once half of it is used. What is held is bounded by the
    /// windows of the streams.
    fn give_connection_window(&mut self, out: &mut Vec<u8>) {
        if self.received >= CONNECTION_WINDOW / 2 {
            write_window(0, self.received, out);
            self.receive_window += self.received.cast_signed();
            self.received = 0;
        }
    }

    /// Opens the stream of a request whose response is not over in this turn.
    ///
    /// - `head`: the request's, if it is served.
    /// - `is_end`: as in the event.
    pub fn open(
        &mut self,
        id: StreamId,
        (head, is_end): (Option<(&Head, &[u8])>, bool),
        h2: &H2Limits,
        state: S,
    ) -> &mut Stream<S> {
        let body_left = match head.map(|(head, _)| head.framing()) {
            Some(Framing::Length(bytes)) => Some(bytes),
            _ => None,
        };
        let ahead = self.ahead.take_if(|(ahead, _)| *ahead == id);
        let field = head.and_then(|(head, bytes)| head.on(bytes).field("priority"));
        let priority = match (ahead, field) {
            (Some((_, priority)), _) => priority,
            (None, field) => field.map_or_else(Priority::default, Priority::of),
        };
        let window = h2.window_bytes;
        // Before the client knows the setting, it may send as much as without (RFC 9113 §6.9.2).
        let least = if self.is_acknowledged { 0 } else { FIRST_WINDOW };
        let at = self.streams.len();
        self.streams.push(Stream {
            id,
            send_window: self.send_window_first,
            receive_window: window.max(least).cast_signed(),
            taken: 0,
            window,
            body_left,
            is_remote_closed: is_end,
            priority,
            state,
        });
        &mut self.streams[at]
    }

    /// Notes that bytes of a body were taken: the client may send as many more.
    ///
    /// - `grows`: there is memory for a larger window.
    pub fn take(&mut self, id: StreamId, bytes: usize, grows: bool, step: &mut Step<'_>) {
        let window_max = step.h2.window_bytes_max;
        let Some(stream) = self.stream(id) else { return };
        stream.taken = stream.taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if stream.is_remote_closed || stream.taken < stream.window / 2 {
            return;
        }
        let mut more = stream.taken;
        if grows && stream.window < window_max {
            let wider = stream.window.saturating_mul(2).min(window_max);
            more += wider - stream.window;
            stream.window = wider;
        }
        stream.taken = 0;
        stream.receive_window = stream.receive_window.saturating_add_unsigned(more);
        write_window(id, more, step.out);
    }
}

/// DATA of fewer bytes, that ends nothing, counts as idle.
const SMALL_BYTES: usize = 16;

/// Returns the payload of HEADERS without its padding.
fn without_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], H2Error> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let [padding, rest @ ..] = payload else {
        return Err(H2Error::size("HEADERS are too short for their padding"));
    };
    let end = rest.len().checked_sub(usize::from(*padding));
    let end = end.ok_or(H2Error::protocol("HEADERS are all padding, and more"))?;
    Ok(&rest[..end])
}
