//! Ordinary descriptors of sockets that live in the ring's table, for the calls that `io_uring`
//! lacks.
//!
//! The kernel installs one when it is asked to (Linux 6.8). A socket that sends files keeps its own
//! for a moment, in case that another file follows; any other call has one installed and closes it
//! again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{io, mem};

use rustix::io::Errno;

use super::socket::SocketState;
use super::{Uring, UringIo};
use crate::sys::{EnterWait, Key};
use crate::{SocketAddrs, Token};

/// For how long a socket keeps a descriptor without sending a file, at least, and twice this at
/// most. One that sends file after file is not to have one installed for each.
const FILE_IDLE_MS: u64 = 250;

/// How often the ring is entered for a descriptor. Once is enough, unless the completion queue had
/// overflowed: then its completion comes with the next time.
const TRIES: u32 = 3;

impl Uring {
    /// Starts installing an ordinary descriptor of a socket of the table.
    pub(super) fn install(&mut self, key: Key) {
        self.installed += 1;
        self.socket(key).state.set(SocketState::INSTALLING);
        self.ring.install(key.index, key);
    }

    /// A descriptor is installed, or cannot be.
    pub(super) fn installed(&mut self, key: Key, result: io::Result<OwnedFd>) -> Option<Token> {
        let socket = self.live(key)?;
        let is_awaited = socket.state.has(SocketState::INSTALLING_NOW);
        socket.state.clear(SocketState::INSTALLING | SocketState::INSTALLING_NOW);
        // The descriptor shares its flags with the socket, which the ring does not need to be
        // non-blocking. Without that, a `sendfile` on it would hold the thread.
        let result = result.and_then(|fd| {
            rustix::io::ioctl_fionbio(&fd, true)?;
            Ok(fd)
        });
        match result {
            Ok(fd) => socket.fd = Some(fd),
            Err(error) => {
                socket.state.set(SocketState::NO_INSTALLED_FD);
                self.installed -= 1;
                self.cannot_install |= Errno::from_io_error(&error) == Some(Errno::INVAL);
                self.install_error = Some(error);
            }
        }
        self.finish(key).filter(|_| !is_awaited)
    }

    /// A file is sent. Its connection may be idle for long now, and there may be more of them than
    /// descriptors: so half of what may be installed stays with those that send a file, and for a
    /// moment with those that may send another one.
    pub(crate) fn file_sent(&mut self, io: UringIo) {
        if io.key.index >= self.table {
            return;
        }
        if self.installed > self.installed_max / 2 {
            self.uninstall(io.key);
            return;
        }
        let socket = self.socket(io.key);
        if socket.fd.is_none() {
            return;
        }
        let is_listed = socket.state.has(SocketState::LISTED);
        socket.state.set(SocketState::FILE_SENT | SocketState::LISTED);
        if !is_listed {
            self.file_sent.push(io.key);
        }
    }

    /// Returns whether a descriptor will have to be closed.
    #[inline]
    pub(crate) fn has_idle_fds(&self) -> bool {
        !self.file_sent.is_empty()
    }

    /// Closes the descriptors of sockets that have sent no file for a while. Returns when others
    /// may have to be closed; `u64::MAX` if there are none.
    #[cold]
    pub(crate) fn close_idle_fds(&mut self, now_ms: u64) -> u64 {
        let mut at_ms = *self.sweep_at_ms.get_or_insert(now_ms + FILE_IDLE_MS);
        if now_ms >= at_ms {
            at_ms = now_ms + FILE_IDLE_MS;
            let mut listed = mem::take(&mut self.file_sent);
            listed.retain(|key| self.stays_listed(*key));
            self.file_sent = listed;
            self.sweep_at_ms = self.has_idle_fds().then_some(at_ms);
        }
        if self.has_idle_fds() { at_ms } else { u64::MAX }
    }

    /// Looks at a socket that has sent a file. Returns whether its descriptor is still to be
    /// closed.
    fn stays_listed(&mut self, key: Key) -> bool {
        let Some(socket) = self.live(key) else { return false };
        if !socket.state.has(SocketState::FILE_SENT) {
            // It sends another one.
            socket.state.clear(SocketState::LISTED);
            return false;
        }
        if !socket.state.has(SocketState::FILE_LONG_SENT) {
            socket.state.set(SocketState::FILE_LONG_SENT);
            return true;
        }
        let done = SocketState::FILE_SENT | SocketState::FILE_LONG_SENT | SocketState::LISTED;
        socket.state.clear(done);
        self.uninstall(key);
        false
    }

    #[cold]
    fn uninstall(&mut self, key: Key) {
        if self.socket(key).fd.take().is_some() {
            self.installed -= 1;
        }
    }

    /// Returns the names of a socket's two ends. They are kept for as long as it is open, for the
    /// next one who asks.
    ///
    /// # Errors
    /// As [`Uring::with_descriptor`].
    pub(crate) fn addrs(&mut self, io: UringIo, woken: &mut Vec<Token>) -> io::Result<SocketAddrs> {
        if let Some(addrs) = self.addrs.get(&io.key.index) {
            return Ok(addrs.clone());
        }
        let addrs = self.with_descriptor(io, woken, SocketAddrs::of)?;
        self.keep_addrs(io, addrs.clone());
        Ok(addrs)
    }

    /// Returns the names of an open socket, if they are kept.
    pub(crate) fn known_addrs(&self, io: UringIo) -> Option<SocketAddrs> {
        self.addrs.get(&io.key.index).cloned()
    }

    /// Keeps the names of an open socket.
    pub(crate) fn keep_addrs(&mut self, io: UringIo, addrs: SocketAddrs) {
        self.addrs.insert(io.key.index, addrs);
    }

    /// Runs `ask` on an ordinary descriptor of a socket: its own, or one that is installed for this
    /// call.
    ///
    /// Other completions that the ring has by then are taken in as in any turn.
    ///
    /// - `woken`: gets the tokens of what has moved on.
    ///
    /// # Errors
    /// `Unsupported`: the kernel installs none (before Linux 6.8). Else the kernel's error: the
    /// process is out of descriptors.
    pub(crate) fn with_descriptor<T>(
        &mut self,
        io: UringIo,
        woken: &mut Vec<Token>,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(descriptor) = self.fd(io) {
            return ask(descriptor);
        }
        let result = self.installed_fd(io.key, woken).and_then(|fd| ask(fd.as_fd()));
        if self.reserve.is_none() {
            self.reserve = self.waker.as_fd().try_clone_to_owned().ok();
        }
        result
    }

    /// Installs a descriptor at once, if need be under the number that is held in reserve for this.
    fn installed_fd(&mut self, key: Key, woken: &mut Vec<Token>) -> io::Result<OwnedFd> {
        match self.install_now(key, woken) {
            Err(error) if is_exhausted(&error) && self.reserve.take().is_some() => {
                self.install_now(key, woken)
            }
            result => result,
        }
    }

    fn install_now(&mut self, key: Key, woken: &mut Vec<Token>) -> io::Result<OwnedFd> {
        if self.cannot_install {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.install_error = None;
        if !self.socket(key).state.has(SocketState::INSTALLING) {
            self.install(key);
            self.socket(key).state.set(SocketState::INSTALLING_NOW);
        }
        for _ in 0..TRIES {
            let entered = self.ring.enter(EnterWait::Not);
            self.close_pushed = false;
            self.take_completions(woken);
            if !self.socket(key).state.has(SocketState::INSTALLING) || entered.is_err() {
                break;
            }
        }
        let socket = self.socket(key);
        // From here on it would be for the task.
        socket.state.clear(SocketState::INSTALLING_NOW);
        if let Some(fd) = socket.fd.take() {
            self.installed -= 1;
            return Ok(fd);
        }
        // That none was to be had at this moment is no reason for a later `sendfile` not to try.
        socket.state.clear(SocketState::NO_INSTALLED_FD);
        if self.cannot_install {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Err(self.install_error.take().unwrap_or_else(|| io::ErrorKind::WouldBlock.into()))
    }

    /// Forgets the names of a socket that is no more, and why its receiving has failed.
    #[cold]
    pub(super) fn forget_rare(&mut self, index: u32) {
        self.addrs.remove(&index);
        self.recv_errors.remove(&index);
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
