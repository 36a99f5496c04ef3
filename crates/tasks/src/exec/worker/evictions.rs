//! Requests that idle connections give way to others, on their way to the workers that have them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sync::lock::Lock;

/// What a worker and the task that it asks to give way have said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EvictionAnswer {
    /// No task is asked, or it has nothing to give up.
    #[default]
    None,
    /// A task is being asked.
    Asked(EvictionQuestion),
    /// It waits for a request, until a deadline, and is still to say for how long it is idle.
    Waiting(EvictionQuestion, u64),
    /// It may give way.
    Candidate {
        /// When it would end by itself: the earliest is the longest idle.
        deadline_ms: u64,
        /// Whose connection it is, as a number of the program's; `None`: nobody's in particular.
        client: Option<u64>,
    },
    /// Its connection closes, unless a request comes at the last moment.
    GivesWay,
}

/// What a task is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvictionQuestion {
    /// Whether it could give way.
    CouldIt,
    /// To do so.
    DoSo,
}

/// Requests to one worker, or to a group of workers.
#[derive(Debug, Default)]
struct PlaceRequests {
    /// How many connections it is to close. While it is not zero, a message is on its way.
    wanted: AtomicU32,
    /// The timers up to this time belong to tasks that have been asked in vain.
    after_ms: AtomicU64,
}

/// Connections that are closed for one that waits; twice as many where others have just had to
/// wait, and so on.
const CLOSED_MAX: u32 = 64;
/// Time without a request after which one connection is enough again.
const CALM_MS: u64 = 200;

/// Requests to all workers.
#[derive(Debug)]
pub(crate) struct EvictionRequests {
    /// By the index of the handle.
    places: Box<[PlaceRequests]>,
    /// The number of connections of the last request, and when it was made.
    last: Lock<(u32, u64)>,
}

impl EvictionRequests {
    pub(crate) fn new(places: usize) -> Self {
        let places = (0..places).map(|_| PlaceRequests::default()).collect();
        Self { places, last: Lock::default() }
    }

    /// Returns how many connections a request of this moment is for.
    pub(crate) fn next_count(&self, now_ms: u64) -> u32 {
        let mut last = self.last.lock();
        let (count, at_ms) = *last;
        let is_calm = count == 0 || now_ms.saturating_sub(at_ms) > CALM_MS;
        let count = if is_calm { 1 } else { (count * 2).min(CLOSED_MAX) };
        *last = (count, now_ms);
        count
    }

    /// Adds a request. Returns whether the worker has to be sent a message.
    pub(crate) fn add(&self, place: usize, count: u32) -> bool {
        self.places[place].wanted.fetch_max(count, Ordering::SeqCst) == 0
    }

    /// Takes the requests to a worker.
    pub(crate) fn take(&self, place: usize) -> u32 {
        self.places[place].wanted.swap(0, Ordering::SeqCst)
    }

    /// Returns up to which time the last request has asked in vain.
    pub(crate) fn after_ms(&self, place: usize) -> u64 {
        self.places[place].after_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_after_ms(&self, place: usize, after_ms: u64) {
        self.places[place].after_ms.store(after_ms, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn requests_grow_while_others_wait_and_shrink_in_calm() {
        let requests = EvictionRequests::new(1);
        let counts: Vec<u32> = (0..9).map(|turn| requests.next_count(turn * 50)).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(requests.next_count(400 + CALM_MS + 1), 1);
    }

    #[test]
    fn one_message_is_enough_for_several_requests() {
        let requests = EvictionRequests::new(2);
        assert!(requests.add(1, 2) && !requests.add(1, 4) && requests.add(0, 1));
        assert_eq!((requests.take(1), requests.take(1)), (4, 0));
        assert!(requests.add(1, 1));
    }
}
