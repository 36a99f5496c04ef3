//! HEADERS, CONTINUATION and DATA: responses and their bodies.

use super::response_block::ResponseBuilder;
use super::{
    ErrorCode, FrameHeader, H2Client, H2ClientEvent, H2Error, NextPart, ResponseHead, StreamId,
    flag,
};
use crate::h2::incoming::{AnnouncedLength, DataFrame, DataPart, FieldBlock, block_of};

/// The event of a DATA frame that was not to come, and what follows; `None` if more has to come.
type BodyBegun<'i, S> = (Option<H2ClientEvent<'i, S>>, Option<&'i [u8]>);

/// Bytes of a block of fields, as it was compressed, and frames that it may come in.
const BLOCK_MAX: (usize, u8) = (64 << 10, 16);

/// The longest block that is remembered.
const KNOWN_BYTES_MAX: usize = 512;

/// The last head as it was compressed. Most responses of a server have the same for a second: the
/// same bytes mean the same head, as long as the table has not changed.
#[derive(Debug, Default)]
pub(super) struct KnownBlock {
    bytes: Vec<u8>,
    table: u32,
    head: Option<ResponseHead>,
}

impl<S> H2Client<S> {
    /// Reads HEADERS: a whole head, as a rule.
    #[inline]
    pub(super) fn headers<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let id = header.stream;
        if self.is_idle(id) {
            return Err(H2Error::protocol("HEADERS are on a stream that was never opened"));
        }
        // Priorities mean nothing to a client.
        let (block, _) = block_of(header, payload)?;
        let is_end = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.fields((id, is_end), block, now_ms, out);
        }
        self.block = Some(Box::new(FieldBlock::begin(id, is_end, block)));
        Ok(None)
    }

    /// Reads more of a block of fields.
    #[cold]
    pub(super) fn continuation<'i>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let Some(mut block) = self.block.take() else {
            return Err(H2Error::protocol("CONTINUATION continues nothing"));
        };
        block.add(payload, BLOCK_MAX)?;
        if !header.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        self.fields((block.id, block.is_end), &block.bytes, now_ms, out)
    }

    /// Reads a whole block of fields: of a response, or its trailers.
    #[inline]
    fn fields<'i>(
        &mut self,
        (id, is_end): (StreamId, bool),
        block: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let Some(at) = self.streams.iter().position(|stream| stream.id == id) else {
            // It is closed. The block changes the table all the same.
            self.decoder.decode(block, &mut self.strings, |_, _| {})?;
            self.known.head = None;
            self.budget.idle_frame(now_ms, self.limits.glitches)?;
            return Ok(None);
        };
        if self.streams[at].next == NextPart::Body {
            return self.trailer_fields((id, is_end), block, now_ms, out);
        }
        let head = match self.known.head {
            Some(head)
                if self.known.bytes == block && self.known.table == self.decoder.table_number() =>
            {
                Ok(head)
            }
            _ => self.decode_head(block)?,
        };
        let head = match head {
            Ok(head) => head,
            Err(fault) => {
                return self.break_stream(id, (ErrorCode::ProtocolError, fault), now_ms, out);
            }
        };
        self.budget.note_progress();
        let stream = &mut self.streams[at];
        if head.is_interim() {
            if is_end {
                let fault = "an interim response ends the stream";
                return self.break_stream(id, (ErrorCode::ProtocolError, fault), now_ms, out);
            }
            let head = head.framed(true);
            return Ok(Some(H2ClientEvent::Interim { id, head }));
        }
        let has_none = stream.next == NextPart::HeadAlone || matches!(head.status(), 204 | 304);
        stream.next = NextPart::Body;
        stream.is_remote_closed = is_end;
        stream.body_left = AnnouncedLength(if has_none { Some(0) } else { head.content_length() });
        if is_end && !stream.body_left.note(0, true) {
            let fault = "Content-Length announces a body, and the stream has none";
            return self.break_stream(id, (ErrorCode::ProtocolError, fault), now_ms, out);
        }
        let head = head.framed(has_none || is_end);
        Ok(Some(H2ClientEvent::Response { id, head, is_end }))
    }

    /// Decodes a head, and remembers its block if that means the same the next time.
    fn decode_head(&mut self, block: &[u8]) -> Result<Result<ResponseHead, &'static str>, H2Error> {
        let limits = (self.limits.head_bytes_max, self.limits.fields_max);
        self.known.head = None;
        let before = self.decoder.table_number();
        let mut builder = ResponseBuilder::new(&mut self.head, limits, false);
        let each = |name: &[u8], value: &[u8]| builder.field(name, value);
        self.decoder.decode(block, &mut self.strings, each)?;
        let head = builder.finish();
        let is_resize = block.first().is_some_and(|first| first >> 5 == 1);
        let table = self.decoder.table_number();
        if let Ok(head) = head
            && table == before
            && !is_resize
            && block.len() <= KNOWN_BYTES_MAX
        {
            self.known.bytes.clear();
            self.known.bytes.extend_from_slice(block);
            (self.known.table, self.known.head) = (table, Some(head));
        }
        Ok(head)
    }

    /// Reads the trailers of a response.
    #[cold]
    fn trailer_fields<'i>(
        &mut self,
        (id, is_end): (StreamId, bool),
        block: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<H2ClientEvent<'i, S>>, H2Error> {
        let limits = (self.limits.head_bytes_max, self.limits.fields_max);
        self.known.head = None;
        let mut builder = ResponseBuilder::new(&mut self.head, limits, true);
        let each = |name: &[u8], value: &[u8]| builder.field(name, value);
        self.decoder.decode(block, &mut self.strings, each)?;
        let mut verdict = builder.finish_trailers();
        let Some(stream) = self.stream(id) else { return Ok(None) };
        if stream.is_remote_closed {
            let fault = (ErrorCode::StreamClosed, "HEADERS are behind the end of the stream");
            return self.break_stream(id, fault, now_ms, out);
        }
        if !is_end {
            verdict = Err("trailers do not end the stream");
        } else if !stream.body_left.note(0, true) {
            verdict = Err("the body is shorter than Content-Length");
        }
        if let Err(fault) = verdict {
            return self.break_stream(id, (ErrorCode::ProtocolError, fault), now_ms, out);
        }
        stream.is_remote_closed = true;
        Ok(Some(H2ClientEvent::Trailers { id }))
    }

    /// Begins a DATA frame. Returns what follows its padding's length; `None` if that has not come.
    #[inline]
    pub(super) fn data_frame<'i>(
        &mut self,
        header: FrameHeader,
        payload: &'i [u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<BodyBegun<'i, S>, H2Error> {
        let id = header.stream;
        if self.is_idle(id) {
            return Err(H2Error::protocol("DATA is on a stream that was never opened"));
        }
        let Some((data, rest)) = DataFrame::begin(header, payload)? else {
            return Ok((None, None));
        };
        let (is_end, bytes) = (header.has(flag::END_STREAM), data.content_bytes());
        if bytes == 0 && !is_end {
            self.budget.idle_frame(now_ms, self.limits.glitches)?;
        } else {
            self.budget.note_progress();
        }
        let size = i32::try_from(header.len).unwrap_or(i32::MAX);
        self.windows.receive(size, self.limits.connection_window_bytes, out)?;
        self.data = data;
        let Some(stream) = self.stream(id) else {
            // No more can come on closed streams than their windows had left.
            let discards = self.discards.checked_sub(u64::from(size.unsigned_abs()));
            let fault = H2Error::new(ErrorCode::StreamClosed, "DATA is on a closed stream");
            self.discards = discards.ok_or(fault)?;
            return Ok((None, Some(rest)));
        };
        let is_within = stream.windows.receive(size);
        let fault = if stream.is_remote_closed {
            Some((ErrorCode::StreamClosed, "DATA is behind the end of the stream"))
        } else if stream.next != NextPart::Body {
            Some((ErrorCode::ProtocolError, "DATA comes before the head of the response"))
        } else if !is_within {
            Some((ErrorCode::FlowControlError, "DATA is more than the stream's window"))
        } else if !stream.body_left.note(bytes, is_end) {
            Some((ErrorCode::ProtocolError, "the body is longer or shorter than Content-Length"))
        } else {
            stream.windows.take(header.len - bytes);
            None
        };
        if let Some(fault) = fault {
            return Ok((self.break_stream(id, fault, now_ms, out)?, Some(rest)));
        }
        self.data.id = id;
        Ok((None, Some(rest)))
    }

    /// Hands on what has come of a DATA frame.
    #[inline]
    pub(super) fn data_piece<'i>(
        &mut self,
        input: &'i [u8],
    ) -> (Option<H2ClientEvent<'i, S>>, &'i [u8]) {
        let DataPart { wanted, rest } = self.data.take(input);
        let Some((id, bytes, is_end)) = wanted else { return (None, rest) };
        let Some(stream) = self.stream(id) else { return (None, rest) };
        stream.is_remote_closed |= is_end;
        (Some(H2ClientEvent::Data { id, bytes, is_end }), rest)
    }
}
