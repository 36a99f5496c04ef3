//! Socket options, a signal mask and a call to the allocator that rustix does not name.

#![expect(unsafe_code, reason = "rustix has no such calls; each block says what the kernel reads")]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::by_number::{result_of, socket_number};

/// Sets `TCP_DEFER_ACCEPT` on a TCP socket that listens.
pub(crate) fn set_defer_accept(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(seconds).unwrap_or(libc::c_int::MAX);
    set_number(socket, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, value)
}

/// Sets `TCP_NOTSENT_LOWAT`: the bytes beyond those under way that a TCP socket takes to be sent.
pub(crate) fn set_notsent_lowat(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set_number(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, value)
}

/// `SO_BINDTOIFINDEX` (Linux 5.0), which libc does not name.
const SO_BINDTOIFINDEX: libc::c_int = 62;
/// The number of an interface that no machine has.
const NO_INTERFACE: libc::c_int = libc::c_int::MAX;

/// Binds a socket to an interface that does not exist: no packet comes from there, so nobody is
/// taken for this socket's peer any more who is not already.
pub(crate) fn bind_to_no_interface(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_number(socket, libc::SOL_SOCKET, SO_BINDTOIFINDEX, NO_INTERFACE)
}

/// Returns whether that was done.
pub(crate) fn is_bound_to_no_interface(socket: BorrowedFd<'_>) -> bool {
    socket_number(socket.as_raw_fd(), SO_BINDTOIFINDEX) == Some(NO_INTERFACE)
}

/// Binds a socket to an interface, by its number: packets of others do not reach it.
pub(crate) fn bind_to_interface(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let index = libc::c_int::try_from(index).unwrap_or(NO_INTERFACE);
    set_number(socket, libc::SOL_SOCKET, SO_BINDTOIFINDEX, index)
}

/// Makes the kernel give all new connections of a `SO_REUSEPORT` group to the socket that was its
/// first, by a classic BPF program of one step.
pub(crate) fn choose_first_of_group(socket: BorrowedFd<'_>) -> io::Result<()> {
    const RETURN_CONSTANT: u16 = 0x06; // BPF_RET | BPF_K
    let mut steps = [libc::sock_filter { code: RETURN_CONSTANT, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: steps.as_mut_ptr() };
    let len = libc::socklen_t::try_from(mem::size_of_val(&program)).expect("it is small");
    let name = libc::SO_ATTACH_REUSEPORT_CBPF;
    // SAFETY: the descriptor is open while it is borrowed; the kernel reads `len` bytes of
    // `program`, which are all of it, and the one step that it names, and copies them before the
    // call returns.
    let result = unsafe {
        let value = (&raw const program).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value, len)
    };
    result_of(result).map(drop)
}

/// Sets `IP_BIND_ADDRESS_NO_PORT`: binding to an address leaves the port to `connect`.
pub(crate) fn bind_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

fn set_number(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let len = libc::socklen_t::try_from(mem::size_of_val(&value)).expect("an int is small");
    // SAFETY: the descriptor is open while it is borrowed, and the kernel reads `len` bytes of
    // `value`, which are all of it, before the call returns.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len)
    };
    result_of(result).map(drop)
}

/// Blocks SIGXFSZ in the running thread: a write past `RLIMIT_FSIZE` only fails with EFBIG. The
/// kernel sends that signal to the thread that writes, so no other thread has to block it.
pub fn block_file_size_signal() {
    let mut signals = mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call writes the whole set, and nothing else.
    unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    // SAFETY: the set was just initialized; the signal is one that exists.
    unsafe { libc::sigaddset(signals.as_mut_ptr(), libc::SIGXFSZ) };
    // SAFETY: the set is initialized and outlives the call; the mask so far is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut()) };
}

/// Gives the free pages of the heap back to the kernel. It takes some 0.1 ms for each megabyte, in
/// which threads that allocate may wait. Only glibc's allocator keeps so many that it has to be
/// called.
pub fn trim_heap() {
    // SAFETY: it takes the allocator's own locks, and touches free memory only.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
