//! The `io_uring` system calls: submissions go in as typed calls, completions come out as an enum.
//! Calls on descriptors by number are in [`by_number`], what rustix does not name in [`options`].
//! One of the files that may say `unsafe` (`CONTRIBUTING.md`).
//!
//! All memory that the kernel may touch after a submission is owned here until its completion:
//! bytes to send and lists of them in [`Sends`], received bytes in the [`ProvidedBufs`] and the
//! [`BufRing`]s of large ones.

#![expect(
    unsafe_code,
    reason = "submissions name memory; each block says who owns it and until when"
)]

pub(crate) mod by_number;
pub(crate) mod options;
pub(crate) mod private_file;
mod receiving;
pub(crate) mod secret_memory;
mod sends;

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::rc::Rc;

use io_uring::opcode::{Send, SendMsg};
use io_uring::types::{CancelBuilder, DestinationSlot, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::buf::{PARTS_MAX, SendBuf, SendForm};
use crate::large_bufs::LargeBuf;
use crate::memory_account::{BufferAccount, FixedBuffers};
use crate::provided_bufs::{BUFFER_BYTES, BufRing, ProvidedBufs};
use receiving::LargeRecv;
use sends::{SendUnderWay, Sends};

pub(crate) use receiving::RecvKind;

/// `MSG_NOSIGNAL`. With `MSG_WAITALL` the kernel would go on by itself until everything is sent,
/// and nobody could tell a peer that takes bytes slowly from one that takes none.
const SEND_FLAGS: i32 = 0x4000;
const MSG_MORE: i32 = 0x8000;
/// `SOCK_NONBLOCK | SOCK_CLOEXEC`, for sockets accepted as ordinary descriptors.
const ACCEPT_FLAGS: i32 = 0o4000 | 0o2_000_000;
const EDGE_TRIGGERED: u32 = 1 << 31;
const BUFFER_GROUP: u16 = 0;

/// The socket of an operation: an index into a table, and the generation of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    /// 24 bits.
    pub(crate) generation: u32,
}

/// A socket as the ring knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FdTarget {
    /// In the ring's own descriptor table.
    Direct(u32),
    /// An ordinary descriptor; its owner keeps it open until the operation is complete.
    Descriptor(i32),
}

impl FdTarget {
    /// Returns its number. [`Ring::push_on`] says which kind it is.
    fn fd(self) -> Fd {
        match self {
            Self::Direct(slot) => Fd(slot.cast_signed()),
            Self::Descriptor(fd) => Fd(fd),
        }
    }
}

/// The longest wait for a completion.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EnterWait {
    Not,
    For(Timespec),
    Forever,
}

/// The completion of an operation.
#[derive(Debug)]
pub(crate) enum Completion {
    /// A connection in the ring's descriptor table.
    AcceptedDirect { key: Key, result: io::Result<u32>, more: bool },
    /// A connection as an ordinary descriptor.
    Accepted { key: Key, result: io::Result<OwnedFd> },
    /// Bytes are in buffer `buffer`; zero bytes without one are the peer's end.
    Received { key: Key, result: i32, buffer: Option<u16>, more: bool },
    /// Bytes are in a large buffer; zero bytes without one are the peer's end.
    ReceivedLarge { key: Key, result: i32, buf: Option<LargeBuf> },
    /// So many bytes are gone; none is the peer's end.
    Discarded { key: Key, result: i32 },
    /// A send ended; the bytes come back.
    Sent { key: Key, result: i32, out: Box<SendBuf> },
    /// An ordinary descriptor of a direct socket is installed.
    Installed { key: Key, result: io::Result<OwnedFd> },
    /// A descriptor is ready, or the poll failed.
    Polled { key: Key },
    /// A connection waits at a listener, or the poll was cancelled.
    ListenerPolled { key: Key },
    /// The peer was told that nothing more will come.
    ShutDown { key: Key },
    /// The eventfd was written to.
    Woken { more: bool },
    /// No task waits for it.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum OpKind {
    Nothing,
    AcceptDirect,
    Accept,
    Recv,
    Send,
    Install,
    Poll,
    ReactorWaker,
    ShutDown,
    PollListener,
    RecvLarge,
    Discard,
}

impl OpKind {
    const ALL: [Self; 12] = [
        Self::Nothing,
        Self::AcceptDirect,
        Self::Accept,
        Self::Recv,
        Self::Send,
        Self::Install,
        Self::Poll,
        Self::ReactorWaker,
        Self::ShutDown,
        Self::PollListener,
        Self::RecvLarge,
        Self::Discard,
    ];

    fn tag(self, key: Key) -> u64 {
        (self as u64) << 56 | u64::from(key.generation & 0xff_ffff) << 32 | u64::from(key.index)
    }

    fn of(user_data: u64) -> (Self, Key) {
        let [k, g2, g1, g0, index @ ..] = user_data.to_be_bytes();
        let generation = u32::from_be_bytes([0, g2, g1, g0]);
        let kind = Self::ALL.get(usize::from(k)).copied().unwrap_or(Self::Nothing);
        (kind, Key { index: u32::from_be_bytes(index), generation })
    }
}

const NO_KEY: Key = Key { index: 0, generation: 0 };

/// A ring with its descriptor table and its provided buffers.
pub(crate) struct Ring {
    uring: IoUring,
    pool: Rc<ProvidedBufs>,
    /// Made when it is first needed: most servers receive no large bodies.
    large: LargeRecv,
    account: BufferAccount,
    _fixed: FixedBuffers,
    /// Bytes being sent, and where the kernel finds the parts of those that lie in several places.
    sends: Sends,
    /// Receives that may still write to the pool or to a large buffer.
    receives_under_way: usize,
}

impl Ring {
    /// Sets up a ring, its table of `direct` descriptors and its buffers.
    ///
    /// # Errors
    /// Whatever the kernel says to any step; the text names the step.
    pub(crate) fn new(
        entries: u32,
        direct: u32,
        buffers: u16,
        account: BufferAccount,
    ) -> io::Result<Self> {
        if !buffers.is_power_of_two() {
            let text = format!("receive buffers: expected a power of two, found {buffers}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(entries * 8)
            .build(entries)
            .map_err(|error| named("io_uring_setup", &error))?;
        let pool = ProvidedBufs::new(buffers);
        let submitter = uring.submitter();
        submitter
            .register_files_sparse(direct)
            .map_err(|error| named("registering a descriptor table", &error))?;
        register_bufs(&submitter, pool.ring(), BUFFER_GROUP)
            .map_err(|error| named("registering provided buffers", &error))?;
        let (large, sends) = (LargeRecv::Unused, Sends::default());
        let fixed = FixedBuffers::new(&account, usize::from(buffers) * BUFFER_BYTES);
        Ok(Self { uring, pool, large, account, _fixed: fixed, sends, receives_under_way: 0 })
    }

    pub(crate) fn pool(&self) -> &Rc<ProvidedBufs> {
        &self.pool
    }

    /// Accepts connections into the descriptor table, one or as many as come.
    pub(crate) fn accept_direct(&mut self, listener: BorrowedFd<'_>, key: Key, multishot: bool) {
        let fd = Fd(listener.as_raw_fd());
        let entry = if multishot {
            opcode::AcceptMulti::new(fd).allocate_file_index(true).build()
        } else {
            opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut())
                .file_index(Some(DestinationSlot::auto_target()))
                .build()
        };
        self.push(&entry.user_data(OpKind::AcceptDirect.tag(key)));
    }

    /// Accepts one connection as an ordinary descriptor.
    pub(crate) fn accept(&mut self, listener: BorrowedFd<'_>, key: Key) {
        let fd = Fd(listener.as_raw_fd());
        let entry = opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut())
            .flags(ACCEPT_FLAGS)
            .build();
        self.push(&entry.user_data(OpKind::Accept.tag(key)));
    }

    /// Waits once until a connection waits at a listener.
    pub(crate) fn poll_listener(&mut self, listener: BorrowedFd<'_>, key: Key) {
        let mask = mask_of(PollFlags::IN);
        let entry = opcode::PollAdd::new(Fd(listener.as_raw_fd()), mask).build();
        self.push(&entry.user_data(OpKind::PollListener.tag(key)));
    }

    pub(crate) fn cancel_accept(&mut self, key: Key) {
        for kind in [OpKind::AcceptDirect, OpKind::Accept, OpKind::PollListener] {
            let entry = opcode::AsyncCancel::new(kind.tag(key)).build();
            self.push(&entry.user_data(OpKind::Nothing.tag(NO_KEY)));
        }
    }

    pub(crate) fn cancel_recv(&mut self, key: Key) {
        let entry = opcode::AsyncCancel::new(OpKind::Recv.tag(key)).build();
        self.push(&entry.user_data(OpKind::Nothing.tag(NO_KEY)));
    }

    /// Sends all bytes. They are kept here until the completion brings them back. Returns the place
    /// of the send.
    pub(crate) fn send(&mut self, target: FdTarget, key: Key, out: Box<SendBuf>) -> u32 {
        let flags = SEND_FLAGS | if out.form.is_followed() { MSG_MORE } else { 0 };
        let message = (out.form == SendForm::Parts).then(|| Box::new(Message::of(&out)));
        let (place, send) = self.sends.keep(SendUnderWay { key, out, message });
        // The pointers are taken of what lies where it stays.
        let entry = if let Some(message) = &send.message {
            let header = &raw const message.header;
            SendMsg::new(target.fd(), header).flags(flags.cast_unsigned()).build()
        } else {
            let bytes = send.out.rest();
            let (start, len) = (bytes.as_ptr(), u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            Send::new(target.fd(), start, len).flags(flags).build()
        };
        // Its place instead of a generation: the key is kept with it.
        let tag = OpKind::Send.tag(Key { index: key.index, generation: place });
        self.push_on(target, entry, tag);
        place
    }

    /// Returns what is being sent from a place, if anything.
    pub(crate) fn sending(&self, place: u32) -> Option<&SendBuf> {
        self.sends.get(place)
    }

    /// Installs an ordinary descriptor of a direct socket, for the calls that `io_uring` lacks.
    pub(crate) fn install(&mut self, slot: u32, key: Key) {
        let entry = opcode::FixedFdInstall::new(Fixed(slot), 0).build();
        self.push(&entry.user_data(OpKind::Install.tag(key)));
    }

    /// Waits once for readiness.
    pub(crate) fn poll(&mut self, target: FdTarget, key: Key, events: PollFlags) {
        let entry = opcode::PollAdd::new(target.fd(), mask_of(events)).build();
        self.push_on(target, entry, OpKind::Poll.tag(key));
    }

    /// Reports each write to an eventfd that is never read.
    pub(crate) fn watch_waker(&mut self, eventfd: BorrowedFd<'_>) {
        let mask = mask_of(PollFlags::IN) | EDGE_TRIGGERED;
        let entry = opcode::PollAdd::new(Fd(eventfd.as_raw_fd()), mask).multi(true).build();
        self.push(&entry.user_data(OpKind::ReactorWaker.tag(NO_KEY)));
    }

    /// Ends everything under way on a socket.
    pub(crate) fn cancel_all(&mut self, target: FdTarget) {
        let builder = match target {
            FdTarget::Direct(slot) => CancelBuilder::fd(Fixed(slot)),
            FdTarget::Descriptor(fd) => CancelBuilder::fd(Fd(fd)),
        };
        let entry = opcode::AsyncCancel2::new(builder.all()).build();
        self.push(&entry.user_data(OpKind::Nothing.tag(NO_KEY)));
    }

    /// Tells the peer that no more bytes will come.
    pub(crate) fn shutdown_write(&mut self, target: FdTarget, key: Key) {
        let how = rustix::net::Shutdown::Write as i32;
        let entry = opcode::Shutdown::new(target.fd(), how).build();
        self.push_on(target, entry, OpKind::ShutDown.tag(key));
    }

    /// Puts an ordinary descriptor into a free slot of the descriptor table, or empties the
    /// slot, at once.
    pub(crate) fn update_slot(
        &self,
        slot: u32,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let descriptor = descriptor.map_or(-1, |descriptor| descriptor.as_raw_fd());
        match self.uring.submitter().register_files_update(slot, &[descriptor])? {
            1 => Ok(()),
            _ => Err(io::Error::other("the ring's table did not take a descriptor")),
        }
    }

    /// Frees a slot of the descriptor table.
    pub(crate) fn close_direct(&mut self, slot: u32) {
        self.push(&silent(opcode::Close::new(Fixed(slot)).build()));
    }

    /// Submits what was pushed, and waits for a completion.
    pub(crate) fn enter(&mut self, wait: EnterWait) -> io::Result<()> {
        let submitter = self.uring.submitter();
        let result = match wait {
            EnterWait::Not => submitter.submit(),
            EnterWait::Forever => submitter.submit_and_wait(1),
            EnterWait::For(timeout) => {
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // The time is over, a signal came, or completions must be taken first.
                Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes the completions that have come.
    pub(crate) fn completions(&mut self, into: &mut Vec<Completion>) {
        let Self { uring, sends, receives_under_way, pool, large, .. } = self;
        for entry in uring.completion() {
            let (kind, key) = OpKind::of(entry.user_data());
            let (result, more) = (entry.result(), cqueue::more(entry.flags()));
            into.push(match kind {
                OpKind::Recv => {
                    let buffer = cqueue::buffer_select(entry.flags());
                    if buffer.is_some() {
                        pool.filled();
                    }
                    *receives_under_way -= usize::from(!more);
                    Completion::Received { key, result, buffer, more }
                }
                OpKind::RecvLarge => {
                    let id = cqueue::buffer_select(entry.flags());
                    let len = usize::try_from(result).unwrap_or(0);
                    let buf = match large {
                        LargeRecv::Ready(large) => id.and_then(|id| large.filled(id, len)),
                        LargeRecv::Unused | LargeRecv::Refused => None,
                    };
                    *receives_under_way -= 1;
                    Completion::ReceivedLarge { key, result, buf }
                }
                OpKind::Discard => {
                    *receives_under_way -= 1;
                    Completion::Discarded { key, result }
                }
                OpKind::Send => {
                    let SendUnderWay { key, out, .. } = sends.take(key.generation);
                    Completion::Sent { key, result, out }
                }
                OpKind::AcceptDirect => {
                    let result = number(result);
                    Completion::AcceptedDirect { key, result, more }
                }
                OpKind::Accept => Completion::Accepted { key, result: descriptor(result) },
                OpKind::Install => Completion::Installed { key, result: descriptor(result) },
                OpKind::Poll => Completion::Polled { key },
                OpKind::PollListener => Completion::ListenerPolled { key },
                OpKind::ShutDown => Completion::ShutDown { key },
                OpKind::ReactorWaker => Completion::Woken { more },
                OpKind::Nothing => Completion::Nothing,
            });
        }
    }

    /// Pushes an operation on a socket, whose number it names already.
    fn push_on(&mut self, target: FdTarget, entry: squeue::Entry, user_data: u64) {
        let entry = match target {
            FdTarget::Direct(_) => entry.flags(squeue::Flags::FIXED_FILE),
            FdTarget::Descriptor(_) => entry,
        };
        self.push(&entry.user_data(user_data));
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entries above name either no memory, the pool's, that of large buffers on
        // offer, or bytes and lists of them kept in `sends`.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            // The queue is full: hand it to the kernel. Should that fail, the next turn says so.
            if self.enter(EnterWait::Not).is_err() {
                return;
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A ring dies a little after its descriptor. What its last operations may still touch is
        // given up rather than freed under them.
        if !self.sends.is_empty() {
            mem::forget(mem::take(&mut self.sends));
        }
        if self.receives_under_way > 0 {
            mem::forget(Rc::clone(&self.pool));
            mem::forget(mem::replace(&mut self.large, LargeRecv::Unused));
        }
    }
}

/// Lets the kernel fill the buffers that a ring offers, as a group of this ring.
fn register_bufs(submitter: &Submitter<'_>, ring: &BufRing, group: u16) -> io::Result<()> {
    // SAFETY: the memory outlives its registration: `Ring` holds it, and `drop` leaks it if a
    // receive might still be under way.
    unsafe { submitter.register_buf_ring_with_flags(ring.address(), ring.count(), group, 0) }
}

/// The parts of a send, as the kernel wants them listed. They lie in an [`SendBuf`] that is kept
/// for as long; the addresses in it are only read by the kernel.
struct Message {
    parts: Vec<libc::iovec>,
    header: libc::msghdr,
}

impl Message {
    fn of(out: &SendBuf) -> Self {
        let part = |part: &[u8]| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        };
        let parts = out.parts().take(PARTS_MAX).map(part).collect();
        // SAFETY: a message without a name, parts and control data is all zeros (recvmsg(2)).
        let header = unsafe { mem::zeroed() };
        let mut message = Self { parts, header };
        message.header.msg_iov = message.parts.as_mut_ptr();
        message.header.msg_iovlen = message.parts.len() as _;
        message
    }
}

/// An operation that says nothing when it succeeds.
fn silent(entry: squeue::Entry) -> squeue::Entry {
    entry.flags(squeue::Flags::SKIP_SUCCESS).user_data(OpKind::Nothing.tag(NO_KEY))
}

/// Returns the bits as the ring takes them. Their type is signed where rustix goes through libc: in
/// Miri.
fn mask_of(events: PollFlags) -> u32 {
    u32::from(u16::from_ne_bytes(events.bits().to_ne_bytes()))
}

pub(crate) fn number(result: i32) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

fn descriptor(result: i32) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: the kernel just gave us this descriptor and nothing else holds it, so we are its sole
    // owner.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

fn named(step: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
