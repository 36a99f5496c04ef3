//! Rate, latency and memory over the number of connections.

use super::{ChartKind, Plot, ReportSection, push, upwards};
use crate::outcome::Outcome;
use crate::plot::lines::{Chart, Series, Spot};
use crate::plot::scale::{Axis, Scale};
use crate::plot::units::{ValueUnit, float};
use crate::record::{ContenderRecord, Fate, RunRecord, ScenarioRecord};
use crate::report::view::{MedianRange, View, ends_sentence, is_unequal};

/// A metric over the number of connections.
struct SweepMetric {
    stem: &'static str,
    title: &'static str,
    axis: &'static str,
    unit: ValueUnit,
    /// Whether its axis always begins at zero.
    from_zero: bool,
    value: fn(&RunRecord, &Outcome) -> Option<f64>,
}

const MEASURES: [SweepMetric; 3] = [
    SweepMetric {
        stem: "rate-by-connections",
        title: "Rate over connections",
        axis: "successful responses per second",
        unit: ValueUnit::PerSecond,
        from_zero: true,
        value: |_, outcome| Some(outcome.requests_per_s),
    },
    SweepMetric {
        stem: "p99-by-connections",
        title: "99th percentile of latency over connections",
        axis: "latency that 99 % of requests kept within",
        unit: ValueUnit::Microseconds,
        from_zero: false,
        value: |_, outcome| outcome.latency_us.percentile("99"),
    },
    SweepMetric {
        stem: "memory-by-connections",
        title: "Server memory over connections",
        axis: "the most memory it had (proportional set size)",
        unit: ValueUnit::Bytes,
        from_zero: false,
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
            let kind = ChartKind::Lines(chart(view, sweep, &points, measure));
            push(plots, ReportSection::Sweeps, measure.stem, sweep, kind);
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
            title: "connections (logarithmic)".to_owned(),
            scale: Scale::factors(
                ValueUnit::Number,
                points.iter().map(|scenario| float(scenario.connections)),
            ),
            unit: ValueUnit::Number,
        },
        y: upwards(measure.axis, measure.unit, measure.from_zero, &lines),
        lines,
        notes: view.notes(points),
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

/// Returns the line of one contender; `None` if it could not be started, which the notes mention.
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
        let middle = MedianRange::of(values);
        let (name, at) =
            (&contender.name, ValueUnit::Number.write_tick(float(scenario.connections)));
        let mut tip = match middle {
            Some(middle) => format!("{name}, {at} connections: {}", middle.write(measure.unit)),
            None => format!("{name}, {at} connections: could not be measured"),
        };
        if let Some(failed) = view.failed(scenario, contender) {
            tip = format!("{tip}; {failed}");
        }
        spots.push(Spot {
            x: float(scenario.connections),
            y: middle.map(|middle| middle.median),
            spread: middle.and_then(|middle| middle.ends),
            failed: view.is_marred(scenario, contender),
            marked: true,
            tip,
        });
    }
    let drawn = spots.iter().any(|spot| spot.y.is_some()) || contender.fate == Fate::Ran;
    let hollow = is_unequal(contender);
    (drawn && !spots.is_empty()).then(|| Series {
        owner,
        name: contender.name.clone(),
        spots,
        hollow,
    })
}
