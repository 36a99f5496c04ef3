//! Makes the [`Outcome`] of a run from the results of its threads.
#![expect(clippy::cast_precision_loss, reason = "what a run counts stays far below 2^53")]

use super::counts::{LatencyHistogram, StepCounts};
use super::model::model;
use super::schedule::RequestSchedule;
use super::secure::LoadTls;
use super::series::TimeSeries;
use super::shared::LoadShared;
use super::thread::ThreadResult;
use super::totals::Totals;
use super::usage::MachineDelta;
use super::warnings::warnings;
use super::{trace, usage};
use crate::outcome::{
    ConnectionCounts, Deliveries, FORMAT, HeldConnections, Latency, Outcome, OutcomeStep,
    WebSocketSummary, success_share,
};
use crate::output::histogram;
use crate::plan::{BackendChoice, LoadModel, LoadPlan, RateStage};

/// A step keeps up if this share of its due requests ends before it does.
const KEPT_UP: f64 = 0.99;

/// Returns the outcome, and the requests for the trace.
pub(super) fn outcome_of(
    shared: &LoadShared,
    io: BackendChoice,
    results: Vec<ThreadResult>,
    series: TimeSeries,
    machine_delta: MachineDelta,
) -> (Outcome, Vec<trace::TraceEntry>) {
    let plan = &shared.plan;
    let clocks: Vec<_> = results.iter().map(|result| result.clock).collect();
    let MachineDelta { kernel, steal_share } = machine_delta;
    let (generator, crowded) = usage::generator(&clocks, steal_share);
    let totals = results.into_iter().fold(Totals::default(), Totals::with);
    let from = shared.times().map_or(totals.ended, |times| times.from);
    let duration_s = duration_s(shared, &totals);
    let (latency, seconds) = series.finish(duration_s, last_s(from, &totals));
    let steps = steps(shared, &totals);
    let per_s = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
    let mut outcome = Outcome {
        format: FORMAT,
        tool: concat!("gustnado ", env!("CARGO_PKG_VERSION")).to_owned(),
        urls: plan.requests.iter().map(|ask| ask.url.clone()).collect(),
        model: model(plan, shared.threads, io),
        started_unix_s: shared.unix_us(from) as f64 / 1e6,
        duration_s,
        requests: totals.right,
        requests_in_window: totals.in_window,
        requests_late: totals.late,
        requests_before: totals.before,
        sent: totals.sent,
        unanswered: totals.unanswered,
        unsent: totals.unsent,
        connections_missing: totals.opening.missing,
        connections_unserved: totals.requesting - totals.served,
        requests_per_s: per_s(totals.in_window),
        errors: totals.errors.clone(),
        success_share: success_share(totals.right, totals.errors.total()),
        statuses: totals.statuses.clone(),
        bytes_received: totals.bytes_received,
        bytes_received_per_s: (duration_s > 0.0).then(|| per_s(totals.bytes_in_window)),
        bytes_sent: totals.bytes_sent,
        connections_opened: totals.opened,
        connections: Some(connections(plan, &totals, duration_s)),
        ramp_up_s: shared.ramp_up_s(),
        latency_us: summary(&latency),
        service_us: totals.service.as_ref().map(summary),
        connect_us: filled(&totals.connect),
        tls: shared.script.tls.as_ref().and_then(LoadTls::summary),
        first_byte_us: filled(&totals.first_byte),
        histogram: histogram::encoded(&latency.0).expect("counts of a run fit"),
        generator,
        kernel,
        steal_share,
        retransmits: shared.retransmits.get().copied().flatten(),
        warnings: Vec::new(),
        series: seconds,
        steps,
        held: held(plan, &totals),
        websocket: websocket(plan, &totals, duration_s),
    };
    if plan.websocket.is_some() {
        // Messages have none.
        outcome.statuses.clear();
    }
    outcome.warnings = warnings(plan, &totals, &outcome, &latency);
    outcome.warnings.extend(crowded);
    (outcome, totals.entries)
}

/// The measured time: up to the last response if a number of requests ended the run.
fn duration_s(shared: &LoadShared, totals: &Totals) -> f64 {
    let Some(times) = shared.times() else { return 0.0 };
    let spent = shared.plan.end.requests.is_some_and(|all| totals.done >= all);
    let end = if spent && totals.last_end > 0 { totals.last_end } else { totals.ended };
    end.min(times.until).saturating_sub(times.from) as f64 / 1e9
}

/// When the last response arrived, in seconds since measuring began.
fn last_s(from: u64, totals: &Totals) -> f64 {
    totals.last_end.saturating_sub(from) as f64 / 1e9
}

fn summary(times: &LatencyHistogram) -> Latency {
    histogram::latency(&times.0)
}

fn filled(times: &LatencyHistogram) -> Option<Latency> {
    (!times.0.is_empty()).then(|| summary(times))
}

fn steps(shared: &LoadShared, totals: &Totals) -> Vec<OutcomeStep> {
    let (LoadModel::Ramp { stages }, Some(times)) = (&shared.plan.load, shared.times()) else {
        return Vec::new();
    };
    let Some(all) = RequestSchedule::of(&shared.plan, times.go, times.from, times.until) else {
        return Vec::new();
    };
    let reached = totals.ended.saturating_sub(times.from);
    let step_of = |((index, counts), stage): ((u16, &StepCounts), &RateStage)| {
        let due = all.of_step(index);
        OutcomeStep {
            rate_per_s: stage.rate_per_s,
            answered_per_s: counts.in_time as f64 / stage.length.as_secs_f64(),
            errors: counts.errors,
            latency_us: summary(&counts.latency),
            kept_up: due > 0 && counts.in_time as f64 >= KEPT_UP * due as f64,
        }
    };
    // A step that was cut short has no result.
    let is_whole =
        |index: u16| shared.plan.stage_span(index).is_some_and(|(_, end)| end <= reached);
    (0..)
        .zip(&totals.steps)
        .zip(stages)
        .take_while(|((index, _), _)| is_whole(*index))
        .map(step_of)
        .collect()
}

fn connections(plan: &LoadPlan, totals: &Totals, duration_s: f64) -> ConnectionCounts {
    let asked = plan.connections;
    let by_rate = plan.due_within(duration_s);
    let due = plan.end.requests.into_iter().chain(by_rate).fold(asked, u64::min);
    ConnectionCounts {
        asked,
        due,
        opened: totals.ready,
        served: totals.served_in_window,
        held: plan.keep_alive.then_some(totals.held_to_end),
    }
}

fn websocket(plan: &LoadPlan, totals: &Totals, duration_s: f64) -> Option<WebSocketSummary> {
    let load = plan.websocket?;
    let counts = &totals.websocket;
    let deliveries = load.is_broadcast.then(|| Deliveries {
        count: counts.deliveries,
        per_s: if duration_s > 0.0 { counts.deliveries as f64 / duration_s } else { 0.0 },
        latency_us: summary(&counts.delivery),
    });
    Some(WebSocketSummary {
        message_bytes: load.bytes as u64,
        opened: counts.opened,
        refused: counts.refused,
        closed: counts.closed,
        deliveries,
    })
}

fn held(plan: &LoadPlan, totals: &Totals) -> Option<HeldConnections> {
    let LoadModel::Hold { idle, .. } = plan.load else { return None };
    let opening_s = totals.opening.took as f64 / 1e9;
    Some(HeldConnections { asked: idle, opened: totals.held, lost: totals.lost, opening_s })
}
