//! What streams have to send: whose turn it is, and how much of it.

use std::os::unix::fs::FileExt;

use bytes::Bytes;
use gustnado_files::Segment;
use gustnado_files::warmth::read_if_cached;
use gustnado_http::h2::{ErrorCode, FRAME_HEADER_BYTES, H2Connection, Priority, Stream, StreamId};
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{Connection, SendBuf, contained};
use gustnado_web::response::Trailers;
use gustnado_web::tunnel::PipeOutput;

use crate::Http2Conn;
use crate::active::{Active, Rest};
use crate::outbox::StreamEnd;

/// Pieces from this size on are sent without a copy; below, copying costs less.
const SHARED_FROM: usize = 4 << 10;

/// How much a stream that shares with others sends in its turn: a file of that size is sent whole,
/// as it is of no use before.
const TURN_KIB: u8 = 32;

/// Sent bytes that cost one unit of the task's budget.
const UNIT_BYTES: usize = 4 << 10;

/// What a step on one stream has come to.
enum FillStep {
    /// So many bytes were written; it goes on.
    Written(usize),
    /// So many were written, and the content ends with them.
    Last(usize),
    /// The content ends with trailer fields, or without more bytes.
    End(Option<Trailers>),
    /// There was nothing to write after all.
    Nothing,
    /// It has to wait for its disk.
    Cold,
    /// A tunnel was cut by its function.
    Cut,
    /// The function of a tunnel has panicked.
    Panicked,
    Failed,
}

impl FillStep {
    fn of(bytes: usize, is_end: bool) -> Self {
        if is_end { Self::Last(bytes) } else { Self::Written(bytes) }
    }
}

impl Http2Conn {
    /// Adds content to the next send, the most urgent first, as windows allow.
    pub(super) fn fill(&mut self) {
        let (mut written, mut idle) = (0, Vec::new());
        while self.core.open_streams() > 0 && self.has_room() {
            let room = self.core.room();
            let now_ms = self.now_ms();
            let next = next_stream(self.core.streams(), &idle, room, now_ms);
            let Some(id) = next else { break };
            match self.send_piece(id) {
                Some(bytes) => written += bytes,
                // Whatever it was that made it ready, this turn has to end.
                None => idle.push(id),
            }
        }
        if written > 0 {
            gustnado_tasks::charge(u32::try_from(written / UNIT_BYTES).unwrap_or(u32::MAX));
        }
    }

    /// Writes one frame of a stream's content. Returns how many bytes of content it has; `None`:
    /// the stream is as it was.
    fn send_piece(&mut self, id: StreamId) -> Option<usize> {
        let out_bytes_max = self.out_bytes_max();
        let out = self.next.get_or_insert_with(Connection::outgoing);
        let left = out_bytes_max.saturating_sub(out.len()).max(1);
        let budget = self.core.room().min(self.core.frame_bytes_max()).min(left);
        let stream = self.core.stream(id)?;
        let budget = budget.min(stream.window());
        let budget = match stream.state.pace {
            // An end needs neither a window nor its time.
            Some(_) if stream.state.is_at_end() => 0,
            Some(_) => Some(self.granted(id, budget)).filter(|budget| *budget > 0)?,
            None => budget,
        };
        let out = self.next.get_or_insert_with(Connection::outgoing);
        let piece = write_piece(&mut self.core, id, budget, out);
        let bytes = match piece {
            FillStep::Nothing => return None,
            FillStep::Written(bytes) | FillStep::Last(bytes) => bytes,
            _ => 0,
        };
        self.app.count_response(0, bytes as u64);
        if let Some(stream) = self.core.stream(id) {
            let patience = stream.state.write_timeout(self.app.times.write);
            stream.state.reader.note(bytes);
            if let Some(pace) = &mut stream.state.pace {
                pace.note(bytes);
            }
            let kib = u8::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u8::MAX);
            stream.state.turn_kib = stream.state.turn_kib.saturating_add(kib);
            if stream.state.turn_kib >= TURN_KIB || bytes == 0 {
                (stream.state.turn, stream.state.turn_kib) = (self.turn, 0);
                self.turn = self.turn.wrapping_add(1);
            }
            if let Some(exchange) = &mut stream.state.exchange {
                exchange.add_content(bytes as u64);
            }
            if bytes > 0 {
                self.note_content(patience);
            }
        }
        match piece {
            FillStep::Written(_) | FillStep::Nothing => {}
            FillStep::Last(_) => self.finish(id),
            FillStep::End(trailers) => self.end_content(id, trailers),
            FillStep::Cold => self.await_disk(id),
            FillStep::Cut => self.reset(id, ErrorCode::Cancel),
            FillStep::Panicked => {
                let fault = Some(Fault::HandlerPanicked);
                self.app.count(&Added { fault, ..Added::default() });
                self.reset(id, ErrorCode::InternalError);
            }
            FillStep::Failed => self.reset(id, ErrorCode::InternalError),
        }
        Some(bytes)
    }

    /// Ends the content of a stream, with its trailer fields if it has some.
    fn end_content(&mut self, id: StreamId, trailers: Option<Trailers>) {
        let fields = trailers.and_then(contained).unwrap_or_default();
        let mut checked = gustnado_http::fields::Fields::new();
        for (name, value) in &fields {
            // A malformed trailer is left out: the response is already on its way.
            _ = checked.add(name.as_str(), value.as_bytes());
        }
        let out = self.next.get_or_insert_with(Connection::outgoing);
        if checked.is_empty() {
            self.core.write_data_header(id, 0, true, &mut out.bytes);
        } else {
            self.core.write_trailers(id, &checked, &mut out.bytes);
        }
        self.finish(id);
    }
}

/// Returns the stream whose turn it is: of those that can send, the most urgent one; of several,
/// first those that are of no use in parts, in their order, then the others in turn (RFC 9218 §10).
///
/// - `idle`: those that had nothing to send in this turn.
fn next_stream(
    streams: &[Stream<Box<Active>>],
    idle: &[StreamId],
    room: usize,
    now_ms: u64,
) -> Option<StreamId> {
    let mut first = None;
    for stream in streams {
        let Priority { urgency, is_incremental } = stream.priority;
        let rank = |turn| (urgency, is_incremental, turn, stream.id);
        // One that comes later in any case is not looked at: what it has to send lies elsewhere.
        if first.is_some_and(|first| first <= rank(0)) || !is_ready(stream, room, now_ms) {
            continue;
        }
        let rank = rank(if is_incremental { stream.state.turn } else { 0 });
        if idle.contains(&stream.id) {
            continue;
        }
        if first.is_none_or(|first| rank < first) {
            first = Some(rank);
        }
    }
    first.map(|(.., id)| id)
}

/// Returns whether a stream can send something now.
fn is_ready(stream: &Stream<Box<Active>>, room: usize, now_ms: u64) -> bool {
    let active = &stream.state;
    let is_due = active.pace.as_ref().is_none_or(|pace| pace.at_ms() <= now_ms);
    let has_window = room > 0 && stream.window() > 0 && is_due;
    match &active.rest {
        None | Some(Rest::Held(_)) => false,
        Some(Rest::Bytes(_) | Rest::Segments(_)) => has_window && !active.is_cold,
        Some(Rest::Pieces) => active
            .outbox
            .as_ref()
            .is_some_and(|outbox| outbox.has_ended() || has_window && outbox.has_pieces()),
        Some(Rest::Tunnel(pipe)) => pipe.has_output(has_window),
    }
}

/// Writes one frame of content.
fn write_piece(
    core: &mut H2Connection<Box<Active>>,
    id: StreamId,
    budget: usize,
    out: &mut SendBuf,
) -> FillStep {
    let Some(stream) = core.stream(id) else { return FillStep::Failed };
    let active = &mut *stream.state;
    match &mut active.rest {
        None | Some(Rest::Held(_)) => FillStep::Failed,
        Some(Rest::Bytes(bytes)) => {
            let piece = bytes.split_to(bytes.len().min(budget));
            let (len, is_end) = (piece.len(), bytes.is_empty());
            core.write_data_header(id, len, is_end, &mut out.bytes);
            push(piece, out);
            FillStep::of(len, is_end)
        }
        Some(Rest::Segments(_)) => write_segment(core, id, budget, out),
        Some(Rest::Tunnel(pipe)) => {
            let output = pipe.output(budget);
            write_tunnel(core, id, output, out)
        }
        Some(Rest::Pieces) => {
            let Some(outbox) = active.outbox.clone() else { return FillStep::Failed };
            if let Some(piece) = outbox.take(budget) {
                let len = piece.len();
                core.write_data_header(id, len, false, &mut out.bytes);
                push(piece, out);
                return FillStep::Written(len);
            }
            match outbox.take_end() {
                Some(StreamEnd::Whole(trailers)) => FillStep::End(trailers),
                _ => FillStep::Failed,
            }
        }
    }
}

/// Writes what a tunnel has to send.
fn write_tunnel(
    core: &mut H2Connection<Box<Active>>,
    id: StreamId,
    output: PipeOutput,
    out: &mut SendBuf,
) -> FillStep {
    match output {
        PipeOutput::Bytes(piece) => {
            let len = piece.len();
            core.write_data_header(id, len, false, &mut out.bytes);
            push(piece, out);
            FillStep::Written(len)
        }
        PipeOutput::Shut => {
            core.write_data_header(id, 0, true, &mut out.bytes);
            FillStep::Written(0)
        }
        PipeOutput::Close { is_shut } => {
            if !is_shut {
                core.write_data_header(id, 0, true, &mut out.bytes);
            }
            FillStep::Last(0)
        }
        PipeOutput::Nothing => FillStep::Nothing,
        PipeOutput::Cut => FillStep::Cut,
        PipeOutput::Failed => FillStep::Panicked,
    }
}

/// Writes one frame of the first segment.
fn write_segment(
    core: &mut H2Connection<Box<Active>>,
    id: StreamId,
    budget: usize,
    out: &mut SendBuf,
) -> FillStep {
    let Some(stream) = core.stream(id) else { return FillStep::Failed };
    let active = &mut *stream.state;
    let Some(Rest::Segments(segments)) = &mut active.rest else { return FillStep::Failed };
    let is_last = segments.len() == 1;
    match segments.front_mut() {
        None => FillStep::End(None),
        Some(Segment::Bytes(bytes)) => {
            let piece = bytes.drain(..bytes.len().min(budget)).collect::<Vec<_>>();
            let is_done = bytes.is_empty();
            if is_done {
                segments.pop_front();
            }
            let (len, is_end) = (piece.len(), is_done && is_last);
            core.write_data_header(id, len, is_end, &mut out.bytes);
            out.bytes.extend_from_slice(&piece);
            FillStep::of(len, is_end)
        }
        Some(Segment::File { file, offset, len, cold }) => {
            let mut count = usize::try_from(*len).unwrap_or(usize::MAX).min(budget);
            let read = active.read_until.saturating_sub(*offset);
            if read > 0 {
                count = usize::try_from(read).unwrap_or(usize::MAX).min(count);
            }
            let may_wait = cold.is_none() || read > 0;
            let start = out.bytes.len();
            out.bytes.resize(start + FRAME_HEADER_BYTES + count, 0);
            let (header, content) = out.bytes[start..].split_at_mut(FRAME_HEADER_BYTES);
            let is_read = if may_wait {
                file.read_exact_at(content, *offset).is_ok()
            } else {
                read_if_cached(file, content, *offset)
            };
            if !is_read {
                out.bytes.truncate(start);
                return if may_wait { FillStep::Failed } else { FillStep::Cold };
            }
            let is_end = is_last && *len == count as u64;
            *offset += count as u64;
            *len -= count as u64;
            if *len == 0 {
                segments.pop_front();
                active.read_until = 0;
            }
            header.copy_from_slice(&core.data_header(id, count, is_end));
            FillStep::of(count, is_end)
        }
    }
}

/// Adds bytes to a send.
fn push(piece: Bytes, out: &mut SendBuf) {
    if piece.len() < SHARED_FROM {
        out.bytes.extend_from_slice(&piece);
    } else {
        out.share(piece);
    }
}
