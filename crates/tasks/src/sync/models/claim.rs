//! [`Claim`]: a task is queued once, run by one worker at a time, and never forgotten.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::check;
use crate::sync::claim::Claim;

/// One slot, how often it is queued, and a task that looks whether something was left for it.
#[derive(Default)]
struct Slot {
    claim: Claim,
    in_line: AtomicUsize,
    running: AtomicBool,
    left: AtomicBool,
    seen: AtomicBool,
}

impl Slot {
    /// A slot whose task is queued.
    fn opened() -> Arc<Self> {
        let slot = Arc::new(Self::default());
        slot.claim.open();
        slot.in_line.store(1, Ordering::Relaxed);
        slot
    }

    fn enqueue(&self) {
        let before = self.in_line.fetch_add(1, Ordering::AcqRel);
        assert_eq!(before, 0, "in line twice");
    }

    fn wake(&self) {
        if self.claim.ready(None) {
            self.enqueue();
        }
    }

    /// What a worker does: takes the task out of the queue, polls it, hands it back.
    fn work(&self) {
        if self.in_line.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        self.claim.run();
        assert!(!self.running.swap(true, Ordering::AcqRel), "run by two at once");
        if self.left.load(Ordering::Relaxed) {
            self.seen.store(true, Ordering::Relaxed);
        }
        self.running.store(false, Ordering::Release);
        if self.claim.rest() {
            self.enqueue();
        }
    }

    /// Works until the line is empty.
    fn work_off(&self) {
        while self.in_line.load(Ordering::Acquire) > 0 {
            self.work();
        }
    }
}

#[test]
fn what_is_left_before_a_wake_up_is_seen_by_a_run_after_it() {
    check(|| {
        let slot = Slot::opened();
        let waker = thread::spawn({
            let slot = Arc::clone(&slot);
            move || {
                slot.left.store(true, Ordering::Relaxed);
                slot.wake();
            }
        });
        slot.work();
        // The visitor's end is not waited for here: joining it would show what it left by itself.
        while !slot.seen.load(Ordering::Relaxed) {
            slot.work();
            thread::yield_now();
        }
        waker.join().expect("the visitor ends");
    });
}

#[test]
fn two_workers_never_run_it_at_once_and_no_wake_up_is_forgotten() {
    check(|| {
        let slot = Slot::opened();
        let worker = thread::spawn({
            let slot = Arc::clone(&slot);
            move || {
                slot.work();
                slot.work();
            }
        });
        let waker = thread::spawn({
            let slot = Arc::clone(&slot);
            move || {
                slot.left.store(true, Ordering::Relaxed);
                slot.wake();
            }
        });
        slot.work();
        waker.join().expect("the visitor ends");
        worker.join().expect("the worker ends");
        slot.work_off();
        assert!(slot.seen.load(Ordering::Relaxed), "the wake-up was forgotten");
    });
}

#[test]
fn of_two_wake_ups_at_once_one_puts_it_in_line() {
    check(|| {
        let slot = Slot::opened();
        slot.work();
        let other = thread::spawn({
            let slot = Arc::clone(&slot);
            move || slot.wake()
        });
        slot.wake();
        other.join().expect("the visitor ends");
        assert_eq!(slot.in_line.load(Ordering::Acquire), 1);
    });
}

#[test]
fn an_event_of_an_earlier_life_does_nothing() {
    check(|| {
        let claim = Arc::new(Claim::default());
        let old = claim.open();
        let late = thread::spawn({
            let claim = Arc::clone(&claim);
            move || claim.ready(Some(old))
        });
        assert_eq!(claim.run(), old);
        claim.close();
        let new = claim.open();
        assert_ne!(new, old);
        assert_eq!(claim.run(), new);
        assert!(!late.join().expect("the event ends"), "it was ready, running or gone throughout");
        assert!(!claim.rest(), "nobody woke the second life");
        assert!(!claim.ready(Some(old)));
        assert!(claim.ready(Some(new)));
    });
}
