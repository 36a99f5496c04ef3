//! Frames that are to be sent.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;

/// Frames of at least so many bytes that others have as well are not copied to those of this
/// socket. (Sharing one of 1,000 bytes costs 8 % fewer instructions than a copy of it.)
const SHARED_BYTES_MIN: usize = 512;

/// Up to so many bytes are copied to what the connection sends.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// So many places for whole buffers are kept.
const WHOLE_MAX: usize = 16;

/// Frames that are to be sent, in their order.
#[derive(Default)]
pub(crate) struct FrameQueue {
    /// Whole buffers, before `tail`.
    whole: VecDeque<WholeBuffer>,
    tail: Vec<u8>,
    /// Bytes that wait.
    bytes: usize,
    /// Bytes that no other socket has: those that wait, and those that are being sent.
    own_bytes: usize,
    /// How many of them are being sent.
    own_leaving: usize,
}

struct WholeBuffer {
    bytes: Bytes,
    is_shared: bool,
}

impl FrameQueue {
    /// Returns how many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many bytes are held that no other socket has.
    pub(crate) fn own_bytes(&self) -> usize {
        self.own_bytes
    }

    /// Returns whether little memory is kept for the next frames.
    pub(crate) fn is_small(&self) -> bool {
        self.tail.capacity() <= COPIED_BYTES_MAX && self.whole.capacity() <= WHOLE_MAX
    }

    /// Appends what `write` writes.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.tail.len();
        write(&mut self.tail);
        let more = self.tail.len() - before;
        self.bytes += more;
        self.own_bytes += more;
    }

    /// Appends a frame that other sockets send, too.
    pub(crate) fn share(&mut self, frame: &Bytes) {
        if frame.len() < SHARED_BYTES_MIN {
            return self.append(|out| out.extend_from_slice(frame));
        }
        if !self.tail.is_empty() {
            let bytes = mem::take(&mut self.tail).into();
            self.whole.push_back(WholeBuffer { bytes, is_shared: false });
        }
        self.bytes += frame.len();
        self.whole.push_back(WholeBuffer { bytes: frame.clone(), is_shared: true });
    }

    /// Passes on all that is sent next, if it is little and waits alone. What was taken before has
    /// left.
    pub(crate) fn pass_few(&mut self, pass: impl FnOnce(&[u8])) -> bool {
        let len = self.tail.len();
        if !self.whole.is_empty() || !(1..=COPIED_BYTES_MAX).contains(&len) {
            return false;
        }
        self.own_bytes -= mem::replace(&mut self.own_leaving, len);
        self.bytes -= len;
        pass(&self.tail);
        self.tail.clear();
        true
    }

    /// Takes out what is sent next. What was taken before has left.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        self.own_bytes -= mem::take(&mut self.own_leaving);
        let next = match self.whole.pop_front() {
            Some(whole) => whole,
            None if self.tail.is_empty() => return None,
            None => WholeBuffer { bytes: mem::take(&mut self.tail).into(), is_shared: false },
        };
        self.bytes -= next.bytes.len();
        if !next.is_shared {
            self.own_leaving = next.bytes.len();
        }
        Some(next.bytes)
    }
}
