//! The reactor's listening sockets: taking them in, accepting, letting them go.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;

use super::{Accepted, Backend, Listener, ListenerKind, Reactor, foreign};
use crate::io::IoKind;
use crate::uring::UringAccepted;
use crate::{Io, Token};

impl Reactor {
    /// Takes in a listening socket.
    ///
    /// - `backlog`: how many connections may wait in it, for `io_uring` to know what a burst can
    ///   be.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn listen(&mut self, socket: Arc<OwnedFd>, backlog: usize) -> io::Result<Listener> {
        Ok(Listener(match &mut self.backend {
            Backend::Uring(uring) => ListenerKind::Uring(uring.listen(socket, backlog)?),
            Backend::Epoll(epoll) => {
                ListenerKind::Epoll(epoll.adopt(socket.as_fd().try_clone_to_owned()?)?)
            }
        }))
    }

    /// Accepts a connection: into this reactor where it has `room` for more sockets, else as a
    /// descriptor for another one. Under epoll it is always a descriptor.
    ///
    /// # Errors
    /// As `accept(2)`: `EMFILE` and its like mean "later", `ECONNABORTED` "go on".
    pub fn accept(
        &mut self,
        listener: &Listener,
        room: usize,
        token: Token,
    ) -> Poll<io::Result<Accepted>> {
        match (&mut self.backend, &listener.0) {
            (Backend::Epoll(epoll), ListenerKind::Epoll(listener)) => {
                epoll.accept(listener, token).map_ok(Accepted::Away)
            }
            (Backend::Uring(uring), ListenerKind::Uring(listener)) => {
                uring.accept(*listener, room, token).map_ok(|accepted| match accepted {
                    UringAccepted::Here(io) => Accepted::Here(Io(IoKind::Uring(io))),
                    UringAccepted::Away(fd) => Accepted::Away(fd),
                })
            }
            _ => foreign(),
        }
    }

    /// Returns whether a connection waits to be accepted; if none does, the token is woken when one
    /// comes.
    ///
    /// # Errors
    /// The kernel cannot watch the socket: it is out of memory.
    pub fn has_pending(&mut self, listener: &Listener, token: Token) -> io::Result<bool> {
        match (&mut self.backend, &listener.0) {
            (Backend::Epoll(epoll), ListenerKind::Epoll(listener)) => {
                epoll.has_pending(listener, token)
            }
            (Backend::Uring(uring), ListenerKind::Uring(listener)) => {
                Ok(uring.has_pending(*listener, token))
            }
            _ => foreign(),
        }
    }

    /// Stops accepting. What the kernel had accepted by then can still be asked for; once that is
    /// done and [`Reactor::is_listening`] says no, the listener can be dropped.
    pub fn unlisten(&mut self, listener: &Listener) {
        if let (Backend::Uring(uring), ListenerKind::Uring(listener)) =
            (&mut self.backend, &listener.0)
        {
            uring.unlisten(*listener);
        }
    }

    /// Returns what was accepted before [`Reactor::unlisten`]; under epoll nothing is that nobody
    /// has asked for.
    ///
    /// # Errors
    /// As [`Reactor::accept`].
    pub fn last_accepted(
        &mut self,
        listener: &Listener,
        token: Token,
    ) -> Poll<io::Result<Accepted>> {
        match &listener.0 {
            ListenerKind::Epoll(_) => Poll::Pending,
            ListenerKind::Uring(_) => self.accept(listener, 0, token),
        }
    }

    /// Returns whether the kernel may still accept for this listener after [`Reactor::unlisten`].
    /// epoll accepts on demand, so there never.
    pub fn is_listening(&self, listener: &Listener) -> bool {
        match (&self.backend, &listener.0) {
            (Backend::Uring(uring), ListenerKind::Uring(listener)) => uring.is_listening(*listener),
            _ => false,
        }
    }

    /// Lets a listener go that accepts no more: see [`Reactor::is_listening`]. Others may hold its
    /// socket; nothing is heard of that here.
    pub fn close_listener(&mut self, listener: Listener) {
        if let (Backend::Epoll(epoll), ListenerKind::Epoll(listener)) =
            (&mut self.backend, listener.0)
        {
            epoll.close_listener(listener);
        }
    }

    /// Stops accepting for all listeners: the end is near.
    pub fn unlisten_all(&mut self) {
        if let Backend::Uring(uring) = &mut self.backend {
            uring.unlisten_all();
        }
    }
}
