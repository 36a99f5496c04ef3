//! A set of slot numbers that many threads add to and take from without a lock.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// One bit per slot. Adding sets it; the thread that clears it by compare-and-set has the slot.
#[derive(Debug)]
pub(crate) struct ReadyBits {
    words: Box<[AtomicU64]>,
    /// At least the number of bits set: counted up before one is set, down after it is cleared.
    count: AtomicUsize,
    /// The slot where the next look begins: the one after the last taken, so that all have turns.
    cursor: AtomicUsize,
}

impl ReadyBits {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            words: (0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicUsize::new(0),
            cursor: AtomicUsize::new(0),
        }
    }

    /// Adds a slot that is not in the set.
    pub(crate) fn set(&self, slot: u32) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.words[slot as usize / 64].fetch_or(1 << (slot % 64), Ordering::AcqRel);
    }

    /// Takes a slot out. `None` if none was found, though one may be on its way in.
    pub(crate) fn claim(&self) -> Option<u32> {
        if !self.any() {
            return None;
        }
        let cursor = self.cursor.load(Ordering::Relaxed);
        let (start, above) = (cursor / 64, u64::MAX << (cursor % 64));
        // The first word is looked at twice: from the cursor on, and in the end below it.
        for ahead in 0..=self.words.len() {
            let at = (start + ahead) % self.words.len();
            let wanted = match ahead {
                0 => above,
                _ if ahead == self.words.len() => !above,
                _ => u64::MAX,
            };
            if let Some(bit) = take_lowest(&self.words[at], wanted) {
                let slot = at * 64 + bit as usize;
                self.cursor.store((slot + 1) % (self.words.len() * 64), Ordering::Relaxed);
                self.count.fetch_sub(1, Ordering::SeqCst);
                return Some(u32::try_from(slot).expect("slot numbers are 32 bits"));
            }
        }
        None
    }

    /// Returns whether a slot is in the set, or about to be.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}

/// Clears the lowest of the wanted bits that is set, and returns its number.
fn take_lowest(word: &AtomicU64, wanted: u64) -> Option<u32> {
    let before = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bits| {
        let found = bits & wanted;
        (found != 0).then(|| bits & !(found & found.wrapping_neg()))
    });
    Some((before.ok()? & wanted).trailing_zeros())
}
