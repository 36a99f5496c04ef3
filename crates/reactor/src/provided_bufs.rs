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

/// Bytes of each buffer: most request heads fit.
pub(crate) const BUFFER_BYTES: usize = BUFFER_BYTES_U32 as usize;
const BUFFER_BYTES_U32: u32 = 4096;
const PAGE: usize = 4096;
const NIL: u16 = u16::MAX;

/// The buffers of one ring, and the ring of those that the kernel may fill next.
///
/// A buffer is in exactly one of three places: in the kernel's ring, in a connection's chain of
/// received pieces ([`RecvQueue`]), or in a [`ProvidedBuf`]. Only in the first may the kernel write
/// to it.
pub(crate) struct ProvidedBufs {
    /// The kernel's ring (whole pages), then `count` buffers.
    base: NonNull<u8>,
    layout: Layout,
    ring_bytes: usize,
    count: u16,
    tail: Cell<u16>,
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
    len: u16,
}

impl Default for RecvQueue {
    fn default() -> Self {
        Self { first: NIL, last: NIL, len: 0 }
    }
}

impl RecvQueue {
    pub(crate) fn len(&self) -> u16 {
        self.len
    }
}

impl ProvidedBufs {
    /// Allocates `count` buffers (a power of two, at most 32,768) and offers all to the kernel.
    pub(crate) fn new(count: u16) -> Rc<Self> {
        assert!(count.is_power_of_two(), "the kernel's ring wraps by masking");
        let ring_bytes = (usize::from(count) * size_of::<BufRingEntry>()).next_multiple_of(PAGE);
        let bytes = ring_bytes + usize::from(count) * BUFFER_BYTES;
        let layout = Layout::from_size_align(bytes, PAGE).expect("a few megabytes are a layout");
        // SAFETY: the layout has a size above zero: `count` is a power of two, so at least one.
        let memory = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        let links = vec![Cell::default(); usize::from(count)].into_boxed_slice();
        let (tail, available) = (Cell::new(0), Cell::new(0));
        let pool = Rc::new(Self { base, layout, ring_bytes, count, tail, available, links });
        for id in 0..count {
            pool.offer(id);
        }
        pool
    }

    /// Returns where the kernel finds its ring, for registering it.
    pub(crate) fn ring_address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    /// Returns how many buffers the kernel may fill.
    pub(crate) fn available(&self) -> u16 {
        self.available.get()
    }

    /// Returns whether any buffer is not the kernel's to fill.
    pub(crate) fn has_lent(&self) -> bool {
        self.available.get() != self.count
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
        let tail = self.tail.get();
        let slot = usize::from(tail & (self.count - 1));
        // The entry is an address, a length and a number; its last two bytes are not ours, for in
        // the ring's first entry they hold the tail.
        const { assert!(size_of::<BufRingEntry>() == 16, "the kernel's entry is 16 bytes") };
        let mut entry = [0_u8; 14];
        let address = self.buffer(id).as_ptr().expose_provenance() as u64;
        entry[..8].copy_from_slice(&address.to_ne_bytes());
        entry[8..12].copy_from_slice(&BUFFER_BYTES_U32.to_ne_bytes());
        entry[12..].copy_from_slice(&id.to_ne_bytes());
        // SAFETY: `slot < count`, so the entry lies inside the ring.
        let place = unsafe { self.base.add(slot * 16) };
        // SAFETY: the 14 bytes lie inside the ring; the kernel reads a slot only after the tail has
        // passed it, which happens below.
        unsafe { place.as_ptr().copy_from_nonoverlapping(entry.as_ptr(), entry.len()) };
        self.tail.set(tail.wrapping_add(1));
        self.available.set(self.available.get() + 1);
        // SAFETY: the ring has at least one entry, of 16 bytes.
        let tail = unsafe { self.base.add(14) };
        // SAFETY: bytes 14 and 15 of the first entry are aligned for u16, and are only ever
        // accessed atomically: here and by the kernel.
        let published = unsafe { AtomicU16::from_ptr(tail.as_ptr().cast()) };
        published.store(self.tail.get(), Ordering::Release);
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
        recv_queue.len += 1;
    }

    /// Takes the first buffer of a chain.
    pub(crate) fn pop(self: &Rc<Self>, recv_queue: &mut RecvQueue) -> Option<ProvidedBuf> {
        let link = self.links.get(usize::from(recv_queue.first))?.get();
        let taken = self.lend(recv_queue.first, link.len);
        recv_queue.first = link.next;
        recv_queue.len -= 1;
        if recv_queue.len == 0 {
            *recv_queue = RecvQueue::default();
        }
        Some(taken)
    }

    fn buffer(&self, id: u16) -> NonNull<u8> {
        debug_assert!(id < self.count, "the kernel only names buffers it was offered");
        let at = self.ring_bytes + usize::from(id) * BUFFER_BYTES;
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
        assert_eq!((recv_queue.len(), pool.available()), (3, 5));
        assert!(pool.has_lent() && pool.owner(2) == 7);
        for id in 0..3_u16 {
            let piece = pool.pop(&mut recv_queue).expect("three were appended");
            assert_eq!(piece.bytes().len(), usize::from(10 + id));
        }
        assert!(pool.pop(&mut recv_queue).is_none());
        assert!(!pool.has_lent());
    }
}
