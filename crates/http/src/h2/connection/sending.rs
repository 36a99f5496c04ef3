//! What this side sends: heads, content, the end of streams and of the connection.

use super::{FrameHeader, H2Connection, H2Error, Stream, StreamId, flag, kind};
use crate::fields::Fields;
use crate::h2::error::ErrorCode;
use crate::h2::frame::{FRAME_HEADER_BYTES, write, write_goaway};
use crate::h2::hpack::Encoder;
use crate::h2::outgoing::{write_block, write_content};

impl<S> H2Connection<S> {
    /// Writes the head of a response.
    ///
    /// - `is_end`: no content follows.
    /// - `encode`: writes the fields.
    #[inline]
    pub fn write_head(
        &mut self,
        id: StreamId,
        is_end: bool,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        write_block(&mut self.encoder, (id, is_end), self.frame_bytes_max, out, encode);
    }

    /// Writes trailer fields, which end the content of a response.
    pub fn write_trailers(&mut self, id: StreamId, fields: &Fields, out: &mut Vec<u8>) {
        self.write_head(id, true, out, |encoder, out| {
            for (name, value) in fields.iter() {
                encoder.field(name, value, out);
            }
        });
    }

    /// Returns how many bytes may be sent on a stream that has just begun.
    #[inline]
    pub fn first_room(&self) -> usize {
        usize::try_from(self.windows.send.min(self.windows.send_first)).unwrap_or(0)
    }

    /// Returns how many bytes may be sent at all.
    #[inline]
    pub fn room(&self) -> usize {
        usize::try_from(self.windows.send).unwrap_or(0)
    }

    /// Returns how long the payload of a frame may be.
    #[inline]
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max as usize
    }

    /// Begins frames of content on a stream that is over with them, whose bytes follow.
    ///
    /// - `bytes`: no more than [`H2Connection::first_room`].
    #[inline]
    pub fn write_whole(&mut self, id: StreamId, bytes: &[u8], out: &mut Vec<u8>) {
        self.spend(bytes.len());
        self.budget.note_sent(bytes.len());
        write_content((id, true), bytes, self.frame_bytes_max, out);
    }

    /// Writes the header of a frame of content, whose bytes are to follow, and takes them off the
    /// windows.
    ///
    /// - `len`: no more than the windows of the connection and the stream, and the frame, allow.
    pub fn write_data_header(&mut self, id: StreamId, len: usize, is_end: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.data_header(id, len, is_end));
    }

    /// Returns that header, for whoever has its bytes before it.
    pub fn data_header(
        &mut self,
        id: StreamId,
        len: usize,
        is_end: bool,
    ) -> [u8; FRAME_HEADER_BYTES] {
        self.spend(len);
        self.budget.note_sent(len);
        if let Some(stream) = self.stream(id) {
            stream.windows.send -= i32::try_from(len).unwrap_or(i32::MAX);
            // It was not the client that made it so short.
            if stream.is_tunnel && stream.windows.send > 0 && len > 0 {
                self.budget.note_message();
            }
        }
        let flags = if is_end { flag::END_STREAM } else { 0 };
        FrameHeader { len, kind: kind::DATA, flags, stream: id }.bytes()
    }

    fn spend(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.room());
        self.windows.send -= i32::try_from(bytes).unwrap_or(i32::MAX);
    }

    /// Closes a stream whose response is over. If the client still sends its request, it is told
    /// not to (RFC 9113 §8.1).
    pub fn finish(&mut self, id: StreamId, out: &mut Vec<u8>) -> Option<Stream<S>> {
        let stream = self.remove(id)?;
        if !stream.is_remote_closed {
            self.write_reset(id, ErrorCode::NoError, out);
        }
        Some(stream)
    }

    /// Ends a stream with an error.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode, out: &mut Vec<u8>) -> Option<Stream<S>> {
        self.write_reset(id, code, out);
        self.remove(id)
    }

    /// Says that no more requests are served than have come (RFC 9113 §6.8).
    pub fn go_away(&mut self, error: H2Error, out: &mut Vec<u8>) {
        self.last_served = self.last_served.min(self.last);
        write_goaway(self.last_served, error.code, error.reason, out);
    }

    /// Asks whether the client is there.
    pub fn ping(&self, out: &mut Vec<u8>) {
        write(kind::PING, 0, 0, &ALIVE_PING, out);
    }

    /// Says that the connection is about to end: the client begins no more requests on it, and
    /// those that are under way are still served.
    pub fn announce_end(&mut self, out: &mut Vec<u8>) {
        write_goaway(i32::MAX as u32, ErrorCode::NoError, "the server ends", out);
        write(kind::PING, 0, 0, &END_PING, out);
    }
}

/// The PING that asks whether the client is there.
const ALIVE_PING: [u8; 8] = *b"you here";

/// The PING behind the first GOAWAY: once it is acknowledged, the client knows.
pub(super) const END_PING: [u8; 8] = *b"gustnado";
