//! [`SleepState`]: a sleeper that was left something is awake or notified. [`Ping`]: a waiter for
//! an answer sees it or is told.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::check;
use crate::sync::sleep_state::{Ping, SleepState};

#[derive(Default)]
struct House {
    sleep_state: SleepState,
    left: AtomicBool,
    alerts: AtomicUsize,
}

impl House {
    fn visit(&self) {
        self.left.store(true, Ordering::Relaxed);
        if self.sleep_state.notify() {
            self.alerts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lies down and looks once more. Returns whether it sleeps.
    fn prepare_sleep(&self) -> bool {
        self.sleep_state.prepare_sleep();
        if self.left.load(Ordering::Relaxed) {
            self.sleep_state.cancel_sleep();
            return false;
        }
        true
    }
}

#[test]
fn the_sleeper_sees_what_was_left_or_is_rung_for() {
    check(|| {
        let house = Arc::new(House::default());
        let visitor = thread::spawn({
            let house = Arc::clone(&house);
            move || house.visit()
        });
        let sleeps = house.prepare_sleep();
        visitor.join().expect("the visitor ends");
        assert!(!sleeps || house.alerts.load(Ordering::Relaxed) == 1, "asleep and not rung for");
    });
}

#[test]
fn of_two_visitors_one_rings() {
    check(|| {
        let house = Arc::new(House::default());
        let visitors = [(); 2].map(|()| {
            let house = Arc::clone(&house);
            thread::spawn(move || house.visit())
        });
        let sleeps = house.prepare_sleep();
        for visitor in visitors {
            visitor.join().expect("a visitor ends");
        }
        let alerts = house.alerts.load(Ordering::Relaxed);
        assert!(alerts <= 1, "one alert is enough for all");
        assert!(!sleeps || alerts == 1, "asleep and not rung for");
    });
}

#[test]
fn a_sleeper_that_lies_down_again_is_rung_for_again() {
    check(|| {
        let house = Arc::new(House::default());
        house.sleep_state.prepare_sleep();
        let visitor = thread::spawn({
            let house = Arc::clone(&house);
            move || house.visit()
        });
        // The kernel woke it for something else.
        house.sleep_state.cancel_sleep();
        let sleeps = house.prepare_sleep();
        visitor.join().expect("the visitor ends");
        assert!(!sleeps || house.alerts.load(Ordering::Relaxed) == 1, "asleep and not rung for");
    });
}

#[test]
fn an_answer_that_is_waited_for_is_seen_or_told() {
    check(|| {
        let ping = Arc::new(Ping::default());
        let worker = thread::spawn({
            let ping = Arc::clone(&ping);
            move || ping.answer()
        });
        let waits = ping.await_answer();
        let tells = worker.join().expect("the worker ends");
        assert!(tells || !waits, "it waits for an answer that was given");
    });
}
