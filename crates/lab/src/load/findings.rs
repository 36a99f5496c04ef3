//! From what the threads have brought home to an [`Outcome`].
#![expect(clippy::cast_precision_loss, reason = "what a run counts stays far below 2^53")]

use super::model::model;
use super::own::MachineDelta;
use super::pace::{RequestSchedule, nanos};
use super::series::TimeSeries;
use super::shared::LoadShared;
use super::tally::{LatencyHistogram, StepCounts};
use super::thread::ThreadResult;
use super::warnings::warnings;
use super::whole::Totals;
use super::{own, trace};
use crate::outcome::{FORMAT, HeldConnections, Latency, Outcome, OutcomeStep};
use crate::output::histogram;
use crate::plan::{BackendChoice, LoadModel, LoadPlan};

/// A step keeps up that answers this share of what is due before it ends.
const KEPT_UP: f64 = 0.99;

/// Makes the outcome; beside it are the requests for the trace.
pub(super) fn put_together(
    shared: &LoadShared,
    io: BackendChoice,
    hauls: Vec<ThreadResult>,
    series: TimeSeries,
    meanwhile: MachineDelta,
) -> (Outcome, Vec<trace::TraceEntry>) {
    let plan = &shared.plan;
    let clocks: Vec<_> = hauls.iter().map(|haul| haul.clock).collect();
    let MachineDelta { kernel, steal_share } = meanwhile;
    let (generator, crowded) = own::generator(&clocks, steal_share);
    let whole = hauls.into_iter().fold(Totals::default(), Totals::with);
    let from = shared.times().map_or(whole.ended, |times| times.from);
    let duration_s = duration_s(shared, &whole);
    let (latency, seconds) = series.finish(duration_s, last_s(from, &whole));
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
        requests_in_window: whole.in_window,
        sent: whole.sent,
        unanswered: whole.unanswered,
        connections_missing: whole.opening.missing,
        connections_unserved: whole.asking - whole.served,
        requests_per_s: per_s(whole.in_window),
        errors: whole.errors.clone(),
        statuses: whole.statuses.clone(),
        bytes_received: whole.bytes_received,
        bytes_sent: whole.bytes_sent,
        connections_opened: whole.opened,
        latency_us: summary(&latency),
        service_us: whole.service.as_ref().map(summary),
        connect_us: filled(&whole.connect),
        first_byte_us: filled(&whole.first_byte),
        histogram: histogram::encoded(&latency.0).expect("counts of a run fit"),
        generator,
        kernel,
        steal_share,
        retransmits: shared.retransmits.get().copied().flatten(),
        warnings: Vec::new(),
        series: seconds,
        steps,
        held: held(plan, &whole),
    };
    outcome.warnings = warnings(plan, &whole, &outcome, &latency);
    outcome.warnings.extend(crowded);
    (outcome, whole.entries)
}

/// How long was measured: to the last answer where a number of requests was the end.
fn duration_s(shared: &LoadShared, whole: &Totals) -> f64 {
    let Some(times) = shared.times() else { return 0.0 };
    let spent = shared.plan.end.requests.is_some_and(|all| whole.done >= all);
    let end = if spent && whole.last_end > 0 { whole.last_end } else { whole.ended };
    end.min(times.until).saturating_sub(times.from) as f64 / 1e9
}

/// When the last answer came, in seconds since measuring began.
fn last_s(from: u64, whole: &Totals) -> f64 {
    whole.last_end.saturating_sub(from) as f64 / 1e9
}

fn summary(times: &LatencyHistogram) -> Latency {
    histogram::latency(&times.0)
}

fn filled(times: &LatencyHistogram) -> Option<Latency> {
    (!times.0.is_empty()).then(|| summary(times))
}

fn steps(shared: &LoadShared, whole: &Totals) -> Vec<OutcomeStep> {
    let (LoadModel::Ramp { step, .. }, Some(times)) = (&shared.plan.load, shared.times()) else {
        return Vec::new();
    };
    let Some(all) = RequestSchedule::of(&shared.plan, times.go, times.from, times.until) else {
        return Vec::new();
    };
    let reached = whole.ended.saturating_sub(times.from) / nanos(*step).max(1);
    let step_of = |(index, tally): (u16, &StepCounts)| {
        let due = all.of_step(index);
        OutcomeStep {
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

fn held(plan: &LoadPlan, whole: &Totals) -> Option<HeldConnections> {
    let LoadModel::Hold { idle, .. } = plan.load else { return None };
    let opening_s = whole.opening.took as f64 / 1e9;
    Some(HeldConnections { asked: idle, opened: whole.held, lost: whole.lost, opening_s })
}
