//! What this side sends: requests, their bodies, windows, the end of streams and of the connection.

use super::{ClientStream, ErrorCode, H2Client, H2Error, StreamId, flag, kind};
use super::{Encoder, NextPart, StreamWindows, write_window};
use crate::fields::FieldName;
use crate::h2::frame::{FRAME_HEADER_BYTES, write, write_goaway, write_reset};
use crate::h2::incoming::AnnouncedLength;
use crate::h2::outgoing::{write_block, write_content};

/// The head of a request that is sent many times on one connection: from the second time on, its
/// fields are in the table, and its bytes are the same.
#[derive(Debug, Default)]
pub struct PreparedBlock {
    bytes: Vec<u8>,
    /// The number of the table that they are for.
    table: Option<u32>,
}

impl PreparedBlock {
    /// Forgets the bytes, which are those of another connection.
    pub fn clear(&mut self) {
        self.table = None;
    }
}

impl<S> H2Client<S> {
    /// Opens a stream by a request's head. [`H2Client::can_open`] has to hold.
    ///
    /// - `is_end`: no body follows.
    /// - `is_head`: the method is HEAD, whose response has no body.
    /// - `encode`: writes the fields, with [`Encoder::request_line`] first.
    pub fn open(
        &mut self,
        (is_head, is_end): (bool, bool),
        state: S,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> StreamId {
        let id = self.add_stream((is_head, is_end), state);
        write_block(&mut self.encoder, (id, is_end), self.frame_bytes_max, out, encode);
        id
    }

    /// The same for a request that is sent many times.
    ///
    /// - `encode`: is called when the block has no bytes for the present table.
    #[inline]
    pub fn open_prepared(
        &mut self,
        block: &mut PreparedBlock,
        (is_head, is_end): (bool, bool),
        state: S,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> StreamId {
        let table = self.encoder.table_number();
        if block.table == Some(table) && !self.encoder.is_resized() {
            let id = self.add_stream((is_head, is_end), state);
            let flags =
                if is_end { flag::END_STREAM | flag::END_HEADERS } else { flag::END_HEADERS };
            write(kind::HEADERS, flags, id, &block.bytes, out);
            return id;
        }
        let start = out.len() + FRAME_HEADER_BYTES;
        let is_resized = self.encoder.is_resized();
        let id = self.open((is_head, is_end), state, out, encode);
        let bytes = &out[start..];
        block.table = None;
        let is_stable = !is_resized && table == self.encoder.table_number();
        if is_stable && bytes.len() <= self.frame_bytes_max as usize {
            block.bytes.clear();
            block.bytes.extend_from_slice(bytes);
            block.table = Some(table);
        }
        id
    }

    fn add_stream(&mut self, (is_head, is_end): (bool, bool), state: S) -> StreamId {
        debug_assert!(self.can_open());
        let id = self.next_id;
        self.next_id += 2;
        let window = self.limits.window_bytes;
        self.streams.push_back(ClientStream {
            id,
            windows: StreamWindows::new(self.windows.send_first, window, window),
            body_left: AnnouncedLength::default(),
            next: if is_head { NextPart::HeadAlone } else { NextPart::Head },
            is_remote_closed: false,
            is_local_closed: is_end,
            state,
        });
        id
    }

    /// Returns how many bytes may be sent on a stream now.
    pub fn sendable(&self, id: StreamId) -> usize {
        let stream = self.streams.iter().find(|stream| stream.id == id);
        let window = stream.map_or(0, |stream| stream.windows.send.min(self.windows.send));
        usize::try_from(window).unwrap_or(0)
    }

    /// Writes bytes of a request's body, as many as the windows allow. Returns how many.
    ///
    /// - `is_end`: the request ends with the last of them.
    pub fn write_data(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> usize {
        let count = bytes.len().min(self.sendable(id));
        let ends = is_end && count == bytes.len();
        let Some(stream) = self.stream(id) else { return 0 };
        if stream.is_local_closed || count == 0 && !ends {
            return 0;
        }
        let spent = i32::try_from(count).unwrap_or(i32::MAX);
        stream.windows.send -= spent;
        stream.is_local_closed = ends;
        self.windows.send -= spent;
        self.budget.note_progress();
        self.budget.note_sent(count);
        write_content((id, ends), &bytes[..count], self.frame_bytes_max, out);
        count
    }

    /// Writes trailer fields, which end a request.
    pub fn write_trailers<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (FieldName<'f>, &'f [u8])>,
        out: &mut Vec<u8>,
    ) {
        let Some(stream) = self.stream(id) else { return };
        stream.is_local_closed = true;
        write_block(&mut self.encoder, (id, true), self.frame_bytes_max, out, |encoder, out| {
            fields.for_each(|(name, value)| encoder.field(name, value, out));
        });
    }

    /// Notes that bytes of a body were taken: the server may send as many more.
    #[inline]
    pub fn take(&mut self, id: StreamId, bytes: usize, out: &mut Vec<u8>) {
        let window_max = self.limits.window_bytes_max.min(i32::MAX as u32);
        let Some(stream) = self.stream(id) else { return };
        stream.windows.take(bytes);
        if stream.is_remote_closed {
            return;
        }
        if let Some(more) = stream.windows.given_back(window_max) {
            write_window(id, more, out);
        }
    }

    /// Closes a stream: the server is told, unless both sides have ended it.
    ///
    /// - `code`: why, if it is before the end.
    pub fn close(
        &mut self,
        id: StreamId,
        code: ErrorCode,
        out: &mut Vec<u8>,
    ) -> Option<ClientStream<S>> {
        let stream = self.remove(id)?;
        if self.data.id == id {
            self.data.id = 0;
        }
        if !stream.is_remote_closed || !stream.is_local_closed {
            write_reset(id, code, out);
            if !stream.is_remote_closed {
                self.discards += u64::try_from(stream.windows.receive).unwrap_or(0);
            }
        }
        Some(stream)
    }

    /// Says that the connection ends, and why.
    pub fn go_away(&mut self, error: H2Error, out: &mut Vec<u8>) {
        self.is_leaving = true;
        // The server has opened no stream.
        write_goaway(0, error.code, error.reason, out);
    }
}
