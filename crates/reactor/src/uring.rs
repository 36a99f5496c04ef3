//! The `io_uring` backend: what is under way on each socket, and what its completions mean.
//!
//! Sockets live in the ring's own descriptor table, so their number is bounded by that table and
//! not by `RLIMIT_NOFILE`. Descriptors opened elsewhere are taken in as they are, past the table's
//! end.

mod completed;
mod installing;
mod large;
mod listening;
mod receiving;
mod socket;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::Poll;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::buf::{BufPool, SendBuf, SendForm};
use crate::sys::{Completion, EnterWait, FdTarget, Key, Ring, number};
use crate::{BufferAccount, Interest, ReactorWaker, SocketAddrs, Token};
use large::Overflow;
use listening::UringListener;
use socket::{SocketState, UringSocket};

pub(crate) use listening::UringAccepted;

/// A send of so many bytes is submitted by itself: they are still in the processor's cache then,
/// and its buffer is there for the next one. 55 KB by TLS to each of 256 connections cost 49 us of
/// CPU in the turn's submission, and 30 so (loaded machine, 26 November 2026).
const AT_ONCE_BYTES_MIN: usize = 16 << 10;

/// A socket under `io_uring`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UringIo {
    key: Key,
}

impl UringIo {
    /// Index and generation, which name a socket of this ring for good.
    pub(crate) fn parts(self) -> (u32, u32) {
        (self.key.index, self.key.generation)
    }
}

pub(crate) struct Uring {
    ring: Ring,
    /// Size of the descriptor table; larger indices are ordinary descriptors.
    table: u32,
    direct: Vec<UringSocket>,
    ordinary: Vec<UringSocket>,
    ordinary_free: Vec<u32>,
    /// Slots of the table that sockets were moved into, and that are free again.
    moved_free: Vec<u32>,
    /// How many slots sockets were ever moved into: the first ones.
    moved: u32,
    listening: Vec<UringListener>,
    /// Sockets that want bytes while no buffer is free.
    starved: VecDeque<Key>,
    /// What was received past the queue, by the socket's index; few sockets have any.
    overflow: HashMap<u32, Overflow>,
    /// Why receiving has failed, as an errno, by the socket's index, while it is open.
    recv_errors: HashMap<u32, i32>,
    completions: Vec<Completion>,
    /// Whom completions concern that were taken before the turn ended.
    woken_before: Vec<Token>,
    /// Addresses that were asked for or overridden, by the socket's index, while it is open.
    addrs: HashMap<u32, SocketAddrs>,
    /// How many sockets of the table have a descriptor beside it, or will; and how many may.
    installed: usize,
    installed_max: usize,
    /// Sockets of the table that have one and have sent their files; some that are gone by now.
    file_sent: Vec<Key>,
    /// When these are looked through next.
    sweep_at_ms: Option<u64>,
    /// A descriptor that can be given up, so that one can be installed where no other is free. It
    /// is the eventfd once more.
    reserve: Option<OwnedFd>,
    /// The kernel knows no such operation.
    cannot_install: bool,
    /// Why the last descriptor could not be installed, for the caller that waits for it.
    install_error: Option<io::Error>,
    pub(crate) buf_pool: BufPool,
    /// A close waits for the next turn to be submitted.
    close_pushed: bool,
    pub(crate) waker: ReactorWaker,
}

impl Uring {
    pub(crate) fn new(
        entries: u32,
        table: u32,
        buffers: u16,
        installed_max: usize,
        account: BufferAccount,
    ) -> io::Result<Self> {
        let mut ring = Ring::new(entries, table, buffers, account)?;
        let waker = ReactorWaker::new()?;
        ring.watch_waker(waker.as_fd());
        ring.enter(EnterWait::Not)?;
        Ok(Self {
            ring,
            table,
            direct: Vec::new(),
            ordinary: Vec::new(),
            ordinary_free: Vec::new(),
            moved_free: Vec::new(),
            moved: 0,
            listening: Vec::new(),
            starved: VecDeque::new(),
            overflow: HashMap::new(),
            recv_errors: HashMap::new(),
            completions: Vec::new(),
            woken_before: Vec::new(),
            addrs: HashMap::new(),
            installed: 0,
            installed_max,
            file_sent: Vec::new(),
            sweep_at_ms: None,
            reserve: waker.as_fd().try_clone_to_owned().ok(),
            cannot_install: false,
            install_error: None,
            buf_pool: BufPool::default(),
            close_pushed: false,
            waker,
        })
    }

    /// Returns whether anything of closed sockets or listeners is still under way.
    pub(crate) fn has_unfinished(&self) -> bool {
        let closing = |socket: &UringSocket| socket.state.has(SocketState::CLOSING);
        self.close_pushed
            || self.direct.iter().chain(&self.ordinary).any(closing)
            || self.listening.iter().any(UringListener::is_busy)
    }

    /// Takes an ordinary descriptor in.
    pub(crate) fn adopt(&mut self, fd: OwnedFd) -> UringIo {
        let at = self.ordinary_free.pop().unwrap_or_else(|| {
            self.ordinary.push(UringSocket::default());
            u32::try_from(self.ordinary.len() - 1).expect("descriptors are fewer than 2^31")
        });
        let socket = &mut self.ordinary[at as usize];
        socket.state.set(SocketState::OPEN);
        socket.fd = Some(fd);
        let generation = socket.generation;
        UringIo { key: Key { index: self.table + at, generation } }
    }

    /// Moves a socket from its ordinary descriptor, which closes, into the ring's table. Returns it
    /// as it was where the table is full or another kind of socket lives there.
    ///
    /// # Errors
    /// `ResourceBusy`: something is under way, and its completion would be taken for one of the
    /// next socket of this index.
    pub(crate) fn make_direct(&mut self, io: UringIo) -> io::Result<UringIo> {
        // The slots of accepted sockets are the kernel's to give.
        if io.key.index < self.table || !self.listening.is_empty() {
            return Ok(io);
        }
        let socket = self.socket(io.key);
        if socket.is_busy() {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "a socket moves in before anything is sent or received, and this one is in use",
            ));
        }
        let state = socket.state;
        let free = self.moved_free.pop();
        let slot = free.or((self.moved < self.table).then_some(self.moved));
        let (Some(slot), Some(fd)) = (slot, self.fd(io)) else { return Ok(io) };
        if self.ring.update_slot(slot, Some(fd)).is_err() {
            self.moved_free.extend(free);
            return Ok(io);
        }
        if free.is_none() {
            self.moved += 1;
        }
        let moved = self.open_direct(slot);
        // What is known of it goes along.
        self.socket(moved.key).state = state;
        if let Some(error) = self.recv_errors.remove(&io.key.index) {
            self.recv_errors.insert(moved.key.index, error);
        }
        if let Some(addrs) = self.addrs.remove(&io.key.index) {
            self.addrs.insert(moved.key.index, addrs);
        }
        self.release(io.key);
        Ok(moved)
    }

    /// Sends what `out` holds. It leaves `out` empty while it is under way.
    pub(crate) fn send(
        &mut self,
        io: UringIo,
        out: &mut Option<Box<SendBuf>>,
        token: Token,
    ) -> Poll<io::Result<()>> {
        let target = self.target(io.key);
        let socket = self.socket(io.key);
        socket.waiter.set(token);
        if socket.state.has(SocketState::SENT) {
            socket.state.clear(SocketState::SENT);
            return Poll::Ready(number(socket.send).map(drop));
        }
        if socket.state.has(SocketState::SENDING) {
            return Poll::Pending;
        }
        let Some(mut bytes) = out.take() else {
            return Poll::Ready(Ok(()));
        };
        if bytes.form == SendForm::Waiting {
            *out = Some(bytes);
            return Poll::Ready(Ok(()));
        }
        // The head of a file whose descriptor is at hand leaves without a trip through the ring.
        if bytes.form.is_followed()
            && let Some(fd) = &socket.fd
        {
            let flags = rustix::net::SendFlags::MORE
                | rustix::net::SendFlags::NOSIGNAL
                | rustix::net::SendFlags::DONTWAIT;
            match rustix::net::send(fd, bytes.rest(), flags) {
                Ok(sent) => bytes.at += sent,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        if bytes.has_left() {
            self.buf_pool.put(bytes);
            return Poll::Ready(Ok(()));
        }
        socket.state.set(SocketState::SENDING);
        // (What it shares with others is no buffer of its own.)
        let is_large = bytes.bytes.len() >= AT_ONCE_BYTES_MIN;
        self.socket(io.key).send = self.ring.send(target, io.key, bytes).cast_signed();
        if is_large { self.send_at_once(io, token) } else { Poll::Pending }
    }

    /// Submits a send by itself, and takes its completion if the kernel has all bytes by then.
    #[cold]
    fn send_at_once(&mut self, io: UringIo, token: Token) -> Poll<io::Result<()>> {
        // Should this fail, the next turn says so.
        if self.ring.enter(EnterWait::Not).is_err() {
            return Poll::Pending;
        }
        self.close_pushed = false;
        let mut woken = mem::take(&mut self.woken_before);
        self.take_completions(&mut woken);
        let socket = self.socket(io.key);
        let is_sent = socket.state.has(SocketState::SENT);
        let sent = if is_sent {
            socket.state.clear(SocketState::SENT);
            Poll::Ready(number(socket.send).map(drop))
        } else {
            Poll::Pending
        };
        if is_sent && let Some(at) = woken.iter().rposition(|one| *one == token) {
            woken.swap_remove(at);
        }
        self.woken_before = woken;
        sent
    }

    /// Returns what is being sent, if anything is.
    pub(crate) fn sending(&self, io: UringIo) -> Option<&SendBuf> {
        let socket = self.get(io.key.index).filter(|socket| socket.is_live(io.key))?;
        let place = socket.state.has(SocketState::SENDING).then_some(socket.send.cast_unsigned());
        self.ring.sending(place?)
    }

    /// Sends from a file with `sendfile`, on an installed descriptor.
    ///
    /// # Errors
    /// `Unsupported`: the kernel installs none (before Linux 6.8, or no descriptor is left), or
    /// enough sockets have one.
    pub(crate) fn sendfile(
        &mut self,
        io: UringIo,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        len: usize,
        token: Token,
    ) -> Poll<io::Result<usize>> {
        let target = self.target(io.key);
        let socket = self.socket(io.key);
        socket.waiter.set(token);
        let before = SocketState::POLLED | SocketState::FILE_SENT | SocketState::FILE_LONG_SENT;
        socket.state.clear(before);
        if socket.state.has(SocketState::INSTALLING | SocketState::POLLING) {
            return Poll::Pending;
        }
        if socket.state.has(SocketState::NO_INSTALLED_FD) {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        let Some(fd) = &socket.fd else {
            if self.installed >= self.installed_max {
                return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
            }
            self.install(io.key);
            return Poll::Pending;
        };
        match rustix::fs::sendfile(fd, file, Some(offset), len) {
            Ok(sent) => Poll::Ready(Ok(sent)),
            Err(Errno::INTR) => self.sendfile(io, file, offset, len, token),
            Err(Errno::AGAIN) => {
                socket.state.set(SocketState::POLLING);
                self.ring.poll(target, io.key, PollFlags::OUT);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// Makes an ordinary descriptor of a socket, which then is the caller's: close this one.
    ///
    /// # Errors
    /// `Unsupported`, as [`Uring::sendfile`].
    pub(crate) fn export(&mut self, io: UringIo, token: Token) -> Poll<io::Result<OwnedFd>> {
        let is_ordinary = io.key.index >= self.table;
        let socket = self.socket(io.key);
        socket.waiter.set(token);
        match &socket.fd {
            // What is under way names it by its number, so this one stays open until the close.
            Some(fd) if is_ordinary => return Poll::Ready(fd.try_clone()),
            _ => {}
        }
        if let Some(fd) = socket.fd.take() {
            self.installed -= 1;
            return Poll::Ready(Ok(fd));
        }
        if socket.state.has(SocketState::NO_INSTALLED_FD) {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        if !socket.state.has(SocketState::INSTALLING) {
            self.install(io.key);
        }
        Poll::Pending
    }

    pub(crate) fn ready(&mut self, io: UringIo, interest: Interest, token: Token) -> Poll<()> {
        let target = self.target(io.key);
        let socket = self.socket(io.key);
        if socket.state.has(SocketState::POLLED) {
            socket.state.clear(SocketState::POLLED);
            return Poll::Ready(());
        }
        socket.waiter.set(token);
        if !socket.state.has(SocketState::POLLING) {
            socket.state.set(SocketState::POLLING);
            let events = if interest == Interest::Read { PollFlags::IN } else { PollFlags::OUT };
            self.ring.poll(target, io.key, events);
        }
        Poll::Pending
    }

    /// Returns the socket's ordinary descriptor, if it has one.
    pub(crate) fn fd(&self, io: UringIo) -> Option<BorrowedFd<'_>> {
        self.get(io.key.index).and_then(|socket| socket.fd.as_ref()).map(AsFd::as_fd)
    }

    pub(crate) fn shutdown_write(&mut self, io: UringIo) {
        let target = self.target(io.key);
        let state = &mut self.socket(io.key).state;
        // One at a time: the slot is free once none is under way, and one is as good as two.
        if state.has(SocketState::SHUTTING_DOWN) {
            return;
        }
        state.set(SocketState::SHUTTING_DOWN);
        self.ring.shutdown_write(target, io.key);
    }

    /// Closes a socket: at once if nothing is under way, else after the last completion. A
    /// descriptor closed with a receive armed would keep the peer waiting for its end.
    pub(crate) fn close(&mut self, io: UringIo) {
        let target = self.target(io.key);
        let pool = self.ring.pool().clone();
        let socket = self.socket(io.key);
        socket.state.set(SocketState::CLOSING);
        while pool.pop(&mut socket.recv_queue).is_some() {}
        if socket.state.has(SocketState::OVERFLOWED) {
            self.overflow.remove(&io.key.index);
        }
        let socket = self.socket(io.key);
        if socket.state.has(SocketState::UNDER_WAY) {
            self.ring.cancel_all(target);
        } else {
            self.release(io.key);
        }
    }

    /// Submits, waits and takes completions; hands out the tokens of those they concern.
    pub(crate) fn turn(&mut self, wait: EnterWait, woken: &mut Vec<Token>) -> io::Result<()> {
        self.give_buffers_back();
        self.feed_starved();
        let has_woken = !self.woken_before.is_empty();
        self.ring.enter(if has_woken { EnterWait::Not } else { wait })?;
        self.close_pushed = false;
        woken.append(&mut self.woken_before);
        self.take_completions(woken);
        Ok(())
    }

    fn take_completions(&mut self, woken: &mut Vec<Token>) {
        // Taken out, since a completion may submit what follows it. The memory is kept.
        let mut completions = mem::take(&mut self.completions);
        self.ring.completions(&mut completions);
        for completion in completions.drain(..) {
            woken.extend(self.complete(completion));
        }
        self.completions = completions;
    }

    /// Returns the open socket of an index and a generation.
    pub(crate) fn find(&self, index: u32, generation: u32) -> Option<UringIo> {
        let is_it = |socket: &&UringSocket| {
            socket.generation == generation
                && socket.state.has(SocketState::OPEN)
                && !socket.state.has(SocketState::CLOSING)
        };
        self.get(index).filter(is_it).map(|_| UringIo { key: Key { index, generation } })
    }

    fn open_direct(&mut self, slot: u32) -> UringIo {
        if self.direct.len() <= slot as usize {
            self.direct.resize_with(slot as usize + 1, UringSocket::default);
        }
        let socket = &mut self.direct[slot as usize];
        socket.state.set(SocketState::OPEN);
        UringIo { key: Key { index: slot, generation: socket.generation } }
    }

    fn target(&self, key: Key) -> FdTarget {
        match key.index.checked_sub(self.table) {
            None => FdTarget::Direct(key.index),
            Some(at) => self.ordinary[at as usize].target(self.table, key),
        }
    }

    /// Returns the socket of an index, whichever its generation, if there ever was one.
    fn get(&self, index: u32) -> Option<&UringSocket> {
        match index.checked_sub(self.table) {
            None => self.direct.get(index as usize),
            Some(at) => self.ordinary.get(at as usize),
        }
    }

    fn socket(&mut self, key: Key) -> &mut UringSocket {
        socket_of(&mut self.direct, &mut self.ordinary, self.table, key)
    }

    /// Returns the socket, unless the completion is a late one of its predecessor.
    fn live(&mut self, key: Key) -> Option<&mut UringSocket> {
        let socket = self.socket(key);
        socket.is_live(key).then_some(socket)
    }
}

/// Returns the socket of a key, for who holds other parts of the ring at the same time.
#[inline]
fn socket_of<'a>(
    direct: &'a mut [UringSocket],
    ordinary: &'a mut [UringSocket],
    table: u32,
    key: Key,
) -> &'a mut UringSocket {
    match key.index.checked_sub(table) {
        None => &mut direct[key.index as usize],
        Some(at) => &mut ordinary[at as usize],
    }
}
