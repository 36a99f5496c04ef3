//! A set of slot numbers that many threads add to and take from without a lock.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// One bit per slot. Adding sets it, taking clears it by compare-and-set: whoever clears it has it.
#[derive(Debug)]
pub(crate) struct ReadyBits {
    words: Box<[AtomicU64]>,
    /// At least the number of bits set: counted up before one is set, down after it is cleared.
    count: AtomicUsize,
    /// The word where the next look begins, so that low slots are not preferred.
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
        let start = self.cursor.load(Ordering::Relaxed);
        for ahead in 0..self.words.len() {
            let at = (start + ahead) % self.words.len();
            let word = &self.words[at];
            let mut bits = word.load(Ordering::Acquire);
            while bits != 0 {
                let lowest = bits & bits.wrapping_neg();
                match word.compare_exchange_weak(
                    bits,
                    bits & !lowest,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => {
                        self.cursor.store(at + usize::from(bits == lowest), Ordering::Relaxed);
                        self.count.fetch_sub(1, Ordering::SeqCst);
                        let base = u32::try_from(at * 64).expect("slot numbers are 32 bits");
                        return Some(base + lowest.trailing_zeros());
                    }
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Whether a slot is in the set, or about to be.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}
