//! Readiness of sockets under epoll: one word per descriptor, kept until the kernel says "would
//! block".

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::allocation::zeroed_slice_box;

use crate::Token;

/// Bytes, a connection or the end may be read.
pub(crate) const IN: u64 = 1;
/// Bytes may be written.
pub(crate) const OUT: u64 = 2;
/// The peer will send no more: a short read does not mean that nothing is left to read.
pub(crate) const END: u64 = 4;
/// The descriptor is registered with epoll.
pub(crate) const REGISTERED: u64 = 8;
/// Its names are known, and to be forgotten with it.
pub(crate) const HAS_ADDRS: u64 = 16;

const GENERATION_SHIFT: u32 = 32;

/// State and waiter of each descriptor, indexed by descriptor.
///
/// It comes from zeroed memory that the kernel gives page by page, as it is touched.
#[derive(Debug)]
pub(crate) struct ReadinessTable {
    /// The state, `generation << 32 | bits`, and the waiter.
    entries: Box<[[AtomicU64; 2]]>,
}

impl ReadinessTable {
    /// A table for the descriptors `0..limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: zeroed_slice_box(limit) }
    }

    /// Returns how many descriptors it has entries for.
    pub(crate) fn limit(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entry of a descriptor; `None` past the limit.
    pub(crate) fn get(&self, index: usize) -> Option<Readiness<'_>> {
        let [state, waiter] = self.entries.get(index)?;
        Some(Readiness { state, waiter })
    }
}

/// A direction of readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something can be read.
    Read,
    /// Something can be written.
    Write,
}

/// State and waiter of one descriptor.
///
/// Where one thread polls and runs the task (`shared == false`), all accesses are plain loads and
/// stores. Where any thread may do either, they are read-modify-write operations, and the token of
/// the descriptor's generation keeps a late event of a closed descriptor from its successor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness<'a> {
    state: &'a AtomicU64,
    waiter: &'a AtomicU64,
}

impl Readiness<'_> {
    /// Starts a new descriptor's life: optimistically ready, so that the first receive is tried at
    /// once. Returns the generation.
    pub(crate) fn open(self) -> u32 {
        let generation = generation_of(self.state.load(Ordering::Relaxed)).wrapping_add(1);
        self.state.store(u64::from(generation) << GENERATION_SHIFT | IN | OUT, Ordering::Release);
        generation
    }

    /// Ends a descriptor's life: events that are still on their way no longer count. Returns
    /// whether its names were known.
    pub(crate) fn retire(self, shared: bool) -> bool {
        let before = self.state.load(Ordering::Relaxed);
        // The generation is its owner's to change, so what was read of that holds.
        let generation = generation_of(before).wrapping_add(1);
        let after = u64::from(generation) << GENERATION_SHIFT;
        if shared {
            // Names that another thread has made known meanwhile must not be overlooked.
            return self.state.swap(after, Ordering::AcqRel) & HAS_ADDRS != 0;
        }
        self.state.store(after, Ordering::Release);
        before & HAS_ADDRS != 0
    }

    /// Returns whether the descriptor's present life is this one.
    pub(crate) fn is_of(self, generation: u32) -> bool {
        generation_of(self.state.load(Ordering::Acquire)) == generation
    }

    /// Returns the descriptor's present life.
    pub(crate) fn generation(self) -> u32 {
        generation_of(self.state.load(Ordering::Acquire))
    }

    pub(crate) fn has(self, bits: u64) -> bool {
        self.state.load(Ordering::Acquire) & bits != 0
    }

    pub(crate) fn set(self, bits: u64, shared: bool) {
        if shared {
            self.state.fetch_or(bits, Ordering::AcqRel);
        } else {
            self.state.store(self.state.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }

    pub(crate) fn clear(self, bits: u64, shared: bool) {
        if shared {
            self.state.fetch_and(!bits, Ordering::AcqRel);
        } else {
            self.state.store(self.state.load(Ordering::Relaxed) & !bits, Ordering::Relaxed);
        }
    }

    /// Sets the waiter that events wake from now on.
    pub(crate) fn wait(self, token: Token) {
        self.waiter.store(token, Ordering::Release);
    }

    /// Takes an event in. Returns whom to wake, unless the descriptor has changed hands since.
    pub(crate) fn event(self, generation: u32, bits: u64, shared: bool) -> Option<Token> {
        let with_bits = |state| (generation_of(state) == generation).then_some(state | bits);
        if shared {
            self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, with_bits).ok()?;
        } else {
            self.state.store(with_bits(self.state.load(Ordering::Acquire))?, Ordering::Relaxed);
        }
        Some(self.waiter.load(Ordering::Acquire))
    }
}

fn generation_of(state: u64) -> u32 {
    u32::try_from(state >> GENERATION_SHIFT).expect("the upper half is 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_earlier_descriptor_does_not_count() {
        for shared in [false, true] {
            let table = ReadinessTable::new(1);
            let readiness = table.get(0).expect("one entry");
            assert!(table.get(1).is_none());
            let old = readiness.open();
            readiness.wait(1);
            assert!(!readiness.retire(shared), "nobody has named it");
            let new = readiness.open();
            readiness.clear(IN | OUT, shared);
            readiness.wait(2);
            assert_eq!(readiness.event(old, IN, shared), None);
            assert!(!readiness.has(IN));
            assert_eq!(readiness.event(new, IN, shared), Some(2));
            assert!(readiness.has(IN));
        }
    }
}
