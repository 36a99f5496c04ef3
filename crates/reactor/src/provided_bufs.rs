//! Provided buffers: memory that the kernel fills when bytes arrive, so that an idle connection
//! holds none. One of the files that may say `unsafe` (`CONTRIBUTING.md`).

#![expect(
    unsafe_code,
    reason = "the kernel writes into this memory; each block says why that is sound"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use crate::large_bufs::{LargeBuf, LargeBufs};
use crate::memory_account::BufferAccount;

/// Bytes of each buffer: most request heads fit.
pub(crate) const BUFFER_BYTES: usize = BUFFER_BYTES_U32 as usize;
const BUFFER_BYTES_U32: u32 = 4096;
const PAGE: usize = 4096;
const NIL: u16 = u16::MAX;

/// A ring in which the kernel finds the buffers that it may fill next.
pub(crate) struct BufRing {
    base: NonNull<u8>,
    layout: Layout,
    count: u16,
    tail: Cell<u16>,
}

impl BufRing {
    /// Allocates a ring of `count` entries, a power of two of at most 32,768.
    fn new(count: u16) -> Self {
        assert!(count.is_power_of_two(), "the kernel's ring wraps by masking");
        let bytes = (usize::from(count) * size_of::<BufRingEntry>()).next_multiple_of(PAGE);
        let layout = Layout::from_size_align(bytes, PAGE).expect("half a megabyte is a layout");
        // SAFETY: the layout has a size above zero: `count` is a power of two, so at least one.
        let memory = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout, count, tail: Cell::new(0) }
    }

    /// Returns where the kernel finds it, for registering it.
    pub(crate) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    /// Returns how many buffers it takes.
    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    /// Lets the kernel fill a buffer, which the caller keeps until the kernel names its `id`. A
    /// ring holds at most `count` buffers at a time.
    fn offer(&self, id: u16, address: u64, len: u32) {
        let tail = self.tail.get();
        let slot = usize::from(tail & (self.count - 1));
        // The entry is an address, a length and a number; its last two bytes are not ours, for in
        // the ring's first entry they hold the tail.
        const { assert!(size_of::<BufRingEntry>() == 16, "the kernel's entry is 16 bytes") };
        let mut entry = [0_u8; 14];
        entry[..8].copy_from_slice(&address.to_ne_bytes());
        entry[8..12].copy_from_slice(&len.to_ne_bytes());
        entry[12..].copy_from_slice(&id.to_ne_bytes());
        // SAFETY: `slot < count`, so the entry lies inside the ring.
        let place = unsafe { self.base.add(slot * 16) };
        // SAFETY: the 14 bytes lie inside the ring; the kernel reads a slot only after the tail has
        // passed it, which happens below.
        unsafe { place.as_ptr().copy_from_nonoverlapping(entry.as_ptr(), entry.len()) };
        self.tail.set(tail.wrapping_add(1));
        // SAFETY: the ring has at least one entry, of 16 bytes.
        let tail = unsafe { self.base.add(14) };
        // SAFETY: bytes 14 and 15 of the first entry are aligned for u16, and are only ever
        // accessed atomically: here and by the kernel.
        let published = unsafe { AtomicU16::from_ptr(tail.as_ptr().cast()) };
        published.store(self.tail.get(), Ordering::Release);
    }
}

impl Drop for BufRing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout. The kernel has pinned the pages of a ring
        // for as long as it is registered, so it touches no memory that this frees.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// How many large buffers the kernel may fill at a time: a power of two.
const LARGE_OFFERED: u16 = 4;

/// The large buffers that the kernel may fill next. One that it has filled leaves, and another
/// takes its place.
pub(crate) struct LargeBufRing {
    ring: BufRing,
    /// The buffers that the kernel may fill, by their ids.
    offered: Vec<Option<LargeBuf>>,
    available: u16,
    bufs: LargeBufs,
}

impl LargeBufRing {
    /// Creates a ring without any buffer.
    pub(crate) fn new(account: BufferAccount) -> Self {
        let offered = (0..LARGE_OFFERED).map(|_| None).collect();
        let (ring, bufs) = (BufRing::new(LARGE_OFFERED), LargeBufs::new(account));
        Self { ring, offered, available: 0, bufs }
    }

    /// Returns the ring, for registering it.
    pub(crate) fn ring(&self) -> &BufRing {
        &self.ring
    }

    /// Offers buffers in place of those that were filled, as many as the pool has. Returns how
    /// many the kernel may fill.
    pub(crate) fn refill(&mut self) -> u16 {
        if self.available < self.ring.count {
            for (id, place) in (0..).zip(&mut self.offered).filter(|(_, place)| place.is_none()) {
                let Some(buf) = self.bufs.take() else { break };
                // The address is taken of the buffer where it stays.
                let room = place.insert(buf).room();
                let len = u32::try_from(room.len()).expect("a large buffer is below 4 GiB");
                let address = room.as_mut_ptr().expose_provenance() as u64;
                // The kernel writes within these bytes until it names the id: until then nothing
                // here reads, moves or frees them, for only `filled` takes them out, and who owns
                // this ring keeps it while any receive may be under way.
                self.ring.offer(id, address, len);
                self.available += 1;
            }
        }
        self.available
    }

    /// Takes the buffer out that the kernel has filled with `len` bytes, or picked and not filled.
    pub(crate) fn filled(&mut self, id: u16, len: usize) -> Option<LargeBuf> {
        let mut buf = self.offered.get_mut(usize::from(id))?.take()?;
        self.available -= 1;
        buf.fill(len);
        Some(buf)
    }
}

/// The buffers of one ring, and the ring of those that the kernel may fill next.
///
/// A buffer is in exactly one of three places: in the kernel's ring, in a connection's chain of
/// received pieces ([`RecvQueue`]), or in a [`ProvidedBuf`]. Only in the first may the kernel write
/// to it.
pub(crate) struct ProvidedBufs {
    ring: BufRing,
    /// The buffers, one behind the other.
    base: NonNull<u8>,
    layout: Layout,
    available: Cell<u16>,
    /// For a buffer in a chain: the next one, how many bytes it holds, and whose it is.
    links: Box<[Cell<QueuedBuf>]>,
}

#[derive(Debug, Clone, Copy)]
struct QueuedBuf {
    next: u16,
    len: u16,
    owner: u32,
}

impl Default for QueuedBuf {
    fn default() -> Self {
        Self { next: NIL, len: 0, owner: u32::MAX }
    }
}

/// Received pieces that wait for their connection, first in first out. Held in the pool's links.
#[derive(Debug)]
pub(crate) struct RecvQueue {
    first: u16,
    last: u16,
}

impl Default for RecvQueue {
    fn default() -> Self {
        Self { first: NIL, last: NIL }
    }
}

impl RecvQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NIL
    }

    /// Returns whether there are two pieces or more.
    pub(crate) fn has_several(&self) -> bool {
        self.first != self.last
    }
}

impl ProvidedBufs {
    /// Allocates `count` buffers (a power of two, at most 32,768) and offers all to the kernel.
    pub(crate) fn new(count: u16) -> Rc<Self> {
        let ring = BufRing::new(count);
        let bytes = usize::from(count) * BUFFER_BYTES;
        let layout = Layout::from_size_align(bytes, PAGE).expect("a few megabytes are a layout");
        // SAFETY: the layout has a size above zero: `count` is a power of two, so at least one.
        let memory = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        let links = vec![Cell::default(); usize::from(count)].into_boxed_slice();
        let pool = Rc::new(Self { ring, base, layout, available: Cell::new(0), links });
        for id in 0..count {
            pool.offer(id);
        }
        pool
    }

    /// Returns the ring, for registering it.
    pub(crate) fn ring(&self) -> &BufRing {
        &self.ring
    }

    pub(crate) fn count(&self) -> u16 {
        self.ring.count
    }

    /// Returns how many buffers the kernel may fill.
    pub(crate) fn available(&self) -> u16 {
        self.available.get()
    }

    /// Returns whether any buffer is not the kernel's to fill.
    pub(crate) fn has_lent(&self) -> bool {
        self.available.get() != self.ring.count
    }

    /// Whose chain a buffer was put into last; no socket's if that was never done.
    pub(crate) fn owner(&self, id: u16) -> u32 {
        self.links[usize::from(id)].get().owner
    }

    /// The kernel has filled one buffer: it is out of its ring.
    pub(crate) fn filled(&self) {
        self.available.set(self.available.get().saturating_sub(1));
    }

    /// Gives a buffer (back) to the kernel.
    pub(crate) fn offer(&self, id: u16) {
        let address = self.buffer(id).as_ptr().expose_provenance() as u64;
        self.ring.offer(id, address, BUFFER_BYTES_U32);
        self.available.set(self.available.get() + 1);
    }

    /// A filled buffer on loan, past any chain.
    pub(crate) fn lend(self: &Rc<Self>, id: u16, len: u16) -> ProvidedBuf {
        ProvidedBuf { pool: Rc::clone(self), id, len }
    }

    /// Puts a filled buffer at the end of the chain of a connection, `owner`.
    pub(crate) fn append(&self, recv_queue: &mut RecvQueue, id: u16, len: u16, owner: u32) {
        self.links[usize::from(id)].set(QueuedBuf { next: NIL, len, owner });
        match self.links.get(usize::from(recv_queue.last)) {
            Some(last) => last.set(QueuedBuf { next: id, ..last.get() }),
            None => recv_queue.first = id,
        }
        recv_queue.last = id;
    }

    /// Takes the first buffer of a chain.
    pub(crate) fn pop(self: &Rc<Self>, recv_queue: &mut RecvQueue) -> Option<ProvidedBuf> {
        let link = self.links.get(usize::from(recv_queue.first))?.get();
        let taken = self.lend(recv_queue.first, link.len);
        if recv_queue.has_several() {
            recv_queue.first = link.next;
        } else {
            *recv_queue = RecvQueue::default();
        }
        Some(taken)
    }

    fn buffer(&self, id: u16) -> NonNull<u8> {
        debug_assert!(id < self.ring.count, "the kernel only names buffers it was offered");
        let at = usize::from(id) * BUFFER_BYTES;
        // SAFETY: `id < count`, so the buffer begins inside the allocation.
        unsafe { self.base.add(at) }
    }
}

impl Drop for ProvidedBufs {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; no `ProvidedBuf` is left, for each holds the
        // pool; and the ring that it is registered with keeps it until no receive is under way.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// One filled buffer, on loan. It goes back to the kernel when dropped.
pub(crate) struct ProvidedBuf {
    pool: Rc<ProvidedBufs>,
    id: u16,
    len: u16,
}

impl ProvidedBuf {
    pub(crate) fn bytes(&self) -> &[u8] {
        let start = self.pool.buffer(self.id);
        // SAFETY: the kernel wrote `len <= BUFFER_BYTES` bytes there and took the buffer out of its
        // ring, so nothing writes to it while this loan lasts; all bytes were zeroed at the start.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), usize::from(self.len)) }
    }
}

impl Drop for ProvidedBuf {
    fn drop(&mut self) {
        self.pool.offer(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_gives_its_pieces_in_order_and_the_buffers_come_back() {
        let pool = ProvidedBufs::new(8);
        let mut recv_queue = RecvQueue::default();
        for id in 0..3_u16 {
            pool.filled();
            pool.append(&mut recv_queue, id, 10 + id, 7);
        }
        assert!(recv_queue.has_several());
        assert_eq!(pool.available(), 5);
        assert!(pool.has_lent() && pool.owner(2) == 7);
        for id in 0..3_u16 {
            let piece = pool.pop(&mut recv_queue).expect("three were appended");
            assert_eq!(piece.bytes().len(), usize::from(10 + id));
        }
        assert!(recv_queue.is_empty() && pool.pop(&mut recv_queue).is_none());
        assert!(!pool.has_lent());
    }
}
