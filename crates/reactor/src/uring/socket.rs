//! State of each socket of a ring.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::Token;
use crate::provided_bufs::RecvQueue;
use crate::sys::{FdTarget, Key, RecvKind};

/// State of a socket: what is under way, and what has completed.
#[derive(Debug, Default)]
pub(super) struct UringSocket {
    pub(super) generation: u32,
    pub(super) state: SocketState,
    pub(super) recv_queue: RecvQueue,
    /// An ordinary descriptor: the socket's own, or the installed one of a direct socket.
    pub(super) fd: Option<OwnedFd>,
    /// The place of a send under way; what it came to, once the state says `SENT`.
    pub(super) send: i32,
    pub(super) waiter: Waiter,
}

/// The token of the task that waits, as bytes: a number would have to be aligned, and there are
/// many sockets.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Waiter([u8; 8]);

impl Waiter {
    pub(super) fn set(&mut self, token: Token) {
        self.0 = token.to_ne_bytes();
    }

    pub(super) fn token(self) -> Token {
        Token::from_ne_bytes(self.0)
    }
}

impl UringSocket {
    /// Returns whether it is the open socket that this names, and not its successor.
    #[inline]
    pub(super) fn is_live(&self, key: Key) -> bool {
        self.generation == key.generation && self.state.has(SocketState::OPEN)
    }

    /// Returns how the ring names it.
    ///
    /// - `table`: the size of the ring's own table.
    #[inline]
    pub(super) fn target(&self, table: u32, key: Key) -> FdTarget {
        if key.index < table {
            return FdTarget::Direct(key.index);
        }
        FdTarget::Descriptor(self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Returns the task that waits for bytes, if one does.
    #[inline]
    pub(super) fn wake_reader(&mut self) -> Option<Token> {
        let wants = self.state.has(SocketState::WANTS_BYTES);
        self.state.clear(SocketState::WANTS_BYTES);
        wants.then_some(self.waiter.token())
    }

    /// Returns whether anything is under way, or has completed and was not asked about since.
    pub(super) fn is_busy(&self) -> bool {
        self.state.has(SocketState::BUSY) || !self.recv_queue.is_empty()
    }
}

/// One bit each; a socket has many and there are many sockets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketState(u32);

impl SocketState {
    pub(super) const OPEN: u32 = 1;
    pub(super) const RECEIVING: u32 = 1 << 1;
    pub(super) const SENDING: u32 = 1 << 2;
    pub(super) const INSTALLING: u32 = 1 << 3;
    pub(super) const POLLING: u32 = 1 << 4;
    /// The kernel shuts a socket down in a thread of its own, so that takes its time.
    pub(super) const SHUTTING_DOWN: u32 = 1 << 12;
    /// What must complete before the slot can be freed.
    pub(super) const UNDER_WAY: u32 =
        Self::RECEIVING | Self::SENDING | Self::INSTALLING | Self::POLLING | Self::SHUTTING_DOWN;
    /// What keeps a socket where it is.
    const BUSY: u32 =
        Self::UNDER_WAY | Self::CLOSING | Self::WANTS_BYTES | Self::OVERFLOWED | Self::SENT;
    pub(super) const CLOSING: u32 = 1 << 5;
    /// The peer has sent its last byte, or receiving has failed.
    pub(super) const END: u32 = 1 << 6;
    /// The last receive did not fill its buffer, so the socket is empty and the connection is kept:
    /// the next receive is multishot. From a socket that is full it would take the buffers of all
    /// the others at once.
    pub(super) const DRAINED: u32 = 1 << 7;
    /// The task waits for bytes.
    pub(super) const WANTS_BYTES: u32 = 1 << 8;
    pub(super) const STOPPING_RECEIVE: u32 = 1 << 9;
    /// No ordinary descriptor could be installed: files are read and sent.
    pub(super) const NO_INSTALLED_FD: u32 = 1 << 10;
    /// A poll has completed and was not asked about yet.
    pub(super) const POLLED: u32 = 1 << 11;
    /// A send has completed and was not asked about yet.
    pub(super) const SENT: u32 = 1 << 13;
    /// Bytes lie in the overflow, behind those in the chain.
    pub(super) const OVERFLOWED: u32 = 1 << 14;
    /// The task asks seldom on purpose: nothing is received ahead.
    pub(super) const ON_DEMAND: u32 = 1 << 15;

    /// The receive under way goes on until it is stopped.
    pub(super) const MULTISHOT: u32 = 1 << 16;
    /// The state of a receive under way.
    pub(super) const RECEIVE: u32 = Self::RECEIVING | Self::STOPPING_RECEIVE | Self::MULTISHOT;
    /// The task that waits for bytes wants many, or none of them.
    pub(super) const WANTS_LARGE: u32 = 1 << 17;
    /// Bytes cannot be discarded unread: it is no TCP socket.
    pub(super) const CANNOT_DISCARD: u32 = 1 << 18;
    /// It has a descriptor installed, and has sent no file since.
    pub(super) const FILE_SENT: u32 = 1 << 19;
    /// That was so when such sockets were last looked through.
    pub(super) const FILE_LONG_SENT: u32 = 1 << 20;
    /// Its descriptor is installed for a call that waits for it, and not for the task.
    pub(super) const INSTALLING_NOW: u32 = 1 << 22;
    /// It is among those that are looked through.
    pub(super) const LISTED: u32 = 1 << 21;

    /// Notes that a receive is armed, and returns which one: it stays armed after its first bytes
    /// if the socket was empty before.
    #[inline]
    pub(super) fn arm(&mut self) -> RecvKind {
        if self.0 & (Self::DRAINED | Self::ON_DEMAND) == Self::DRAINED {
            self.set(Self::RECEIVING | Self::MULTISHOT);
            return RecvKind::Multishot;
        }
        self.set(Self::RECEIVING);
        RecvKind::Once
    }

    pub(super) fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    pub(super) fn set(&mut self, bits: u32) {
        self.0 |= bits;
    }

    pub(super) fn clear(&mut self, bits: u32) {
        self.0 &= !bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_small() {
        let bytes = size_of::<UringSocket>();
        assert!(bytes <= 28, "{bytes} bytes; it is a part of an idle connection's memory");
    }
}
