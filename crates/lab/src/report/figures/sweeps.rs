//! Rate, latency and memory over the number of connections.

use super::{Plot, ReportSection, push};
use crate::outcome::Outcome;
use crate::plot::chart::{Axis, Chart, Scale, Series, Spot};
use crate::plot::units::{ValueUnit, float};
use crate::record::{ContenderRecord, RunRecord, ScenarioRecord};
use crate::report::view::{MedianRange, View, ends_sentence};
use crate::statistics::cpu_us_per_request;

/// A metric over the number of connections.
struct SweepMetric {
    stem: &'static str,
    title: &'static str,
    axis: &'static str,
    unit: ValueUnit,
    scale: Scale,
    value: fn(&RunRecord, &Outcome) -> Option<f64>,
}

const MEASURES: [SweepMetric; 4] = [
    SweepMetric {
        stem: "cpu-by-connections",
        title: "Server CPU per request over connections",
        axis: "server CPU for each request",
        unit: ValueUnit::Microseconds,
        scale: Scale::Fit,
        value: |run, _| cpu_us_per_request(run),
    },
    SweepMetric {
        stem: "rate-by-connections",
        title: "Rate over connections",
        axis: "successful responses per second",
        unit: ValueUnit::PerSecond,
        scale: Scale::Zero,
        value: |_, outcome| Some(outcome.requests_per_s),
    },
    SweepMetric {
        stem: "p99-by-connections",
        title: "99th percentile of latency over connections",
        axis: "99th percentile of latency",
        unit: ValueUnit::Microseconds,
        scale: Scale::Fit,
        value: |_, outcome| {
            let found = outcome.latency_us.percentiles.get("99").copied();
            found.filter(|_| outcome.latency_us.count > 0)
        },
    },
    SweepMetric {
        stem: "memory-by-connections",
        title: "Server memory over connections",
        axis: "peak memory (proportional set size)",
        unit: ValueUnit::Bytes,
        scale: Scale::Fit,
        value: |run, _| Some(float(run.usage.memory_peak_bytes)),
    },
];

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    for sweep in names(view) {
        let mut points: Vec<&ScenarioRecord> = view
            .record
            .scenarios
            .iter()
            .filter(|scenario| scenario.sweep.as_deref() == Some(sweep))
            .collect();
        points.sort_by_key(|scenario| scenario.connections);
        if points.len() < 2 {
            continue;
        }
        for measure in &MEASURES {
            let chart = chart(view, sweep, &points, measure);
            push(plots, ReportSection::Sweeps, measure.stem, sweep, chart);
        }
    }
}

/// Returns the sweeps in the order of the file.
fn names<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for sweep in view.record.scenarios.iter().filter_map(|scenario| scenario.sweep.as_deref()) {
        if !names.contains(&sweep) {
            names.push(sweep);
        }
    }
    names
}

fn chart(view: &View<'_>, sweep: &str, points: &[&ScenarioRecord], measure: &SweepMetric) -> Chart {
    let lines: Vec<Series> =
        view.contenders().filter_map(|one| series(view, points, measure, one)).collect();
    let most = points.last().map_or(0, |scenario| scenario.connections);
    let at_most: Vec<(&str, f64)> = lines
        .iter()
        .filter_map(|line| {
            let last = line.spots.iter().find(|spot| spot.x >= float(most))?;
            Some((line.name.as_str(), last.y?))
        })
        .collect();
    Chart {
        title: format!("{}: {sweep}", measure.title),
        subtitle: subtitle(view, points),
        summary: format!(
            "With {} connections: {}.",
            ValueUnit::Number.write_tick(float(most)),
            ends_sentence(&at_most, measure.unit)
        ),
        x: Axis {
            suffix: " connections".to_owned(),
            ..Axis::new("connections", ValueUnit::Number, Scale::Log)
        },
        y: Axis::new(measure.axis, measure.unit, measure.scale),
        step: false,
        lines,
        undrawn: view.undrawn(points),
    }
}

/// Describes how the first point was measured, and the others likewise.
fn subtitle(view: &View<'_>, points: &[&ScenarioRecord]) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let (from, to) = (float(first.connections), float(last.connections));
    format!(
        "From {} to {} connections. The first point – {}",
        ValueUnit::Number.write_tick(from),
        ValueUnit::Number.write_tick(to),
        view.measured(first)
    )
}

/// Returns the line of one contender; `None` if it has no figure that can be compared.
fn series(
    view: &View<'_>,
    points: &[&ScenarioRecord],
    measure: &SweepMetric,
    (owner, contender): (usize, &ContenderRecord),
) -> Option<Series> {
    let mut spots = Vec::new();
    for scenario in points {
        let runs: Vec<&RunRecord> = view.runs(scenario, contender).collect();
        if runs.is_empty() {
            continue;
        }
        let values = runs.iter().filter_map(|run| (measure.value)(run, run.outcome.as_ref()?));
        let middle = MedianRange::of(values).filter(|_| view.is_compared(scenario, contender));
        spots.push(Spot {
            x: float(scenario.connections),
            y: middle.map(|middle| middle.median),
            spread: middle.and_then(|middle| middle.ends),
        });
    }
    let is_drawn = spots.iter().any(|spot| spot.y.is_some());
    is_drawn.then(|| Series { owner, name: contender.name.clone(), spots })
}
