//! The models: that each makes the load that it says, and measures it as it says.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_lab::output::threshold::{Threshold, ThresholdResult};
use gustnado_lab::plan::{BackendChoice, LoadModel, RateStage};

use crate::toy::{Reply, Toy, ok};
use crate::{counted, outcome_of, timed, within};

crate::through_both_doors!(
    an_open_loop_keeps_its_rate,
    an_open_loop_shows_a_stall_that_a_closed_one_hides,
    a_stall_up_to_the_end_is_in_the_latencies,
    a_few_slow_answers_are_no_stall,
    connections_that_are_never_served_are_named,
    an_open_loop_ends_after_its_number,
    a_ramp_finds_the_knee,
    each_stage_has_its_own_rate_and_length,
    churn_opens_a_connection_for_each_request,
    pipelining_has_several_requests_under_way,
    connections_are_held_while_others_ask,
    threads_that_only_hold_take_no_part_of_the_rate,
    a_slow_sender_is_slow,
    a_slow_reader_is_slow,
);

/// A toy that sends no response for 0.2 s of every 2 s, and the start of that.
fn stalling() -> Toy {
    let began = Instant::now();
    Toy::start(move |_| {
        let into = began.elapsed().as_millis() % 2000;
        if into < 200 {
            let left = u64::try_from(200 - into).expect("it is small");
            thread::sleep(Duration::from_millis(left));
        }
        Reply::Bytes(ok("hello"))
    })
}

fn an_open_loop_keeps_its_rate(io: BackendChoice) {
    within(|| {
        let toy = Toy::friendly();
        let mut plan = timed(&toy.url("/"), 8, Duration::from_secs(1), io);
        plan.load = LoadModel::Open { rate_per_s: 300.0 };
        let outcome = outcome_of(&plan);
        // Each connection had a request before, so that it was served once.
        assert_eq!((outcome.requests, outcome.sent), (toy.seen() - 8, toy.seen() - 8));
        assert_eq!(outcome.requests_before, 8);
        let service = outcome.service_us.expect("an open loop has both");
        assert_eq!(service.count, outcome.requests);
        assert!(service.mean <= outcome.latency_us.mean);
        assert!((outcome.duration_s - 1.0).abs() < 0.05, "{}", outcome.duration_s);
        // What is due last of all may be late on a busy machine, and is not sent then.
        let asked = outcome.requests;
        if asked == 300 { Ok(()) } else { Err(format!("{asked}: {:?}", outcome.warnings)) }
    });
}

/// Requests are due evenly, and those of a stall wait for its end: of 2 s, 0.2 s have latencies
/// from 0 to 200 ms, so the percentile p is at (p - 90 %) of the period before the stall's end.
fn an_open_loop_shows_a_stall_that_a_closed_one_hides(io: BackendChoice) {
    let toy = stalling();
    let mut plan = timed(&toy.url("/"), 40, Duration::from_secs(4), io);
    plan.load = LoadModel::Open { rate_per_s: 500.0 };
    let open = outcome_of(&plan);
    for (percentile, truth) in [("95", 100_000.0), ("98", 160_000.0), ("99", 180_000.0)] {
        let found = open.latency_us.percentiles[percentile];
        assert!((found - truth).abs() < 30_000.0, "{percentile}: {found} for {truth}");
    }
    assert!(!open.warnings.iter().any(|word| word.contains("hides a stall")), "{open:?}");
    let closed = outcome_of(&timed(&toy.url("/"), 2, Duration::from_secs(4), io));
    assert!(closed.latency_us.percentiles["99"] < 30_000.0, "{:?}", closed.latency_us);
    let word = closed.warnings.iter().find(|word| word.contains("hides a stall"));
    assert!(word.is_some_and(|word| word.contains("--rate")), "{:?}", closed.warnings);
}

/// Of 200 requests the last half has no response: four of it were sent, and the others were not.
fn a_stall_up_to_the_end_is_in_the_latencies(io: BackendChoice) {
    for keep_alive in [true, false] {
        let toy =
            Toy::start(
                |asked| {
                    if asked.number < 104 { Reply::Bytes(ok("hello")) } else { Reply::Silence }
                },
            );
        let mut plan = timed(&toy.url("/"), 4, Duration::from_secs(1), io);
        plan.load = LoadModel::Open { rate_per_s: 200.0 };
        plan.keep_alive = keep_alive;
        let outcome = outcome_of(&plan);
        assert_eq!((outcome.unanswered, outcome.errors.total()), (4, 0), "{outcome:?}");
        let latency = &outcome.latency_us;
        assert!((190..=200).contains(&latency.count), "{latency:?}");
        // The oldest of them was due half a second before the end, and the next ones 5 ms later.
        let late = latency.percentiles["90"];
        assert!((300_000.0..600_000.0).contains(&late), "{late}");
        assert!(latency.max >= 3_000_000.0, "those that were sent were waited for: {latency:?}");
        for bound in ["p90>5ms", "errors>0", "error_rate>1%"] {
            let found = Threshold::parse(bound).expect("it is one").evaluate(&outcome);
            assert!(matches!(found, ThresholdResult::Struck(_)), "{bound}: {found:?}");
        }
    }
}

/// While one connection waits for a slow response, the others go on.
fn a_few_slow_answers_are_no_stall(io: BackendChoice) {
    let toy = Toy::start(|asked| {
        if asked.number % 50 == 49 {
            thread::sleep(Duration::from_millis(150));
        }
        Reply::Bytes(ok("hello"))
    });
    let mut plan = timed(&toy.url("/"), 10, Duration::from_secs(1), io);
    plan.warm_up = Duration::from_millis(100);
    let outcome = outcome_of(&plan);
    assert!(outcome.latency_us.max >= 150_000.0, "{:?}", outcome.latency_us);
    assert!(!outcome.warnings.iter().any(|word| word.contains("stall")), "{outcome:?}");
}

fn connections_that_are_never_served_are_named(io: BackendChoice) {
    let toy = Toy::with_room(3, |_| {
        thread::sleep(Duration::from_millis(5));
        Reply::Bytes(ok("hello"))
    });
    let mut plan = timed(&toy.url("/"), 8, Duration::from_millis(300), io);
    plan.response_timeout = Duration::from_millis(400);
    plan.connect_timeout = Duration::from_millis(500);
    let outcome = outcome_of(&plan);
    assert!(outcome.requests > 0);
    assert_eq!(outcome.connections_unserved, 5, "{outcome:?}");
    let connections = outcome.connections.as_ref().expect("they are counted");
    assert_eq!((connections.due, connections.served), (8, 3), "{connections:?}");
    let word = "5 of 8 connections never had a response";
    assert!(outcome.warnings.iter().any(|found| found.starts_with(word)), "{outcome:?}");
}

fn an_open_loop_ends_after_its_number(io: BackendChoice) {
    let toy = Toy::friendly();
    let mut plan = counted(&toy.url("/"), 4, 101, io);
    plan.load = LoadModel::Open { rate_per_s: 500.0 };
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.sent, toy.seen()), (101, 101, 101));
    assert!(outcome.duration_s < 30.0, "{}", outcome.duration_s);
}

fn a_ramp_finds_the_knee(io: BackendChoice) {
    // One response in 5 ms, one after the other: 200 per second at most.
    let line = Arc::new(Mutex::new(()));
    let toy = Toy::start(move |_| {
        let _turn = line.lock().expect("nobody panics with it");
        thread::sleep(Duration::from_millis(5));
        Reply::Bytes(ok("hello"))
    });
    let mut plan = timed(&toy.url("/"), 50, Duration::from_mins(1), io);
    let step = Duration::from_millis(700);
    plan.load = LoadModel::rising((40.0, 400.0), 4, step);
    let outcome = outcome_of(&plan);
    let rates: Vec<f64> = outcome.steps.iter().map(|step| step.rate_per_s).collect();
    assert_eq!(rates, [40.0, 160.0, 280.0, 400.0]);
    assert!(!outcome.steps[3].kept_up, "{:?}", outcome.steps);
    assert!(outcome.steps[3].answered_per_s < 250.0, "{:?}", outcome.steps);
    assert!(outcome.steps[0].errors == 0 && outcome.steps[0].latency_us.count == 28);
}

fn each_stage_has_its_own_rate_and_length(io: BackendChoice) {
    let toy = Toy::friendly();
    let mut plan = timed(&toy.url("/"), 4, Duration::from_mins(1), io);
    let stage = |rate_per_s, ms| RateStage { rate_per_s, length: Duration::from_millis(ms) };
    plan.load = LoadModel::Ramp { stages: vec![stage(100.0, 400), stage(20.0, 700)] };
    plan.end.after = None;
    let outcome = outcome_of(&plan);
    let steps: Vec<_> = outcome
        .steps
        .iter()
        .map(|step| (step.rate_per_s.to_bits(), step.latency_us.count))
        .collect();
    assert_eq!(steps, [(100.0_f64.to_bits(), 40), (20.0_f64.to_bits(), 14)], "{outcome:?}");
    assert!((outcome.duration_s - 1.1).abs() < 0.05, "{}", outcome.duration_s);
    let sentence = &outcome.model.sentence;
    let stages = "0.4 s at 100 requests per second, then 0.7 s at 20 requests per second";
    assert!(sentence.contains(stages), "{sentence}");
}

fn churn_opens_a_connection_for_each_request(io: BackendChoice) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let toy = Toy::start(move |asked| {
        seen.lock().expect("nobody panics with it").push(asked.head.clone());
        Reply::Last(ok("hello"))
    });
    let mut plan = counted(&toy.url("/"), 3, 60, io);
    plan.keep_alive = false;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.connections_opened, toy.opened()), (60, 60, 60));
    assert_eq!(outcome.model.name, "churn");
    assert_eq!(outcome.connect_us.as_ref().expect("each was timed").count, 60);
    let heads = heads.lock().expect("nobody panicked with it");
    assert!(heads.iter().all(|head| head.contains("Connection: close\r\n")), "{heads:?}");
}

fn pipelining_has_several_requests_under_way(io: BackendChoice) {
    // It responds only once four requests are there.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut text, mut responded) = (String::new(), 0);
                let mut bytes = [0; 4096];
                while let Ok(count) = stream.read(&mut bytes)
                    && count > 0
                {
                    text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                    let asked = text.matches("\r\n\r\n").count();
                    if asked >= responded + 4 {
                        let answers = ok("hello").repeat(asked - responded);
                        responded = asked;
                        if stream.write_all(&answers).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    let mut plan = counted(&url, 2, 80, io);
    plan.pipeline = 4;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.connections_opened), (80, 2));
    assert!(outcome.model.sentence.contains("up to 4 requests"), "{}", outcome.model.sentence);
    assert!(outcome.warnings.iter().any(|word| word.contains("pipelined")), "{outcome:?}");
}

fn connections_are_held_while_others_ask(io: BackendChoice) {
    within(|| {
        let toy = Toy::friendly();
        let mut plan = timed(&toy.url("/"), 2, Duration::from_secs(1), io);
        plan.load = LoadModel::Hold { idle: 200, rate_per_s: Some(50.0) };
        let outcome = outcome_of(&plan);
        let held = outcome.held.clone().expect("that is what it was about");
        assert_eq!((held.asked, held.opened, held.lost), (200, 200, 0));
        assert_eq!((outcome.requests + 202, toy.opened()), (toy.seen(), 202));
        assert_eq!(outcome.model.name, "hold");
        assert!(outcome.series.iter().all(|second| second.connections == 202), "{outcome:?}");
        let asked = outcome.requests;
        if asked == 50 { Ok(()) } else { Err(format!("{asked}: {:?}", outcome.warnings)) }
    });
}

fn threads_that_only_hold_take_no_part_of_the_rate(io: BackendChoice) {
    within(|| {
        let toy = Toy::friendly();
        let mut plan = timed(&toy.url("/"), 1, Duration::from_secs(1), io);
        plan.load = LoadModel::Hold { idle: 30, rate_per_s: Some(50.0) };
        plan.threads = Some(3);
        let outcome = outcome_of(&plan);
        assert_eq!(outcome.model.threads, 3);
        let asked = outcome.requests;
        if asked == 50 { Ok(()) } else { Err(format!("{asked}: {:?}", outcome.warnings)) }
    });
}

fn a_slow_sender_is_slow(io: BackendChoice) {
    let toy = Toy::friendly();
    let mut plan = counted(&toy.url("/"), 2, 2, io);
    plan.slowness.send_bytes_per_s = Some(100);
    let began = Instant::now();
    let outcome = outcome_of(&plan);
    // Some 45 bytes at 100 per second.
    let took = began.elapsed();
    assert_eq!(outcome.requests, 2);
    assert!(outcome.latency_us.min >= 200_000.0, "{:?}", outcome.latency_us);
    assert!(took >= Duration::from_millis(200), "{took:?}");
}

fn a_slow_reader_is_slow(io: BackendChoice) {
    let body = "x".repeat(60_000);
    let toy = Toy::start(move |_| Reply::Bytes(ok(&body)));
    let mut plan = counted(&toy.url("/"), 2, 2, io);
    plan.slowness.read_bytes_per_s = Some(100_000);
    let outcome = outcome_of(&plan);
    assert_eq!(outcome.requests, 2);
    // The bytes of it that the kernel holds come at once.
    assert!(outcome.latency_us.min >= 150_000.0, "{:?}", outcome.latency_us);
}
