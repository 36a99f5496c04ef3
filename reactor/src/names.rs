//! What a connection's two ends are called.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

use crate::io::IoKind;
use crate::reactor::{Door, foreign};
use crate::sys::with_number;
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

    /// The names of a socket's two ends.
    ///
    /// # Errors
    /// As [`Reactor::with_descriptor`]. `NotFound`: the socket is closed.
    pub fn names(&mut self, id: IoId, woken: &mut Vec<Token>) -> io::Result<Names> {
        let (index, generation) = id.parts();
        match &mut self.door {
            Door::Epoll(epoll) => {
                let descriptor = index.cast_signed();
                if !epoll.is_open(descriptor, generation) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                with_number(descriptor, Names::of)
            }
            Door::Uring(uring) => {
                let io = uring.find(index, generation).ok_or(io::ErrorKind::NotFound)?;
                uring.names(io, woken)
            }
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
