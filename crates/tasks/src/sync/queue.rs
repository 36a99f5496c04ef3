//! A bounded lock-free queue of tokens, many producers, many consumers.
//!
//! Each cell carries the turn it is good for (Dmitry Vyukov's construction). Tokens are plain
//! numbers kept in atomics, so no cell needs `unsafe`.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, yield_now};
use crate::sync::cache_padded::CachePadded;

struct QueueCell {
    turn: AtomicUsize,
    token: AtomicU64,
}

/// A first-in first-out queue of at most a fixed number of tokens.
pub(crate) struct TokenQueue {
    cells: Box<[QueueCell]>,
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
}

impl TokenQueue {
    /// A queue for at least `capacity` tokens (rounded up to a power of two, at least two).
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(2).next_power_of_two();
        let cell = |turn| QueueCell { turn: AtomicUsize::new(turn), token: AtomicU64::new(0) };
        Self {
            cells: (0..capacity).map(cell).collect(),
            head: CachePadded(AtomicUsize::new(0)),
            tail: CachePadded(AtomicUsize::new(0)),
        }
    }

    /// Appends a token.
    ///
    /// # Errors
    /// The token, if the queue is full.
    pub(crate) fn push(&self, token: u64) -> Result<(), u64> {
        let mut at = self.tail.0.load(Ordering::Relaxed);
        loop {
            let cell = self.cell(at);
            let turn = cell.turn.load(Ordering::Acquire);
            if turn == at {
                let next = at.wrapping_add(1);
                match self.tail.0.compare_exchange_weak(
                    at,
                    next,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        cell.token.store(token, Ordering::Relaxed);
                        cell.turn.store(next, Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => at = now,
                }
            } else if at.wrapping_sub(turn) <= self.cells.len() {
                // The cell still holds the token of a lap ago.
                let tail = self.tail.0.load(Ordering::SeqCst);
                let held = tail.wrapping_sub(self.head.0.load(Ordering::SeqCst));
                if tail == at && held == self.cells.len() {
                    return Err(token);
                }
                // Not full: a consumer is about to empty the cell, and may have lost its processor.
                yield_now();
                at = tail;
            } else {
                at = self.tail.0.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the oldest token. `None` if there is none that its producer has finished writing.
    pub(crate) fn pop(&self) -> Option<u64> {
        let mut at = self.head.0.load(Ordering::Relaxed);
        loop {
            let cell = self.cell(at);
            let turn = cell.turn.load(Ordering::Acquire);
            let filled = at.wrapping_add(1);
            if turn == filled {
                match self.head.0.compare_exchange_weak(
                    at,
                    filled,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        let token = cell.token.load(Ordering::Relaxed);
                        cell.turn.store(at.wrapping_add(self.cells.len()), Ordering::Release);
                        return Some(token);
                    }
                    Err(now) => at = now,
                }
            } else if filled.wrapping_sub(turn) <= self.cells.len() {
                return None;
            } else {
                at = self.head.0.load(Ordering::Relaxed);
            }
        }
    }

    /// Returns whether nothing is queued, not even a token whose producer is still writing it.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.0.load(Ordering::SeqCst) == self.tail.0.load(Ordering::SeqCst)
    }

    fn cell(&self, at: usize) -> &QueueCell {
        &self.cells[at & (self.cells.len() - 1)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_out_in_the_order_they_went_in() {
        let queue = TokenQueue::new(4);
        for lap in 0..10 {
            for n in 0..4 {
                queue.push(lap * 4 + n).expect("four fit");
            }
            assert_eq!(queue.push(99), Err(99));
            for n in 0..4 {
                assert_eq!(queue.pop(), Some(lap * 4 + n));
            }
            assert_eq!(queue.pop(), None);
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn every_token_of_many_threads_comes_out_once() {
        // Miri takes its time.
        const EACH: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let queue = TokenQueue::new(64);
        let sum = AtomicU64::new(0);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    for n in 0..EACH {
                        while queue.push(thread * EACH + n).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 3 * EACH {
                        match queue.pop() {
                            Some(number) => {
                                sum.fetch_add(number, Ordering::SeqCst);
                                taken.fetch_add(1, Ordering::SeqCst);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), (0..3 * EACH).sum::<u64>());
    }
}
