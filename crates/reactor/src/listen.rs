//! Sockets before they carry bytes: listening ones, and outgoing ones that connect.

mod bind_options;
mod busy;
mod closing;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to,
    connect, getsockname, listen, socket_with, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use bind_options::{abstract_name, unix_address};

use crate::sys::by_number::local_addr_of;
use crate::sys::options::{bind_without_port, set_defer_accept, set_notsent_lowat};

pub use crate::sys::by_number::duplicate;
pub use bind_options::BindOptions;
pub use closing::{gather_connections, refuse_connections, stop_deferring, take_queue};

/// An address to listen on or to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An IPv4 or IPv6 address and port.
    Tcp(SocketAddr),
    /// A Unix stream socket in the file system, or an abstract one: `@name`.
    Unix(PathBuf),
    /// A listening stream socket that this process was started with, by its number. It can only be
    /// listened on.
    Inherited(RawFd),
}

impl Endpoint {
    /// Returns the endpoint; for an inherited socket the address that it is bound to, if it has
    /// one.
    pub fn resolved(&self) -> Self {
        let Self::Inherited(number) = self else { return self.clone() };
        let name = local_addr_of(*number).ok().flatten().and_then(|name| Self::of(name).ok());
        let is_named =
            |name: &Self| !matches!(name, Self::Unix(path) if path.as_os_str().is_empty());
        name.filter(is_named).unwrap_or_else(|| self.clone())
    }

    /// Returns what an address of the kernel's names. A Unix socket without a name has an empty
    /// path.
    pub(crate) fn of(address: SocketAddrAny) -> io::Result<Self> {
        if address.address_family() == AddressFamily::UNIX {
            let address = SocketAddrUnix::try_from(address)?;
            if let Some(name) = address.abstract_name().filter(|name| !name.is_empty()) {
                let path = [b"@", name].concat();
                return Ok(Self::Unix(OsStr::from_bytes(&path).into()));
            }
            let path = address.path_bytes().unwrap_or_default();
            return Ok(Self::Unix(OsStr::from_bytes(path).into()));
        }
        Ok(Self::Tcp(SocketAddr::try_from(address)?))
    }
}

impl Endpoint {
    /// Returns the file of a Unix socket; an abstract one has none.
    pub fn socket_file(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(&**path).filter(|path| abstract_name(path).is_none()),
            _ => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(number) => write!(f, "fd:{number}"),
        }
    }
}

/// Opens listening sockets on one endpoint, `count` of them: TCP sockets share the port by
/// `SO_REUSEPORT` and the kernel spreads connections over them; a Unix endpoint and an inherited
/// one have one socket, however many were asked for. Returns them with the endpoint in fact bound
/// (port 0 picks one).
///
/// - `backlog`: connections that may wait in each; the kernel cuts it to `net.core.somaxconn`.
///
/// A TCP port that is taken is tried for up to two seconds if its holder is just going: a
/// connection to it is refused, or does not stay open.
///
/// # Errors
/// What the kernel says; `AddrInUse` also where another server shares the port by `SO_REUSEPORT`.
pub fn bind(
    endpoint: &Endpoint,
    count: usize,
    backlog: u32,
) -> io::Result<(Vec<OwnedFd>, Endpoint)> {
    bind_with(endpoint, count, &BindOptions::of_backlog(backlog))
}

/// Does the same with options of the listener's own. An inherited socket was bound with its own.
///
/// # Errors
/// As [`bind`]; `ENODEV` where the machine has no such interface.
pub fn bind_with(
    endpoint: &Endpoint,
    count: usize,
    options: &BindOptions,
) -> io::Result<(Vec<OwnedFd>, Endpoint)> {
    let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
    match endpoint {
        Endpoint::Unix(path) => {
            let socket = bind_unix(path)?;
            if let Some(file) = endpoint.socket_file() {
                options.own_file(file).inspect_err(|_| _ = std::fs::remove_file(file))?;
            }
            listen(&socket, backlog)?;
            Ok((vec![socket], endpoint.clone()))
        }
        Endpoint::Tcp(address) => bind_tcp(*address, count, options),
        Endpoint::Inherited(number) => Ok((vec![inherited(*number)?], endpoint.clone())),
    }
}

/// A descriptor of our own for a socket that listens already. The number stays open, for whoever
/// else knows it.
fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    let socket = duplicate(number)?;
    let is_ours = sockopt::socket_type(&socket)? == SocketType::STREAM
        && sockopt::socket_acceptconn(&socket)?;
    if !is_ours {
        let found = "it is a socket, but none that listens for streams";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, found));
    }
    ioctl_fionbio(&socket, true)?;
    if sockopt::socket_domain(&socket)? != AddressFamily::UNIX {
        sockopt::set_tcp_nodelay(&socket, true)?;
    }
    Ok(socket)
}

/// How long the kernel keeps a connection back that brings no bytes, in seconds: until the first
/// retransmission of its handshake.
const DEFER_SECONDS: u32 = 1;

/// Makes the kernel keep connections back until their first bytes are here, for a second at most,
/// so that a worker is woken once for the two. It saves 40 % of the CPU time of a connection that
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

/// Options that a listening TCP socket hands down to its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketOptions {
    /// Bytes that the kernel may hold received for a connection (`SO_RCVBUF`); 0: as it sees fit.
    pub recv_bytes: usize,
    /// Bytes that the kernel may hold to be sent on a connection (`SO_SNDBUF`); 0: as it sees fit.
    pub send_bytes: usize,
    /// Bytes that the kernel may hold which are not under way yet (`TCP_NOTSENT_LOWAT`); 0: as many
    /// as the send buffer takes.
    pub notsent_lowat: usize,
    /// What routers on the way are asked for.
    pub preference: TrafficClass,
}

/// The DSCP class of sent packets (RFC 2474). Many routers ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrafficClass {
    /// Nothing.
    #[default]
    None,
    /// To be quick: AF21, low-latency data (RFC 4594 §4.7).
    Latency,
    /// To carry much: AF11, high-throughput data (RFC 4594 §4.8).
    Throughput,
}

impl TrafficClass {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::None, Self::Latency, Self::Throughput];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["none", "latency", "throughput"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the byte in each packet's head: the code point, and two bits that are the kernel's.
    fn class(self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::Latency => Some(18 << 2),
            Self::Throughput => Some(10 << 2),
        }
    }
}

/// Sets options of a listening socket, which the connections that it accepts inherit. A Unix
/// socket stays as it is, for its connections would not.
///
/// Returns what the kernel would not grant, for the user.
///
/// # Errors
/// What the kernel says.
pub fn set_options(listening: &OwnedFd, options: &SocketOptions) -> io::Result<Vec<String>> {
    let family = sockopt::socket_domain(listening)?;
    let mut refused = Vec::new();
    if family == AddressFamily::UNIX {
        return Ok(refused);
    }
    // What is asked for is doubled by the kernel, for its own bookkeeping, and told so.
    if options.recv_bytes > 0 {
        sockopt::set_socket_recv_buffer_size(listening, options.recv_bytes)?;
        let granted = sockopt::socket_recv_buffer_size(listening)? / 2;
        refused.extend(shortfall("receive", "rmem_max", options.recv_bytes, granted));
    }
    if options.send_bytes > 0 {
        sockopt::set_socket_send_buffer_size(listening, options.send_bytes)?;
        let granted = sockopt::socket_send_buffer_size(listening)? / 2;
        refused.extend(shortfall("send", "wmem_max", options.send_bytes, granted));
    }
    if options.notsent_lowat > 0 {
        set_notsent_lowat(listening.as_fd(), options.notsent_lowat)?;
    }
    if let Some(class) = options.preference.class() {
        if family == AddressFamily::INET6 {
            sockopt::set_ipv6_tclass(listening, u32::from(class))?;
        } else {
            sockopt::set_ip_tos(listening, class)?;
        }
    }
    Ok(refused)
}

fn shortfall(which: &str, sysctl: &str, wanted: usize, granted: usize) -> Option<String> {
    (granted < wanted).then(|| {
        format!(
            "the kernel grants {granted} bytes for {which} buffers, not {wanted}; for more: \
             sysctl -w net.core.{sysctl}={wanted}"
        )
    })
}

/// How often a free port is looked for, when others take it in between.
const FREE_PORT_TRIES: u32 = 16;

fn bind_tcp(
    address: SocketAddr,
    count: usize,
    options: &BindOptions,
) -> io::Result<(Vec<OwnedFd>, Endpoint)> {
    let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
    // Sockets with SO_REUSEPORT would silently share a port with another server of the same user.
    // So the first one listens without it, which is refused there and keeps others away from then
    // on; only then is it opened to those that follow.
    let first = busy::take(address, || bind_alone(address, options))?;
    let address = SocketAddr::try_from(getsockname(&first)?)?;
    sockopt::set_socket_reuseport(&first, true)?;
    let mut sockets = vec![first];
    for _ in 1..count {
        let socket = tcp_socket(address)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        options.prepare(&socket, address.is_ipv6())?;
        bind_to(&socket, &address)?;
        listen(&socket, backlog)?;
        sockets.push(socket);
    }
    Ok((sockets, Endpoint::Tcp(address)))
}

fn bind_alone(address: SocketAddr, options: &BindOptions) -> Result<OwnedFd, Errno> {
    let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
    let mut tries = if address.port() == 0 { FREE_PORT_TRIES } else { 1 };
    loop {
        let socket = tcp_socket(address)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        options.prepare(&socket, address.is_ipv6())?;
        // Two sockets may be bound to a port until one of them listens.
        match bind_to(&socket, &address).and_then(|()| listen(&socket, backlog)) {
            Ok(()) => return Ok(socket),
            Err(error) => {
                tries -= 1;
                if tries == 0 || error != Errno::ADDRINUSE {
                    return Err(error);
                }
            }
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<OwnedFd> {
    let address = unix_address(path)?;
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

/// Returns whether a socket file was left behind by a process that is gone: no process answers
/// there.
fn is_stale_socket(path: &Path, address: &SocketAddrUnix) -> bool {
    let is_socket = rustix::fs::lstat(path)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    is_socket
        && unix_socket().is_ok_and(|probe| connect(&probe, address) == Err(Errno::CONNREFUSED))
}

fn tcp_socket(address: SocketAddr) -> Result<OwnedFd, Errno> {
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

/// Options of an outgoing connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outbound {
    /// Where it comes from; with port 0 the kernel picks one that is free for this peer. `None`:
    /// the kernel chooses the address too.
    pub source: Option<SocketAddr>,
    /// Bytes that the kernel may hold received (`SO_RCVBUF`), which bounds what the peer can send
    /// ahead; 0: as it sees fit. A Unix socket stays as it is.
    pub recv_bytes: usize,
}

/// Opens a socket and starts connecting it.
///
/// # Errors
/// What the kernel says at once; what it says later is read when the socket becomes writable.
pub fn connect_socket(to: &Endpoint, outbound: &Outbound) -> io::Result<OwnedFd> {
    let (socket, address) = match to {
        Endpoint::Tcp(address) => (tcp_socket(*address)?, SocketAddrAny::from(*address)),
        Endpoint::Unix(path) => (unix_socket()?, SocketAddrAny::from(unix_address(path)?)),
        Endpoint::Inherited(_) => return Err(io::ErrorKind::InvalidInput.into()),
    };
    if outbound.recv_bytes > 0 && matches!(to, Endpoint::Tcp(_)) {
        sockopt::set_socket_recv_buffer_size(&socket, outbound.recv_bytes)?;
    }
    if let Some(source) = outbound.source {
        if source.port() == 0 {
            // Else a port would be taken before the peer is known, and for all peers at once.
            bind_without_port(socket.as_fd())?;
        }
        bind_to(&socket, &source)?;
    }
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Returns the lowest number that no descriptor of this process has; `None` if all are taken. As
/// the kernel gives the lowest, it says how many are in use, whoever has opened them.
///
/// - `any`: any open descriptor.
pub fn lowest_free_descriptor(any: &impl AsFd) -> Option<usize> {
    let probe = any.as_fd().try_clone_to_owned().ok()?;
    usize::try_from(probe.as_raw_fd()).ok()
}

/// Returns how many descriptors this process may hold: raises the soft limit to the hard one first.
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
