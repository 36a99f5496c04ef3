//! Turns: what ends them, and the clock.

use std::thread;
use std::time::{Duration, Instant};

use gustnado_reactor::{IoChoice, Wait, Wheel};

use crate::harness::Harness;

on_both_backends!(
    an_alert_of_another_thread_ends_a_turn,
    an_alert_before_the_turn_ends_it_too,
    every_alert_counts_also_after_many,
    a_turn_until_a_time_ends_then,
    a_turn_that_polls_does_not_wait,
    a_wheel_and_turns_make_timers,
);

fn an_alert_of_another_thread_ends_a_turn(io: IoChoice) {
    let mut harness = Harness::open(io);
    for round in 0..20 {
        let waker = harness.reactor.waker();
        let raiser = thread::spawn(move || {
            thread::sleep(Duration::from_millis(round % 5));
            waker.wake();
        });
        // Without the alert this would last for ever.
        harness.reactor.turn(Wait::Forever, &mut harness.woken).expect("the kernel waits");
        raiser.join().expect("the raiser ends");
        assert!(harness.woken.is_empty(), "an alert is nobody's operation");
        // The alert may have come after the turn ended for another reason: take it now.
        harness.turn_for(1);
    }
}

fn an_alert_before_the_turn_ends_it_too(io: IoChoice) {
    let mut harness = Harness::open(io);
    for _ in 0..10 {
        harness.turn_for(1);
        harness.reactor.waker().wake();
        let start = Instant::now();
        let until_ms = harness.reactor.clock().read_ms() + 5_000;
        harness.reactor.turn(Wait::Until(until_ms), &mut harness.woken).expect("the kernel waits");
        assert!(start.elapsed() < Duration::from_secs(2), "the alert was lost");
    }
}

fn every_alert_counts_also_after_many(io: IoChoice) {
    let mut harness = Harness::open(io);
    let waker = harness.reactor.waker();
    for _ in 0..10_000 {
        waker.wake();
    }
    harness.turn_for(20);
    let start = Instant::now();
    waker.wake();
    let until_ms = harness.reactor.clock().read_ms() + 5_000;
    harness.reactor.turn(Wait::Until(until_ms), &mut harness.woken).expect("the kernel waits");
    assert!(start.elapsed() < Duration::from_secs(2), "the last alert was lost");
}

fn a_turn_until_a_time_ends_then(io: IoChoice) {
    let mut harness = Harness::open(io);
    harness.turn_for(5);
    for millis in [1, 10, 60] {
        let until_ms = harness.reactor.clock().read_ms() + millis;
        harness.reactor.turn(Wait::Until(until_ms), &mut harness.woken).expect("the kernel waits");
        let now_ms = harness.reactor.clock().now_ms();
        assert!(now_ms + 1 >= until_ms, "{} ms early", until_ms - now_ms);
        assert!(now_ms < until_ms + 1_000, "{} ms late", now_ms - until_ms);
    }
}

fn a_turn_that_polls_does_not_wait(io: IoChoice) {
    let mut harness = Harness::open(io);
    let start = Instant::now();
    for _ in 0..1_000 {
        harness.reactor.turn(Wait::Poll, &mut harness.woken).expect("the kernel waits");
        // A time that is over is not waited for either.
        harness.reactor.turn(Wait::Until(0), &mut harness.woken).expect("the kernel waits");
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

fn a_wheel_and_turns_make_timers(io: IoChoice) {
    let mut harness = Harness::open(io);
    let mut wheel = Wheel::default();
    let start_ms = harness.reactor.clock().read_ms();
    for millis in [80, 3, 25, 3, 0] {
        wheel.arm(start_ms + millis, millis);
    }
    let never = wheel.arm(start_ms + 30, 999);
    assert!(wheel.cancel(never));
    let mut fired = Vec::new();
    let mut turns = 0;
    while let Some(next_ms) = wheel.next_ms() {
        harness.reactor.turn(Wait::Until(next_ms), &mut harness.woken).expect("the kernel waits");
        turns += 1;
        let now_ms = harness.reactor.clock().now_ms();
        wheel.expire(now_ms, |token| {
            assert!(start_ms + token <= now_ms, "fired early");
            fired.push(token);
        });
    }
    assert_eq!(fired, [0, 3, 3, 25, 80]);
    assert!(turns < 40, "{turns} turns for five timers");
}
