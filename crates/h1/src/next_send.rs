//! One send: a head, pieces of content, the end of chunks.

use bytes::Bytes;
use gustnado_http::chunk::{LAST_CHUNK, write_size};
use gustnado_http::fields::check_field;
use gustnado_tasks::{Connection, SendBuf, contained, send_step};

use gustnado_web::response::Trailers;

/// Pieces from this size on are sent without a copy; below, copying costs less.
const SHARED_FROM: usize = 4 << 10;
/// How many times more uncopied than copied content one send may hold: its memory is in use anyway,
/// by the handler that made it.
const SHARED_FACTOR: usize = 16;

/// The bytes of the next send.
pub(super) struct NextSend {
    pub(super) out: Box<SendBuf>,
    /// Bytes at its start that were counted when they were written.
    pub(super) counted: usize,
    /// Bytes of content in it.
    pub(super) content: u64,
    /// Bytes of content that were copied into it, and that were not.
    copied: usize,
    shared: usize,
}

impl NextSend {
    /// Starts a send with a head, if there is one.
    pub(super) fn with_head(head: Option<Box<SendBuf>>) -> Self {
        let out = head.unwrap_or_else(Connection::outgoing);
        let counted = out.len();
        Self { out, counted, content: 0, copied: 0, shared: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Adds a piece, or the next step of a long one. Returns whether more may be added before it is
    /// sent. Steps of long pieces go by themselves.
    ///
    /// - `copied_max`: the most copied bytes in one send.
    pub(super) fn add(&mut self, piece: &mut Bytes, chunked: bool, copied_max: usize) -> bool {
        let step = send_step(piece.len());
        let is_long = step < piece.len();
        if is_long && self.content > 0 {
            return false;
        }
        // An empty piece adds nothing: as a chunk it would end the content.
        if !piece.is_empty() {
            self.push(piece.split_to(step), chunked);
        }
        let is_full =
            self.copied >= copied_max || self.shared > copied_max.saturating_mul(SHARED_FACTOR);
        !is_long && !is_full
    }

    fn push(&mut self, piece: Bytes, chunked: bool) {
        let length = piece.len();
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

/// Adds the end of chunked content (RFC 9112 §7.1.2).
pub(super) fn end_chunks(trailers: Option<Trailers>, next: &mut NextSend) {
    let out = &mut next.out.bytes;
    let fields = trailers.and_then(contained).unwrap_or_default();
    // A malformed trailer is left out: the response is already on its way, so it cannot fail.
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

    fn nothing() -> NextSend {
        // No worker runs in a unit test, so no buffer is borrowed from it.
        NextSend::with_head(Some(Box::default()))
    }

    /// Returns how many sends `count` pieces take, and how many bytes are copied.
    fn sends(count: usize, bytes: usize) -> (usize, usize) {
        let (mut next, mut sends, mut own) = (nothing(), 0, 0);
        for _ in 0..count {
            let mut piece = Bytes::from(vec![b'x'; bytes]);
            while !next.add(&mut piece, true, COPIED_MAX) {
                own += next.out.bytes.len();
                next = nothing();
                sends += 1;
            }
        }
        (sends + usize::from(!next.is_empty()), own + next.out.bytes.len())
    }

    #[test]
    fn many_pieces_leave_at_once_and_long_ones_are_not_copied() {
        // The copied bytes are the framing: 5 of the size, 4 of the line ends.
        assert_eq!(sends(16, 64 << 10), (4, 16 * 9));
        assert_eq!(sends(64, 16 << 10).0, 4);
        assert_eq!(sends(64, 1 << 10).0, 4);
    }

    #[test]
    fn a_long_piece_leaves_in_steps() {
        for (bytes, wanted) in [(128 << 10, 3), (1 << 20, 17), (20 << 20, 342)] {
            assert_eq!(sends(1, bytes).0, wanted, "of {bytes}");
        }
    }

    #[test]
    fn a_long_piece_does_not_go_with_others() {
        let (mut next, mut long) = (nothing(), Bytes::from(vec![b'x'; 1 << 20]));
        assert!(next.add(&mut Bytes::from_static(b"before"), true, COPIED_MAX));
        assert!(!next.add(&mut long, true, COPIED_MAX));
        assert_eq!((next.content, long.len()), (6, 1 << 20));
    }

    #[test]
    fn a_piece_without_bytes_is_none() {
        let mut next = nothing();
        assert!(next.add(&mut Bytes::new(), true, 1) && next.is_empty());
    }

    #[test]
    fn what_is_gathered_is_framed_in_order() {
        let mut next = nothing();
        for piece in [vec![b'a'; 5], vec![b'x'; SHARED_FROM], vec![b'e'; 3]] {
            assert!(next.add(&mut piece.into(), true, COPIED_MAX));
        }
        end_chunks(None, &mut next);
        let long = "x".repeat(SHARED_FROM);
        let wanted = format!("5\r\naaaaa\r\n1000\r\n{long}\r\n3\r\neee\r\n0\r\n\r\n");
        assert_eq!(next.content, 8 + SHARED_FROM as u64);
        assert_eq!(next.out.take_bytes(), wanted.as_bytes());
    }
}
