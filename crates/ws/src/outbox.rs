//! Frames that are to be sent.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;

/// Frames of at least so many bytes that others have as well are not copied.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// Frames that are to be sent, in their order.
#[derive(Default)]
pub(crate) struct FrameQueue {
    /// Whole buffers, before `tail`.
    whole: VecDeque<Bytes>,
    tail: Vec<u8>,
    bytes: usize,
}

impl FrameQueue {
    /// Returns how many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends what `write` writes.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.bytes += self.tail.len() - before;
    }

    /// Appends a frame that other sockets send, too.
    pub(crate) fn share(&mut self, frame: &Bytes) {
        if frame.len() < SHARED_BYTES_MIN {
            return self.append(|out| out.extend_from_slice(frame));
        }
        if !self.tail.is_empty() {
            self.whole.push_back(mem::take(&mut self.tail).into());
        }
        self.bytes += frame.len();
        self.whole.push_back(frame.clone());
    }

    /// Takes out what is sent next.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let next = match self.whole.pop_front() {
            Some(whole) => whole,
            None if self.tail.is_empty() => return None,
            None => mem::take(&mut self.tail).into(),
        };
        self.bytes -= next.len();
        Some(next)
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
