//! The reactor: one of two backends behind one set of operations.

mod addrs;
mod listening;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;

use crate::buf::BufPool;
use crate::buf::{Discarded, Unsent};
use crate::epoll::{Epoll, EpollIo};
use crate::io::IoKind;
use crate::sys::EnterWait;
use crate::sys::by_number::send_queue_of;
use crate::uring::Uring;
use crate::{
    BufferAccount, Clock, Interest, Io, ReactorWaker, RecvBuf, SendBuf, Token, descriptor_limit,
};

/// The backend to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoChoice {
    /// `io_uring` where the kernel allows it, else epoll.
    #[default]
    Auto,
    /// `io_uring`; epoll, with a note, if it cannot be set up.
    Uring,
    /// epoll.
    Epoll,
}

impl IoChoice {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Uring, Self::Epoll];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["auto", "uring", "epoll"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Which backend is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// `io_uring`, Linux 6.1 and later.
    Uring,
    /// epoll.
    Epoll,
}

impl BackendKind {
    /// Returns the name that users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

/// Options of a reactor.
#[derive(Debug, Clone)]
pub struct Options {
    /// The backend to try.
    pub io: IoChoice,
    /// Entries of the ring's descriptor table; cut to the descriptor limit.
    pub direct_max: usize,
    /// Receive buffers of 4 KiB per ring: a power of two, 8 to 32,768.
    pub buffers: u16,
    /// Ordinary descriptors that a ring may have in addition to its own table, to send files with.
    /// Past that files are read and sent; and half of them may stay with connections that are idle.
    pub installed_max: usize,
    /// The clock whose origin all workers of one server share.
    pub clock: Clock,
    /// Counts the memory of receive buffers.
    pub account: BufferAccount,
}

/// Entries of a ring's submission queue; its completion queue has eight times as many.
const RING_ENTRIES: u32 = 512;

/// Most bytes discarded at once, under the socket's lock: by 4 MiB, 20 MB cost 1.3 times as much.
const DISCARDED_BYTES_MAX: usize = 64 << 10;

/// A listening socket. Let it go with [`Reactor::unlisten`] and [`Reactor::close_listener`].
#[derive(Debug)]
pub struct Listener(ListenerKind);

#[derive(Debug)]
enum ListenerKind {
    Epoll(EpollIo),
    Uring(u32),
}

/// An accepted connection.
#[derive(Debug)]
pub enum Accepted {
    /// A socket of this reactor.
    Here(Io),
    /// A descriptor that any reactor can take in ([`Reactor::adopt`]).
    Away(OwnedFd),
}

/// The longest sleep of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: take what is there.
    Poll,
    /// Until this time of the clock, in milliseconds.
    Until(u64),
    /// Until something happens.
    Forever,
}

impl Wait {
    /// Returns a wait that ends at this time too; `u64::MAX` is never.
    fn at_most(self, at_ms: u64) -> Self {
        match self {
            Self::Forever if at_ms < u64::MAX => Self::Until(at_ms),
            Self::Until(until_ms) => Self::Until(until_ms.min(at_ms)),
            wait => wait,
        }
    }
}

/// One thread's interface to the kernel.
pub struct Reactor {
    pub(crate) backend: Backend,
    clock: Clock,
}

pub(crate) enum Backend {
    Epoll(Epoll),
    Uring(Box<Uring>),
}

impl Reactor {
    /// Opens a backend. If `io_uring` was wanted and could not be set up, epoll stands in, and the
    /// reason comes with it.
    ///
    /// # Errors
    /// epoll or an eventfd cannot be had: the process is out of descriptors.
    pub fn new(options: &Options) -> io::Result<(Self, Option<io::Error>)> {
        let clock = options.clock.clone();
        let refused = match options.io {
            IoChoice::Epoll => None,
            IoChoice::Auto | IoChoice::Uring => match open_uring(options) {
                Ok(uring) => {
                    let backend = Backend::Uring(Box::new(uring));
                    return Ok((Self { backend, clock }, None));
                }
                Err(error) => Some(error),
            },
        };
        let backend =
            Backend::Epoll(Epoll::new(descriptor_limit(), false, options.account.clone())?);
        Ok((Self { backend, clock }, refused))
    }

    /// One backend for several workers, over epoll: whichever polls hears of all sockets, and any
    /// may use them. Returns a reactor per worker, and what wakes the one that polls.
    ///
    /// # Errors
    /// As [`Reactor::new`].
    pub fn shared(
        options: &Options,
        workers: usize,
    ) -> io::Result<(ReactorWaker, Vec<ReactorSeed>)> {
        let first = Epoll::new(descriptor_limit(), true, BufferAccount::default())?;
        let seed = || ReactorSeed { queue: first.seed(), clock: options.clock.clone() };
        Ok((first.waker.clone(), (0..workers).map(|_| seed()).collect()))
    }

    /// Returns the backend at work.
    pub fn backend(&self) -> BackendKind {
        match self.backend {
            Backend::Epoll(_) => BackendKind::Epoll,
            Backend::Uring(_) => BackendKind::Uring,
        }
    }

    /// Returns the time as of the last turn.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Reads the clock without a turn, for a thread that has slept elsewhere.
    pub fn tick(&mut self) {
        self.clock.tick();
    }

    /// Returns what ends this reactor's sleep, from any thread.
    pub fn waker(&self) -> ReactorWaker {
        match &self.backend {
            Backend::Epoll(epoll) => epoll.waker.clone(),
            Backend::Uring(uring) => uring.waker.clone(),
        }
    }

    /// Returns whether operations of closed sockets or listeners are still under way.
    pub fn has_unfinished(&self) -> bool {
        match &self.backend {
            Backend::Epoll(_) => false,
            Backend::Uring(uring) => uring.has_unfinished(),
        }
    }

    /// Receives bytes; an empty piece is the peer's end.
    #[inline]
    pub fn recv(&mut self, io: &Io, token: Token) -> Poll<io::Result<RecvBuf>> {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.recv(io, token),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.recv(*io, token),
            _ => foreign(),
        }
    }

    /// Receives bytes into a large buffer where one is left, for a body that is known to be large.
    /// None is held while bytes are awaited.
    pub fn recv_large(&mut self, io: &Io, token: Token) -> Poll<io::Result<RecvBuf>> {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.recv_large(io, token),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.recv_large(*io, token),
            _ => foreign(),
        }
    }

    /// Receives bytes of a body that is known to be large behind those of `bytes`, where room is
    /// made for `room` more once some are here: uncopied under epoll; else they come as from
    /// [`Reactor::recv_large`]. So does the peer's end.
    pub fn recv_onto(
        &mut self,
        io: &Io,
        (bytes, room): (&mut Vec<u8>, usize),
        token: Token,
    ) -> Poll<io::Result<Option<RecvBuf>>> {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.recv_onto(io, (bytes, room), token),
            _ => self.recv_large(io, token).map_ok(Some),
        }
    }

    /// Discards up to `bytes_max` bytes, at least 1: uncopied where that is possible. Once it was
    /// asked for and is under way, ask again until it is ready: a receive would not tell how many
    /// bytes are gone.
    pub fn discard(
        &mut self,
        io: &Io,
        bytes_max: usize,
        token: Token,
    ) -> Poll<io::Result<Discarded>> {
        let bytes_max = bytes_max.min(DISCARDED_BYTES_MAX);
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.discard(io, bytes_max, token),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.discard(*io, bytes_max, token),
            _ => foreign(),
        }
    }

    /// Makes a socket receive only when [`Reactor::recv`] asks for it, and hold no buffer while it
    /// does not. Under epoll that is always so.
    pub fn receive_on_demand(&mut self, io: &Io) {
        if let (Backend::Uring(uring), IoKind::Uring(io)) = (&mut self.backend, &io.0) {
            uring.receive_on_demand(*io);
        }
    }

    /// An empty buffer for [`Reactor::send`], or for a whole step of a file that has to be read.
    pub fn outgoing(&mut self, for_step: bool) -> Box<SendBuf> {
        if for_step { self.buf_pool().take_for_step() } else { self.buf_pool().take() }
    }

    /// Gives an unused buffer back.
    pub fn put_back(&mut self, out: Box<SendBuf>) {
        self.buf_pool().put(out);
    }

    fn buf_pool(&mut self) -> &mut BufPool {
        match &mut self.backend {
            Backend::Epoll(epoll) => &mut epoll.buf_pool,
            Backend::Uring(uring) => &mut uring.buf_pool,
        }
    }

    /// Sends all bytes of `out`. The reactor may take `out` over while they are under way: ask
    /// again with whatever is left in it until the send is ready. One send per socket at a time.
    /// What [waits for more](SendBuf::wait_for_more) is ready at once, and stays in `out`.
    pub fn send(
        &mut self,
        io: &Io,
        out: &mut Option<Box<SendBuf>>,
        token: Token,
    ) -> Poll<io::Result<()>> {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.send(io, out, token),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.send(*io, out, token),
            _ => foreign(),
        }
    }

    /// Returns how many bytes of a send are still on this side.
    ///
    /// - `out`: what [`Reactor::send`] has left in it.
    /// - `woken`: as for [`Reactor::with_descriptor`].
    pub fn unsent(&mut self, io: &Io, out: Option<&SendBuf>, woken: &mut Vec<Token>) -> Unsent {
        let queued = self.with_descriptor(io, woken, send_queue_of).unwrap_or(0);
        let sending = match (&self.backend, &io.0) {
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.sending(*io).or(out),
            _ => out,
        };
        let of = |bytes: fn(&SendBuf) -> usize| sending.map_or(0, |out| bytes(out) as u64);
        Unsent { here: of(|out| out.len() - out.at), queued, total: of(SendBuf::len) }
    }

    /// Sends up to `len` bytes of `file` from `offset`, and moves `offset` on. Zero sent bytes mean
    /// that the file is shorter.
    ///
    /// # Errors
    /// `Unsupported`: this backend cannot for this socket, or the kernel not from this file; read
    /// the file and send its bytes.
    pub fn sendfile(
        &mut self,
        io: &Io,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        len: usize,
        token: Token,
    ) -> Poll<io::Result<usize>> {
        let sent = match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => {
                epoll.sendfile(io, file, offset, len, token)
            }
            (Backend::Uring(uring), IoKind::Uring(io)) => {
                uring.sendfile(*io, file, offset, len, token)
            }
            _ => foreign(),
        };
        sent.map_err(|error| match Errno::from_io_error(&error) {
            // Some file systems have none (sendfile(2): fall back to read and write).
            Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                io::ErrorKind::Unsupported.into()
            }
            _ => error,
        })
    }

    /// Takes note that the last byte of a file was sent: a descriptor that a ring has made for that
    /// goes, at once if there are many, else unless the next file is sent soon.
    pub fn file_sent(&mut self, io: &Io) {
        if let (Backend::Uring(uring), IoKind::Uring(io)) = (&mut self.backend, &io.0) {
            uring.file_sent(*io);
        }
    }

    /// Waits until something can be read or written, for callers who do that themselves: not on a
    /// socket that [`Reactor::recv`] has been asked for, which takes the bytes first.
    pub fn ready(&mut self, io: &Io, interest: Interest, token: Token) -> Poll<()> {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.ready(io, interest, token),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.ready(*io, interest, token),
            _ => foreign(),
        }
    }

    /// Takes note that readiness was used up, for callers of [`Reactor::ready`] on a descriptor
    /// that no operation here does that for: the next call waits for the next edge.
    pub fn used_up(&mut self, io: &Io, interest: Interest) {
        if let (Backend::Epoll(epoll), IoKind::Epoll(io)) = (&self.backend, &io.0) {
            epoll.used_up(io, interest);
        }
    }

    /// Returns whether an outgoing connection that became writable was made.
    ///
    /// # Errors
    /// Why it was not.
    pub fn connected(&self, io: &Io) -> io::Result<()> {
        match self.fd(io) {
            Some(fd) => Ok(rustix::net::sockopt::socket_error(fd)??),
            None => Ok(()),
        }
    }

    /// Returns the socket's ordinary descriptor, if it has one.
    pub fn fd<'a>(&'a self, io: &'a Io) -> Option<BorrowedFd<'a>> {
        match (&self.backend, &io.0) {
            (_, IoKind::Epoll(io)) => Some(io.as_fd()),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.fd(*io),
            (Backend::Epoll(_), IoKind::Uring(_)) | (_, IoKind::Gone) => foreign(),
        }
    }

    /// Tells the peer that no more bytes will come. What was sent before still arrives, and the
    /// peer's bytes can still be received.
    pub fn shutdown_write(&mut self, io: &Io) {
        match (&mut self.backend, &io.0) {
            (Backend::Epoll(_), IoKind::Epoll(io)) => {
                // A peer that is gone already needs no telling.
                let _ = rustix::net::shutdown(io.fd(), rustix::net::Shutdown::Write);
            }
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.shutdown_write(*io),
            _ => foreign(),
        }
    }

    /// Closes a socket. What is under way on it ends, and wakes no task.
    pub fn close(&mut self, io: Io) {
        match (&mut self.backend, io.0) {
            (Backend::Epoll(epoll), IoKind::Epoll(io)) => epoll.close(io),
            (Backend::Uring(uring), IoKind::Uring(io)) => uring.close(io),
            _ => foreign(),
        }
    }

    /// Hands all operations to the kernel, sleeps as `wait` says, and appends to `woken` the tokens
    /// whose operations have moved on.
    ///
    /// # Errors
    /// The kernel refuses to wait: nothing can be served any more.
    pub fn turn(&mut self, wait: Wait, woken: &mut Vec<Token>) -> io::Result<()> {
        let wait = match &mut self.backend {
            Backend::Uring(uring) if uring.has_idle_fds() => {
                wait.at_most(uring.close_idle_fds(self.clock.now_ms()))
            }
            _ => wait,
        };
        let timeout = match wait {
            Wait::Poll => Some(Duration::ZERO),
            Wait::Until(at_ms) => {
                Some(Duration::from_millis(at_ms.saturating_sub(self.clock.read_ms())))
            }
            Wait::Forever => None,
        };
        let result = match &mut self.backend {
            Backend::Epoll(epoll) => epoll.turn(
                timeout.map(|timeout| rustix::event::Timespec {
                    tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: timeout.subsec_nanos().into(),
                }),
                woken,
            ),
            Backend::Uring(uring) => {
                let sleep = match timeout {
                    Some(Duration::ZERO) => EnterWait::Not,
                    Some(timeout) => EnterWait::For(timeout.into()),
                    None => EnterWait::Forever,
                };
                uring.turn(sleep, woken)
            }
        };
        self.clock.tick();
        result
    }
}

/// The part of a shared reactor that a worker thread makes its own of.
#[derive(Clone)]
pub struct ReactorSeed {
    queue: crate::epoll::EpollSeed,
    clock: Clock,
}

impl ReactorSeed {
    /// Returns the reactor of the thread that calls this.
    ///
    /// - `account`: counts the memory of its receive buffers.
    pub fn grow(self, account: BufferAccount) -> Reactor {
        let backend = Backend::Epoll(Epoll::from_seed(self.queue, account));
        Reactor { backend, clock: self.clock }
    }
}

/// Returns whether `io_uring` can be used here, found by trying.
///
/// # Errors
/// The step that failed and why, in words.
pub fn probe_uring() -> io::Result<()> {
    // In a thread of its own: the end of a ring interrupts the thread that made it.
    let open = || Uring::new(8, 8, 8, 0, BufferAccount::default()).map(drop);
    let probe = std::thread::Builder::new().spawn(open)?;
    probe.join().unwrap_or_else(|_| Err(io::Error::other("the attempt panicked")))
}

fn open_uring(options: &Options) -> io::Result<Uring> {
    let table = options.direct_max.min(descriptor_limit());
    let table = u32::try_from(table).unwrap_or(u32::MAX);
    let account = options.account.clone();
    Uring::new(RING_ENTRIES, table, options.buffers, options.installed_max, account)
}

#[cold]
pub(crate) fn foreign() -> ! {
    panic!("a socket was used after it was taken, or with a reactor that it does not belong to")
}
