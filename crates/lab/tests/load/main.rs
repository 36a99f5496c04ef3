//! The load generator against a toy server, on real sockets.

mod answers;
mod endings;
mod failures;
mod http2;
mod models;
mod ramp_up;
mod toy;
mod truth;
mod websocket;

use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use gustnado_lab::load::{LoadProgress, ProgressObserver, StopHandle, run};
use gustnado_lab::outcome::Outcome;
use gustnado_lab::plan::{BackendChoice, LoadPlan};

/// Runs each test on both backends; `io_uring`'s is skipped, with a line, where there is none.
macro_rules! through_both_doors {
    ($($name:ident),+ $(,)?) => {
        mod epoll {
            $(#[test] fn $name() { super::$name(gustnado_lab::plan::BackendChoice::Epoll); })+
        }
        mod uring {
            $(#[test] fn $name() {
                let name = concat!(module_path!(), "::", stringify!($name));
                if crate::has_uring(name) {
                    super::$name(gustnado_lab::plan::BackendChoice::Uring);
                }
            })+
        }
    };
}
pub(crate) use through_both_doors;

/// Returns whether there is an `io_uring` for the test `name`; a line says that it is skipped if
/// not.
pub(crate) fn has_uring(name: &str) -> bool {
    let probed = gustnado_tasks::probe_uring();
    if let Err(error) = &probed {
        // (Not by `println!`: libtest shows that of tests that fail only.)
        let line = format!("skipped: {name}: io_uring cannot be used here ({error})\n");
        std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    }
    probed.is_ok()
}

/// Remembers what it was shown.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<LoadProgress>>);

impl ProgressObserver for Seen {
    fn progress(&self, progress: &LoadProgress) {
        self.0.lock().expect("nobody panics with it").push(progress.clone());
    }
}

/// A closed loop that ends after so many requests.
pub(crate) fn counted(url: &str, connections: u64, requests: u64, io: BackendChoice) -> LoadPlan {
    let mut plan = LoadPlan::closed(url, connections);
    plan.end.requests = Some(requests);
    // Whatever goes wrong, the test ends.
    plan.end.after = Some(Duration::from_mins(1));
    plan.io = Some(io);
    plan.threads = Some(2);
    plan
}

/// A closed loop that ends after so long.
pub(crate) fn timed(url: &str, connections: u64, after: Duration, io: BackendChoice) -> LoadPlan {
    let mut plan = counted(url, connections, 1, io);
    plan.end.requests = None;
    plan.end.after = Some(after);
    plan
}

pub(crate) fn outcome_of(plan: &LoadPlan) -> Outcome {
    let outcome = run(plan, &Seen::default(), &StopHandle::default()).expect("the plan is good");
    let most = if outcome.service_us.is_some() { outcome.unanswered + outcome.unsent } else { 0 };
    let others = outcome.latency_us.count - outcome.requests;
    assert!(others <= most, "each success has a latency, and what an open loop lacks: {others}");
    let in_series: u64 = outcome.series.iter().map(|second| second.requests).sum();
    assert_eq!(in_series, outcome.requests, "{:?}", outcome.series);
    outcome
}

/// Runs in which a bound may be met.
const TRIES: u32 = 4;

/// Runs until a bound is met; at the last try what is wrong with it fails the test.
pub(crate) fn within(mut run: impl FnMut() -> Result<(), String>) {
    for left in (0..TRIES).rev() {
        match run() {
            Ok(()) => return,
            Err(why) if left == 0 => panic!("{why}"),
            Err(why) => println!("once more: {why}"),
        }
    }
}
