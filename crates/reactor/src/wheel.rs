//! Timers: a hierarchical wheel of one-millisecond slots. No tick: the next expiry is computed.
//!
//! Level 0 has 64 slots of 1 ms, level 1 has 64 of 64 ms, and so on. A timer lies in the finest
//! slot that separates its deadline from now. When the time comes to a coarse slot, its timers move
//! to finer ones. So a timer moves five times at most, and most are cancelled before they move at
//! all.

use crate::Token;

const LEVELS: usize = 6;
const SLOTS: usize = 64;
const NIL: u32 = u32::MAX;
/// Expiries further away than this (2 years) are kept in the last level and looked at again. One
/// slot less than the whole circle: a full turn ahead would be the current slot.
const HORIZON_MS: u64 = (SLOTS as u64 - 1) << (6 * (LEVELS - 1));

/// Names one armed timer. A key of a timer that fired or was cancelled is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

impl TimerKey {
    /// A key that names no timer.
    pub const NONE: Self = Self { index: NIL, generation: 0 };
}

#[derive(Debug)]
struct TimerEntry {
    deadline_ms: u64,
    token: Token,
    next: u32,
    prev: u32,
    generation: u32,
    /// `level * SLOTS + slot`, or `NIL` while the entry is free.
    home: u32,
}

/// Armed timers: arming, cancelling and firing take constant time, an entry takes 32 bytes.
#[derive(Debug)]
pub struct Wheel {
    entries: Vec<TimerEntry>,
    free: u32,
    heads: [u32; LEVELS * SLOTS],
    occupied: [u64; LEVELS],
    /// Everything due at or before this has fired.
    now_ms: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: NIL,
            heads: [NIL; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            now_ms: 0,
        }
    }
}

impl Wheel {
    /// Arms a timer that hands out `token` once `deadline_ms` has come; at the next turn if it has.
    pub fn arm(&mut self, deadline_ms: u64, token: Token) -> TimerKey {
        let entry =
            TimerEntry { deadline_ms, token, next: NIL, prev: NIL, generation: 0, home: NIL };
        let index = if self.free == NIL {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 timers fit in memory")
        } else {
            let index = self.free;
            let slot = &mut self.entries[index as usize];
            self.free = slot.next;
            let generation = slot.generation;
            *slot = TimerEntry { generation, ..entry };
            index
        };
        self.link(index);
        TimerKey { index, generation: self.entries[index as usize].generation }
    }

    /// Disarms a timer. Returns whether it was still armed.
    pub fn cancel(&mut self, key: TimerKey) -> bool {
        match self.entries.get(key.index as usize) {
            Some(entry) if entry.generation == key.generation && entry.home != NIL => {
                self.unlink(key.index);
                self.release(key.index);
                true
            }
            _ => false,
        }
    }

    /// Returns when to look again, in the clock's milliseconds: not later than the next expiry, and
    /// at most
    /// `LEVELS` looks before it. `None` if nothing is armed.
    pub fn next_ms(&self) -> Option<u64> {
        // The finest level with a timer has the earliest one: a timer is in a coarse slot only
        // while that slot does not hold the present moment, and all finer slots end before it
        // begins.
        let level = (0..LEVELS).find(|&level| self.occupied[level] != 0)?;
        let shift = 6 * level;
        let current = slot_of(self.now_ms, level);
        // Slots lie ahead of the current one, in a circle.
        let ahead = self.occupied[level].rotate_right(current).trailing_zeros();
        let base = self.now_ms >> shift << shift;
        let due = base + (u64::from(ahead) << shift);
        // On a coarse level the current slot was emptied when it was entered. What is in it again
        // is a full turn ahead.
        Some(if ahead == 0 && level > 0 { due + (64 << shift) } else { due.max(self.now_ms) })
    }

    /// Hands out the tokens of all timers due at `now_ms`.
    pub fn expire(&mut self, now_ms: u64, mut fired: impl FnMut(Token)) {
        // From one occupied slot to the next, however far the clock has jumped: a thread that was
        // held for an hour does not walk 3.6 million empty slots.
        while let Some(next) = self.next_ms().filter(|&next| next <= now_ms) {
            self.now_ms = next;
            // Coarse slots first: their timers may fall into finer slots that are due as well.
            for level in (0..LEVELS).rev() {
                // A coarse slot is opened exactly when its first millisecond comes.
                if next.trailing_zeros() as usize >= 6 * level {
                    self.open_slot(level, slot_of(next, level), &mut fired);
                }
            }
        }
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// Returns the timers that expire first after `after_ms`, in the order of their deadlines.
    ///
    /// It looks at every timer: for rare cases, in which many are wanted at once.
    ///
    /// - `count_max`: how many it returns at most; at least 1.
    pub fn first(&self, after_ms: u64, count_max: usize) -> Vec<(u64, Token)> {
        let armed = self.entries.iter().filter(|it| it.home != NIL && it.deadline_ms > after_ms);
        let mut found = Vec::new();
        for entry in armed {
            found.push((entry.deadline_ms, entry.token));
            // However many timers there are, few are kept.
            if found.len() >= 2 * count_max {
                keep_least(&mut found, count_max);
            }
        }
        keep_least(&mut found, count_max);
        found.sort_unstable();
        found
    }

    /// Returns some of all timers, evenly spread over those that there are, in no order.
    ///
    /// - `count_max`: how many it returns at most; at least 1.
    pub fn spread(&self, count_max: usize) -> Vec<(u64, Token)> {
        let step = self.entries.len().div_ceil(count_max).max(1);
        // Not the same ones each time.
        let first = usize::try_from(self.now_ms).map_or(0, |now| now % step);
        let some = self.entries.iter().skip(first).step_by(step).filter(|it| it.home != NIL);
        some.map(|entry| (entry.deadline_ms, entry.token)).collect()
    }

    /// Returns how many timers are armed.
    pub fn armed(&self) -> usize {
        self.entries.iter().filter(|entry| entry.home != NIL).count()
    }

    /// Fires what is due in a slot, and moves the rest to finer slots.
    fn open_slot(&mut self, level: usize, slot: u32, fired: &mut impl FnMut(Token)) {
        let home = level * SLOTS + slot as usize;
        // Taken out whole, so that a timer which `link` puts into the same slot is not met again.
        let mut index = std::mem::replace(&mut self.heads[home], NIL);
        self.occupied[level] &= !(1 << slot);
        while index != NIL {
            let entry = &mut self.entries[index as usize];
            let next = entry.next;
            entry.home = NIL;
            if entry.deadline_ms <= self.now_ms {
                let token = entry.token;
                self.release(index);
                fired(token);
            } else {
                self.link(index);
            }
            index = next;
        }
    }

    /// Puts an entry into the finest slot that can tell its deadline from now.
    fn link(&mut self, index: u32) {
        let deadline = self.entries[index as usize].deadline_ms;
        // A deadline in the past fires at the current millisecond. One past the horizon stays in
        // the last level until it is near enough.
        let at = deadline.clamp(self.now_ms, self.now_ms + HORIZON_MS - 1);
        // The highest bit in which the two times differ says which level first tells them apart. `|
        // 1`: equal times belong to level 0.
        let differing = ((at ^ self.now_ms) | 1).ilog2();
        let level = (differing as usize / 6).min(LEVELS - 1);
        let slot = slot_of(at, level);
        let home = level * SLOTS + slot as usize;
        let head = std::mem::replace(&mut self.heads[home], index);
        let entry = &mut self.entries[index as usize];
        entry.home = u32::try_from(home).expect("a slot number is small");
        entry.prev = NIL;
        entry.next = head;
        if let Some(next) = self.entries.get_mut(head as usize) {
            next.prev = index;
        }
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, index: u32) {
        let TimerEntry { next, prev, home, .. } = self.entries[index as usize];
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = prev;
        }
        match self.entries.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.heads[home as usize] = next,
        }
        if self.heads[home as usize] == NIL {
            self.occupied[home as usize / SLOTS] &= !(1 << (home as usize % SLOTS));
        }
    }

    fn release(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        // From now on keys of the old timer name nothing, so a late `cancel` is harmless.
        entry.generation = entry.generation.wrapping_add(1);
        entry.home = NIL;
        entry.next = std::mem::replace(&mut self.free, index);
    }
}

/// Drops all but the `count` least, in no order.
fn keep_least(found: &mut Vec<(u64, Token)>, count: usize) {
    if found.len() > count {
        found.select_nth_unstable(count - 1);
        found.truncate(count);
    }
}

/// Returns the slot of a level in which a moment lies.
fn slot_of(ms: u64, level: usize) -> u32 {
    u32::try_from((ms >> (6 * level)) & 63).expect("six bits fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired_by(wheel: &mut Wheel, now_ms: u64) -> Vec<Token> {
        let mut fired = Vec::new();
        wheel.expire(now_ms, |token| fired.push(token));
        fired
    }

    #[test]
    fn a_timer_fires_at_its_millisecond_and_not_before() {
        for deadline in [0, 1, 63, 64, 65, 4_095, 4_096, 75_000, 1 << 30] {
            let mut wheel = Wheel::default();
            wheel.arm(deadline, 7);
            if deadline > 0 {
                assert!(fired_by(&mut wheel, deadline - 1).is_empty(), "deadline {deadline}");
            }
            assert_eq!(fired_by(&mut wheel, deadline), [7], "deadline {deadline}");
            assert_eq!(wheel.next_ms(), None);
        }
    }

    #[test]
    fn next_never_comes_after_a_deadline_and_gets_there_in_few_looks() {
        let mut wheel = Wheel::default();
        wheel.arm(123_456_789, 1);
        let mut looks = 0;
        loop {
            let next = wheel.next_ms().expect("still armed");
            assert!(next <= 123_456_789);
            looks += 1;
            if !fired_by(&mut wheel, next).is_empty() {
                break;
            }
        }
        assert!(looks <= LEVELS + 1, "{looks} looks");
    }

    #[test]
    fn a_cancelled_timer_never_fires_and_its_key_stays_harmless() {
        let mut wheel = Wheel::default();
        let first = wheel.arm(100, 1);
        let second = wheel.arm(100, 2);
        assert!(wheel.cancel(first));
        assert!(!wheel.cancel(first));
        let third = wheel.arm(100, 3);
        assert!(!wheel.cancel(first), "the entry is another timer's now");
        assert_eq!(fired_by(&mut wheel, 100).len(), 2);
        assert!(!wheel.cancel(second) && !wheel.cancel(third));
    }

    #[test]
    fn many_timers_fire_in_order_of_their_deadlines_however_time_jumps() {
        let mut wheel = Wheel::default();
        let mut seed = 1_u64;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let deadline = seed >> 44;
            wheel.arm(deadline, deadline);
        }
        let (mut now, mut count, mut floor) = (0, 0, 0);
        while count < 10_000 {
            now += 1 + seed % 997;
            for token in fired_by(&mut wheel, now) {
                assert!(token <= now && token >= floor, "{token} fired between {floor} and {now}");
                count += 1;
            }
            floor = now;
        }
        assert_eq!(wheel.armed(), 0);
    }

    #[test]
    fn the_first_timers_are_found_in_order_wherever_they_lie() {
        let mut wheel = Wheel::default();
        for deadline in [75_000, 64, 5_000, 9, 300_000, 64_000] {
            wheel.arm(deadline, deadline);
        }
        let key = wheel.arm(10, 10);
        wheel.cancel(key);
        let deadlines = |found: Vec<(u64, Token)>| -> Vec<u64> {
            found.into_iter().map(|(deadline, _)| deadline).collect()
        };
        assert_eq!(deadlines(wheel.first(0, 3)), [9, 64, 5_000]);
        assert_eq!(deadlines(wheel.first(5_000, 9)), [64_000, 75_000, 300_000]);
        assert_eq!(deadlines(wheel.first(300_000, 1)), [0_u64; 0]);
    }

    #[test]
    fn some_timers_are_from_everywhere() {
        let mut wheel = Wheel::default();
        assert_eq!(wheel.spread(5), []);
        let keys: Vec<_> = (0..1_000).map(|at| wheel.arm(10_000 + at, at)).collect();
        for (now, cancelled) in [(0, 0), (7, 500)] {
            keys[..cancelled].iter().for_each(|key| _ = wheel.cancel(*key));
            wheel.expire(now, |_| {});
            let found = wheel.spread(100);
            assert_eq!(found.len(), 100 - cancelled / 10);
            let apart = |pair: &[(u64, Token)]| pair[0].1.abs_diff(pair[1].1) == 10;
            assert!(found.windows(2).all(apart), "{found:?}");
        }
        assert!(wheel.spread(5_000).len() == 500 && wheel.spread(1).len() <= 1);
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_the_next_look() {
        let mut wheel = Wheel::default();
        assert!(fired_by(&mut wheel, 5_000).is_empty());
        wheel.arm(10, 9);
        assert_eq!(fired_by(&mut wheel, 5_000), [9]);
    }
}
