//! The reactor's connections by the names of their ends, and by descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::{Backend, Reactor, foreign};
use crate::io::{Io, IoId, IoKind};
use crate::socket_addrs::SocketAddrs;
use crate::sys::options::set_notsent_lowat;
use crate::{Endpoint, Token};

impl Reactor {
    /// Runs `ask` on an ordinary descriptor of a socket: its own one, or under `io_uring` one that
    /// is made for this moment.
    ///
    /// - `woken`: gets the tokens of operations that were found to have moved on meanwhile.
    ///
    /// # Errors
    /// What `ask` says. `Unsupported`: the socket is in the table of a ring, and the kernel is
    /// older than Linux 6.8. `EMFILE` and its like: no descriptor is left.
    pub fn with_descriptor<T>(
        &mut self,
        io: &Io,
        woken: &mut Vec<Token>,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match (&mut self.backend, &io.0) {
            (_, IoKind::Epoll(io)) => ask(io.as_fd()),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.with_descriptor(*io, woken, ask),
            (Backend::Epoll(_), IoKind::Uring(_)) | (_, IoKind::Gone) => foreign(),
        }
    }

    /// Bounds what the kernel takes to be sent on a TCP connection beyond what is under way.
    ///
    /// - `woken`: as for [`Reactor::with_descriptor`].
    ///
    /// # Errors
    /// As [`Reactor::with_descriptor`].
    pub fn set_unsent_max(
        &mut self,
        io: &Io,
        bytes: usize,
        woken: &mut Vec<Token>,
    ) -> io::Result<()> {
        self.with_descriptor(io, woken, |socket| set_notsent_lowat(socket, bytes))
    }

    /// Returns the names of a socket's two ends. The kernel is asked once; they are kept for as
    /// long as the socket is open.
    ///
    /// Another worker of a shared reactor may close the socket meanwhile. The kernel is then asked
    /// by a number that may be another socket's, which does no harm, and the answer is thrown away:
    /// a socket's generation ends before its number is free.
    ///
    /// # Errors
    /// As [`Reactor::with_descriptor`]. `NotFound`: the socket is closed.
    pub fn addrs(&mut self, id: IoId, woken: &mut Vec<Token>) -> io::Result<SocketAddrs> {
        let (index, generation) = id.parts();
        match &mut self.backend {
            Backend::Epoll(epoll) => {
                if let Some(addrs) = epoll.known_addrs(index, generation)? {
                    return Ok(addrs);
                }
                let asked = SocketAddrs::of_fd_number(index.cast_signed());
                // Not in the table any more: what was asked may have been its successor.
                epoll.known_addrs(index, generation)?;
                let addrs = asked?;
                epoll.keep_addrs(index, generation, addrs.clone())?;
                Ok(addrs)
            }
            Backend::Uring(uring) => {
                let io = uring.find(index, generation).ok_or(io::ErrorKind::NotFound)?;
                uring.addrs(io, woken)
            }
        }
    }

    /// Returns where a socket's peer is: what is known, or what the kernel says, which is not kept.
    ///
    /// # Errors
    /// As [`Reactor::with_descriptor`]. `NotConnected`: the peer has reset the connection.
    pub fn peer_unkept(&mut self, io: &Io, woken: &mut Vec<Token>) -> io::Result<Endpoint> {
        let known = match (&self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(_)) => {
                let (index, generation) = io.id().parts();
                epoll.known_addrs(index, generation)?
            }
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.known_addrs(*io),
            _ => None,
        };
        let addrs = match known {
            Some(addrs) => addrs,
            None => self.with_descriptor(io, woken, SocketAddrs::of)?,
        };
        addrs.peer.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Overrides the peer and local address, e.g. from a PROXY header.
    pub fn override_addrs(&mut self, io: &Io, addrs: SocketAddrs) {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(_)) => {
                let (index, generation) = io.id().parts();
                let kept = epoll.keep_addrs(index, generation, addrs);
                debug_assert!(kept.is_ok(), "it is open while it is borrowed");
            }
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.keep_addrs(*io, addrs),
            _ => foreign(),
        }
    }
}
