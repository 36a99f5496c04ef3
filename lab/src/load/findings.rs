//! From what the threads have brought home to an [`Outcome`], with its warnings.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::model::{grouped, model};
use super::pace::{Schedule, nanos};
use super::series::Series;
use super::shared::Shared;
use super::tally::{StepTally, Times};
use super::thread::Haul;
use super::{LoadError, own, trace};
use crate::outcome::{Errors, FORMAT, Held, Kernel, Latency, Outcome, Step};
use crate::plan::{End, Io, Load, Plan};

/// The percentiles of every latency, and how they are written.
const PERCENTILES: [(&str, f64); 11] = [
    ("50", 50.0),
    ("66", 66.0),
    ("75", 75.0),
    ("80", 80.0),
    ("90", 90.0),
    ("95", 95.0),
    ("98", 98.0),
    ("99", 99.0),
    ("99.9", 99.9),
    ("99.99", 99.99),
    ("100", 100.0),
];
/// A step keeps up that answers this share of what is due before it ends.
const KEPT_UP: f64 = 0.99;
/// A closed loop hides a stall that is so many times the median, and so long.
const STALL_RATIO: f64 = 100.0;
const STALL_US: f64 = 100_000.0;
/// An open loop reaches its rate if this share of it was answered.
const REACHED: f64 = 0.99;

/// All counts of all threads.
#[derive(Default)]
struct Whole {
    right: u64,
    sent: u64,
    errors: Errors,
    statuses: BTreeMap<u16, u64>,
    bytes_received: u64,
    bytes_sent: u64,
    opened: u64,
    unmade: u64,
    strays: u64,
    held: u64,
    lost: u64,
    service: Option<Times>,
    connect: Times,
    first_byte: Times,
    steps: Vec<StepTally>,
    entries: Vec<trace::Entry>,
    cut: u64,
    unsent: u64,
    unanswered: u64,
    opening: u64,
    last_end: u64,
    ended: u64,
    gave_up: bool,
}

/// Makes the outcome, and writes the trace if one was asked for.
pub(super) fn put_together(
    shared: &Shared,
    io: Io,
    hauls: Vec<Haul>,
    series: Series,
    kernel: Kernel,
) -> Result<Outcome, LoadError> {
    let plan = &shared.plan;
    let clocks: Vec<_> = hauls.iter().map(|haul| haul.clock).collect();
    let (generator, crowded) = own::generator(&clocks);
    let whole = hauls.into_iter().fold(Whole::default(), Whole::with);
    let from = shared.times().map_or(whole.ended, |times| times.from);
    let duration_s = duration_s(shared, &whole);
    let (latency, seconds) = series.finish(duration_s);
    let steps = steps(shared, &whole);
    let per_s = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
    let mut outcome = Outcome {
        format: FORMAT,
        tool: concat!("gustnado ", env!("CARGO_PKG_VERSION")).to_owned(),
        urls: plan.requests.iter().map(|ask| ask.url.clone()).collect(),
        model: model(plan, shared.threads, io),
        started_unix_s: shared.unix_us(from) as f64 / 1e6,
        duration_s,
        requests: whole.right,
        sent: whole.sent,
        requests_per_s: per_s(whole.right),
        errors: whole.errors.clone(),
        statuses: whole.statuses.clone(),
        bytes_received: whole.bytes_received,
        bytes_sent: whole.bytes_sent,
        connections_opened: whole.opened,
        latency_us: summary(&latency),
        service_us: whole.service.as_ref().map(summary),
        connect_us: filled(&whole.connect),
        first_byte_us: filled(&whole.first_byte),
        histogram: encoded(&latency),
        generator,
        kernel,
        warnings: Vec::new(),
        series: seconds,
        steps,
        held: held(plan, &whole),
    };
    outcome.warnings = warnings(shared, &whole, &outcome, &latency);
    outcome.warnings.extend(crowded);
    if let Some(path) = &plan.trace {
        write_trace(path, whole.entries)?;
    }
    Ok(outcome)
}

impl Whole {
    fn with(mut self, haul: Haul) -> Self {
        let tally = haul.tally;
        self.right += tally.right;
        self.sent += tally.sent;
        self.errors.add(&tally.errors);
        self.errors.add(&tally.held_errors);
        for (status, count) in tally.statuses() {
            *self.statuses.entry(status).or_default() += count;
        }
        self.bytes_received += tally.bytes_received;
        self.bytes_sent += tally.bytes_sent;
        self.opened += tally.opened;
        self.unmade += tally.unmade;
        self.strays += tally.strays;
        self.held += tally.held_most;
        self.lost += tally.lost;
        if let Some(service) = &tally.service {
            self.service.get_or_insert_default().add(service);
        }
        self.connect.add(&tally.connect);
        self.first_byte.add(&tally.first_byte);
        self.steps.resize_with(tally.steps.len().max(self.steps.len()), StepTally::default);
        for (step, more) in self.steps.iter_mut().zip(&tally.steps) {
            step.right += more.right;
            step.in_time += more.in_time;
            step.errors += more.errors;
            step.latency.add(&more.latency);
        }
        if let Some(trace) = tally.trace {
            self.entries.extend(trace.entries);
            self.cut += trace.cut;
        }
        self.unsent += haul.unsent;
        self.unanswered += haul.unanswered;
        self.opening = self.opening.max(haul.opening);
        self.last_end = self.last_end.max(tally.last_end);
        self.ended = self.ended.max(haul.ended);
        self.gave_up |= haul.gave_up;
        self
    }
}

/// How long was measured: to the last answer where a number of requests was the end.
fn duration_s(shared: &Shared, whole: &Whole) -> f64 {
    let Some(times) = shared.times() else { return 0.0 };
    let spent = shared.plan.end.requests.is_some_and(|all| ended_requests(whole) >= all);
    let end = if spent && whole.last_end > 0 { whole.last_end } else { whole.ended };
    end.min(times.until).saturating_sub(times.from) as f64 / 1e9
}

fn ended_requests(whole: &Whole) -> u64 {
    whole.right + whole.errors.total()
}

fn summary(times: &Times) -> Latency {
    let all = &times.0;
    if all.is_empty() {
        return Latency::default();
    }
    let percentiles = PERCENTILES
        .iter()
        .map(|(name, value)| ((*name).to_owned(), all.value_at_percentile(*value) as f64));
    Latency {
        count: all.len(),
        min: all.min() as f64,
        mean: all.mean(),
        sd: all.stdev(),
        max: all.max() as f64,
        percentiles: percentiles.collect(),
    }
}

fn filled(times: &Times) -> Option<Latency> {
    (!times.0.is_empty()).then(|| summary(times))
}

/// HdrHistogram V2, compressed, base64.
fn encoded(times: &Times) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&times.0, &mut bytes)
        .expect("a vector takes everything, and counts of a run fit");
    STANDARD.encode(bytes)
}

fn steps(shared: &Shared, whole: &Whole) -> Vec<Step> {
    let (Load::Ramp { step, .. }, Some(times)) = (&shared.plan.load, shared.times()) else {
        return Vec::new();
    };
    let Some(all) = Schedule::of(&shared.plan, times.go, times.from, times.until) else {
        return Vec::new();
    };
    let reached = whole.ended.saturating_sub(times.from) / nanos(*step).max(1);
    let step_of = |(index, tally): (u16, &StepTally)| {
        let due = all.of_step(index);
        Step {
            rate_per_s: shared.plan.step_rate(u32::from(index)),
            answered_per_s: tally.in_time as f64 / step.as_secs_f64(),
            errors: tally.errors,
            latency_us: summary(&tally.latency),
            kept_up: due > 0 && tally.in_time as f64 >= KEPT_UP * due as f64,
        }
    };
    // (A step that was cut short says nothing.)
    (0..)
        .zip(&whole.steps)
        .take_while(|(index, _)| u64::from(*index) < reached)
        .map(step_of)
        .collect()
}

fn held(plan: &Plan, whole: &Whole) -> Option<Held> {
    let Load::Hold { idle, .. } = plan.load else { return None };
    let opening_s = whole.opening as f64 / 1e9;
    Some(Held { asked: idle, opened: whole.held, lost: whole.lost, opening_s })
}

fn write_trace(path: &Path, entries: Vec<trace::Entry>) -> Result<(), LoadError> {
    trace::write(path, entries).map_err(|error| LoadError::Trace(path.to_owned(), error))
}

/// Everything that makes the figures less than they seem.
fn warnings(shared: &Shared, whole: &Whole, outcome: &Outcome, latency: &Times) -> Vec<String> {
    let plan = &shared.plan;
    let mut found = Vec::new();
    found.extend(early(plan, whole, outcome));
    found.extend(hidden_stall(plan, outcome, latency));
    found.extend(missed_rate(plan, whole, outcome));
    found.extend(knee(outcome));
    found.extend(ports(whole));
    found.extend(odd_connections(plan, whole, outcome));
    found.extend(kernel_words(&outcome.kernel));
    if whole.cut > 0 {
        found.push(format!(
            "The trace holds {} requests only; {} more were not kept.",
            grouped(whole.entries.len() as u64),
            grouped(whole.cut)
        ));
    }
    found
}

fn early(plan: &Plan, whole: &Whole, outcome: &Outcome) -> Option<String> {
    let seconds = outcome.duration_s;
    if whole.gave_up {
        return Some("It was given up: nothing could be connected to for 10 s.".to_owned());
    }
    let End { requests, after } = plan.end;
    let all_asked = requests.is_some_and(|all| ended_requests(whole) >= all);
    let in_time = after.is_some_and(|after| seconds + 0.05 >= after.as_secs_f64());
    let ramp = match plan.load {
        Load::Ramp { steps, step, .. } => seconds + 0.05 >= step.as_secs_f64() * f64::from(steps),
        _ => false,
    };
    (!all_asked && !in_time && !ramp).then(|| {
        format!("It was stopped early after {seconds:.1} s: these are the figures until then.")
    })
}

/// What a closed loop does not say: requests that would have been sent meanwhile, and would have
/// waited.
fn hidden_stall(plan: &Plan, outcome: &Outcome, latency: &Times) -> Option<String> {
    let is_closed = matches!(plan.load, Load::Closed | Load::Hold { rate_per_s: None, .. });
    let median = latency.0.value_at_percentile(50.0).max(1) as f64;
    let max = latency.0.max() as f64;
    if !is_closed || max <= STALL_US || max <= STALL_RATIO * median {
        return None;
    }
    let limit = STALL_US.max(STALL_RATIO * median);
    let stalls = latency.0.iter_recorded().filter(|step| step.value_iterated_to() as f64 > limit);
    let missing: f64 = stalls
        .map(|step| step.count_at_value() as f64 * (step.value_iterated_to() as f64 / median - 1.0))
        .sum();
    let share = 100.0 * missing / (missing + outcome.requests as f64);
    Some(format!(
        "The closed loop hides a stall: an answer took {:.0} ms where the median is {:.3} ms, and \
         meanwhile some {} requests were not sent that would have waited ({share:.0} % of all). \
         The percentiles lack them; measure with --rate to see them.",
        max / 1000.0,
        median / 1000.0,
        grouped(missing as u64),
    ))
}

fn missed_rate(plan: &Plan, whole: &Whole, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let is_ramp = matches!(plan.load, Load::Ramp { .. });
    if let Some(rate) = plan.last_rate().filter(|_| !is_ramp)
        && plan.end.requests.is_none_or(|all| ended_requests(whole) < all)
        && outcome.requests_per_s < REACHED * rate
    {
        found.push(format!(
            "The rate was not reached: {:.0} of {rate:.0} requests per second were answered.",
            outcome.requests_per_s
        ));
    }
    if whole.unsent > 0 && !is_ramp {
        found.push(format!(
            "{} requests were due and never sent, for no connection was free: no latency holds \
             them. Give more connections, or a lower rate.",
            grouped(whole.unsent)
        ));
    }
    if whole.unanswered > 0 && plan.last_rate().is_some() {
        found.push(format!(
            "{} requests had no answer by the end: no latency holds them.",
            grouped(whole.unanswered)
        ));
    }
    found
}

fn knee(outcome: &Outcome) -> Option<String> {
    let steps = &outcome.steps;
    let (first, last) = (steps.first()?, steps.last()?);
    if !steps.iter().any(|step| step.kept_up) {
        return Some(format!(
            "The ramp never kept up, not even at {} requests per second: begin lower.",
            first.rate_per_s
        ));
    }
    steps.iter().all(|step| step.kept_up).then(|| {
        format!(
            "The ramp found no knee: the server kept up to {} requests per second. Go higher.",
            last.rate_per_s
        )
    })
}

fn ports(whole: &Whole) -> Option<String> {
    (whole.errors.no_port > 0).then(|| {
        format!(
            "Local ports ran out {} times: closed connections keep theirs for a minute. On \
             loopback say --source 127.0.0.0/24, or keep connections alive.",
            grouped(whole.errors.no_port)
        )
    })
}

fn odd_connections(plan: &Plan, whole: &Whole, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    if whole.unmade > 0 {
        found.push(format!(
            "{} attempts to connect failed while nothing was to be asked.",
            grouped(whole.unmade)
        ));
    }
    if whole.strays > 0 {
        found.push(format!(
            "On {} connections more came than was asked for; they were closed.",
            grouped(whole.strays)
        ));
    }
    if let Some(held) = &outcome.held {
        if held.opened < held.asked {
            found.push(format!(
                "Only {} of {} connections could be held.",
                grouped(held.opened),
                grouped(held.asked)
            ));
        }
        if held.lost > 0 {
            found.push(format!(
                "{} held connections were closed by the server; see its time-out for idle ones.",
                grouped(held.lost)
            ));
        }
    }
    if plan.pipeline > 1 {
        found.push(format!(
            "Requests were pipelined {} deep, which no browser does: compare only with the same.",
            plan.pipeline
        ));
    }
    found
}

fn kernel_words(kernel: &Kernel) -> Vec<String> {
    let all = "on the whole machine, which may have other work";
    let mut found = Vec::new();
    if kernel.listen_overflows + kernel.listen_drops > 0 {
        found.push(format!(
            "The kernel dropped {} handshakes at full listening sockets ({all}): the server \
             accepts too slowly, or its backlog is short (somaxconn).",
            grouped(kernel.listen_overflows.max(kernel.listen_drops))
        ));
    }
    if kernel.syn_cookies > 0 {
        found.push(format!(
            "The kernel sent {} SYN cookies ({all}): handshakes came faster than \
             tcp_max_syn_backlog allows.",
            grouped(kernel.syn_cookies)
        ));
    }
    if kernel.retransmits > 0 {
        found.push(format!(
            "The kernel sent {} segments again ({all}): some latencies hold a time-out of TCP.",
            grouped(kernel.retransmits)
        ));
    }
    found
}
