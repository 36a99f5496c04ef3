//! The `io_uring` backend: what is under way on each socket, and what its completions mean.
//!
//! Sockets live in the ring's own descriptor table, so their number is bounded by that table and not
//! by `RLIMIT_NOFILE`. Descriptors opened elsewhere are taken in as they are, past the table's end.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::buffers::Chain;
use crate::piece::{Outgoing, Piece, Spare};
use crate::sys::{Completion, Key, Ring, Sleep, Target};
use crate::{Alert, Interest, Token};

/// A connection with this many unread pieces receives no more until its task has caught up. What
/// still comes before the kernel has stopped is copied, so that a flood holds no more buffers.
const PIECES_MAX: u16 = 2;

/// What is under way on a socket, and what is known of it.
#[derive(Debug, Default)]
struct Socket {
    generation: u32,
    state: State,
    chain: Chain,
    /// An ordinary descriptor: the socket's own one, or the twin of a direct one.
    fd: Option<OwnedFd>,
    /// Why receiving ended, as an errno; 0 while nothing went wrong.
    recv_error: i32,
    /// What the last send came to, if the state says `SENT`.
    sent: i32,
    waiter: Token,
}

/// One bit each; a socket has many and there are many sockets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct State(u16);

impl State {
    const OPEN: u16 = 1;
    const RECEIVING: u16 = 1 << 1;
    const SENDING: u16 = 1 << 2;
    const INSTALLING: u16 = 1 << 3;
    const POLLING: u16 = 1 << 4;
    /// The kernel shuts a socket down in a thread of its own, so that takes its time.
    const SHUTTING_DOWN: u16 = 1 << 12;
    /// What must complete before the slot can be freed.
    const UNDER_WAY: u16 =
        Self::RECEIVING | Self::SENDING | Self::INSTALLING | Self::POLLING | Self::SHUTTING_DOWN;
    const CLOSING: u16 = 1 << 5;
    /// The peer has sent its last byte.
    const END: u16 = 1 << 6;
    /// The first receive is over: the connection is kept, so the next ones are multishot.
    const KEPT: u16 = 1 << 7;
    /// The task waits for bytes.
    const WANTS_BYTES: u16 = 1 << 8;
    const STOPPING_RECEIVE: u16 = 1 << 9;
    /// The kernel gives no ordinary twin: files are read and sent.
    const NO_TWIN: u16 = 1 << 10;
    /// A poll has completed and was not asked about yet.
    const POLLED: u16 = 1 << 11;
    /// A send has completed and was not asked about yet.
    const SENT: u16 = 1 << 13;
    /// Bytes lie in the overflow, behind those in the chain.
    const OVERFLOWED: u16 = 1 << 14;

    fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }

    fn set(&mut self, bits: u16) {
        self.0 |= bits;
    }

    fn clear(&mut self, bits: u16) {
        self.0 &= !bits;
    }
}

/// A socket under `io_uring`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UringIo {
    key: Key,
}

/// A listening socket and the connections that wait to be asked for.
struct Listening {
    generation: u32,
    socket: Option<Arc<OwnedFd>>,
    backlog: usize,
    armed: Armed,
    direct: VecDeque<io::Result<u32>>,
    ordinary: VecDeque<io::Result<OwnedFd>>,
    waiter: Token,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armed {
    No,
    One,
    Many,
    OneAway,
    Stopping,
}

/// A connection as the ring's descriptor table or as an ordinary descriptor.
pub(crate) enum UringAccepted {
    Here(UringIo),
    Away(OwnedFd),
}

pub(crate) struct Uring {
    ring: Ring,
    /// Size of the descriptor table; larger indices are ordinary descriptors.
    table: u32,
    direct: Vec<Socket>,
    ordinary: Vec<Socket>,
    ordinary_free: Vec<u32>,
    listening: Vec<Listening>,
    /// Sockets that want bytes while no buffer is free.
    starved: VecDeque<Key>,
    /// Bytes past [`PIECES_MAX`], by the socket's index; few sockets ever have any.
    overflow: HashMap<u32, Vec<u8>>,
    completions: Vec<Completion>,
    spare: Spare,
    /// A close waits for the next turn to be submitted.
    close_pushed: bool,
    alert: Alert,
}

impl Uring {
    pub(crate) fn new(entries: u32, table: u32, buffers: u16) -> io::Result<Self> {
        let mut ring = Ring::new(entries, table, buffers)?;
        let alert = Alert::new()?;
        ring.watch_alert(alert.as_fd());
        ring.enter(Sleep::Not)?;
        Ok(Self {
            ring,
            table,
            direct: Vec::new(),
            ordinary: Vec::new(),
            ordinary_free: Vec::new(),
            listening: Vec::new(),
            starved: VecDeque::new(),
            overflow: HashMap::new(),
            completions: Vec::new(),
            spare: Spare::default(),
            close_pushed: false,
            alert,
        })
    }

    pub(crate) fn alert(&self) -> Alert {
        self.alert.clone()
    }

    pub(crate) fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }

    pub(crate) fn listen(&mut self, socket: Arc<OwnedFd>, backlog: usize) -> io::Result<u32> {
        // On a non-blocking listener the kernel would answer "try again" instead of waiting.
        rustix::io::ioctl_fionbio(&socket, false)?;
        self.listening.push(Listening {
            generation: 0,
            socket: Some(socket),
            backlog,
            armed: Armed::No,
            direct: VecDeque::new(),
            ordinary: VecDeque::new(),
            waiter: 0,
        });
        Ok(u32::try_from(self.listening.len() - 1).expect("a server has few listeners"))
    }

    /// Accepts a connection into the table if `room` says how many more may come in, or as an
    /// ordinary descriptor for another worker if there is no room here.
    ///
    /// Multishot accepting takes whatever waits, so it is armed only where the whole backlog fits.
    pub(crate) fn accept(
        &mut self,
        index: u32,
        room: usize,
        token: Token,
    ) -> Poll<io::Result<UringAccepted>> {
        let listening = &mut self.listening[index as usize];
        if let Some(result) = listening.ordinary.pop_front() {
            return Poll::Ready(result.map(UringAccepted::Away));
        }
        if let Some(result) = listening.direct.pop_front() {
            return Poll::Ready(result.map(|slot| UringAccepted::Here(self.open_direct(slot))));
        }
        listening.waiter = token;
        let Some(socket) = &listening.socket else {
            return Poll::Pending;
        };
        let wanted = match room {
            0 => Armed::OneAway,
            room if room > listening.backlog => Armed::Many,
            _ => Armed::One,
        };
        let key = Key { index, generation: listening.generation };
        match listening.armed {
            Armed::No => {
                match wanted {
                    Armed::OneAway => self.ring.accept(socket.as_fd(), key),
                    wanted => self.ring.accept_direct(socket.as_fd(), key, wanted == Armed::Many),
                }
                listening.armed = wanted;
            }
            // Armed for one, many will do no harm; but many must not come where one fits.
            Armed::Stopping => {}
            armed if armed == wanted || (armed, wanted) == (Armed::One, Armed::Many) => {}
            _ => {
                self.ring.cancel_accept(key);
                listening.armed = Armed::Stopping;
            }
        }
        Poll::Pending
    }

    /// Stops accepting. Connections that were accepted already can still be asked for.
    pub(crate) fn unlisten(&mut self, index: u32) {
        let listening = &mut self.listening[index as usize];
        listening.socket = None;
        if !matches!(listening.armed, Armed::No | Armed::Stopping) {
            self.ring.cancel_accept(Key { index, generation: listening.generation });
            listening.armed = Armed::Stopping;
        }
    }

    pub(crate) fn unlisten_all(&mut self) {
        for index in 0..self.listening.len() {
            self.unlisten(u32::try_from(index).expect("a server has few listeners"));
        }
    }

    /// Whether the kernel may still accept for this listener.
    pub(crate) fn is_listening(&self, index: u32) -> bool {
        self.listening[index as usize].armed != Armed::No
    }

    /// Whether anything of closed sockets or listeners is still under way.
    pub(crate) fn has_unfinished(&self) -> bool {
        let closing = |socket: &Socket| socket.state.has(State::CLOSING);
        self.close_pushed
            || self.direct.iter().chain(&self.ordinary).any(closing)
            || self.listening.iter().any(|listening| listening.armed != Armed::No)
    }

    /// Takes an ordinary descriptor in.
    pub(crate) fn adopt(&mut self, fd: OwnedFd) -> UringIo {
        let at = self.ordinary_free.pop().unwrap_or_else(|| {
            self.ordinary.push(Socket::default());
            u32::try_from(self.ordinary.len() - 1).expect("descriptors are fewer than 2^31")
        });
        let socket = &mut self.ordinary[at as usize];
        socket.state = State(State::OPEN);
        socket.fd = Some(fd);
        let generation = socket.generation;
        UringIo { key: Key { index: self.table + at, generation } }
    }

    pub(crate) fn recv(&mut self, io: UringIo, token: Token) -> Poll<io::Result<Piece>> {
        let target = self.target(io.key);
        let available = self.ring.pool().available();
        let pool = self.ring.pool().clone();
        let socket = self.socket(io.key);
        if let Some(piece) = pool.pop(&mut socket.chain) {
            socket.state.clear(State::WANTS_BYTES);
            return Poll::Ready(Ok(Piece::provided(piece)));
        }
        if socket.state.has(State::OVERFLOWED) {
            socket.state.clear(State::OVERFLOWED | State::WANTS_BYTES);
            let bytes = self.overflow.remove(&io.key.index).unwrap_or_default();
            return Poll::Ready(Ok(Piece::owned(bytes)));
        }
        if socket.recv_error != 0 {
            return Poll::Ready(Err(io::Error::from_raw_os_error(socket.recv_error)));
        }
        if socket.state.has(State::END) {
            return Poll::Ready(Ok(Piece::end()));
        }
        socket.waiter = token;
        if !socket.state.has(State::RECEIVING | State::WANTS_BYTES) {
            if available == 0 {
                self.starved.push_back(io.key);
            } else {
                let multishot = socket.state.has(State::KEPT);
                socket.state.set(State::RECEIVING);
                self.ring.recv(target, io.key, multishot);
            }
        }
        self.socket(io.key).state.set(State::WANTS_BYTES);
        Poll::Pending
    }

    /// Sends what `out` holds. It leaves `out` empty while it is under way.
    pub(crate) fn send(
        &mut self,
        io: UringIo,
        out: &mut Option<Box<Outgoing>>,
        token: Token,
    ) -> Poll<io::Result<()>> {
        let target = self.target(io.key);
        let socket = self.socket(io.key);
        socket.waiter = token;
        if socket.state.has(State::SENT) {
            socket.state.clear(State::SENT);
            return Poll::Ready(number(socket.sent).map(drop));
        }
        if socket.state.has(State::SENDING) {
            return Poll::Pending;
        }
        let Some(mut bytes) = out.take() else {
            return Poll::Ready(Ok(()));
        };
        // The head of a file whose descriptor is at hand leaves without a trip through the ring.
        if bytes.more
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
        if bytes.rest().is_empty() {
            self.spare.put(bytes);
            return Poll::Ready(Ok(()));
        }
        socket.state.set(State::SENDING);
        self.ring.send(target, io.key, bytes);
        Poll::Pending
    }

    /// Sends from a file with `sendfile`, on an ordinary twin of the descriptor.
    ///
    /// # Errors
    /// `Unsupported` where the kernel gives no twin (before Linux 6.8, or no descriptor is left).
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
        socket.waiter = token;
        socket.state.clear(State::POLLED);
        if socket.state.has(State::INSTALLING | State::POLLING) {
            return Poll::Pending;
        }
        if socket.state.has(State::NO_TWIN) {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        let Some(fd) = &socket.fd else {
            socket.state.set(State::INSTALLING);
            self.ring.install(io.key.index, io.key);
            return Poll::Pending;
        };
        match rustix::fs::sendfile(fd, file, Some(offset), len) {
            Ok(sent) => Poll::Ready(Ok(sent)),
            Err(Errno::INTR) => self.sendfile(io, file, offset, len, token),
            Err(Errno::AGAIN) => {
                socket.state.set(State::POLLING);
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
        let socket = self.socket(io.key);
        socket.waiter = token;
        if let Some(fd) = socket.fd.take() {
            return Poll::Ready(Ok(fd));
        }
        if socket.state.has(State::NO_TWIN) {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        if !socket.state.has(State::INSTALLING) {
            socket.state.set(State::INSTALLING);
            self.ring.install(io.key.index, io.key);
        }
        Poll::Pending
    }

    pub(crate) fn ready(&mut self, io: UringIo, interest: Interest, token: Token) -> Poll<()> {
        let target = self.target(io.key);
        let socket = self.socket(io.key);
        if socket.state.has(State::POLLED) {
            socket.state.clear(State::POLLED);
            return Poll::Ready(());
        }
        socket.waiter = token;
        if !socket.state.has(State::POLLING) {
            socket.state.set(State::POLLING);
            let events = if interest == Interest::Read { PollFlags::IN } else { PollFlags::OUT };
            self.ring.poll(target, io.key, events);
        }
        Poll::Pending
    }

    /// The socket's ordinary descriptor, if it has one.
    pub(crate) fn fd(&self, io: UringIo) -> Option<BorrowedFd<'_>> {
        let (table, index) = (self.table, io.key.index);
        let socket = if index < table {
            self.direct.get(index as usize)
        } else {
            self.ordinary.get((index - table) as usize)
        };
        socket.and_then(|socket| socket.fd.as_ref()).map(AsFd::as_fd)
    }

    pub(crate) fn shutdown_write(&mut self, io: UringIo) {
        let target = self.target(io.key);
        self.socket(io.key).state.set(State::SHUTTING_DOWN);
        self.ring.shutdown_write(target, io.key);
    }

    /// Closes a socket: at once if nothing is under way, else after the last completion. (A
    /// descriptor closed with a receive armed would keep the peer waiting for its end.)
    pub(crate) fn close(&mut self, io: UringIo) {
        let target = self.target(io.key);
        let pool = self.ring.pool().clone();
        let socket = self.socket(io.key);
        socket.state.set(State::CLOSING);
        while pool.pop(&mut socket.chain).is_some() {}
        if socket.state.has(State::OVERFLOWED) {
            self.overflow.remove(&io.key.index);
        }
        let socket = self.socket(io.key);
        if socket.state.has(State::UNDER_WAY) {
            self.ring.cancel_all(target);
        } else {
            self.release(io.key);
        }
    }

    /// Submits, waits and takes completions; hands out the tokens of those they concern.
    pub(crate) fn turn(&mut self, wait: Sleep, woken: &mut Vec<Token>) -> io::Result<()> {
        self.feed_starved();
        self.ring.enter(wait)?;
        self.close_pushed = false;
        let mut completions = mem::take(&mut self.completions);
        self.ring.completions(&mut completions);
        for completion in completions.drain(..) {
            woken.extend(self.complete(completion));
        }
        self.completions = completions;
        Ok(())
    }

    fn complete(&mut self, completion: Completion) -> Option<Token> {
        match completion {
            Completion::Received { key, result, buffer, more } => {
                self.received(key, result, buffer, more)
            }
            Completion::Sent { key, result, out } => self.sent(key, result, out),
            Completion::AcceptedDirect { key, result, more } => {
                let listening = &mut self.listening[key.index as usize];
                if !more {
                    listening.armed = Armed::No;
                }
                if !result.as_ref().is_err_and(was_cancelled) {
                    listening.direct.push_back(result);
                }
                Some(listening.waiter)
            }
            Completion::Accepted { key, result } => {
                let listening = &mut self.listening[key.index as usize];
                listening.armed = Armed::No;
                if !result.as_ref().is_err_and(was_cancelled) {
                    listening.ordinary.push_back(result);
                }
                Some(listening.waiter)
            }
            Completion::Installed { key, result } => {
                let socket = self.live(key)?;
                socket.state.clear(State::INSTALLING);
                match result {
                    // The twin must not block the ring's thread.
                    Ok(fd) if rustix::io::ioctl_fionbio(&fd, true).is_ok() => socket.fd = Some(fd),
                    _ => socket.state.set(State::NO_TWIN),
                }
                self.settle(key)
            }
            Completion::Polled { key } => {
                let socket = self.live(key)?;
                socket.state.clear(State::POLLING);
                socket.state.set(State::POLLED);
                self.settle(key)
            }
            Completion::ShutDown { key } => {
                self.live(key)?.state.clear(State::SHUTTING_DOWN);
                self.settle_closing(key)
            }
            Completion::Alerted { more } => {
                if !more {
                    self.ring.watch_alert(self.alert.as_fd());
                }
                None
            }
            Completion::Nothing => None,
        }
    }

    fn received(
        &mut self,
        key: Key,
        result: i32,
        buffer: Option<u16>,
        more: bool,
    ) -> Option<Token> {
        let pool = self.ring.pool().clone();
        let Some(socket) = self.live(key) else {
            if let Some(buffer) = buffer {
                pool.offer(buffer);
            }
            return None;
        };
        if !more {
            socket.state.clear(State::RECEIVING | State::STOPPING_RECEIVE);
        }
        match (buffer, u16::try_from(result)) {
            (Some(buffer), Ok(len)) if len > 0 && !socket.state.has(State::CLOSING) => {
                socket.state.set(State::KEPT);
                let is_ahead = socket.chain.len() >= PIECES_MAX;
                if is_ahead || socket.state.has(State::OVERFLOWED) {
                    socket.state.set(State::OVERFLOWED);
                    let bytes = self.overflow.entry(key.index).or_default();
                    bytes.extend_from_slice(pool.lend(buffer, len).bytes());
                } else {
                    pool.append(&mut socket.chain, buffer, len);
                }
                let socket = self.socket(key);
                let stop = more
                    && socket.chain.len() >= PIECES_MAX
                    && !socket.state.has(State::STOPPING_RECEIVE);
                if stop {
                    socket.state.set(State::STOPPING_RECEIVE);
                    self.ring.cancel_recv(key);
                }
                return self.wake_reader(key);
            }
            (Some(buffer), _) => pool.offer(buffer),
            (None, _) => {}
        }
        let socket = self.socket(key);
        match (result < 0).then(|| Errno::from_raw_os_error(-result)) {
            None => socket.state.set(State::END),
            Some(Errno::NOBUFS) => {
                if socket.state.has(State::WANTS_BYTES) && !socket.state.has(State::CLOSING) {
                    self.starved.push_back(key);
                }
                return self.settle_closing(key);
            }
            Some(Errno::CANCELED | Errno::INTR) => {
                // It was stopped for being ahead, and its task has caught up meanwhile.
                if socket.state.has(State::WANTS_BYTES) && !socket.state.has(State::CLOSING) {
                    socket.state.set(State::RECEIVING);
                    let multishot = socket.state.has(State::KEPT);
                    let target = self.target(key);
                    self.ring.recv(target, key, multishot);
                    return None;
                }
                return self.settle_closing(key);
            }
            Some(_) => socket.recv_error = -result,
        }
        self.settle_closing(key).or_else(|| self.wake_reader(key))
    }

    fn sent(&mut self, key: Key, result: i32, mut out: Box<Outgoing>) -> Option<Token> {
        let target = self.target(key);
        let socket = self.live(key)?;
        out.at += usize::try_from(result).unwrap_or(0);
        if result > 0 && !out.rest().is_empty() && !socket.state.has(State::CLOSING) {
            // Interrupted half-way: go on.
            self.ring.send(target, key, out);
            return None;
        }
        socket.state.clear(State::SENDING);
        socket.state.set(State::SENT);
        socket.sent = result;
        self.spare.put(out);
        self.settle(key)
    }

    /// After a completion: closes a socket that only waited for it, or names who waits.
    fn settle(&mut self, key: Key) -> Option<Token> {
        if self.socket(key).state.has(State::CLOSING) {
            return self.settle_closing(key);
        }
        Some(self.socket(key).waiter)
    }

    fn settle_closing(&mut self, key: Key) -> Option<Token> {
        let state = self.socket(key).state;
        if state.has(State::CLOSING) && !state.has(State::UNDER_WAY) {
            self.release(key);
        }
        None
    }

    fn wake_reader(&mut self, key: Key) -> Option<Token> {
        let socket = self.live(key)?;
        let wants = socket.state.has(State::WANTS_BYTES);
        socket.state.clear(State::WANTS_BYTES);
        wants.then_some(socket.waiter)
    }

    /// Arms the receives that had to wait for buffers, as many as there are buffers now.
    fn feed_starved(&mut self) {
        let mut buffers = self.ring.pool().available();
        while buffers > 0
            && let Some(key) = self.starved.pop_front()
        {
            let target = self.target(key);
            let Some(socket) = self.live(key) else {
                continue;
            };
            if socket.state.has(State::RECEIVING | State::CLOSING) {
                continue;
            }
            let multishot = socket.state.has(State::KEPT);
            socket.state.set(State::RECEIVING);
            self.ring.recv(target, key, multishot);
            buffers -= 1;
        }
    }

    fn release(&mut self, key: Key) {
        let socket = self.socket(key);
        let generation = (socket.generation + 1) & 0xff_ffff;
        *socket = Socket { generation, ..Socket::default() };
        if key.index < self.table {
            self.ring.close_direct(key.index);
            self.close_pushed = true;
        } else {
            self.ordinary_free.push(key.index - self.table);
        }
    }

    fn open_direct(&mut self, slot: u32) -> UringIo {
        if self.direct.len() <= slot as usize {
            self.direct.resize_with(slot as usize + 1, Socket::default);
        }
        let socket = &mut self.direct[slot as usize];
        socket.state = State(State::OPEN);
        UringIo { key: Key { index: slot, generation: socket.generation } }
    }

    fn target(&self, key: Key) -> Target {
        match key.index.checked_sub(self.table) {
            None => Target::Direct(key.index),
            Some(at) => {
                let fd = self.ordinary[at as usize].fd.as_ref();
                Target::Descriptor(fd.map_or(-1, AsRawFd::as_raw_fd))
            }
        }
    }

    fn socket(&mut self, key: Key) -> &mut Socket {
        match key.index.checked_sub(self.table) {
            None => &mut self.direct[key.index as usize],
            Some(at) => &mut self.ordinary[at as usize],
        }
    }

    /// The socket, unless the completion is a late one of its predecessor.
    fn live(&mut self, key: Key) -> Option<&mut Socket> {
        let socket = self.socket(key);
        (socket.generation == key.generation && socket.state.has(State::OPEN)).then_some(socket)
    }
}

fn was_cancelled(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::CANCELED)
}

fn number(result: i32) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}
