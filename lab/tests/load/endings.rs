//! When a run ends, and what it has by then.

use std::thread;
use std::time::{Duration, Instant};

use gustnado_lab::load::{Phase, Stop, run};
use gustnado_lab::plan::Io;

use crate::toy::{Reply, Toy, ok};
use crate::{Seen, counted, outcome_of, timed};

crate::through_both_doors!(
    a_number_of_requests_is_exact,
    fewer_requests_than_connections_are_exact_too,
    a_warm_up_is_not_counted,
    a_run_that_is_stopped_reports_what_it_has,
    a_server_that_hangs_does_not_keep_a_run_from_stopping,
);

fn a_number_of_requests_is_exact(io: Io) {
    let toy = Toy::friendly();
    let outcome = outcome_of(&counted(&toy.url("/"), 7, 1001, io));
    assert_eq!((outcome.requests, outcome.sent, toy.seen()), (1001, 1001, 1001));
    assert_eq!((outcome.errors.total(), outcome.statuses[&200]), (0, 1001));
    assert_eq!(outcome.connections_opened, 7);
    let answer = ok("hello").len() as u64;
    assert_eq!(outcome.bytes_received, 1001 * answer);
    assert!(outcome.warnings.iter().all(|word| !word.contains("early")), "{outcome:?}");
}

fn fewer_requests_than_connections_are_exact_too(io: Io) {
    let toy = Toy::friendly();
    let outcome = outcome_of(&counted(&toy.url("/"), 20, 3, io));
    assert_eq!((outcome.requests, outcome.sent, toy.seen()), (3, 3, 3));
}

fn a_warm_up_is_not_counted(io: Io) {
    let toy = Toy::friendly();
    let mut plan = counted(&toy.url("/"), 2, 50, io);
    plan.warm_up = Duration::from_millis(200);
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.sent), (50, 50));
    assert!(toy.seen() > 50, "{} requests were seen", toy.seen());
}

fn a_run_that_is_stopped_reports_what_it_has(io: Io) {
    let toy = Toy::friendly();
    let plan = timed(&toy.url("/"), 3, Duration::from_mins(1), io);
    let (stop, seen) = (Stop::default(), Seen::default());
    let hand = stop.clone();
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(1500));
        hand.now();
        Instant::now()
    });
    let outcome = run(&plan, &seen, &stop).expect("the plan is good");
    let took = stopping.join().expect("it only sleeps").elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(outcome.requests > 0);
    assert!(outcome.warnings.iter().any(|word| word.contains("stopped early")), "{outcome:?}");
    let seen = seen.0.into_inner().expect("nobody panicked with it");
    assert!(seen.iter().any(|seen| seen.phase == Phase::Measuring && seen.p99_us > 0.0));
    assert!(seen.windows(2).all(|two| two[0].requests <= two[1].requests));
}

fn a_server_that_hangs_does_not_keep_a_run_from_stopping(io: Io) {
    let toy = Toy::start(|_| Reply::Silence);
    let outcome = outcome_of(&timed(&toy.url("/"), 3, Duration::from_millis(300), io));
    assert_eq!((outcome.requests, outcome.sent), (0, 3));
    assert!(outcome.duration_s < 10.0, "{}", outcome.duration_s);
}
