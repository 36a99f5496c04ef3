//! The epoll backend: edges in, completions out.
//!
//! A descriptor is registered once, for both directions, at the first operation that would block: a
//! connection whose request has already arrived and that is closed after the answer never meets
//! epoll. After that nothing is armed again; readiness lasts until a call falls short.

mod driven;
mod receiving;

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, accept_with, recv, send, sendmsg,
};

use crate::buf::{BufPool, PARTS_MAX, RecvBuf, SCRATCH_BYTES, Scratch, SendBuf, SendForm};
use crate::large_bufs::LargeBufs;
use crate::listener_poll::has_pending;
use crate::memory_account::{BufferAccount, FixedBuffers};
use crate::readiness::{END, HAS_ADDRS, IN, OUT, REGISTERED, Readiness, ReadinessTable};
use crate::socket_addrs::KnownAddrs;
use crate::watched::Watched;
use crate::{Interest, ReactorWaker, SocketAddrs, Token};

/// Events taken from the kernel per turn. Shared workers depend on a bound: what one takes, another
/// has to fetch.
const EVENTS: usize = 64;
const WAKER: u64 = u64::MAX;

/// An epoll descriptor with the readiness of everything registered in it.
pub(crate) struct Epoll {
    queue: Arc<OwnedFd>,
    table: Arc<ReadinessTable>,
    pub(crate) waker: ReactorWaker,
    /// Several workers poll this queue and run its tasks.
    shared: bool,
    events: Box<[MaybeUninit<epoll::Event>; EVENTS]>,
    scratch: Scratch,
    _fixed: FixedBuffers,
    pub(crate) large_bufs: LargeBufs,
    pub(crate) buf_pool: BufPool,
    pub(crate) watched: Watched,
    addrs: KnownAddrs,
}

/// A hold on an epoll queue, on its way to the thread that will poll it.
#[derive(Clone)]
pub(crate) struct EpollSeed {
    queue: Arc<OwnedFd>,
    table: Arc<ReadinessTable>,
    waker: ReactorWaker,
    shared: bool,
    addrs: KnownAddrs,
}

/// A socket under epoll.
#[derive(Debug)]
pub(crate) struct EpollIo {
    fd: OwnedFd,
    generation: u32,
}

impl EpollIo {
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Descriptor and generation, which name a socket of this reactor for good.
    pub(crate) fn parts(&self) -> (i32, u32) {
        (self.fd.as_raw_fd(), self.generation)
    }

    fn index(&self) -> usize {
        usize::try_from(self.fd.as_raw_fd()).expect("an open descriptor is not negative")
    }
}

impl Epoll {
    pub(crate) fn new(
        descriptors_max: usize,
        shared: bool,
        account: BufferAccount,
    ) -> io::Result<Self> {
        let waker = ReactorWaker::new()?;
        let queue = Arc::new(open_queue(&waker)?);
        let table = Arc::new(ReadinessTable::new(descriptors_max));
        let addrs = KnownAddrs::default();
        Ok(Self::from_seed(EpollSeed { queue, table, waker, shared, addrs }, account))
    }

    /// Returns what another thread needs to poll the same queue.
    pub(crate) fn seed(&self) -> EpollSeed {
        let (queue, table) = (self.queue.clone(), self.table.clone());
        let (waker, addrs) = (self.waker.clone(), self.addrs.clone());
        EpollSeed { queue, table, waker, shared: self.shared, addrs }
    }

    pub(crate) fn from_seed(seed: EpollSeed, account: BufferAccount) -> Self {
        let EpollSeed { queue, table, waker, shared, addrs } = seed;
        Self {
            queue,
            table,
            waker,
            shared,
            events: Box::new([MaybeUninit::uninit(); EVENTS]),
            scratch: Scratch::default(),
            _fixed: FixedBuffers::new(&account, SCRATCH_BYTES),
            large_bufs: LargeBufs::new(account),
            buf_pool: BufPool::default(),
            watched: Watched::default(),
            addrs,
        }
    }

    /// Takes a descriptor in; it must not block.
    pub(crate) fn adopt(&mut self, fd: OwnedFd) -> io::Result<EpollIo> {
        let mut io = EpollIo { fd, generation: 0 };
        // The descriptor that was watched under this number has been closed.
        self.watched.forget(io.fd.as_raw_fd().cast_unsigned());
        // A descriptor past the table can only come from a limit raised after the start.
        let readiness = self.table.get(io.index()).ok_or(Errno::MFILE)?;
        io.generation = readiness.open();
        Ok(io)
    }

    pub(crate) fn accept(&self, listener: &EpollIo, token: Token) -> Poll<io::Result<OwnedFd>> {
        self.attempt(listener, IN, token, || {
            accept_with(&listener.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        })
    }

    /// Inlined as far as the wait for an edge goes: each request asks once in vain.
    #[inline]
    pub(crate) fn recv(&mut self, io: &EpollIo, token: Token) -> Poll<io::Result<RecvBuf>> {
        let readiness = self.readiness(io);
        if !readiness.has(IN) && self.must_wait(io, readiness, IN, token)? {
            return Poll::Pending;
        }
        self.recv_ready(io, token)
    }

    #[inline(never)]
    fn recv_ready(&mut self, io: &EpollIo, token: Token) -> Poll<io::Result<RecvBuf>> {
        loop {
            let (bytes, shared) = (self.scratch.bytes(), self.shared);
            let readiness = readiness_of(&self.table, io);
            // Cleared first: an edge that comes during the call must not be lost to another thread.
            readiness.clear(IN, shared);
            match recv(&io.fd, &mut *bytes, RecvFlags::empty()) {
                Ok((0, _)) => {
                    readiness.set(IN, shared);
                    return Poll::Ready(Ok(RecvBuf::end()));
                }
                Ok((len, _)) => {
                    // A short read empties the socket, unless the end has already been announced:
                    // that edge will not come again.
                    if len == bytes.len() || readiness.has(END) {
                        readiness.set(IN, shared);
                    }
                    return Poll::Ready(Ok(self.scratch.received(len)));
                }
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => readiness.set(IN, shared),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            if !readiness.has(IN) && self.must_wait(io, readiness, IN, token)? {
                return Poll::Pending;
            }
        }
    }

    /// Sends what `out` holds, and takes it away once everything has left.
    pub(crate) fn send(
        &mut self,
        io: &EpollIo,
        out: &mut Option<Box<SendBuf>>,
        token: Token,
    ) -> Poll<io::Result<()>> {
        let Some(unsent) = out.take() else {
            return Poll::Ready(Ok(()));
        };
        if unsent.form != SendForm::Plain {
            return self.send_formed(io, unsent, out, token);
        }
        let len = unsent.bytes.len();
        self.send_by(io, (unsent, len), out, token, |unsent| {
            send(&io.fd, unsent.rest(), SendFlags::NOSIGNAL)
        })
    }

    /// Like [`Epoll::send`], for any other form than a plain one.
    #[inline(never)]
    fn send_formed(
        &mut self,
        io: &EpollIo,
        unsent: Box<SendBuf>,
        out: &mut Option<Box<SendBuf>>,
        token: Token,
    ) -> Poll<io::Result<()>> {
        let len = unsent.len();
        match unsent.form {
            SendForm::Waiting => {
                *out = Some(unsent);
                Poll::Ready(Ok(()))
            }
            SendForm::Parts => self.send_by(io, (unsent, len), out, token, |unsent| {
                let parts: Vec<_> = unsent.parts().take(PARTS_MAX).map(IoSlice::new).collect();
                let mut nothing = SendAncillaryBuffer::default();
                sendmsg(&io.fd, &parts, &mut nothing, SendFlags::NOSIGNAL)
            }),
            SendForm::Plain | SendForm::MoreFollows | SendForm::EndFollows => {
                self.send_by(io, (unsent, len), out, token, |unsent| {
                    send(&io.fd, unsent.rest(), SendFlags::NOSIGNAL | SendFlags::MORE)
                })
            }
        }
    }

    /// Makes one call after the other, each for what is left of `len` bytes.
    fn send_by(
        &mut self,
        io: &EpollIo,
        (mut unsent, len): (Box<SendBuf>, usize),
        out: &mut Option<Box<SendBuf>>,
        token: Token,
        call: impl Fn(&SendBuf) -> Result<usize, Errno>,
    ) -> Poll<io::Result<()>> {
        while unsent.at < len {
            match self.attempt(io, OUT, token, || call(&unsent)) {
                Poll::Ready(Ok(sent)) => unsent.at += sent,
                // What has not left stays, to be asked about.
                Poll::Ready(Err(error)) => {
                    *out = Some(unsent);
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => {
                    unsent.note_blocked();
                    *out = Some(unsent);
                    return Poll::Pending;
                }
            }
        }
        self.buf_pool.put(unsent);
        Poll::Ready(Ok(()))
    }

    pub(crate) fn sendfile(
        &self,
        io: &EpollIo,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        len: usize,
        token: Token,
    ) -> Poll<io::Result<usize>> {
        self.attempt(io, OUT, token, || rustix::fs::sendfile(&io.fd, file, Some(offset), len))
    }

    /// Waits for readiness only. The caller makes the system call.
    pub(crate) fn ready(&self, io: &EpollIo, interest: Interest, token: Token) -> Poll<()> {
        let readiness = self.readiness(io);
        let bits = if interest == Interest::Read { IN } else { OUT };
        if !readiness.has(REGISTERED) {
            // Readiness is assumed of a new descriptor, not known.
            readiness.clear(bits, self.shared);
        }
        match self.must_wait(io, readiness, bits, token) {
            Ok(true) => Poll::Pending,
            // What epoll cannot watch (a plain file) is always ready.
            Ok(false) | Err(_) => Poll::Ready(()),
        }
    }

    /// Returns whether one waits at a listener. If none does, its next edge wakes the task.
    pub(crate) fn has_pending(&self, listener: &EpollIo, token: Token) -> io::Result<bool> {
        // What is known of its readiness stays: the next `accept` must not wait for an edge that
        // has come already.
        let readiness = self.readiness(listener);
        readiness.wait(token);
        if !readiness.has(REGISTERED) {
            self.register(listener, readiness)?;
        }
        Ok(has_pending(&listener.fd))
    }

    /// Clears readiness that the caller has used up.
    pub(crate) fn used_up(&self, io: &EpollIo, interest: Interest) {
        let bits = if interest == Interest::Read { IN } else { OUT };
        self.readiness(io).clear(bits, self.shared);
    }

    /// Forgets a socket, and then closes its descriptor, which takes it out of epoll. In this
    /// order: while its generation lasts, its number is no other socket's.
    pub(crate) fn close(&self, io: EpollIo) {
        if self.readiness(&io).retire(self.shared) {
            self.forget_addrs(&io);
        }
        drop(io);
    }

    /// Closes a listener. Others may hold its socket open: so it has to be taken out of epoll,
    /// which would go on telling of it.
    pub(crate) fn close_listener(&self, listener: EpollIo) {
        if self.readiness(&listener).has(REGISTERED) {
            // It was registered; and that it is not any more is as good.
            let _ = epoll::delete(&self.queue, &listener.fd);
        }
        self.close(listener);
    }

    #[cold]
    fn forget_addrs(&self, io: &EpollIo) {
        self.addrs.forget(io.fd.as_raw_fd().cast_unsigned(), io.generation);
    }

    /// Returns what is known of the names of a socket.
    ///
    /// # Errors
    /// `NotFound`: it is not the socket any more that it was in this generation.
    pub(crate) fn known_addrs(
        &self,
        index: u32,
        generation: u32,
    ) -> io::Result<Option<SocketAddrs>> {
        let entry = self.table.get(index as usize).filter(|entry| entry.is_of(generation));
        let entry = entry.ok_or(io::ErrorKind::NotFound)?;
        Ok(if entry.has(HAS_ADDRS) { self.addrs.of(index, generation) } else { None })
    }

    /// Keeps the names of a socket for as long as it is open.
    ///
    /// # Errors
    /// `NotFound`: it was closed meanwhile. What was asked under its number may be another's.
    pub(crate) fn keep_addrs(
        &self,
        index: u32,
        generation: u32,
        addrs: SocketAddrs,
    ) -> io::Result<()> {
        self.addrs.keep(index, generation, addrs);
        let entry = self.table.get(index as usize);
        // The thread that closes it forgets them if it finds this bit. If it has closed, none does.
        let is_open =
            entry.is_some_and(|it| it.event(generation, HAS_ADDRS, self.shared).is_some());
        if !is_open {
            self.addrs.forget(index, generation);
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(())
    }

    /// Waits for events until `timeout` and hands out the tokens of those they concern.
    pub(crate) fn turn(
        &mut self,
        timeout: Option<rustix::event::Timespec>,
        woken: &mut Vec<Token>,
    ) -> io::Result<()> {
        let events = match epoll::wait(&self.queue, &mut self.events[..], timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let data = event.data.u64();
            if data == WAKER {
                continue;
            }
            woken.extend(note(&self.table, self.shared, data, event.flags));
        }
        Ok(())
    }

    /// One system call that may fall short of `direction`: then the token waits for its edge.
    fn attempt<T>(
        &self,
        io: &EpollIo,
        direction: u64,
        token: Token,
        mut call: impl FnMut() -> Result<T, Errno>,
    ) -> Poll<io::Result<T>> {
        let readiness = self.readiness(io);
        loop {
            if !readiness.has(direction) && self.must_wait(io, readiness, direction, token)? {
                return Poll::Pending;
            }
            readiness.clear(direction, self.shared);
            match call() {
                Ok(value) => {
                    readiness.set(direction, self.shared);
                    return Poll::Ready(Ok(value));
                }
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => readiness.set(direction, self.shared),
                Err(error) => {
                    readiness.set(direction, self.shared);
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    /// Leaves the token to be woken by the next edge, and registers the descriptor if it never was.
    /// Returns whether there is anything to wait for: an edge may have come meanwhile.
    #[inline]
    fn must_wait(
        &self,
        io: &EpollIo,
        readiness: Readiness<'_>,
        direction: u64,
        token: Token,
    ) -> io::Result<bool> {
        readiness.wait(token);
        if !readiness.has(REGISTERED) {
            self.register(io, readiness)?;
        }
        Ok(!readiness.has(direction))
    }

    /// Registers for all edges. What is ready now is reported as the first one.
    #[cold]
    fn register(&self, io: &EpollIo, readiness: Readiness<'_>) -> io::Result<()> {
        readiness.set(REGISTERED, self.shared);
        let data = data_of(io.index(), io.generation);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let added = epoll::add(&self.queue, &io.fd, EventData::new_u64(data), flags);
        Ok(added.inspect_err(|_| readiness.clear(REGISTERED, self.shared))?)
    }

    #[inline]
    fn readiness(&self, io: &EpollIo) -> Readiness<'_> {
        readiness_of(&self.table, io)
    }
}

impl AsFd for EpollIo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens an epoll descriptor that `waker` wakes.
fn open_queue(waker: &ReactorWaker) -> io::Result<OwnedFd> {
    let queue = epoll::create(CreateFlags::CLOEXEC)?;
    let flags = EventFlags::IN | EventFlags::ET;
    epoll::add(&queue, waker, EventData::new_u64(WAKER), flags)?;
    Ok(queue)
}

#[inline]
fn readiness_of<'t>(table: &'t ReadinessTable, io: &EpollIo) -> Readiness<'t> {
    table.get(io.index()).expect("a descriptor past the table is never taken in")
}

/// Takes an edge of a socket in. Returns whom to wake.
#[inline]
fn note(table: &ReadinessTable, shared: bool, data: u64, flags: EventFlags) -> Option<Token> {
    let (index, generation) = (data & 0xffff_ffff, data >> 32);
    let entry = usize::try_from(index).ok().and_then(|index| table.get(index));
    let generation = u32::try_from(generation).expect("the upper half is 32 bits");
    entry.and_then(|entry| entry.event(generation, bits_of(flags), shared))
}

/// Returns what the kernel hands back of a socket's edges.
fn data_of(index: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | index as u64
}

fn bits_of(flags: EventFlags) -> u64 {
    let mut bits = 0;
    if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
        bits |= IN;
    }
    if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
        bits |= OUT;
    }
    if flags.intersects(EventFlags::RDHUP | EventFlags::HUP) {
        bits |= END;
    }
    bits
}
