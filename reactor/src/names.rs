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
use crate::sys::by_number::{local_name_of, peer_name_of};
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
        Self::said(getpeername(socket), getsockname(socket)?)
    }

    /// Asks whatever a number stands for. It may be another socket than was meant: look afterwards
    /// whether that one is still open.
    fn of_number(number: i32) -> io::Result<Self> {
        let local = local_name_of(number)?.ok_or(Errno::NOTSOCK)?;
        Self::said(peer_name_of(number), local)
    }

    fn said(peer: Result<Option<SocketAddrAny>, Errno>, local: SocketAddrAny) -> io::Result<Self> {
        let peer = match peer {
            Ok(Some(address)) => Some(endpoint_of(address)?),
            Ok(None) => Some(Endpoint::Unix(PathBuf::new())),
            Err(Errno::NOTCONN) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { peer, local: endpoint_of(local)? })
    }
}

/// Names that were asked for or said, by the number and the generation of their socket, for as long
/// as that is open.
///
/// Workers that share their connections share these. What nobody asks about is not in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownNames(Arc<Mutex<HashMap<(u32, u32), Names>>>);

impl KnownNames {
    pub(crate) fn of(&self, index: u32, generation: u32) -> Option<Names> {
        self.locked().get(&(index, generation)).cloned()
    }

    pub(crate) fn keep(&self, index: u32, generation: u32, names: Names) {
        self.locked().insert((index, generation), names);
    }

    pub(crate) fn forget(&self, index: u32, generation: u32) {
        self.locked().remove(&(index, generation));
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<(u32, u32), Names>> {
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
            (Door::Epoll(_), IoKind::Uring(_)) | (_, IoKind::Gone) => foreign(),
        }
    }

    /// The names of a socket's two ends. The kernel is asked once; they are kept for as long as the
    /// socket is open.
    ///
    /// Another worker of a shared reactor may close the socket meanwhile. The kernel is then asked
    /// by a number that may be another socket's, which does no harm, and the answer is thrown away:
    /// a socket's generation ends before its number is free.
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
                let asked = Names::of_number(index.cast_signed());
                // Not in the table any more: what was asked may have been its successor.
                epoll.known_names(index, generation)?;
                let names = asked?;
                epoll.keep_names(index, generation, names.clone())?;
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
                let (index, generation) = io.id().parts();
                let kept = epoll.keep_names(index, generation, names);
                debug_assert!(kept.is_ok(), "it is open while it is borrowed");
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
