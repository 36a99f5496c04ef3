//! Receiving much at once, and discarding: for the bytes of a large body.

use std::io;
use std::os::fd::AsFd;
use std::task::Poll;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::{Epoll, EpollIo};
use crate::Token;
use crate::buf::{Discarded, RecvBuf};
use crate::readiness::{END, IN};
use crate::sys::by_number::discard_received;

impl Epoll {
    /// Receives into a large buffer; into the worker's own where no large one is left.
    pub(crate) fn recv_large(&mut self, io: &EpollIo, token: Token) -> Poll<io::Result<RecvBuf>> {
        let readiness = self.readiness(io);
        // Asked first: a socket that is known to be empty needs no buffer.
        if !readiness.has(IN) && self.must_wait(io, readiness, IN, token)? {
            return Poll::Pending;
        }
        let Some(mut buf) = self.large_bufs.take() else {
            return self.recv_ready(io, token);
        };
        let room = buf.room();
        let bytes_max = room.len();
        let received = self.receive_by(io, token, bytes_max, || {
            recv(&io.fd, &mut *room, RecvFlags::empty()).map(|(len, _)| len)
        });
        received.map_ok(|len| {
            if len == 0 {
                return RecvBuf::end();
            }
            buf.fill(len);
            RecvBuf::large(buf)
        })
    }

    /// Receives bytes behind those of `bytes`.
    pub(crate) fn recv_onto(
        &mut self,
        io: &EpollIo,
        (bytes, room): (&mut Vec<u8>, usize),
        token: Token,
    ) -> Poll<io::Result<Option<RecvBuf>>> {
        let readiness = self.readiness(io);
        // Asked first: what a slow sender may send some day needs no room yet.
        if !readiness.has(IN) && self.must_wait(io, readiness, IN, token)? {
            return Poll::Pending;
        }
        bytes.reserve_exact(room.max(1));
        let bytes_max = bytes.capacity() - bytes.len();
        let received = self.receive_by(io, token, bytes_max, || {
            recv(&io.fd, spare_capacity(bytes), RecvFlags::empty()).map(|(_, len)| len)
        });
        received.map_ok(|len| (len == 0).then(RecvBuf::end))
    }

    /// Discards up to `bytes_max` bytes.
    pub(crate) fn discard(
        &mut self,
        io: &EpollIo,
        bytes_max: usize,
        token: Token,
    ) -> Poll<io::Result<Discarded>> {
        let discarded =
            self.receive_by(io, token, bytes_max, || discard_received(io.fd.as_fd(), bytes_max));
        match discarded {
            // No TCP socket: what comes has to be received.
            Poll::Ready(Err(error)) if Errno::from_io_error(&error) == Some(Errno::FAULT) => {
                self.readiness(io).set(IN, self.shared);
                self.recv(io, token).map_ok(Discarded::Received)
            }
            discarded => discarded.map_ok(Discarded::Bytes),
        }
    }

    /// Makes a call that takes bytes off a socket, until it takes some or would block.
    ///
    /// - `bytes_max`: as many as one call may take. Fewer mean that the socket is empty.
    fn receive_by(
        &self,
        io: &EpollIo,
        token: Token,
        bytes_max: usize,
        mut call: impl FnMut() -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        let readiness = self.readiness(io);
        loop {
            if !readiness.has(IN) && self.must_wait(io, readiness, IN, token)? {
                return Poll::Pending;
            }
            // Cleared first: an edge that comes during the call must not be lost to another thread.
            readiness.clear(IN, self.shared);
            match call() {
                Ok(len) => {
                    // The end will not be announced again, whether it has been met or not.
                    if len == 0 || len == bytes_max || readiness.has(END) {
                        readiness.set(IN, self.shared);
                    }
                    return Poll::Ready(Ok(len));
                }
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => readiness.set(IN, self.shared),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}
