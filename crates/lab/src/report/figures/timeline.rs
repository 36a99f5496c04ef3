//! Rate, latency, memory and CPU over time.

use std::collections::BTreeMap;

use super::{Plot, ReportSection, push};
use crate::outcome::{Outcome, OutcomeSecond, is_told};
use crate::plot::chart::{Axis, Chart, Scale, Series, Spot};
use crate::plot::units::{ValueUnit, float, index};
use crate::record::{ContenderRecord, RunRecord, ScenarioRecord};
use crate::report::view::{MedianRange, View, ends_sentence};

/// One second of one run.
struct TimelinePoint {
    at_s: f64,
    value: f64,
}

/// A metric over time.
struct TimelineMetric {
    stem: &'static str,
    title: &'static str,
    axis: &'static str,
    unit: ValueUnit,
    scale: Scale,
    moments: fn(&RunRecord) -> Vec<TimelinePoint>,
}

const MEASURES: [TimelineMetric; 4] = [
    TimelineMetric {
        stem: "rate-over-time",
        title: "Rate over time",
        axis: "successful responses per second",
        unit: ValueUnit::PerSecond,
        scale: Scale::Zero,
        moments: rate,
    },
    TimelineMetric {
        stem: "p99-over-time",
        title: "99th percentile of latency over time",
        axis: "99th percentile of latency",
        unit: ValueUnit::Microseconds,
        scale: Scale::Fit,
        moments: latency,
    },
    TimelineMetric {
        stem: "cpu-over-time",
        title: "Server CPU over time",
        axis: "CPUs kept busy",
        unit: ValueUnit::Cpus,
        scale: Scale::Zero,
        moments: cpu,
    },
    TimelineMetric {
        stem: "memory-over-time",
        title: "Server memory over time",
        axis: "memory (proportional set size)",
        unit: ValueUnit::Bytes,
        scale: Scale::Fit,
        moments: memory,
    },
];

/// Maximum number of points of a line.
const POINTS_MAX: f64 = 120.0;
/// A second with less measured time than this has no meaningful rate.
const PART_MIN_S: f64 = 0.2;

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    for scenario in &view.record.scenarios {
        for measure in &MEASURES {
            let lines: Vec<Series> = view
                .compared(scenario)
                .filter_map(|one| series(view, scenario, measure, one))
                .collect();
            // A line of one point shows no development.
            if lines.iter().any(|line| line.spots.len() > 1) {
                let chart = chart(view, scenario, measure, lines);
                push(plots, ReportSection::Time, measure.stem, &scenario.name, chart);
            }
        }
    }
}

fn chart(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    measure: &TimelineMetric,
    lines: Vec<Series>,
) -> Chart {
    let ends: Vec<(&str, f64)> =
        lines.iter().filter_map(|line| Some((line.name.as_str(), line.spots.last()?.y?))).collect();
    Chart {
        title: format!("{}: {}", measure.title, scenario.title),
        subtitle: view.measured(scenario),
        summary: format!("At the end: {}.", ends_sentence(&ends, measure.unit)),
        x: Axis::new("since measuring began", ValueUnit::Seconds, Scale::Zero),
        y: Axis::new(measure.axis, measure.unit, measure.scale),
        step: false,
        lines,
        undrawn: view.undrawn(&[scenario]),
    }
}

fn series(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    measure: &TimelineMetric,
    (owner, contender): (usize, &ContenderRecord),
) -> Option<Series> {
    let rounds: Vec<Vec<TimelinePoint>> =
        view.runs(scenario, contender).map(|run| (measure.moments)(run)).collect();
    let spots = together(&rounds);
    (!spots.is_empty()).then(|| Series { owner, name: contender.name.clone(), spots })
}

/// Merges rounds: at each moment the median of those with a value.
fn together(rounds: &[Vec<TimelinePoint>]) -> Vec<Spot> {
    let longest = rounds.iter().flatten().map(|moment| moment.at_s).fold(0.0, f64::max);
    let most = rounds.iter().map(Vec::len).max().unwrap_or(0);
    let step = longest / index(most).clamp(1.0, POINTS_MAX);
    if !(step > 0.0 && step.is_finite()) {
        return Vec::new();
    }
    let mut places: BTreeMap<u64, Vec<&TimelinePoint>> = BTreeMap::new();
    for moment in rounds.iter().flatten().filter(|moment| moment.at_s >= 0.0) {
        places.entry(place(moment.at_s / step)).or_default().push(moment);
    }
    let spot = |(place, moments): (u64, Vec<&TimelinePoint>)| {
        let middle = MedianRange::of(moments.iter().map(|moment| moment.value))?;
        Some(Spot {
            x: float(place) * step,
            y: Some(middle.median),
            spread: middle.ends.filter(|_| rounds.len() > 1),
        })
    };
    places.into_iter().filter_map(spot).collect()
}

fn rate(run: &RunRecord) -> Vec<TimelinePoint> {
    let mut before_s = 0.0;
    let mut moments = Vec::new();
    for second in run.outcome.iter().flat_map(measured) {
        let lasted_s = second.at_s - before_s;
        before_s = second.at_s;
        if lasted_s >= PART_MIN_S {
            let value = float(second.requests) / lasted_s;
            moments.push(TimelinePoint { at_s: second.at_s, value });
        }
    }
    moments
}

/// The measured seconds; what arrived after the end has no rate.
fn measured(outcome: &Outcome) -> impl Iterator<Item = &OutcomeSecond> {
    outcome.series.iter().filter(|second| second.at_s <= outcome.duration_s + 1e-6)
}

fn latency(run: &RunRecord) -> Vec<TimelinePoint> {
    let seconds = run.outcome.iter().flat_map(measured);
    let responded = seconds.filter(|second| is_told(second.requests, 99.0));
    let moment = |second: &OutcomeSecond| TimelinePoint { at_s: second.at_s, value: second.p99_us };
    responded.map(moment).collect()
}

fn memory(run: &RunRecord) -> Vec<TimelinePoint> {
    let moment = |sample: &crate::record::Sample| TimelinePoint {
        at_s: sample.at_s,
        value: float(sample.memory_bytes),
    };
    run.usage.samples.iter().map(moment).collect()
}

/// CPU is counted in ticks of 10 ms, so shorter distances would show the clock, not the server.
fn cpu(run: &RunRecord) -> Vec<TimelinePoint> {
    let mut moments = Vec::new();
    let mut before: Option<&crate::record::Sample> = None;
    for sample in &run.usage.samples {
        let Some(from) = before else {
            before = Some(sample);
            continue;
        };
        let lasted_s = sample.at_s - from.at_s;
        if lasted_s >= PART_MIN_S {
            let value = ((sample.cpu_s - from.cpu_s) / lasted_s).max(0.0);
            moments.push(TimelinePoint { at_s: sample.at_s, value });
            before = Some(sample);
        }
    }
    moments
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place on a line, 0 to 120"
)]
fn place(steps: f64) -> u64 {
    steps.round() as u64
}
