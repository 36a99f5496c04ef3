//! [`SleepState`]: a sleeper that was left something is awake or notified. [`Ping`]: a waiter for
//! an answer sees it or is told.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::check;
use crate::sync::sleep_state::{Ping, SleepState};

#[derive(Default)]
struct ModelSleeper {
    sleep_state: SleepState,
    left: AtomicBool,
    alerts: AtomicUsize,
}

impl ModelSleeper {
    fn visit(&self) {
        self.left.store(true, Ordering::Relaxed);
        if self.sleep_state.notify() {
            self.alerts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Prepares to sleep and looks once more. Returns whether it sleeps.
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
fn the_sleeper_sees_what_was_left_or_is_woken() {
    check(|| {
        let sleeper = Arc::new(ModelSleeper::default());
        let visitor = thread::spawn({
            let sleeper = Arc::clone(&sleeper);
            move || sleeper.visit()
        });
        let sleeps = sleeper.prepare_sleep();
        visitor.join().expect("the visitor ends");
        assert!(!sleeps || sleeper.alerts.load(Ordering::Relaxed) == 1, "asleep and not woken");
    });
}

#[test]
fn of_two_visitors_one_rings() {
    check(|| {
        let sleeper = Arc::new(ModelSleeper::default());
        let visitors = [(); 2].map(|()| {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.visit())
        });
        let sleeps = sleeper.prepare_sleep();
        for visitor in visitors {
            visitor.join().expect("a visitor ends");
        }
        let alerts = sleeper.alerts.load(Ordering::Relaxed);
        assert!(alerts <= 1, "one alert is enough for all");
        assert!(!sleeps || alerts == 1, "asleep and not woken");
    });
}

#[test]
fn a_sleeper_that_lies_down_again_is_woken_again() {
    check(|| {
        let sleeper = Arc::new(ModelSleeper::default());
        sleeper.sleep_state.prepare_sleep();
        let visitor = thread::spawn({
            let sleeper = Arc::clone(&sleeper);
            move || sleeper.visit()
        });
        // The kernel woke it for something else.
        sleeper.sleep_state.cancel_sleep();
        let sleeps = sleeper.prepare_sleep();
        visitor.join().expect("the visitor ends");
        assert!(!sleeps || sleeper.alerts.load(Ordering::Relaxed) == 1, "asleep and not woken");
    });
}

#[test]
fn an_answer_that_is_waited_for_is_seen_or_told() {
    check(|| {
        let ping = Arc::new(Ping::default());
        let worker = thread::spawn({
            let ping = Arc::clone(&ping);
            move || ping.reply()
        });
        let waits = ping.await_reply();
        let tells = worker.join().expect("the worker ends");
        assert!(tells || !waits, "it waits for an answer that was given");
    });
}
