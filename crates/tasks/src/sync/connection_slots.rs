//! Connection slots: how many there are in total and per worker, and which acceptors wait for one.
//!
//! A slot is only a count. It is taken before its connection is sent to another worker, so that the
//! limits hold for connections on their way too.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

use crate::sync::atomic::{AtomicBool, AtomicUsize, Mutex, Ordering, fence};
use crate::sync::cache_padded::CachePadded;

/// Choice of the worker that gets a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// To the worker that accepted it, or the one with the fewest connections where that one has
    /// more than its share: even load.
    #[default]
    Spread,
    /// To the first worker with room: idle workers stay idle.
    Fill,
}

impl Placement {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::Spread, Self::Fill];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 2] = ["spread", "fill"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Set in the count of a worker that takes no connections. With the top bit set, the count is above
/// every limit, so no path has to check for closed workers.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Counts the open connections of each worker and in total.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    total_max: usize,
    per_worker_max: usize,
    total: AtomicUsize,
    open: Box<[CachePadded<AtomicUsize>]>,
    waiting: Mutex<Vec<Waker>>,
    anyone_waits: AtomicBool,
}

impl ConnectionSlots {
    pub(crate) fn new(workers: usize, total_max: usize, per_worker_max: usize) -> Self {
        Self {
            total_max,
            per_worker_max,
            total: AtomicUsize::new(0),
            open: (0..workers).map(|_| CachePadded(AtomicUsize::new(0))).collect(),
            waiting: Mutex::new(Vec::new()),
            anyone_waits: AtomicBool::new(false),
        }
    }

    /// Returns how many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }

    /// Returns how many connections one worker has.
    pub(crate) fn open_on(&self, worker: usize) -> usize {
        self.open[worker].0.load(Ordering::Relaxed) & !CLOSED
    }

    /// Returns whether no worker has room for one more, though the total would allow it.
    pub(crate) fn is_short_of_workers(&self) -> bool {
        self.open() < self.total_max && self.choose(None, Placement::Spread).is_none()
    }

    /// Connections that one worker can have.
    pub(crate) fn per_worker_max(&self) -> usize {
        self.per_worker_max
    }

    /// Lets a worker take no more connections. Those it has stay.
    pub(crate) fn close(&self, worker: usize) {
        self.open[worker].0.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Lets a worker take connections again.
    pub(crate) fn reopen(&self, worker: usize) {
        self.open[worker].0.fetch_and(!CLOSED, Ordering::SeqCst);
        self.wake_waiting();
    }

    /// Returns whether a closed worker has no connection left, also none on its way to it.
    pub(crate) fn is_vacant(&self, worker: usize) -> bool {
        self.open[worker].0.load(Ordering::SeqCst) == CLOSED
    }

    /// Returns how many more connections a worker could take.
    pub(crate) fn room_on(&self, worker: usize) -> usize {
        let open = self.open[worker].0.load(Ordering::Relaxed);
        let room = self.per_worker_max.saturating_sub(open);
        room.min(self.total_max.saturating_sub(self.open()))
    }

    /// Returns the worker that a connection accepted by `me` goes to: another one where `me` has
    /// more than its share. `None`: all are full.
    pub(crate) fn choose(&self, me: Option<usize>, placement: Placement) -> Option<usize> {
        let mut workers = 0..self.open.len();
        match (placement, me) {
            (Placement::Fill, _) => workers.find(|&worker| self.room_on(worker) > 0),
            (Placement::Spread, Some(me)) if self.room_on(me) > 0 => {
                let mean = self.open() / self.open.len();
                let is_full = self.open_on(me) >= most_beside(mean);
                let fewest = if is_full { self.fewest() } else { None };
                let other = fewest.filter(|&it| self.open_on(me) >= most_beside(self.open_on(it)));
                other.or(Some(me))
            }
            (Placement::Spread, _) => self.fewest(),
        }
    }

    /// Returns the worker with the fewest connections that has room.
    fn fewest(&self) -> Option<usize> {
        (0..self.open.len())
            .filter(|&worker| self.room_on(worker) > 0)
            .min_by_key(|&worker| self.open_on(worker))
    }

    /// Takes a slot of a worker. Returns whether there was one.
    pub(crate) fn take(&self, worker: usize) -> bool {
        // A caller that finds the limit reached must not get to the wake-up below: it is among
        // those that wait, so it would wake itself for ever. Only one that has passed the limit
        // goes on.
        if self.room_on(worker) == 0 {
            return false;
        }
        // Add first, then check: two threads that check first could both take the last slot.
        // Relaxed is enough for the worker's own count, since the fences below order it where it
        // matters.
        if self.total.fetch_add(1, Ordering::SeqCst) < self.total_max {
            if self.open[worker].0.fetch_add(1, Ordering::Relaxed) < self.per_worker_max {
                return true;
            }
            self.open[worker].0.fetch_sub(1, Ordering::Relaxed);
        }
        self.total.fetch_sub(1, Ordering::SeqCst);
        // Another acceptor may have seen this passing excess and gone to wait for room that is
        // there.
        self.wake_waiting();
        false
    }

    /// Gives a slot back, and wakes the acceptors that wait for one.
    pub(crate) fn release(&self, worker: usize) {
        self.open[worker].0.fetch_sub(1, Ordering::Relaxed);
        self.total.fetch_sub(1, Ordering::SeqCst);
        self.wake_waiting();
    }

    /// Wakes all acceptors that wait: a slot is free, or the server is ending.
    pub(crate) fn wake_waiting(&self) {
        // Pairs with the fence of `wait_for`: either this sees that one waits, or that one sees the
        // slot that was just freed. So a release costs a load while none waits, and no lock.
        fence(Ordering::SeqCst);
        if self.anyone_waits.load(Ordering::SeqCst) {
            // All of them, since they may wait for different workers. Woken without the lock, which
            // a woken task may take at once.
            let waiting = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                self.anyone_waits.store(false, Ordering::SeqCst);
                std::mem::take(&mut *waiting)
            };
            for waker in waiting {
                waker.wake();
            }
        }
    }

    /// Waits until `done` gives something. It is asked again whenever a slot is freed.
    pub(crate) async fn wait_for<T>(&self, mut done: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| {
            if let Some(found) = done() {
                return Poll::Ready(found);
            }
            {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                    waiting.push(context.waker().clone());
                }
                self.anyone_waits.store(true, Ordering::SeqCst);
            }
            fence(Ordering::SeqCst);
            // A slot may have been freed before `anyone_waits` was set, and then none wakes this
            // task.
            done().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Returns how many connections a worker may have where others have `open`. To hand one over costs
/// a wake-up and, under `io_uring`, a descriptor. The kernel's own spread is seldom further off
/// where there are many, and where there are few, one more does no harm.
fn most_beside(open: usize) -> usize {
    open + open / 8 + 4
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn spread_prefers_the_accepting_worker_and_fill_the_first() {
        let connection_slots = ConnectionSlots::new(3, 100, 2);
        assert_eq!(connection_slots.choose(Some(1), Placement::Spread), Some(1));
        assert_eq!(connection_slots.choose(Some(1), Placement::Fill), Some(0));
        assert!(connection_slots.take(1) && connection_slots.take(1) && !connection_slots.take(1));
        assert_ne!(connection_slots.choose(Some(1), Placement::Spread), Some(1));
        assert!(connection_slots.take(0) && connection_slots.take(0));
        assert_eq!(connection_slots.choose(None, Placement::Fill), Some(2));
        assert!(connection_slots.take(2) && connection_slots.take(2));
        assert_eq!(connection_slots.choose(Some(0), Placement::Spread), None);
        connection_slots.release(1);
        assert_eq!(connection_slots.choose(Some(0), Placement::Spread), Some(1));
    }

    #[test]
    fn one_with_more_than_its_share_hands_over() {
        let connection_slots = ConnectionSlots::new(3, 1000, 1000);
        for _ in 0..4 {
            assert_eq!(connection_slots.choose(Some(1), Placement::Spread), Some(1));
            assert!(connection_slots.take(1));
        }
        for _ in 0..996 {
            let worker =
                connection_slots.choose(Some(1), Placement::Spread).expect("there is room");
            assert!(connection_slots.take(worker));
        }
        let most = (0..3).map(|worker| connection_slots.open_on(worker)).max();
        assert!(most.is_some_and(|most| most <= 400), "{most:?}");
        // Workers that are not there are no reason to.
        let connection_slots = ConnectionSlots::new(8, 100, 100);
        (2..8).for_each(|worker| connection_slots.close(worker));
        for place in 0..40 {
            assert_eq!(
                connection_slots.choose(Some(place % 2), Placement::Spread),
                Some(place % 2)
            );
            assert!(connection_slots.take(place % 2));
        }
    }

    #[test]
    fn connections_that_last_are_spread_even_if_the_kernel_does_not() {
        let connection_slots = ConnectionSlots::new(4, 1000, 1000);
        for place in 0..200 {
            // Nearly all come to one worker's socket.
            let me = if place % 10 == 0 { place / 10 % 4 } else { 2 };
            let worker = connection_slots.choose(Some(me), Placement::Spread);
            assert!(connection_slots.take(worker.expect("there is room")));
        }
        let most = (0..4).map(|worker| connection_slots.open_on(worker)).max();
        assert!(most.is_some_and(|most| most * 4 * 5 <= 200 * 6), "{most:?} of 200");
    }

    #[test]
    fn a_closed_worker_keeps_what_it_has_and_takes_no_more() {
        let connection_slots = ConnectionSlots::new(2, 100, 2);
        assert!(connection_slots.take(1));
        connection_slots.close(1);
        assert!(!connection_slots.take(1) && !connection_slots.is_vacant(1));
        assert_eq!((connection_slots.open_on(1), connection_slots.room_on(1)), (1, 0));
        assert_eq!(connection_slots.choose(Some(1), Placement::Spread), Some(0));
        connection_slots.release(1);
        assert!(connection_slots.is_vacant(1) && !connection_slots.is_vacant(0));
        assert!(connection_slots.take(0) && connection_slots.take(0));
        assert!(connection_slots.is_short_of_workers());
        connection_slots.reopen(1);
        assert!(connection_slots.take(1) && !connection_slots.is_short_of_workers());
        assert_eq!(connection_slots.open(), 3);
    }

    #[test]
    fn the_total_bounds_all_workers_together() {
        let connection_slots = ConnectionSlots::new(2, 3, 2);
        assert!(connection_slots.take(0) && connection_slots.take(0) && connection_slots.take(1));
        assert!(!connection_slots.take(1));
        assert_eq!((connection_slots.open(), connection_slots.open_on(1)), (3, 1));
    }
}
