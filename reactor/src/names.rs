//! What a connection's two ends are called.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

use crate::io::IoKind;
use crate::reactor::{Door, foreign};
use crate::sys::by_number::with_number;
use crate::{Endpoint, Io, IoId, Reactor, Token};

/// The addresses of a connection's two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Where the peer is; a Unix socket's peer mostly has no name, which is an empty path. `None`
    /// if it has reset the connection.
    pub peer: Option<Endpoint>,
    /// The address of this end.
    pub local: Endpoint,
}

impl Names {
    /// Asks a socket.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let peer = match getpeername(socket) {
            Ok(Some(address)) => Some(endpoint_of(address)?),
            Ok(None) => Some(Endpoint::Unix(PathBuf::new())),
            Err(Errno::NOTCONN) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { peer, local: endpoint_of(getsockname(socket)?)? })
    }
}

/// Names that were asked for or said, by the number of their socket, for as long as that is open.
///
/// Workers that share their connections share these. What nobody asks about is not in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownNames(Arc<Mutex<HashMap<u32, Names>>>);

impl KnownNames {
    pub(crate) fn of(&self, index: u32) -> Option<Names> {
        self.locked().get(&index).cloned()
    }

    pub(crate) fn keep(&self, index: u32, names: Names) {
        self.locked().insert(index, names);
    }

    pub(crate) fn forget(&self, index: u32) {
        self.locked().remove(&index);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<u32, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
        match (&mut self.door, &io.0) {
            (_, IoKind::Epoll(io)) => ask(io.as_fd()),
            (Door::Uring(uring), IoKind::Uring(io)) => uring.with_descriptor(*io, woken, ask),
            (Door::Epoll(_), IoKind::Uring(_)) => foreign(),
        }
    }

    /// The names of a socket's two ends. The kernel is asked once; they are kept for as long as the
    /// socket is open.
    ///
    /// # Errors
    /// As [`Reactor::with_descriptor`]. `NotFound`: the socket is closed.
    pub fn names(&mut self, id: IoId, woken: &mut Vec<Token>) -> io::Result<Names> {
        let (index, generation) = id.parts();
        match &mut self.door {
            Door::Epoll(epoll) => {
                if let Some(names) = epoll.known_names(index, generation)? {
                    return Ok(names);
                }
                let names = with_number(index.cast_signed(), Names::of)?;
                epoll.keep_names(index, names.clone());
                Ok(names)
            }
            Door::Uring(uring) => {
                let io = uring.find(index, generation).ok_or(io::ErrorKind::NotFound)?;
                uring.names(io, woken)
            }
        }
    }

    /// Has a socket's two ends called otherwise from now on: as a proxy says that they are.
    pub fn rename(&mut self, io: &Io, names: Names) {
        match (&mut self.door, &io.0) {
            (Door::Epoll(epoll), IoKind::Epoll(_)) => {
                let (index, _) = io.id().parts();
                epoll.keep_names(index, names);
            }
            (Door::Uring(uring), IoKind::Uring(io)) => uring.keep_names(*io, names),
            _ => foreign(),
        }
    }
}

fn endpoint_of(address: SocketAddrAny) -> io::Result<Endpoint> {
    if address.address_family() == AddressFamily::UNIX {
        let address = SocketAddrUnix::try_from(address)?;
        let path = address.path_bytes().unwrap_or_default();
        return Ok(Endpoint::Unix(PathBuf::from(OsStr::from_bytes(path))));
    }
    Ok(Endpoint::Tcp(SocketAddr::try_from(address)?))
}
