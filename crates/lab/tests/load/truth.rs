//! The figures against a server whose truth is known: it keeps its own record of when each request
//! came and when its response left, by a clock that the generator does not see.
//!
//! The machine that tests run on has other work, which delays both sides. So each bound is met by
//! one run of a few: a figure that is computed wrongly is wrong in all of them.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gustnado_lab::outcome::Outcome;
use gustnado_lab::output::histogram::decoded;
use gustnado_lab::plan::{BackendChoice, LoadModel, LoadPlan};

use crate::toy::{Reply, Toy, ok};
use crate::{outcome_of, timed, within};

crate::through_both_doors!(
    percentiles_are_those_of_the_server,
    faults_are_counted_exactly,
    a_closed_loop_has_the_servers_throughput,
    an_open_loop_below_capacity_has_the_servers_throughput,
    an_open_loop_at_capacity_has_the_servers_throughput,
    an_open_loop_above_capacity_has_the_servers_throughput_and_says_so,
    a_held_open_loop_above_capacity_has_the_servers_throughput,
    churn_above_capacity_has_the_servers_throughput,
);

/// One request as the server records it.
#[derive(Clone, Copy)]
struct Served {
    came: Instant,
    left: Instant,
    right: bool,
}

/// The server's reaction to the request of a number.
type Behave = fn(u64) -> (Duration, Fault);

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Status,
    Short,
    Reset,
}

/// A server that works on so many requests at once, and keeps a record.
struct Truth {
    toy: Toy,
    record: Arc<Mutex<Vec<Served>>>,
    /// Both clocks at one moment, to convert times of outcomes.
    began: (Instant, SystemTime),
}

impl Truth {
    fn start(capacity: usize, behave: Behave) -> Self {
        let record = Arc::new(Mutex::new(Vec::new()));
        let places = Arc::new((Mutex::new(capacity), Condvar::new()));
        let kept = Arc::clone(&record);
        let toy = Toy::start(move |asked| {
            let came = Instant::now();
            let (work, fault) = behave(asked.number);
            let (free, freed) = &*places;
            let locked = free.lock().expect("nobody panics with it");
            *freed.wait_while(locked, |free| *free == 0).expect("nobody panics with it") -= 1;
            thread::sleep(work);
            *free.lock().expect("nobody panics with it") += 1;
            freed.notify_one();
            let right = fault == Fault::None;
            let served = Served { came, left: Instant::now(), right };
            kept.lock().expect("nobody panics with it").push(served);
            reply(fault)
        });
        Self { toy, record, began: (Instant::now(), SystemTime::now()) }
    }

    /// Returns the successful responses that left the server while an outcome was measured, per
    /// second of it.
    fn rate(&self, outcome: &Outcome) -> f64 {
        let (instant, system) = self.began;
        let began_s = system.duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs_f64();
        let from_s = outcome.started_unix_s - began_s;
        let at_s = |served: &Served| served.left.duration_since(instant).as_secs_f64() - from_s;
        let record = self.record.lock().expect("nobody panicked with it");
        let within = |served: &&Served| (0.0..outcome.duration_s).contains(&at_s(served));
        let right = record.iter().filter(|served| served.right).filter(within).count();
        real(right) / outcome.duration_s
    }

    /// Returns the time in the server of successful responses, in microseconds, sorted.
    fn times_us(&self) -> Vec<f64> {
        let record = self.record.lock().expect("nobody panicked with it");
        let took = |served: &Served| served.left.duration_since(served.came).as_secs_f64() * 1e6;
        let mut times: Vec<f64> = record.iter().filter(|served| served.right).map(took).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

fn reply(fault: Fault) -> Reply {
    match fault {
        Fault::None => Reply::Bytes(ok("hello")),
        Fault::Status => Reply::Bytes(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".into()),
        Fault::Short => Reply::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel".into()),
        Fault::Reset => Reply::Reset,
    }
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("tests count to some thousands"))
}

fn near(what: &str, found: f64, truth: f64, bound: f64) -> Result<(), String> {
    let off = (found / truth - 1.0).abs();
    let text = || format!("{what}: {found} where the server has {truth}, {:.2} % off", off * 100.0);
    if off <= bound { Ok(()) } else { Err(text()) }
}

fn percentiles_are_those_of_the_server(io: BackendChoice) {
    within(|| {
        // 20 to 60 ms, evenly, and 2 of 100 take 100 ms.
        let truth = Truth::start(usize::MAX, |number| {
            let slow = number % 50 == 49;
            let ms = if slow { 100 } else { 20 + number * 17 % 41 };
            (Duration::from_millis(ms), Fault::None)
        });
        let mut plan = timed(&truth.toy.url("/"), 12, Duration::from_secs(20), io);
        plan.end.requests = Some(300);
        let outcome = outcome_of(&plan);
        assert_eq!((outcome.requests, outcome.sent, truth.toy.seen()), (300, 300, 300));
        let times = truth.times_us();
        assert_eq!(times.len(), 300);
        for (name, rank) in [("50", 150), ("90", 270), ("100", 300)] {
            near(name, outcome.latency_us.percentiles[name], times[rank - 1], 0.015)?;
        }
        // 300 responses do not tell the 99th percentile; their histogram has it.
        assert!(!outcome.latency_us.percentiles.contains_key("99"));
        let histogram = decoded(&outcome.histogram).expect("it was just made");
        let us =
            u32::try_from(histogram.value_at_percentile(99.0)).expect("it took less than an hour");
        near("99", f64::from(us), times[296], 0.015)?;
        let mean = times.iter().sum::<f64>() / real(times.len());
        near("mean", outcome.latency_us.mean, mean, 0.015)
    });
}

fn faults_are_counted_exactly(io: BackendChoice) {
    let truth = Truth::start(usize::MAX, |number| {
        let fault = match number % 20 {
            3 => Fault::Status,
            9 => Fault::Short,
            15 => Fault::Reset,
            _ => Fault::None,
        };
        (Duration::from_millis(2), fault)
    });
    let mut plan = timed(&truth.toy.url("/"), 8, Duration::from_secs(20), io);
    plan.end.requests = Some(400);
    let outcome = outcome_of(&plan);
    let errors = &outcome.errors;
    assert_eq!((errors.status, errors.short, errors.reset), (20, 20, 20), "{errors:?}");
    assert_eq!((outcome.requests, errors.total(), truth.toy.seen()), (340, 60, 400));
}

/// A server of 200 responses per second, ten at once, and a plan of 1 s for it.
fn limited(io: BackendChoice) -> (Truth, LoadPlan) {
    let truth = Truth::start(10, |_| (Duration::from_millis(50), Fault::None));
    let plan = timed(&truth.toy.url("/"), 30, Duration::from_secs(1), io);
    (truth, plan)
}

/// Returns whether it says that the rate was missed.
fn says_missed(outcome: &Outcome) -> bool {
    outcome.warnings.iter().any(|word| word.contains("The rate was not reached"))
}

/// Both sides of a window cut in the middle of a batch of ten responses, so that one more or less
/// is within the bound: responses come ten at once.
fn same_rate(truth: &Truth, outcome: &Outcome) -> Result<(), String> {
    let served = truth.rate(outcome);
    near("requests per second", outcome.requests_per_s, served, 0.01)
}

fn a_closed_loop_has_the_servers_throughput(io: BackendChoice) {
    within(|| {
        let (truth, mut plan) = limited(io);
        plan.warm_up = Duration::from_millis(320);
        let outcome = outcome_of(&plan);
        // What was under way at the end was waited for, and costs nothing of the rate.
        assert_eq!(outcome.unanswered, 0);
        assert_eq!(outcome.requests, outcome.sent);
        same_rate(&truth, &outcome)
    });
}

fn open(rate_per_s: f64, io: BackendChoice, missed: bool) {
    within(|| {
        let (truth, mut plan) = limited(io);
        plan.load = LoadModel::Open { rate_per_s };
        let outcome = outcome_of(&plan);
        same_rate(&truth, &outcome)?;
        let said = says_missed(&outcome);
        if said == missed { Ok(()) } else { Err(format!("{:?}", outcome.warnings)) }
    });
}

fn an_open_loop_below_capacity_has_the_servers_throughput(io: BackendChoice) {
    open(100.0, io, false);
}

fn an_open_loop_at_capacity_has_the_servers_throughput(io: BackendChoice) {
    // A little less, since what sleeps wakes late.
    open(180.0, io, false);
}

fn an_open_loop_above_capacity_has_the_servers_throughput_and_says_so(io: BackendChoice) {
    open(300.0, io, true);
}

fn a_held_open_loop_above_capacity_has_the_servers_throughput(io: BackendChoice) {
    within(|| {
        let (truth, mut plan) = limited(io);
        plan.load = LoadModel::Hold { idle: 5, rate_per_s: Some(300.0) };
        let outcome = outcome_of(&plan);
        same_rate(&truth, &outcome)?;
        if says_missed(&outcome) { Ok(()) } else { Err(format!("{:?}", outcome.warnings)) }
    });
}

fn churn_above_capacity_has_the_servers_throughput(io: BackendChoice) {
    within(|| {
        let (truth, mut plan) = limited(io);
        plan.keep_alive = false;
        plan.load = LoadModel::Open { rate_per_s: 300.0 };
        let outcome = outcome_of(&plan);
        same_rate(&truth, &outcome)?;
        if says_missed(&outcome) { Ok(()) } else { Err(format!("{:?}", outcome.warnings)) }
    });
}
