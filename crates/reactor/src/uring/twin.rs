//! Calls that need an ordinary descriptor, on sockets that have none: a twin stands in for a
//! moment.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::socket::State;
use super::{Uring, UringIo};
use crate::sys::{Completion, Key, Sleep};
use crate::{Names, Token};

/// How often the ring is entered for a twin. Once is enough, unless the completion queue had
/// overflowed: then room for the answer comes with the next time.
const TRIES: u32 = 3;

impl Uring {
    /// Has an ordinary descriptor made of a socket of the table, for as long as that is open.
    pub(super) fn install(&mut self, key: Key) {
        self.installed += 1;
        self.socket(key).state.set(State::INSTALLING);
        self.ring.install(key.index, key);
    }

    /// A descriptor that was asked for is here, or is not to be had.
    pub(super) fn installed(&mut self, key: Key, result: io::Result<OwnedFd>) -> Option<Token> {
        let socket = self.live(key)?;
        socket.state.clear(State::INSTALLING);
        match result {
            // The twin must not block the ring's thread.
            Ok(fd) if rustix::io::ioctl_fionbio(&fd, true).is_ok() => socket.fd = Some(fd),
            _ => {
                socket.state.set(State::NO_TWIN);
                self.installed -= 1;
            }
        }
        self.settle(key)
    }

    /// A file is sent. Its connection may be idle for long now, and there may be more of them than
    /// descriptors: so half of what may be installed stays with those that send a file.
    pub(crate) fn file_sent(&mut self, io: UringIo) {
        if self.installed > self.installed_max / 2 && io.key.index < self.table {
            self.uninstall(io.key);
        }
    }

    #[cold]
    fn uninstall(&mut self, key: Key) {
        if self.socket(key).fd.take().is_some() {
            self.installed -= 1;
        }
    }

    /// The names of a socket's two ends. They are kept for as long as it is open, for the next one
    /// who asks.
    ///
    /// # Errors
    /// As [`Uring::with_descriptor`].
    pub(crate) fn names(&mut self, io: UringIo, woken: &mut Vec<Token>) -> io::Result<Names> {
        if let Some(names) = self.names.get(&io.key.index) {
            return Ok(names.clone());
        }
        let names = self.with_descriptor(io, woken, Names::of)?;
        self.keep_names(io, names.clone());
        Ok(names)
    }

    /// Keeps the names of an open socket.
    pub(crate) fn keep_names(&mut self, io: UringIo, names: Names) {
        self.names.insert(io.key.index, names);
    }

    /// Runs `ask` on an ordinary descriptor of a socket: its own, or a twin that is closed
    /// afterwards.
    ///
    /// What else the ring has completed by then is taken in as in any turn.
    ///
    /// - `woken`: gets the tokens of what has moved on.
    ///
    /// # Errors
    /// `Unsupported`: the kernel makes no twins (before Linux 6.8). Else what it says: the process
    /// is out of descriptors.
    pub(crate) fn with_descriptor<T>(
        &mut self,
        io: UringIo,
        woken: &mut Vec<Token>,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(descriptor) = self.fd(io) {
            return ask(descriptor);
        }
        let answer = self.twin(io.key, woken).and_then(|twin| ask(twin.as_fd()));
        if self.reserve.is_none() {
            self.reserve = self.alert.as_fd().try_clone_to_owned().ok();
        }
        answer
    }

    /// Makes a twin, if need be of the number that is held in reserve for this.
    fn twin(&mut self, key: Key, woken: &mut Vec<Token>) -> io::Result<OwnedFd> {
        match self.ask_for_twin(key, woken) {
            Err(error) if is_exhausted(&error) && self.reserve.take().is_some() => {
                self.ask_for_twin(key, woken)
            }
            answer => answer,
        }
    }

    fn ask_for_twin(&mut self, key: Key, woken: &mut Vec<Token>) -> io::Result<OwnedFd> {
        if self.makes_no_twins {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // A number of its own: should the answer be late, it is nobody else's.
        self.twins = self.twins.wrapping_add(1);
        let asked = Key { index: self.twins, generation: 0 };
        self.ring.twin(key.index, asked);
        let mut answer = None;
        let mut completions = mem::take(&mut self.completions);
        for _ in 0..TRIES {
            let entered = self.ring.enter(Sleep::Not);
            self.close_pushed = false;
            self.ring.completions(&mut completions);
            for completion in completions.drain(..) {
                match completion {
                    Completion::Twin { key, result } if key == asked => answer = Some(result),
                    other => woken.extend(self.complete(other)),
                }
            }
            if answer.is_some() || entered.is_err() {
                break;
            }
        }
        self.completions = completions;
        match answer {
            Some(Err(error)) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                self.makes_no_twins = true;
                Err(io::ErrorKind::Unsupported.into())
            }
            Some(twin) => twin,
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Forgets the names of a socket that is no more.
    #[cold]
    pub(super) fn forget_names(&mut self, index: u32) {
        self.names.remove(&index);
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
