//! Delayed calls, and calls from other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::protocol::{Engine, Transport};

use crate::harness::{Setup, wait_until};
use crate::tape::{Tape, connect, engine, taped};

pub(crate) fn calls_are_made_in_their_time(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let began = Instant::now();
    for wait_ms in [120, 40, 80, 0] {
        let tape = tape.clone();
        let wait = Duration::from_millis(wait_ms);
        let note = move || {
            assert!(began.elapsed() >= wait, "{wait_ms} ms: {:?}", began.elapsed());
            tape.note(wait_ms);
        };
        engine.call_later(wait, note).expect("the engine runs");
    }
    tape.wait_for("120");
    assert_eq!(*tape.entries(), ["0", "40", "80", "120"]);
    assert_eq!(engine.stats().panics, 0);
}

pub(crate) fn a_call_can_be_taken_back_and_moved(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let later = |name: &'static str, wait_ms| {
        let tape = tape.clone();
        let note = move || tape.note(name);
        engine.call_later(Duration::from_millis(wait_ms), note).expect("the engine runs")
    };
    let (taken, earlier, postponed) =
        (later("taken", 30), later("earlier", 60_000), later("p", 20));
    assert!(taken.is_active() && taken.cancel() && !taken.is_active());
    assert!(postponed.delay(Duration::from_millis(150)));
    // The engine sleeps for a minute; it has to be woken.
    thread::sleep(Duration::from_millis(10));
    assert!(earlier.reset(Duration::from_millis(20)));
    tape.wait_for("earlier");
    assert!(!tape.has("p") && postponed.is_active());
    tape.wait_for("p");
    assert!(!postponed.cancel() && !earlier.reset(Duration::ZERO) && !tape.has("taken"));
}

pub(crate) fn calls_from_threads_are_made_in_order(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let running = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, tape, running) = (Engine::clone(&engine), tape.clone(), running.clone());
            scope.spawn(move || {
                for turn in 0..100 {
                    let (tape, running) = (tape.clone(), running.clone());
                    let call = move || {
                        assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                        tape.note(format!("{thread} {turn}"));
                        running.fetch_sub(1, Ordering::SeqCst);
                    };
                    engine.call_from_thread(call).expect("the engine runs");
                }
            });
        }
    });
    for thread in 0..4 {
        tape.wait_for(&format!("{thread} 99"));
    }
    assert_eq!(engine.stats().panics, 0);
    for thread in 0..4 {
        let of_thread = format!("{thread} ");
        let entries = tape.entries();
        let turns = entries.iter().filter_map(|entry| entry.strip_prefix(&of_thread));
        assert!(turns.eq((0..100).map(|turn| turn.to_string())));
    }
}

pub(crate) fn a_delayed_call_may_use_a_connection(setup: Setup) {
    let engine = engine(setup);
    let calls = Engine::clone(&engine);
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| {
            let calls = calls.clone();
            taped(&Tape::default(), move |transport: &mut Transport, data: &[u8]| {
                if data.is_empty() {
                    let handle = transport.handle();
                    let end = move || {
                        handle.write(b"time is over").expect("there is room");
                        handle.lose_connection();
                    };
                    calls.call_later(Duration::from_millis(60), end).expect("the engine runs");
                }
            })
        })
        .expect("a port");
    let began = Instant::now();
    assert_eq!(connect(&port).read_to_end(), b"time is over");
    assert!(began.elapsed() >= Duration::from_millis(55));
}

pub(crate) fn many_delayed_calls_wait_at_once(setup: Setup) {
    let engine = engine(setup);
    let made = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..20_000_u64)
        .map(|number| {
            let made = made.clone();
            let count = move || _ = made.fetch_add(1, Ordering::SeqCst);
            let wait = Duration::from_millis(100 + number * 7 % 100);
            engine.call_later(wait, count).expect("there is room")
        })
        .collect();
    let cancelled = calls.iter().step_by(2).filter(|call| call.cancel()).count();
    wait_until("the rest is made", || made.load(Ordering::SeqCst) == 20_000 - cancelled);
    assert!(calls.iter().all(|call| !call.is_active()));
}
