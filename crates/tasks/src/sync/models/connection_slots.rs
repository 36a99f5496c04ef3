//! [`ConnectionSlots`]: a task that waits for a slot is woken when there is one.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::check;
use crate::sync::connection_slots::ConnectionSlots;

/// A waker that only notes that it was woken.
struct Note(AtomicBool);

impl Wake for Note {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn note() -> std::sync::Arc<Note> {
    std::sync::Arc::new(Note(AtomicBool::new(false)))
}

/// Polls once for a place on the only worker. Returns whether it was had.
fn poll_once(connection_slots: &ConnectionSlots, note: &std::sync::Arc<Note>) -> bool {
    let waker = Waker::from(std::sync::Arc::clone(note));
    let waiting = pin!(connection_slots.wait_for(|| connection_slots.take(0).then_some(())));
    waiting.poll(&mut Context::from_waker(&waker)) == Poll::Ready(())
}

#[test]
fn a_place_given_back_wakes_who_waits_for_it() {
    check(|| {
        let connection_slots = Arc::new(ConnectionSlots::new(1, 1, 1));
        assert!(connection_slots.take(0));
        let leaver = thread::spawn({
            let connection_slots = Arc::clone(&connection_slots);
            move || connection_slots.release(0)
        });
        let note = note();
        let had = poll_once(&connection_slots, &note);
        leaver.join().expect("the leaver ends");
        assert!(had || note.0.load(Ordering::SeqCst), "it waits, a place is free, nobody said so");
        assert!(had || poll_once(&connection_slots, &note));
        assert_eq!(connection_slots.open(), 1);
    });
}

#[test]
fn two_that_want_the_last_place_do_not_both_go_without() {
    check(|| {
        let connection_slots = Arc::new(ConnectionSlots::new(1, 1, 1));
        let notes = [note(), note()];
        let other = thread::spawn({
            let (connection_slots, note) =
                (Arc::clone(&connection_slots), std::sync::Arc::clone(&notes[1]));
            move || poll_once(&connection_slots, &note)
        });
        let mut had = [poll_once(&connection_slots, &notes[0]), false];
        had[1] = other.join().expect("the other one ends");
        let woken = [0, 1].map(|at| notes[at].0.load(Ordering::SeqCst));
        assert!(had != [true; 2], "one place, two holders");
        assert!(had != [false; 2] || woken != [false; 2], "the place is free and both sleep");
        assert_eq!(connection_slots.open(), usize::from(had != [false; 2]));
    });
}

#[test]
fn who_finds_all_taken_is_left_alone_until_one_is_free() {
    check(|| {
        let connection_slots = ConnectionSlots::new(1, 1, 1);
        assert!(connection_slots.take(0));
        let note = note();
        assert!(!poll_once(&connection_slots, &note));
        assert!(!note.0.load(Ordering::SeqCst), "woken by its own look: that never ends");
        connection_slots.release(0);
        assert!(note.0.load(Ordering::SeqCst));
    });
}

#[test]
fn a_worker_that_takes_no_more_is_vacant_once_the_last_has_gone() {
    check(|| {
        let connection_slots = Arc::new(ConnectionSlots::new(1, 1, 1));
        let comer = thread::spawn({
            let connection_slots = Arc::clone(&connection_slots);
            move || connection_slots.take(0)
        });
        connection_slots.close(0);
        let took = comer.join().expect("the comer ends");
        assert_eq!(connection_slots.is_vacant(0), !took);
        assert!(!connection_slots.take(0));
        if took {
            connection_slots.release(0);
        }
        assert!(connection_slots.is_vacant(0));
    });
}

#[test]
fn who_waits_for_a_place_hears_of_a_worker_that_comes() {
    check(|| {
        let connection_slots = Arc::new(ConnectionSlots::new(1, 1, 1));
        connection_slots.close(0);
        let autoscale = thread::spawn({
            let connection_slots = Arc::clone(&connection_slots);
            move || connection_slots.reopen(0)
        });
        let note = note();
        let had = poll_once(&connection_slots, &note);
        autoscale.join().expect("the watch ends");
        assert!(had || note.0.load(Ordering::SeqCst), "it waits, and there is room");
    });
}
