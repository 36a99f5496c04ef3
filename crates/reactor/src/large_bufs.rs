//! Large buffers, which the bytes of a large body are received into: one pool for each worker.
//!
//! A buffer is taken when bytes are there, not while they are awaited: a slow sender holds none.
//! What is received in one can be handed on as [`Bytes`] without a copy, to any thread. The pool is
//! bounded, and so is the memory that all pools of a server share ([`BufferAccount`]): past that
//! bytes are copied, or received into small buffers.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::memory_account::BufferAccount;

/// Bytes of each buffer. With 64 KiB, `io_uring` takes up to twice as long for a body of 2 MB while
/// other programs use the same CPU.
pub(crate) const LARGE_BYTES: usize = 256 << 10;

/// How many buffers a pool may have: 8 MiB.
const BUFS_MAX: usize = 32;
/// How many of them may be handed on: the others stay for receiving, and are copied from.
const KEPT_MAX: usize = 16;
/// How many unused buffers a pool keeps.
const UNUSED_MAX: usize = 4;

/// Fewer bytes are copied when they are handed on: copying costs less than a buffer that is away.
const KEPT_BYTES_MIN: usize = 16 << 10;

/// The large buffers of a worker.
#[derive(Clone, Default)]
pub(crate) struct LargeBufs(Arc<SharedPool>);

#[derive(Default)]
struct SharedPool {
    state: Mutex<PoolState>,
    /// Counts the buffers that exist.
    account: BufferAccount,
}

#[derive(Default)]
struct PoolState {
    unused: Vec<Vec<u8>>,
    /// Buffers that are taken.
    taken: usize,
    /// Taken buffers that were handed on.
    kept: usize,
}

impl LargeBufs {
    pub(crate) fn new(account: BufferAccount) -> Self {
        Self(Arc::new(SharedPool { state: Mutex::default(), account }))
    }

    /// Takes a buffer; `None` where too many are taken, or there is no memory for another one.
    pub(crate) fn take(&self) -> Option<LargeBuf> {
        let mut state = self.state();
        if state.taken == BUFS_MAX {
            return None;
        }
        let unused = state.unused.pop();
        if unused.is_none() && !self.0.account.has_room_for(LARGE_BYTES) {
            return None;
        }
        state.taken += 1;
        drop(state);
        let bytes = unused.unwrap_or_else(|| {
            self.0.account.add(LARGE_BYTES);
            vec![0; LARGE_BYTES]
        });
        Some(LargeBuf { bytes, len: 0, is_kept: false, pool: self.clone() })
    }

    /// Returns how many buffers are taken.
    #[cfg(test)]
    fn taken(&self) -> usize {
        self.state().taken
    }

    // A buffer may be dropped on any thread, so there is a lock. The worker itself almost never
    // waits for it.
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer of [`LARGE_BYTES`] bytes. It goes back to its pool when dropped.
pub(crate) struct LargeBuf {
    bytes: Vec<u8>,
    /// How many of the bytes were received.
    len: usize,
    is_kept: bool,
    pool: LargeBufs,
}

impl LargeBuf {
    /// Returns the memory to receive into.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Notes that `len` bytes were received.
    pub(crate) fn fill(&mut self, len: usize) {
        debug_assert!(len <= self.bytes.len(), "the kernel keeps within the buffer");
        self.len = len;
    }

    /// Returns the received bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Hands the received bytes on: without a copy where they fill a good part of the buffer, and
    /// not too many buffers were handed on.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        self.is_kept = self.len >= KEPT_BYTES_MIN && {
            let mut state = self.pool.state();
            let may_keep = state.kept < KEPT_MAX;
            state.kept += usize::from(may_keep);
            may_keep
        };
        if self.is_kept { Bytes::from_owner(self) } else { Bytes::copy_from_slice(self.bytes()) }
    }
}

impl fmt::Debug for LargeBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeBuf").field("len", &self.len).finish_non_exhaustive()
    }
}

impl AsRef<[u8]> for LargeBuf {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for LargeBuf {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.taken -= 1;
        state.kept -= usize::from(self.is_kept);
        let account = &self.pool.0.account;
        // Where there is no memory for one more, another worker may want this one.
        if state.unused.len() < UNUSED_MAX && account.has_room_for(LARGE_BYTES) {
            state.unused.push(std::mem::take(&mut self.bytes));
        } else {
            account.release(LARGE_BYTES);
        }
    }
}

impl Drop for SharedPool {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.account.release(state.unused.len() * LARGE_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_account::MemoryAccount;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// Room for three large buffers and a half.
    #[derive(Default)]
    struct Budget(AtomicI64);

    impl Budget {
        const BYTES: usize = 3 * LARGE_BYTES + LARGE_BYTES / 2;

        fn held(&self) -> usize {
            usize::try_from(self.0.load(Ordering::Relaxed)).expect("no more is released than held")
        }
    }

    impl MemoryAccount for Budget {
        fn change(&self, bytes: i64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn has_room_for(&self, bytes: usize) -> bool {
            self.held() + bytes <= Self::BYTES
        }
    }

    #[test]
    fn two_pools_share_their_memory_and_give_all_of_it_back() {
        let budget = Arc::new(Budget::default());
        let pool = || LargeBufs::new(BufferAccount::new(Arc::clone(&budget) as _));
        let (one, other) = (pool(), pool());
        let taken: Vec<_> = std::iter::from_fn(|| one.take()).collect();
        assert_eq!((taken.len(), budget.held()), (3, 3 * LARGE_BYTES));
        assert!(other.take().is_none(), "there is no memory for a fourth");
        drop(taken);
        // The first was let go while there was no room, so the other pool may have it.
        assert_eq!((one.state().unused.len(), budget.held()), (2, 2 * LARGE_BYTES));
        let kept = filled(&other, LARGE_BYTES).into_bytes();
        assert_eq!(budget.held(), 3 * LARGE_BYTES);
        assert!(one.take().is_some(), "an unused one needs no more memory");
        drop((one, other));
        assert_eq!(budget.held(), LARGE_BYTES, "what was handed on is still held");
        drop(kept);
        assert_eq!(budget.held(), 0);
    }

    fn filled(pool: &LargeBufs, len: usize) -> LargeBuf {
        let mut buf = pool.take().expect("not all are taken");
        buf.room()[..len].fill(b'x');
        buf.fill(len);
        buf
    }

    #[test]
    fn a_buffer_that_is_handed_on_comes_back_from_any_thread() {
        let pool = LargeBufs::default();
        let bytes = filled(&pool, LARGE_BYTES).into_bytes();
        assert_eq!((bytes.len(), pool.taken()), (LARGE_BYTES, 1));
        let half = bytes.slice(..LARGE_BYTES / 2);
        drop(bytes);
        assert_eq!(pool.taken(), 1, "a part of it is still held");
        std::thread::spawn(move || drop(half)).join().expect("no panic");
        assert_eq!((pool.taken(), pool.state().kept), (0, 0));
    }

    #[test]
    fn few_bytes_keep_no_large_buffer() {
        let pool = LargeBufs::default();
        let bytes = filled(&pool, KEPT_BYTES_MIN - 1).into_bytes();
        assert_eq!((bytes.len(), pool.taken()), (KEPT_BYTES_MIN - 1, 0));
    }

    #[test]
    fn the_pool_is_bounded_and_leaves_buffers_to_receive_into() {
        let pool = LargeBufs::default();
        let kept: Vec<_> = (0..BUFS_MAX).map(|_| filled(&pool, LARGE_BYTES).into_bytes()).collect();
        assert_eq!(pool.taken(), KEPT_MAX);
        let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken.len(), BUFS_MAX - KEPT_MAX);
        drop((kept, taken));
        assert_eq!((pool.taken(), pool.state().unused.len()), (0, UNUSED_MAX));
    }
}
