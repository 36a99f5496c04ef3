//! One worker's ready slots as bits: the run queue of `pool`.

use super::RunQueue;

/// A set of slot numbers that is walked in circles: queued tasks run in the order of their slots,
/// pass after pass.
#[derive(Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// One bit per word that is not zero.
    summary: Vec<u64>,
    count: usize,
    /// Where the next look begins.
    cursor: u32,
}

impl Bits {
    /// - `count`: room for so many slots. Others that come on top make it grow.
    pub(super) fn new(count: usize) -> Self {
        let words = count.div_ceil(64);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)], count: 0, cursor: 0 }
    }

    fn next_from(&self, at: u32) -> Option<u32> {
        let (word, bit) = (at as usize / 64, at % 64);
        let ctx = self.words.get(word)? & (u64::MAX << bit);
        if ctx != 0 {
            return Some(number(word, ctx));
        }
        let next = word + 1;
        let (group, within) = (next / 64, next % 64);
        let first = self.summary.get(group)? & (u64::MAX << within);
        let later = self.summary[group + 1..].iter().copied().enumerate();
        let (group, summary) = std::iter::once((group, first))
            .chain(later.map(|(ahead, summary)| (group + 1 + ahead, summary)))
            .find(|(_, summary)| *summary != 0)?;
        let word = group * 64 + summary.trailing_zeros() as usize;
        Some(number(word, self.words[word]))
    }
}

impl RunQueue for Bits {
    fn push(&mut self, at: u32) {
        let word = at as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize((word + 1).div_ceil(64), 0);
        }
        self.words[word] |= 1 << (at % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.count += 1;
    }

    /// Returns the first number at or after the cursor; after the last one, it goes on at the
    /// start.
    fn pop(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let at = self.next_from(self.cursor).or_else(|| self.next_from(0))?;
        let word = at as usize / 64;
        self.words[word] &= !(1 << (at % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        self.count -= 1;
        self.cursor = at + 1;
        Some(at)
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn number(word: usize, bits: u64) -> u32 {
    u32::try_from(word * 64).expect("slot numbers are 32 bits") + bits.trailing_zeros()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ready_slots_are_walked_in_order_and_in_circles() {
        let mut bits = Bits::new(20_000);
        let slots = [0, 1, 63, 64, 4_095, 4_096, 4_097, 19_999];
        for slot in slots {
            bits.push(slot);
        }
        assert_eq!(bits.pop(), Some(0));
        bits.push(0);
        for slot in &slots[1..] {
            assert_eq!(bits.pop(), Some(*slot));
        }
        assert_eq!(bits.pop(), Some(0));
        assert_eq!((bits.pop(), bits.count), (None, 0));
    }

    #[test]
    fn slots_past_the_array_are_walked_too() {
        let mut bits = Bits::new(1);
        bits.push(70_000);
        assert_eq!(bits.pop(), Some(70_000));
    }
}
