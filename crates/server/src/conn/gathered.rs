//! What leaves a connection in one send: a head, pieces of content, the end of chunks.

use bytes::Bytes;
use gustnado_http::chunk::{LAST_CHUNK, write_size};
use gustnado_http::fields::check_field;
use gustnado_tasks::{Connection, SendBuf};

use crate::contained::contained;
use crate::response::Trailers;

/// Pieces from this size on are sent from where they lie; below, copying them costs less.
const SHARED_FROM: usize = 4 << 10;
/// Content that is not copied may be so many times as much as content that is, before it is sent:
/// whoever has made it holds it anyway.
const SHARED_FACTOR: usize = 16;

/// What is sent next.
pub(super) struct Gathered {
    pub(super) out: Box<SendBuf>,
    /// Bytes at its beginning that were counted when they were written.
    pub(super) counted: usize,
    /// Bytes of content in it.
    pub(super) content: u64,
    /// Those of them that were copied into it, and those that were not.
    copied: usize,
    shared: usize,
}

impl Gathered {
    /// What is sent together with `head`, if there is one.
    pub(super) fn behind(head: Option<Box<SendBuf>>) -> Self {
        let out = head.unwrap_or_else(Connection::outgoing);
        let counted = out.len();
        Self { out, counted, content: 0, copied: 0, shared: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Whether it is to be sent before more is taken.
    ///
    /// - `copied_max`: how much of it may be copied.
    pub(super) fn is_full(&self, copied_max: usize) -> bool {
        self.copied >= copied_max || self.shared > copied_max.saturating_mul(SHARED_FACTOR)
    }

    /// Takes a piece. One without bytes would end the chunks, and is none.
    pub(super) fn take(&mut self, piece: Bytes, chunked: bool) {
        let length = piece.len();
        if length == 0 {
            return;
        }
        self.content += length as u64;
        if chunked {
            write_size(&mut self.out.bytes, length as u64);
        }
        if length < SHARED_FROM {
            self.copied += length;
            self.out.bytes.extend_from_slice(&piece);
        } else {
            self.shared += length;
            self.out.share(piece);
        }
        if chunked {
            self.out.bytes.extend_from_slice(b"\r\n");
        }
    }
}

/// The end of chunked content (RFC 9112 §7.1.2).
pub(super) fn end_chunks(trailers: Option<Trailers>, next: &mut Gathered) {
    let out = &mut next.out.bytes;
    let fields = trailers.and_then(contained).unwrap_or_default();
    let fields: Vec<_> = fields
        .iter()
        .filter(|(name, value)| check_field(name.as_str(), value.as_bytes()).is_ok())
        .collect();
    if fields.is_empty() {
        out.extend_from_slice(LAST_CHUNK);
        return;
    }
    out.extend_from_slice(b"0\r\n");
    for (name, value) in fields {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPIED_MAX: usize = 16 << 10;

    fn nothing() -> Gathered {
        // (There is no worker here to lend a buffer.)
        Gathered::behind(Some(Box::default()))
    }

    /// How many sends so many pieces of one size take, and how many bytes of them are copied.
    fn sends(count: usize, bytes: usize) -> (usize, usize) {
        let (mut next, mut sends, mut own) = (nothing(), 0, 0);
        for _ in 0..count {
            next.take(vec![b'x'; bytes].into(), true);
            if next.is_full(COPIED_MAX) {
                own += next.out.bytes.len();
                next = nothing();
                sends += 1;
            }
        }
        (sends + usize::from(!next.is_empty()), own + next.out.bytes.len())
    }

    #[test]
    fn large_pieces_leave_many_at_once_and_are_not_copied() {
        // (What is its own is the framing: 5 bytes of size, 4 of line ends.)
        assert_eq!(sends(16, 64 << 10), (4, 16 * 9));
        assert_eq!(sends(64, 16 << 10).0, 4);
        assert_eq!(sends(1, 200 << 20).0, 1);
        assert_eq!(sends(64, 1 << 10).0, 4);
    }

    #[test]
    fn a_piece_without_bytes_is_none() {
        let mut next = nothing();
        next.take(Bytes::new(), true);
        assert!(next.is_empty() && !next.is_full(1));
    }

    #[test]
    fn what_is_gathered_is_framed_in_order() {
        let mut next = nothing();
        next.take(Bytes::from_static(b"short"), true);
        next.take(vec![b'x'; SHARED_FROM].into(), true);
        next.take(Bytes::from_static(b"end"), true);
        end_chunks(None, &mut next);
        let long = "x".repeat(SHARED_FROM);
        let wanted = format!("5\r\nshort\r\n1000\r\n{long}\r\n3\r\nend\r\n0\r\n\r\n");
        assert_eq!(next.content, 8 + SHARED_FROM as u64);
        assert_eq!(next.out.take_bytes(), wanted.as_bytes());
    }
}
