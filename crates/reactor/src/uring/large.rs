//! Receiving much at once, and discarding: for the bytes of a large body.
//!
//! Both are one-shot, so that nothing is received ahead of the task. The kernel picks a large
//! buffer when bytes are there: awaiting them holds none.

use std::io;
use std::task::Poll;

use rustix::io::Errno;

use super::socket::SocketState;
use super::{Uring, UringIo};
use crate::Token;
use crate::buf::{Discarded, RecvBuf};
use crate::large_bufs::LargeBuf;
use crate::sys::{Key, RecvKind};

/// What a socket has received past its queue.
pub(super) enum Overflow {
    /// Bytes that were copied out of their buffers.
    Copied(Vec<u8>),
    /// Bytes in a large buffer.
    Large(LargeBuf),
    /// So many bytes, which are gone.
    Discarded(usize),
}

impl Default for Overflow {
    fn default() -> Self {
        Self::Copied(Vec::new())
    }
}

impl Overflow {
    /// Returns the bytes that are there.
    pub(super) fn into_bytes(self) -> Option<RecvBuf> {
        match self {
            Self::Copied(bytes) => Some(RecvBuf::owned(bytes)),
            Self::Large(buf) => Some(RecvBuf::large(buf)),
            Self::Discarded(_) => None,
        }
    }

    /// Adds bytes that were received later.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        if let Self::Copied(copied) = self {
            copied.extend_from_slice(bytes);
            return;
        }
        let before = std::mem::take(self).into_bytes();
        let mut copied = before.map_or_else(Vec::new, |before| before.bytes().to_vec());
        copied.extend_from_slice(bytes);
        *self = Self::Copied(copied);
    }
}

impl Uring {
    /// Receives into a large buffer; into a small one where no large one is left.
    pub(crate) fn recv_large(&mut self, io: UringIo, token: Token) -> Poll<io::Result<RecvBuf>> {
        if self.has_received(io) {
            return self.recv(io, token);
        }
        if self.may_arm(io, token) {
            if self.ring.large_available() == 0 {
                self.starved.push_back(io.key);
            } else {
                let target = self.target(io.key);
                self.socket(io.key).state.set(SocketState::RECEIVING);
                self.ring.recv(target, io.key, RecvKind::Large);
            }
        }
        self.socket(io.key).state.set(SocketState::WANTS_BYTES | SocketState::WANTS_LARGE);
        Poll::Pending
    }

    /// Discards up to `bytes_max` bytes, without a buffer where the kernel can.
    pub(crate) fn discard(
        &mut self,
        io: UringIo,
        bytes_max: usize,
        token: Token,
    ) -> Poll<io::Result<Discarded>> {
        if let Some(Overflow::Discarded(bytes)) = self.overflow.get(&io.key.index) {
            let bytes = *bytes;
            self.overflow.remove(&io.key.index);
            self.socket(io.key).state.clear(SocketState::OVERFLOWED);
            return Poll::Ready(Ok(Discarded::Bytes(bytes)));
        }
        if self.has_received(io) || self.socket(io.key).state.has(SocketState::CANNOT_DISCARD) {
            return self.recv(io, token).map_ok(Discarded::Received);
        }
        if self.may_arm(io, token) {
            let target = self.target(io.key);
            let bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX);
            self.socket(io.key).state.set(SocketState::RECEIVING);
            self.ring.recv(target, io.key, RecvKind::Discard(bytes_max));
        }
        self.socket(io.key).state.set(SocketState::WANTS_BYTES | SocketState::WANTS_LARGE);
        Poll::Pending
    }

    /// Returns whether a receive would be ready at once.
    fn has_received(&mut self, io: UringIo) -> bool {
        let socket = self.socket(io.key);
        !socket.recv_queue.is_empty()
            || socket.state.has(SocketState::OVERFLOWED | SocketState::END)
    }

    /// Leaves the task to be woken. Returns whether a receive can be armed now: if not, one is
    /// under way or due. One that goes on by itself would take the bytes into small buffers, and
    /// is stopped.
    fn may_arm(&mut self, io: UringIo, token: Token) -> bool {
        let socket = self.socket(io.key);
        socket.waiter.set(token);
        let state = &mut socket.state;
        if state.has(SocketState::MULTISHOT) && !state.has(SocketState::STOPPING_RECEIVE) {
            state.set(SocketState::STOPPING_RECEIVE);
            self.ring.cancel_recv(io.key);
            return false;
        }
        // `WANTS_BYTES` without `RECEIVING`: it is among the starved.
        !state.has(SocketState::RECEIVING | SocketState::WANTS_BYTES)
    }

    /// A receive into a large buffer has ended. Returns the token of a task that waits.
    pub(super) fn received_large(
        &mut self,
        key: Key,
        result: i32,
        buf: Option<LargeBuf>,
    ) -> Option<Token> {
        let received = buf.filter(|buf| !buf.bytes().is_empty()).map(Overflow::Large);
        self.one_shot_ended(key, result, received)
    }

    /// Bytes were discarded. Returns the token of a task that waits.
    pub(super) fn discarded(&mut self, key: Key, result: i32) -> Option<Token> {
        let bytes = usize::try_from(result).ok().filter(|bytes| *bytes > 0);
        if result == -Errno::FAULT.raw_os_error() {
            let socket = self.live(key)?;
            socket.state.clear(SocketState::RECEIVE);
            socket.state.set(SocketState::CANNOT_DISCARD);
            // It asks again, and then receives.
            return self.finish_closing(key).or_else(|| self.live(key)?.wake_reader());
        }
        self.one_shot_ended(key, result, bytes.map(Overflow::Discarded))
    }

    fn one_shot_ended(
        &mut self,
        key: Key,
        result: i32,
        received: Option<Overflow>,
    ) -> Option<Token> {
        let socket = self.live(key)?;
        socket.state.clear(SocketState::RECEIVE);
        let Some(received) = received.filter(|_| !socket.state.has(SocketState::CLOSING)) else {
            return self.receive_ended(key, result);
        };
        // The next request of who sends large bodies begins with much more than a small buffer
        // takes: a receive that goes on by itself would take all of them.
        socket.state.clear(SocketState::DRAINED);
        socket.state.set(SocketState::OVERFLOWED);
        let token = socket.wake_reader();
        self.overflow.insert(key.index, received);
        token
    }

    /// Returns how many large buffers there are for those that wait for one.
    pub(super) fn large_for_starved(&mut self) -> u16 {
        let wants_large = |key: &Key| {
            self.get(key.index).is_some_and(|socket| socket.state.has(SocketState::WANTS_LARGE))
        };
        if self.starved.iter().any(wants_large) { self.ring.large_available() } else { 0 }
    }
}
