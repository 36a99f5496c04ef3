//! The addresses of a connection's two ends.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::{SocketAddrAny, getpeername, getsockname};

use crate::listen::Endpoint;
use crate::sys::by_number::{local_addr_of, peer_addr_of};

/// The addresses of a connection's two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketAddrs {
    /// Where the peer is; a Unix socket's peer mostly has no name, which is an empty path. `None`
    /// if it has reset the connection.
    pub peer: Option<Endpoint>,
    /// The address of this end.
    pub local: Endpoint,
}

impl SocketAddrs {
    /// Asks a socket.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        Self::said(getpeername(socket), getsockname(socket)?)
    }

    /// Asks whatever a number stands for. It may be another socket than was meant: look afterwards
    /// whether that one is still open.
    pub(crate) fn of_fd_number(number: i32) -> io::Result<Self> {
        let local = local_addr_of(number)?.ok_or(Errno::NOTSOCK)?;
        Self::said(peer_addr_of(number), local)
    }

    fn said(peer: Result<Option<SocketAddrAny>, Errno>, local: SocketAddrAny) -> io::Result<Self> {
        let peer = match peer {
            Ok(Some(address)) => Some(Endpoint::of(address)?),
            Ok(None) => Some(Endpoint::Unix(PathBuf::new())),
            Err(Errno::NOTCONN) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { peer, local: Endpoint::of(local)? })
    }
}

/// Names that were asked for or said, by the number and the generation of their socket, for as long
/// as that is open.
///
/// Workers that share their connections share these. Sockets that were never asked about are not in
/// it.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownAddrs(Arc<Mutex<HashMap<(u32, u32), SocketAddrs>>>);

impl KnownAddrs {
    pub(crate) fn of(&self, index: u32, generation: u32) -> Option<SocketAddrs> {
        self.locked().get(&(index, generation)).cloned()
    }

    pub(crate) fn keep(&self, index: u32, generation: u32, addrs: SocketAddrs) {
        self.locked().insert((index, generation), addrs);
    }

    pub(crate) fn forget(&self, index: u32, generation: u32) {
        self.locked().remove(&(index, generation));
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<(u32, u32), SocketAddrs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
