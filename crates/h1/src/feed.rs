//! Hands received bytes of a body to its reader.

use bytes::{Bytes, BytesMut};
use gustnado_http::body::BodyDecodeError;

use super::Conn;
use super::in_flight::Incoming;
use super::trailers::TrailerMemory;
use gustnado_app::hooks::Limit;
use gustnado_web::body_channel::{BodyChannel, BodyError};
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::trailers::RequestTrailers;

impl Conn {
    /// Decodes the unread bytes into the channel. Returns whether its reader has something to read.
    pub(super) fn feed_unread(&mut self, incoming: &mut Incoming, parts: &RequestHeadRef) -> bool {
        match self.unread.take() {
            Some(unread) => self.feed(unread.bytes.into(), incoming, parts),
            None if incoming.decoder.is_done() => {
                self.end_body(incoming, parts.channel());
                true
            }
            None => false,
        }
    }

    /// Decodes received bytes into the channel: data in one run is handed on where it lies. Returns
    /// whether the reader has something to read.
    pub(super) fn feed(
        &mut self,
        mut bytes: Bytes,
        incoming: &mut Incoming,
        parts: &RequestHeadRef,
    ) -> bool {
        let (decoder, channel) = (&mut incoming.decoder, parts.channel());
        let (mut used, mut run, mut joined, mut end) = (0, 0..0, BytesMut::new(), None);
        while end.is_none() && (used < bytes.len() || decoder.is_done()) {
            match decoder.decode(&bytes[used..]) {
                Ok(piece) => {
                    used += piece.consumed;
                    end = piece.done.then_some(Ok(()));
                    // The data of a piece is the last that it consumes.
                    let data = used - piece.data.len()..used;
                    if run.is_empty() {
                        run = data;
                    } else if !data.is_empty() {
                        // Small chunks are joined: each put would wake the reader for a turn of
                        // its own.
                        if joined.is_empty() {
                            joined.extend_from_slice(&bytes[run.clone()]);
                        }
                        joined.extend_from_slice(piece.data);
                    }
                }
                Err(error) => {
                    incoming.is_broken = true;
                    if let BodyDecodeError::TooLarge { limit_bytes } = error {
                        let numbers = (limit_bytes, decoder.received());
                        self.note_size(Limit::BodyBytes, numbers, parts.view().target());
                    }
                    end = Some(Err(BodyError::of(error)));
                }
            }
        }
        if end.is_none() && !incoming.trailers.has_room(&incoming.decoder, &self.app) {
            incoming.is_broken = true;
            end = Some(Err(BodyError::NoMemory));
        }
        let fed = !run.is_empty() || end.is_some();
        self.keep_behind(&bytes[used..]);
        if !joined.is_empty() {
            channel.put(joined.freeze());
        } else if !run.is_empty() {
            // A small part of the bytes would keep all of them.
            if run.len() * 2 < bytes.len() {
                bytes = Bytes::copy_from_slice(&bytes[run]);
            } else {
                bytes.truncate(run.end);
                bytes = bytes.split_off(run.start);
            }
            channel.put(bytes);
        }
        match end {
            Some(Ok(())) => self.end_body(incoming, channel),
            Some(broken) => channel.end(broken),
            None => {}
        }
        fed
    }

    /// Ends a body all of which was received, with its trailer fields if it has some.
    fn end_body(&self, incoming: &mut Incoming, channel: &BodyChannel) {
        self.complete_hold(incoming, channel);
        if let Some(lines) = incoming.decoder.take_trailers() {
            incoming.trailers = TrailerMemory::default();
            channel.set_trailers(RequestTrailers::of_lines(lines));
        }
        channel.end(Ok(()));
    }
}
