//! Receiving: when it is armed, where the bytes wait, and for how long in a buffer.
//!
//! The buffers belong to all sockets of the ring. A filled one is queued for its socket until the
//! task that was woken for it has run; what that has not taken by the next turn is copied. So no
//! buffer is held across a wait, and a connection cannot starve the others of buffers.

use std::io;
use std::task::Poll;

use rustix::io::Errno;

use super::large::Overflow;
use super::socket::SocketState;
use super::{Uring, UringIo, socket_of};
use crate::Token;
use crate::buf::RecvBuf;
use crate::provided_bufs::BUFFER_BYTES;
use crate::sys::{Key, RecvKind};

impl Uring {
    pub(crate) fn recv(&mut self, io: UringIo, token: Token) -> Poll<io::Result<RecvBuf>> {
        let Self { ring, direct, ordinary, overflow, starved, recv_errors, .. } = self;
        let socket = socket_of(direct, ordinary, self.table, io.key);
        if let Some(piece) = ring.pool().pop(&mut socket.recv_queue) {
            socket.state.clear(SocketState::WANTS_BYTES);
            return Poll::Ready(Ok(RecvBuf::provided(piece)));
        }
        if socket.state.has(SocketState::OVERFLOWED) {
            socket.state.clear(SocketState::OVERFLOWED | SocketState::WANTS_BYTES);
            if let Some(bytes) = overflow.remove(&io.key.index).and_then(Overflow::into_bytes) {
                return Poll::Ready(Ok(bytes));
            }
        }
        if socket.state.has(SocketState::END) {
            let error = recv_errors.get(&io.key.index).copied();
            let error = error.map(io::Error::from_raw_os_error);
            return Poll::Ready(error.map_or_else(|| Ok(RecvBuf::end()), Err));
        }
        socket.waiter.set(token);
        // `WANTS_BYTES` without `RECEIVING`: it is among the starved, or a cancellation is under
        // way whose completion arms the next receive. A second one must not be armed beside that.
        if !socket.state.has(SocketState::RECEIVING | SocketState::WANTS_BYTES) {
            if ring.pool().available() == 0 {
                starved.push_back(io.key);
            } else {
                let kind = socket.state.arm();
                let target = socket.target(self.table, io.key);
                ring.recv(target, io.key, kind);
            }
        }
        socket.state.clear(SocketState::WANTS_LARGE);
        socket.state.set(SocketState::WANTS_BYTES);
        Poll::Pending
    }

    /// Ends multishot receiving for good. Buffers that wait to be read are copied and given back: a
    /// task that asks seldom would keep them from the others.
    pub(crate) fn receive_on_demand(&mut self, io: UringIo) {
        self.socket(io.key).state.set(SocketState::ON_DEMAND);
        self.set_aside(io.key);
    }

    /// Gives back the buffers whose bytes no task has asked for since the last turn: their tasks do
    /// something else, for an unknown time.
    #[inline]
    pub(super) fn give_buffers_back(&mut self) {
        if self.ring.pool().has_lent() {
            self.empty_recv_queues();
        }
    }

    #[cold]
    fn empty_recv_queues(&mut self) {
        for id in 0..self.ring.pool().count() {
            let index = self.ring.pool().owner(id);
            // The owner is only a hint: the buffer may have been given back since. If that socket
            // has others queued, they are due as well.
            if let Some(socket) = self.get(index)
                && !socket.recv_queue.is_empty()
            {
                self.set_aside(Key { index, generation: socket.generation });
            }
        }
    }

    /// Copies received bytes out of their buffers, and receives no more until the task asks: the
    /// rest waits in the kernel. What the kernel has received before it hears of that is copied
    /// too, so a connection keeps no more than its socket could hold.
    fn set_aside(&mut self, key: Key) {
        let pool = self.ring.pool().clone();
        let socket = self.socket(key);
        let mut bytes = Vec::new();
        while let Some(piece) = pool.pop(&mut socket.recv_queue) {
            bytes.extend_from_slice(piece.bytes());
        }
        if !bytes.is_empty() {
            socket.state.set(SocketState::OVERFLOWED);
            // Received later than what was still queued.
            if let Some(behind) = self.overflow.remove(&key.index).and_then(Overflow::into_bytes) {
                bytes.extend_from_slice(behind.bytes());
            }
            self.overflow.insert(key.index, Overflow::Copied(bytes));
        }
        let socket = self.socket(key);
        if socket.state.has(SocketState::RECEIVING)
            && !socket.state.has(SocketState::STOPPING_RECEIVE)
        {
            socket.state.set(SocketState::STOPPING_RECEIVE);
            self.ring.cancel_recv(key);
        }
    }

    /// A receive has brought bytes, or has ended, or both. Returns the token of a task that waits.
    pub(super) fn received(
        &mut self,
        key: Key,
        result: i32,
        buffer: Option<u16>,
        more: bool,
    ) -> Option<Token> {
        let socket = socket_of(&mut self.direct, &mut self.ordinary, self.table, key);
        if !socket.is_live(key) {
            // A completion of the slot's former socket. Its buffer still has to go back, or the
            // ring would run out of them.
            if let Some(buffer) = buffer {
                self.ring.pool().offer(buffer);
            }
            return None;
        }
        if !more {
            // Cleared before anything else: what follows may arm the next receive.
            socket.state.clear(SocketState::RECEIVE);
        }
        match (buffer, u16::try_from(result)) {
            (Some(buffer), Ok(len)) if len > 0 && !socket.state.has(SocketState::CLOSING) => {
                return self.keep_received(key, buffer, len, more);
            }
            // No bytes in it, or no task left to read them.
            (Some(buffer), _) => self.ring.pool().offer(buffer),
            (None, _) => {}
        }
        self.receive_ended(key, result)
    }

    /// Queues a filled buffer for its socket's task, or copies it where too many wait already.
    #[inline]
    fn keep_received(&mut self, key: Key, buffer: u16, len: u16, more: bool) -> Option<Token> {
        let Self { ring, direct, ordinary, overflow, .. } = self;
        let (pool, socket) = (ring.pool(), socket_of(direct, ordinary, self.table, key));
        if usize::from(len) < BUFFER_BYTES {
            socket.state.set(SocketState::DRAINED);
        } else {
            socket.state.clear(SocketState::DRAINED);
        }
        if socket.recv_queue.has_several() || socket.state.has(SocketState::OVERFLOWED) {
            // Once bytes have been copied, all that follow are, until the task has taken them: the
            // queue is read first, so a buffer put there now would overtake them.
            socket.state.set(SocketState::OVERFLOWED);
            let behind = overflow.entry(key.index).or_default();
            behind.append(pool.lend(buffer, len).bytes());
        } else {
            pool.append(&mut socket.recv_queue, buffer, len, key.index);
        }
        // A connection with two unread pieces receives no more until its task has caught up, so
        // that a flood holds no more buffers. The kernel goes on by itself until it is told to
        // stop, and the cancellation takes effect later: what it receives in between is what the
        // overflow is for.
        let stop = more
            && socket.recv_queue.has_several()
            && !socket.state.has(SocketState::STOPPING_RECEIVE);
        if stop {
            socket.state.set(SocketState::STOPPING_RECEIVE);
            ring.cancel_recv(key);
        }
        socket.wake_reader()
    }

    /// A receive has ended without bytes: by the peer's end, for want of a buffer, or by an error.
    pub(super) fn receive_ended(&mut self, key: Key, result: i32) -> Option<Token> {
        let socket = self.socket(key);
        let wants_bytes =
            socket.state.has(SocketState::WANTS_BYTES) && !socket.state.has(SocketState::CLOSING);
        match (result < 0).then(|| Errno::from_raw_os_error(-result)) {
            None => socket.state.set(SocketState::END),
            Some(Errno::NOBUFS) => {
                // All buffers are taken. Armed again now, it would fail again at once, so it waits
                // for its turn: `feed_starved` arms as many as there are buffers.
                if wants_bytes {
                    self.starved.push_back(key);
                }
                return self.finish_closing(key);
            }
            Some(Errno::CANCELED | Errno::INTR) => {
                // It was stopped for being ahead, and its task has caught up meanwhile: it waits,
                // and no other event would arm a receive.
                if wants_bytes && socket.state.has(SocketState::WANTS_LARGE) {
                    return socket.wake_reader();
                }
                if wants_bytes {
                    let kind = socket.state.arm();
                    let target = self.target(key);
                    self.ring.recv(target, key, kind);
                    return None;
                }
                return self.finish_closing(key);
            }
            Some(_) => {
                socket.state.set(SocketState::END);
                self.recv_errors.insert(key.index, -result);
            }
        }
        self.finish_closing(key).or_else(|| self.live(key)?.wake_reader())
    }

    /// Arms the receives that had to wait for buffers, as many as there are buffers now.
    pub(super) fn feed_starved(&mut self) {
        if self.starved.is_empty() {
            return;
        }
        let mut buffers = self.ring.pool().available();
        let mut large = self.large_for_starved();
        while buffers > 0
            && let Some(key) = self.starved.pop_front()
        {
            let target = self.target(key);
            let Some(socket) = self.live(key) else {
                continue;
            };
            if socket.state.has(SocketState::RECEIVING | SocketState::CLOSING) {
                continue;
            }
            if socket.state.has(SocketState::WANTS_LARGE) && large > 0 {
                socket.state.set(SocketState::RECEIVING);
                self.ring.recv(target, key, RecvKind::Large);
                large -= 1;
                continue;
            }
            let kind = socket.state.arm();
            self.ring.recv(target, key, kind);
            buffers -= 1;
        }
    }
}
