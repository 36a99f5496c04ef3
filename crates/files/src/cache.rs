//! The ready answers of one worker: no lock, no atomic, bounded.
//!
//! Small files are bounded by their bytes, others by the descriptors they hold. Either bound evicts
//! by the clock algorithm: a hand goes round, spares once what was used since it last came by, and
//! takes what was not.

use std::collections::HashMap;
use std::mem::size_of;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::cached_file::CachedFile;

/// How long an entry is answered without a look at the disk, in milliseconds.
pub(super) const FRESH_MS: u64 = 1_000;

/// Bytes of one entry but for its path and its response: the slot, the file with its two counts,
/// the index and their slack.
const ENTRY_BYTES: usize = size_of::<Slot>() + size_of::<CachedFile>() + 16 + 64;

/// Ready answers by canonical path, beneath the folder's own.
pub(super) struct Cache {
    small: Clock,
    large: Clock,
}

impl Cache {
    /// - `bytes_max`: what paths, heads and small files may take together.
    /// - `descriptors_max`: how many files may be held open.
    pub(super) fn new(bytes_max: u64, descriptors_max: u64) -> Cache {
        Cache { small: Clock::new(bytes_max), large: Clock::new(descriptors_max) }
    }

    /// The entry for `path`, if it was compared with the disk within the last second.
    #[inline]
    pub(super) fn fresh(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<CachedFile>> {
        match self.small.fresh(path, now_ms) {
            Some(file) => Some(file),
            // (By a call: so small files, which most are, are found without one.)
            None => self.large.fresh_by_call(path, now_ms),
        }
    }

    /// [`Cache::fresh`] for what is seldom reached: so that one is called from one place only, and
    /// inlined there.
    #[inline(never)]
    pub(super) fn fresh_by_call(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<CachedFile>> {
        self.fresh(path, now_ms)
    }

    /// The entry for `path`, however old.
    pub(super) fn any_age(&self, path: &[u8]) -> Option<&Arc<CachedFile>> {
        self.small.any_age(path).or_else(|| self.large.any_age(path))
    }

    /// Notes that the entry for `path` was compared with the disk.
    ///
    /// - `warm`: looks whether a file that is not small is in memory.
    pub(super) fn renew(&mut self, path: &[u8], now_ms: u64, warm: impl FnOnce(&CachedFile)) {
        self.small.renew(path, now_ms);
        if let Some(file) = self.large.renew(path, now_ms) {
            warm(file);
        }
    }

    /// Puts in what was just loaded, in the place of what was there under `path`.
    pub(super) fn insert(&mut self, path: &[u8], file: Arc<CachedFile>, now_ms: u64) {
        self.remove(path);
        if file.file().is_some() {
            self.large.insert(path, file, 1, now_ms);
        } else {
            let cost = path.len() + file.heap_bytes() + ENTRY_BYTES;
            self.small.insert(path, file, cost as u64, now_ms);
        }
    }

    /// Forgets `path`.
    pub(super) fn remove(&mut self, path: &[u8]) {
        self.small.remove(path);
        self.large.remove(path);
    }

    /// How many answers are held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.small.slots.len() + self.large.slots.len()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.small = Clock::new(self.small.cost_max);
        self.large = Clock::new(self.large.cost_max);
    }
}

/// A bounded map whose victims are found by a hand going round.
struct Clock {
    index: HashMap<Rc<[u8]>, usize, RandomState>,
    slots: Vec<Slot>,
    /// The slot of the last answer: the next request often asks for the same (a comparison is 70
    /// instructions cheaper than a hash).
    recent: usize,
    hand: usize,
    cost: u64,
    cost_max: u64,
}

struct Slot {
    file: Arc<CachedFile>,
    checked_ms: u64,
    is_used: bool,
    cost: u64,
    path: Rc<[u8]>,
}

impl Clock {
    fn new(cost_max: u64) -> Clock {
        let index = HashMap::with_hasher(RandomState::default());
        Clock { index, slots: Vec::new(), recent: 0, hand: 0, cost: 0, cost_max }
    }

    #[expect(clippy::inline_always, reason = "as a call it costs a request 20 instructions")]
    #[inline(always)]
    fn fresh(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<CachedFile>> {
        if self.slots.get(self.recent).is_none_or(|slot| *slot.path != *path) {
            self.recent = *self.index.get(path)?;
        }
        let slot = &mut self.slots[self.recent];
        if now_ms.saturating_sub(slot.checked_ms) >= FRESH_MS {
            return None;
        }
        slot.is_used = true;
        Some(&slot.file)
    }

    #[inline(never)]
    fn fresh_by_call(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<CachedFile>> {
        self.fresh(path, now_ms)
    }

    fn any_age(&self, path: &[u8]) -> Option<&Arc<CachedFile>> {
        Some(&self.slots[*self.index.get(path)?].file)
    }

    fn renew(&mut self, path: &[u8], now_ms: u64) -> Option<&CachedFile> {
        let slot = &mut self.slots[*self.index.get(path)?];
        slot.checked_ms = now_ms;
        Some(&slot.file)
    }

    fn insert(&mut self, path: &[u8], file: Arc<CachedFile>, cost: u64, now_ms: u64) {
        if cost > self.cost_max {
            return;
        }
        while self.cost_max - self.cost < cost {
            self.evict_one();
        }
        let path: Rc<[u8]> = Rc::from(path);
        self.index.insert(Rc::clone(&path), self.slots.len());
        self.cost += cost;
        self.slots.push(Slot { file, checked_ms: now_ms, is_used: false, cost, path });
    }

    /// Ends after two rounds at the latest: the first takes every mark away.
    fn evict_one(&mut self) {
        loop {
            let slot = &mut self.slots[self.hand];
            if !slot.is_used {
                break;
            }
            slot.is_used = false;
            self.hand = (self.hand + 1) % self.slots.len();
        }
        self.take_out(self.hand);
    }

    fn remove(&mut self, path: &[u8]) {
        if let Some(at) = self.index.get(path) {
            self.take_out(*at);
        }
    }

    /// Moves the last slot into the gap, so that the slots stay dense.
    fn take_out(&mut self, at: usize) {
        let gone = self.slots.swap_remove(at);
        self.index.remove(&gone.path);
        self.cost -= gone.cost;
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(Rc::clone(&moved.path), at);
        }
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
    }
}
