//! Sockets that change hands: from a descriptor into a reactor, into a ring's table, and to another
//! reactor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::Poll;

use crate::io::IoKind;
use crate::reactor::{Backend, foreign};
use crate::{Io, Reactor, Token};

impl Reactor {
    /// Takes in a descriptor that does not block: an accepted or a connecting socket.
    ///
    /// # Errors
    /// `EMFILE` if its number is past the limit known at the start.
    pub fn adopt(&mut self, fd: OwnedFd) -> io::Result<Io> {
        Ok(Io(match &mut self.backend {
            Backend::Epoll(epoll) => IoKind::Epoll(epoll.adopt(fd)?),
            Backend::Uring(uring) => IoKind::Uring(uring.adopt(fd)),
        }))
    }

    /// Moves a connected socket into the ring's table, if there is room, and closes its ordinary
    /// descriptor: so a process may have more connections than descriptors. Under epoll, and on a
    /// reactor that listens, it stays as it is.
    ///
    /// # Errors
    /// `ResourceBusy`: an operation is under way on it, or has completed and was not asked about
    /// since. It stays as it is.
    pub fn make_direct(&mut self, io: &mut Io) -> io::Result<()> {
        if let (Backend::Uring(uring), IoKind::Uring(io)) = (&mut self.backend, &mut io.0) {
            *io = uring.make_direct(*io)?;
        }
        Ok(())
    }

    /// Makes a descriptor of an accepted socket that another reactor can take in. Close the socket
    /// here afterwards; what is under way on it ends then.
    ///
    /// # Errors
    /// `Unsupported`: it has to stay here. `EMFILE` and its like: no descriptor is left.
    pub fn export(&mut self, io: &Io, token: Token) -> Poll<io::Result<OwnedFd>> {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(_), IoKind::Epoll(io)) => Poll::Ready(io.as_fd().try_clone_to_owned()),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.export(*io, token),
            _ => foreign(),
        }
    }
}
