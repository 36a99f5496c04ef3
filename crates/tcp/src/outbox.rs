//! Bytes that a connection has still to send, and their limits.

use std::collections::VecDeque;
use std::mem;

use gustnado_tasks::{Connection, SendBuf};

/// Bytes that leave in one send at most: so that progress is seen, and others have their turn.
const CHUNK_BYTES: usize = 64 << 10;

/// Limits of what a connection has pending: written, and not yet taken by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteLimits {
    /// With more than this many bytes pending, writers are told to pause. 64 KiB by default.
    pub high_bytes: usize,
    /// With no more than this many bytes pending, they are resumed. 16 KiB by default.
    pub low_bytes: usize,
    /// More than so many bytes are never pending. 1 MiB by default.
    pub max_bytes: usize,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { high_bytes: 64 << 10, low_bytes: 16 << 10, max_bytes: 1 << 20 }
    }
}

impl WriteLimits {
    /// The same, with `low <= high <= max`: the larger bound decides.
    pub(super) fn in_order(self) -> Self {
        let high_bytes = self.high_bytes.min(self.max_bytes);
        Self { high_bytes, low_bytes: self.low_bytes.min(high_bytes), ..self }
    }
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFlow {
    /// There is room: write on.
    Go,
    /// The bytes are taken; now wait, for more than the high-water mark is pending.
    Wait,
    /// The connection takes no more bytes, also not these.
    Closed,
}

impl WriteFlow {
    pub(super) fn of(closed: bool, congested: bool) -> Self {
        match (closed, congested) {
            (true, _) => Self::Closed,
            (false, true) => Self::Wait,
            (false, false) => Self::Go,
        }
    }
}

/// Bytes in the order they were written, in pieces of one send each.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    chunks: VecDeque<Box<SendBuf>>,
    /// Bytes in the chunks.
    waiting: usize,
    /// Bytes of the chunk that is being sent.
    leaving: usize,
    limits: WriteLimits,
    congested: bool,
    /// It has been congested since that was last asked.
    was_congested: bool,
}

impl Outbox {
    pub(super) fn limits(&self) -> WriteLimits {
        self.limits
    }

    pub(super) fn set_limits(&mut self, limits: WriteLimits) {
        self.limits = limits.in_order();
        self.judge();
    }

    /// Bytes that have not been sent.
    pub(super) fn pending(&self) -> usize {
        self.waiting + self.leaving
    }

    /// Returns whether a send is under way.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving > 0
    }

    /// Returns whether bytes wait that no send has been started for.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Returns whether writers are to wait.
    pub(super) fn is_congested(&self) -> bool {
        self.congested
    }

    /// Returns whether writers were told to wait since this was asked last.
    pub(super) fn take_was_congested(&mut self) -> bool {
        mem::take(&mut self.was_congested)
    }

    /// Returns how many bytes can be pushed now.
    pub(super) fn room(&self) -> usize {
        self.limits.max_bytes.saturating_sub(self.pending())
    }

    /// Takes bytes in, however many: the caller has looked at [`Outbox::room`].
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.waiting += bytes.len();
        while !bytes.is_empty() {
            let room = |chunk: &mut Box<SendBuf>| CHUNK_BYTES - chunk.bytes.len();
            match self.chunks.back_mut().map(|chunk| (room(chunk), chunk)) {
                None | Some((0, _)) => self.chunks.push_back(fresh()),
                Some((room, chunk)) => {
                    let (now, later) = bytes.split_at(bytes.len().min(room));
                    chunk.bytes.extend_from_slice(now);
                    bytes = later;
                }
            }
        }
        self.judge();
    }

    /// Returns the next bytes to send. [`Outbox::sent`] says when they have left.
    pub(super) fn take_chunk(&mut self) -> Option<Box<SendBuf>> {
        debug_assert_eq!(self.leaving, 0, "one send at a time");
        let chunk = self.chunks.pop_front()?;
        self.leaving = chunk.bytes.len();
        self.waiting -= self.leaving;
        if self.chunks.is_empty() {
            // An idle connection holds no buffer, and no room for some.
            self.chunks = VecDeque::new();
        }
        Some(chunk)
    }

    /// What [`Outbox::take_chunk`] gave has left. Returns how many bytes that were.
    pub(super) fn sent(&mut self) -> usize {
        let bytes = mem::take(&mut self.leaving);
        self.judge();
        bytes
    }

    fn judge(&mut self) {
        let mark = if self.congested { self.limits.low_bytes } else { self.limits.high_bytes };
        self.congested = self.pending() > mark;
        self.was_congested |= self.congested;
    }
}

/// A buffer of this worker's spare ones.
#[expect(clippy::unnecessary_box_returns, reason = "buffers travel boxed from end to end")]
fn fresh() -> Box<SendBuf> {
    if gustnado_tasks::worker().is_some() { Connection::outgoing() } else { Box::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(outbox: &mut Outbox) -> Vec<u8> {
        let bytes = outbox.take_chunk().map(|chunk| chunk.bytes.clone()).unwrap_or_default();
        outbox.sent();
        bytes
    }

    #[test]
    fn bytes_leave_in_the_order_they_came_in_pieces_of_one_send() {
        let mut outbox = Outbox::default();
        let written: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        for piece in written.chunks(777) {
            outbox.push(piece);
        }
        assert_eq!(outbox.pending(), 200_000);
        let mut left = Vec::new();
        while outbox.has_waiting() {
            let chunk = send(&mut outbox);
            assert!(chunk.len() <= CHUNK_BYTES);
            left.extend(chunk);
        }
        assert!(left == written);
        assert_eq!(outbox.pending(), 0);
    }

    #[test]
    fn writers_wait_from_above_the_high_mark_to_the_low_one() {
        let mut outbox = Outbox::default();
        outbox.set_limits(WriteLimits { high_bytes: 100, low_bytes: 10, max_bytes: 1_000 });
        outbox.push(&[0; 100]);
        assert!(!outbox.is_congested());
        outbox.push(&[0; 1]);
        assert!(outbox.is_congested());
        assert_eq!(outbox.room(), 899);
        let chunk = outbox.take_chunk().expect("bytes wait");
        outbox.push(&[0; 11]);
        assert_eq!((chunk.bytes.len(), outbox.pending()), (101, 112));
        outbox.sent();
        assert!(outbox.is_congested(), "11 bytes are above the low mark");
        send(&mut outbox);
        assert!(!outbox.is_congested());
    }

    #[test]
    fn limits_out_of_order_are_put_in_order() {
        let limits = WriteLimits { high_bytes: 50, low_bytes: 70, max_bytes: 20 }.in_order();
        assert_eq!((limits.low_bytes, limits.high_bytes, limits.max_bytes), (20, 20, 20));
    }
}
