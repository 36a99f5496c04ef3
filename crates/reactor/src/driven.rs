//! The reactor of a worker whose thread is its caller's: it sleeps apart from looking at what has
//! come, and watches descriptors of its caller's beside its own sockets. Over epoll only.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::Timespec;

use crate::epoll::Epoll;
use crate::reactor::Backend;
use crate::sys::by_number::{is_patient_stream, recv_by_number, send_by_number};
use crate::watched::{Wants, WatchEvent};
use crate::{Reactor, Token};

impl Reactor {
    fn queue(&self) -> io::Result<&Epoll> {
        match &self.backend {
            Backend::Epoll(epoll) => Ok(epoll),
            Backend::Uring(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn queue_mut(&mut self) -> io::Result<&mut Epoll> {
        match &mut self.backend {
            Backend::Epoll(epoll) => Ok(epoll),
            Backend::Uring(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the first half of a turn: sleeps until something happens, and nothing else.
    ///
    /// - `timeout`: how long at most; `None`: for as long as it takes.
    ///
    /// Returns whether a signal has ended it.
    ///
    /// # Errors
    /// The kernel refuses to wait. `Unsupported` under `io_uring`.
    pub fn sleep(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        // A time too far away to be named is no limit.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        self.queue_mut()?.sleep(timeout.as_ref())
    }

    /// Returns the second half: appends to `woken` the tokens whose operations have moved on, and
    /// to
    /// `ready` what was found of watched descriptors, as many as there are at most.
    ///
    /// # Errors
    /// `Unsupported` under `io_uring`.
    pub fn collect(
        &mut self,
        woken: &mut Vec<Token>,
        ready: &mut Vec<WatchEvent>,
    ) -> io::Result<()> {
        self.queue_mut()?.collect(woken, ready);
        self.tick();
        Ok(())
    }

    /// Watches a descriptor of the caller's: each [`Reactor::collect`] tells what it is ready for,
    /// for as long as it is.
    ///
    /// - `number`: should stay open until [`Reactor::unwatch`]. One that is closed before is not
    ///   reported any more, unless something else holds it open; and what has its number next is
    ///   not taken for it.
    /// - `key`: what it is called in what is found.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`: `EPERM` where it cannot be watched (a plain file), `EEXIST` where it is
    /// already, `EBADF` where it is not open. `Unsupported` under `io_uring`.
    pub fn watch(&mut self, number: RawFd, wants: Wants, key: u64) -> io::Result<()> {
        self.queue_mut()?.watch(number, wants, key)
    }

    /// Changes what is watched of a descriptor. Its key stays.
    ///
    /// # Errors
    /// `ENOENT` where it is not watched, or `EBADF` where it is not open any more; then it is
    /// forgotten.
    pub fn rewatch(&mut self, number: RawFd, wants: Wants) -> io::Result<()> {
        self.queue_mut()?.rewatch(number, wants)
    }

    /// Watches a descriptor no longer. It may have been closed already.
    ///
    /// # Errors
    /// `ENOENT` where it is not watched, `EBADF` where the number is negative.
    pub fn unwatch(&mut self, number: RawFd) -> io::Result<()> {
        self.queue_mut()?.unwatch(number)
    }

    /// Receives from a watched socket, without waiting. 0: the peer's end.
    ///
    /// # Errors
    /// As `recv(2)`; `ENOENT` where it is not watched.
    pub fn recv_watched(&self, number: RawFd, room: &mut [u8]) -> io::Result<usize> {
        self.queue()?.key(number)?;
        recv_by_number(number, room)
    }

    /// Sends on a watched socket, without waiting. Returns how many bytes the kernel has taken.
    ///
    /// # Errors
    /// As `send(2)`; `ENOENT` where it is not watched.
    pub fn send_watched(&self, number: RawFd, bytes: &[u8]) -> io::Result<usize> {
        self.queue()?.key(number)?;
        send_by_number(number, bytes)
    }

    /// Another descriptor for what this reactor sleeps on: it can be read while
    /// [`Reactor::collect`] has something to hand out.
    ///
    /// # Errors
    /// The process is out of descriptors. `Unsupported` under `io_uring`.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.queue()?.descriptor()
    }

    /// Returns whether it does no harm to write to a descriptor that may not be writable: it is a
    /// stream socket that never blocks.
    pub fn may_be_tried(&self, number: RawFd) -> bool {
        is_patient_stream(number)
    }

    /// Returns how many descriptors are watched.
    pub fn watches(&self) -> usize {
        self.queue().map_or(0, |queue| queue.watched.count())
    }

    /// A number that is another one once a descriptor has been watched, rewatched or unwatched.
    pub fn changes(&self) -> u32 {
        self.queue().map_or(0, |queue| queue.watched.changes())
    }

    /// Returns whether what was found of a descriptor still counts: it is watched as it was then.
    pub fn is_current(&self, found: &WatchEvent) -> bool {
        self.queue().is_ok_and(|queue| queue.watched.is_current(found))
    }
}
