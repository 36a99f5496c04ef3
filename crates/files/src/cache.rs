//! The cached files of one worker: no lock, no atomic, bounded.
//!
//! Small files are bounded by their bytes, others by their descriptors. Both evict by the clock
//! algorithm: a hand goes round, skips once each entry used since its last visit, and removes the
//! first that was not.

use std::collections::HashMap;
use std::mem::size_of;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use gustnado_http::request::RequestView;
use gustnado_tasks::{Charge, MemoryKind};

use super::cached_file::CachedFile;
use super::variants::{ChosenVariant, SeenVariants, VariantSet};

/// How long an entry is served without a look at the disk, in milliseconds. This bounds how long a
/// changed file goes unnoticed; at any rate of requests, it costs each worker one lookup per second
/// and file.
pub(super) const FRESH_MS: u64 = 1_000;

/// Bytes of one entry apart from its path and its prepared response: the slot, the file with its
/// two reference counts, the index and slack.
const ENTRY_BYTES: usize =
    size_of::<CacheSlot<Arc<CachedFile>>>() + size_of::<CachedFile>() + 16 + 64;

/// Cached files by the canonical path below the folder's own.
pub(super) struct Cache {
    // Two caches, as memory and descriptors are separate limits: many small files must not push
    // open large ones out, nor the other way round.
    small: ClockCache<Arc<CachedFile>>,
    large: ClockCache<Arc<CachedFile>>,
    /// Files with compressed ones beside them. They are found when the other two have nothing, so
    /// that plain files cost nothing more.
    sets: ClockCache<Arc<VariantSet>>,
    /// What an open file of a set costs there, in bytes.
    descriptor_bytes: u64,
    /// What small files and sets take.
    charge: Charge,
}

impl Cache {
    /// - `bytes_max`: what paths, heads and small files may take together.
    /// - `descriptors_max`: how many files may be held open.
    /// - `has_variants`: files may have compressed ones beside them: half of both is for these.
    pub(super) fn new(bytes_max: u64, descriptors_max: u64, has_variants: bool) -> Cache {
        let of_sets = |all: u64| if has_variants { all / 2 } else { 0 };
        let (bytes, descriptors) = (of_sets(bytes_max), of_sets(descriptors_max));
        Cache {
            small: ClockCache::new(bytes_max - bytes),
            large: ClockCache::new(descriptors_max - descriptors),
            sets: ClockCache::new(bytes),
            // One bound holds for both: as many open files as there may be take all of the bytes.
            descriptor_bytes: bytes.checked_div(descriptors).unwrap_or(u64::MAX),
            charge: Charge::new(MemoryKind::Cache),
        }
    }

    /// Returns the entry for `path`, if it was compared with the disk within [`FRESH_MS`].
    #[inline]
    pub(super) fn fresh(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<CachedFile>> {
        match self.small.fresh(path, now_ms) {
            Some(file) => Some(file),
            // (By a call: so small files, which most are, are found without one.)
            None => self.large.fresh_by_call(path, now_ms),
        }
    }

    /// Calls [`Cache::fresh`] from rare paths: with a single other caller, that one is inlined
    /// there.
    #[inline(never)]
    pub(super) fn fresh_by_call(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<CachedFile>> {
        self.fresh(path, now_ms)
    }

    /// Returns the representation that a request gets of a file with variants, if they were
    /// compared with the disk within [`FRESH_MS`], and if it is a file as it is sent to everybody.
    ///
    /// - `is_secure`: whether the request came by https.
    #[cold]
    #[inline(never)]
    pub(super) fn fresh_variant(
        &mut self,
        path: &[u8],
        request: RequestView<'_>,
        is_secure: impl Fn() -> bool,
        now_ms: u64,
    ) -> Option<&Arc<CachedFile>> {
        let set = self.fresh_set(path, now_ms)?;
        if set.dictionary().is_some() && is_secure() {
            return None;
        }
        match set.choose(request) {
            ChosenVariant::File(file) => Some(file),
            ChosenVariant::Make(_) | ChosenVariant::Nothing => None,
        }
    }

    /// Returns the variants of a file, if they were compared with the disk within [`FRESH_MS`].
    pub(super) fn fresh_set(&mut self, path: &[u8], now_ms: u64) -> Option<&Arc<VariantSet>> {
        self.sets.fresh_by_call(path, now_ms)
    }

    /// Returns the variants of a file, whatever their age.
    pub(super) fn any_set(&self, path: &[u8]) -> Option<&Arc<VariantSet>> {
        self.sets.any_age(path)
    }

    /// Returns what was seen of `path` when it was loaded.
    pub(super) fn seen(&self, path: &[u8]) -> Option<SeenVariants> {
        match self.any_age(path) {
            Some(file) => Some(SeenVariants::of_one(file.seen)),
            None => self.any_set(path).map(|set| set.seen()),
        }
    }

    /// Returns the entry for `path`, whatever its age.
    pub(super) fn any_age(&self, path: &[u8]) -> Option<&Arc<CachedFile>> {
        self.small.any_age(path).or_else(|| self.large.any_age(path))
    }

    /// Makes an entry fresh again after it was compared with the disk.
    ///
    /// - `warm`: checks whether a file that is not small is in memory.
    pub(super) fn mark_fresh(&mut self, path: &[u8], now_ms: u64, warm: impl Fn(&CachedFile)) {
        self.small.mark_fresh(path, now_ms);
        if let Some(file) = self.large.mark_fresh(path, now_ms) {
            warm(file);
        }
        if let Some(set) = self.sets.mark_fresh(path, now_ms) {
            set.iter().for_each(|file| warm(file));
        }
    }

    /// Inserts a file that was just loaded, replacing the entry for `path`.
    pub(super) fn insert(&mut self, path: &[u8], file: Arc<CachedFile>, now_ms: u64) {
        // From both: the file may have grown or shrunk past the bound between them.
        self.remove(path);
        if file.file.is_some() {
            self.large.insert(path, file, 1, now_ms);
        } else {
            let cost = path.len() + file.heap_bytes() + ENTRY_BYTES;
            self.small.insert(path, file, cost as u64, now_ms);
        }
        self.charge_small();
    }

    /// Inserts a file with its variants, replacing the entry for `path`.
    pub(super) fn insert_set(&mut self, path: &[u8], set: Arc<VariantSet>, now_ms: u64) {
        self.remove(path);
        let cost = |file: &Arc<CachedFile>| {
            let descriptor = if file.file.is_some() { self.descriptor_bytes } else { 0 };
            descriptor.saturating_add((file.heap_bytes() + ENTRY_BYTES) as u64)
        };
        let costs = set.iter().map(cost);
        let cost = costs.fold(path.len() as u64, u64::saturating_add);
        self.sets.insert(path, set, cost, now_ms);
        self.charge_small();
    }

    /// Removes `path`.
    pub(super) fn remove(&mut self, path: &[u8]) {
        self.small.remove(path);
        self.large.remove(path);
        self.sets.remove(path);
        self.charge_small();
    }

    fn charge_small(&mut self) {
        self.charge.set(usize::try_from(self.small.cost + self.sets.cost).unwrap_or(usize::MAX));
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.small.slots.len() + self.large.slots.len() + self.sets.slots.len()
    }

    /// Has all entries compared with the disk before they are used again.
    pub(super) fn expire(&mut self) {
        self.small.expire();
        self.large.expire();
        self.sets.expire();
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.small = ClockCache::new(self.small.cost_max);
        self.large = ClockCache::new(self.large.cost_max);
        self.sets = ClockCache::new(self.sets.cost_max);
        self.charge_small();
    }
}

/// A bounded map with clock eviction.
struct ClockCache<T> {
    index: HashMap<Rc<[u8]>, usize, RandomState>,
    slots: Vec<CacheSlot<T>>,
    /// The slot of the last hit: the next request often asks for the same file, and comparing its
    /// path is 70 instructions cheaper than hashing it.
    recent: usize,
    hand: usize,
    cost: u64,
    cost_max: u64,
    /// How far the clock of freshness is ahead of the worker's.
    ahead_ms: u64,
}

struct CacheSlot<T> {
    file: T,
    /// Until when it is served without a look at the disk, by the clock of the cache.
    fresh_until_ms: u64,
    is_used: bool,
    cost: u64,
    path: Rc<[u8]>,
}

impl<T> ClockCache<T> {
    fn new(cost_max: u64) -> ClockCache<T> {
        let index = HashMap::with_hasher(RandomState::default());
        ClockCache { index, slots: Vec::new(), recent: 0, hand: 0, cost: 0, cost_max, ahead_ms: 0 }
    }

    #[expect(clippy::inline_always, reason = "as a call it costs a request 20 instructions")]
    #[inline(always)]
    fn fresh(&mut self, path: &[u8], now_ms: u64) -> Option<&T> {
        if self.slots.get(self.recent).is_none_or(|slot| *slot.path != *path) {
            self.recent = *self.index.get(path)?;
        }
        let slot = &mut self.slots[self.recent];
        if now_ms + self.ahead_ms >= slot.fresh_until_ms {
            return None;
        }
        // Only a hit counts as use: an entry that is merely compared with the disk may be evicted.
        slot.is_used = true;
        Some(&slot.file)
    }

    #[inline(never)]
    fn fresh_by_call(&mut self, path: &[u8], now_ms: u64) -> Option<&T> {
        self.fresh(path, now_ms)
    }

    fn any_age(&self, path: &[u8]) -> Option<&T> {
        // Not marked as used: the caller compares it with the disk and may remove it.
        Some(&self.slots[*self.index.get(path)?].file)
    }

    fn mark_fresh(&mut self, path: &[u8], now_ms: u64) -> Option<&T> {
        let slot = &mut self.slots[*self.index.get(path)?];
        slot.fresh_until_ms = now_ms + self.ahead_ms + FRESH_MS;
        Some(&slot.file)
    }

    /// Puts the clock forward until no entry is fresh, however many there are.
    fn expire(&mut self) {
        self.ahead_ms += FRESH_MS;
    }

    fn insert(&mut self, path: &[u8], file: T, cost: u64, now_ms: u64) {
        if cost > self.cost_max {
            return;
        }
        // Ends: an entry that is larger than the whole bound was turned away above.
        while self.cost_max - self.cost < cost {
            self.evict_one();
        }
        let path: Rc<[u8]> = Rc::from(path);
        self.index.insert(Rc::clone(&path), self.slots.len());
        self.cost += cost;
        let fresh_until_ms = now_ms + self.ahead_ms + FRESH_MS;
        self.slots.push(CacheSlot { file, fresh_until_ms, is_used: false, cost, path });
    }

    /// Ends after two rounds at the latest: the first one clears every mark.
    fn evict_one(&mut self) {
        loop {
            let slot = &mut self.slots[self.hand];
            if !slot.is_used {
                break;
            }
            slot.is_used = false;
            self.hand = (self.hand + 1) % self.slots.len();
        }
        self.remove_slot(self.hand);
    }

    fn remove(&mut self, path: &[u8]) {
        if let Some(at) = self.index.get(path) {
            self.remove_slot(*at);
        }
    }

    /// Moves the last slot into the gap, so that the slots stay dense and the hand meets no holes.
    fn remove_slot(&mut self, at: usize) {
        let gone = self.slots.swap_remove(at);
        self.index.remove(&gone.path);
        self.cost -= gone.cost;
        // `recent` may now point at another slot or past the end: `fresh` compares its path before
        // use.
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(Rc::clone(&moved.path), at);
        }
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
    }
}
