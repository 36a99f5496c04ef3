//! System calls on descriptors that are known by their numbers only: those of the callers' own, and
//! those that the reactor keeps in its table.
//!
//! A number may have been closed meanwhile; then the kernel says so, and no memory is at stake. It
//! may even be another's by then. So nothing here makes a borrowed descriptor of a number, which
//! would promise that it is open; and who asks looks afterwards whose answer it was.

#![expect(
    unsafe_code,
    reason = "rustix takes borrowed descriptors; each block says what the kernel may touch"
)]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use rustix::net::addr::SocketAddrStorage;

/// `getpeername(2)` of whatever a number stands for. `None`: it has no name.
pub(crate) fn peer_addr_of(number: i32) -> Result<Option<SocketAddrAny>, Errno> {
    // SAFETY: `name_with` gives memory for an address and says how much, and the kernel writes
    // within it before the call returns; any number may be asked about.
    name_with(|room, len| unsafe { libc::getpeername(number, room, len) })
}

/// `getsockname(2)` of whatever a number stands for. `None`: it has no name.
pub(crate) fn local_addr_of(number: i32) -> Result<Option<SocketAddrAny>, Errno> {
    // SAFETY: as for `peer_addr_of`.
    name_with(|room, len| unsafe { libc::getsockname(number, room, len) })
}

fn name_with(
    ask: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
) -> Result<Option<SocketAddrAny>, Errno> {
    const ROOM: libc::socklen_t = {
        let bytes = size_of::<SocketAddrStorage>();
        assert!(bytes == 128, "the kernel's room for an address");
        128
    };
    let (mut name, mut len) = (MaybeUninit::<SocketAddrStorage>::zeroed(), ROOM);
    if ask(name.as_mut_ptr().cast(), &raw mut len) != 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    if (len as usize) < size_of::<libc::sa_family_t>() || len > ROOM {
        return Ok(None);
    }
    // SAFETY: all bytes were zeroed, and the kernel has written an address over the first `len`.
    Ok(Some(unsafe { SocketAddrAny::new(name, len) }))
}

/// Returns how many bytes lie in a socket's send queue: sent and not acknowledged yet, or not sent.
pub(crate) fn send_queue_of(descriptor: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one `int` into `bytes` before the call returns.
    result_of(unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Another descriptor for what a number stands for: whether it is open is for the kernel to say.
/// It is not inherited by programs that this one starts.
///
/// # Errors
/// What the kernel says.
pub fn duplicate(number: i32) -> io::Result<OwnedFd> {
    // Standard input, output and error stay whose they are.
    const FIRST: i32 = 3;
    // SAFETY: the call touches no memory, and any number may be asked about.
    let made = result_of(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FIRST) })?;
    // SAFETY: the kernel has just made it for this call, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// An option of a socket (`SOL_SOCKET`) that is a number: whether it is open, and a socket, is for
/// the kernel to say.
pub(crate) fn socket_number(number: i32, name: libc::c_int) -> Option<libc::c_int> {
    let (mut value, mut size) = (0_i32, libc::socklen_t::from(4_u8));
    let (to, room) = (&raw mut value, &raw mut size);
    // SAFETY: the kernel writes four bytes into `value` at most, and a number into `size`, before
    // the call returns; any descriptor may be asked about.
    let result = unsafe { libc::getsockopt(number, libc::SOL_SOCKET, name, to.cast(), room) };
    (result == 0).then_some(value)
}

/// Returns whether a number stands for a connected stream socket that never blocks: whether it is
/// open is for the kernel to say.
pub(crate) fn is_patient_stream(number: i32) -> bool {
    let option = |name| socket_number(number, name);
    // SAFETY: the call touches no memory, and any number may be asked about.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    let is_connected = || {
        // The name is not wanted, so no room is given for it.
        let (mut nothing, mut size) = (libc::sockaddr { sa_family: 0, sa_data: [0; 14] }, 0);
        // SAFETY: the kernel writes no byte of the name, for `size` says so, and a number into
        // `size`, before the call returns; any descriptor may be asked about.
        unsafe { libc::getpeername(number, &raw mut nothing, &raw mut size) == 0 }
    };
    option(libc::SO_TYPE) == Some(libc::SOCK_STREAM)
        && is_connected()
        && flags >= 0
        && flags & libc::O_NONBLOCK != 0
}

/// `recv(2)` on a socket by its number, without waiting: whether it is open is for the kernel to
/// say.
pub(crate) fn recv_by_number(number: i32, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes within `room` only, before the call returns, and any number may be
    // asked about: one that is not open, or no socket, is an error.
    let result =
        unsafe { libc::recv(number, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes up to `bytes_max` bytes off a TCP socket without copying them anywhere, and without
/// waiting (tcp(7): `MSG_TRUNC`).
///
/// # Errors
/// `EFAULT`: it is no TCP socket, and no byte was taken.
pub(crate) fn discard_received(socket: BorrowedFd<'_>, bytes_max: usize) -> Result<usize, Errno> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: TCP copies nothing with this flag. Any other socket would write from the first byte
    // on, and at address 0 no memory of this process can be.
    let result = unsafe { libc::recv(socket.as_raw_fd(), ptr::null_mut(), bytes_max, flags) };
    usize::try_from(result)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// `send(2)` on a socket by its number, without waiting: whether it is open is for the kernel to
/// say.
pub(crate) fn send_by_number(number: i32, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads within `bytes` only, before the call returns, and any number may be
    // asked about: one that is not open, or no socket, is an error.
    let result = unsafe { libc::send(number, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// An operation of `epoll_ctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpollOrder {
    Add = libc::EPOLL_CTL_ADD as isize,
    Modify = libc::EPOLL_CTL_MOD as isize,
    Delete = libc::EPOLL_CTL_DEL as isize,
}

/// The events that epoll reports of a descriptor, and the data that it reports with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EpollChange {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Once for each edge, the peer's end included.
    pub(crate) edges: bool,
    pub(crate) data: u64,
}

/// `epoll_ctl(2)` on a descriptor by its number: whether it is open is for the kernel to say.
pub(crate) fn change_epoll(
    queue: BorrowedFd<'_>,
    order: EpollOrder,
    number: i32,
    change: EpollChange,
) -> io::Result<()> {
    let wanted = [
        (change.read, libc::EPOLLIN),
        (change.write, libc::EPOLLOUT),
        (change.edges, libc::EPOLLET | libc::EPOLLRDHUP),
    ];
    let bits = wanted.iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit);
    let mut event = libc::epoll_event { events: bits.cast_unsigned(), u64: change.data };
    // SAFETY: the queue is open while it is borrowed, the kernel reads `event` before the call
    // returns, and any number may be asked about: one that is not open is an error.
    let result =
        unsafe { libc::epoll_ctl(queue.as_raw_fd(), order as i32, number, &raw mut event) };
    result_of(result).map(drop)
}

/// Returns the result of a call, or the error that it has left.
pub(super) fn result_of(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
