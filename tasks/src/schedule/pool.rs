//! `pool`: a fixed slot array per worker, allocated at start; the worker passes over its slots.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::slots::Slots;
use super::{BoxTask, Claimed, SPARE_SLOTS, Schedule, Seen, drop_all};
use crate::waits::Waits;

/// A worker's own slots and one bit for each that is ready. Tasks in line run in the order of their
/// slots, pass after pass, as the ancestor's pools did; the array does not grow for connections.
pub(crate) struct Pool(RefCell<Inside>);

struct Inside {
    slots: Slots,
    ready: Bits,
    spent: VecDeque<u32>,
}

impl Pool {
    /// - `connections`: how many tasks the array holds. (Others that come on top make it grow.)
    pub(crate) fn new(connections: usize) -> Self {
        let count = connections.saturating_add(SPARE_SLOTS);
        let (slots, ready) = (Slots::with_capacity(count), Bits::new(count));
        Self(RefCell::new(Inside { slots, ready, spent: VecDeque::new() }))
    }
}

impl Schedule for Pool {
    fn insert(&self, task: BoxTask) -> Result<(u32, u32), BoxTask> {
        let Inside { slots, ready, .. } = &mut *self.0.borrow_mut();
        let (slot, generation) = slots.insert(task);
        ready.set(slot);
        Ok((slot, generation))
    }

    fn ready(&self, slot: u32, generation: u32) -> bool {
        let Inside { slots, ready, .. } = &mut *self.0.borrow_mut();
        let line_up = slots.ready(slot, Some(generation));
        if line_up {
            ready.set(slot);
        }
        line_up
    }

    fn ready_all(&self) {
        let Inside { slots, ready, .. } = &mut *self.0.borrow_mut();
        for slot in 0..slots.count() {
            if slots.ready(slot, None) {
                ready.set(slot);
            }
        }
    }

    fn claim(&self) -> Option<Claimed> {
        let Inside { slots, ready, .. } = &mut *self.0.borrow_mut();
        Some(slots.claim(ready.take_next()?))
    }

    fn claim_idle(&self, slot: u32, generation: u32) -> Option<Claimed> {
        self.0.borrow_mut().slots.claim_idle(slot, generation)
    }

    fn claim_spent(&self) -> Option<Claimed> {
        let Inside { slots, spent, .. } = &mut *self.0.borrow_mut();
        Some(slots.claim(spent.pop_front()?))
    }

    fn settle(&self, slot: u32, task: Option<BoxTask>, waits: Waits, is_spent: bool) -> bool {
        let Inside { slots, ready, spent } = &mut *self.0.borrow_mut();
        let again = slots.settle(slot, task, waits);
        if again && is_spent {
            spent.push_back(slot);
        } else if again {
            ready.set(slot);
        }
        again
    }

    fn has_ready(&self) -> bool {
        let inside = self.0.borrow();
        inside.ready.count > 0 || !inside.spent.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().slots.is_empty()
    }

    fn look(&self, see: &mut dyn FnMut(Seen)) {
        self.0.borrow().slots.look(see);
    }

    fn clear(&self) {
        let tasks = {
            let Inside { slots, ready, spent } = &mut *self.0.borrow_mut();
            *ready = Bits::new(0);
            spent.clear();
            slots.take_all()
        };
        drop_all(tasks);
    }
}

/// A set of slot numbers that is walked in circles.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    /// One bit per word that is not zero.
    summary: Vec<u64>,
    count: usize,
    /// Where the next look begins.
    cursor: u32,
}

impl Bits {
    fn new(count: usize) -> Self {
        let words = count.div_ceil(64);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)], count: 0, cursor: 0 }
    }

    fn set(&mut self, at: u32) {
        let word = at as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize((word + 1).div_ceil(64), 0);
        }
        self.words[word] |= 1 << (at % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.count += 1;
    }

    /// Takes out the first number at or after the cursor, and goes on at the start after the last.
    fn take_next(&mut self) -> Option<u32> {
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

    fn next_from(&self, at: u32) -> Option<u32> {
        let (word, bit) = (at as usize / 64, at % 64);
        let here = self.words.get(word)? & (u64::MAX << bit);
        if here != 0 {
            return Some(number(word, here));
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
            bits.set(slot);
        }
        assert_eq!(bits.take_next(), Some(0));
        bits.set(0);
        for slot in &slots[1..] {
            assert_eq!(bits.take_next(), Some(*slot));
        }
        assert_eq!(bits.take_next(), Some(0));
        assert_eq!((bits.take_next(), bits.count), (None, 0));
    }

    #[test]
    fn slots_past_the_array_are_walked_too() {
        let mut bits = Bits::new(1);
        bits.set(70_000);
        assert_eq!(bits.take_next(), Some(70_000));
    }
}
