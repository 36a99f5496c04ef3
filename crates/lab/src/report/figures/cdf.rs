//! The distribution of latency, merged from the histograms of all rounds.

use hdrhistogram::Histogram;

use super::{ChartKind, Plot, ReportSection, push};
use crate::outcome::Outcome;
use crate::output::histogram::decoded;
use crate::plot::lines::{Chart, Series, Spot};
use crate::plot::scale::{Axis, Scale};
use crate::plot::units::{ValueUnit, float};
use crate::record::{ContenderRecord, ScenarioRecord};
use crate::report::view::{View, ends_sentence, is_unequal};

/// Maximum number of points of a line; more are indistinguishable.
const POINTS_MAX: f64 = 160.0;
/// Percentiles with marks.
const MARKED: [f64; 4] = [0.25, 0.5, 0.75, 0.9];

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    for scenario in &view.record.scenarios {
        let lines: Vec<Series> =
            view.contenders().filter_map(|one| series(view, scenario, one)).collect();
        if !lines.is_empty() {
            let kind = ChartKind::Lines(chart(view, scenario, lines));
            push(plots, ReportSection::Distribution, "latency-cdf", &scenario.name, kind);
        }
    }
}

fn chart(view: &View<'_>, scenario: &ScenarioRecord, lines: Vec<Series>) -> Chart {
    let half: Vec<(&str, f64)> = lines
        .iter()
        .filter_map(|line| {
            let spot = line.spots.iter().find(|spot| spot.y.is_some_and(|y| y >= 0.5))?;
            Some((line.name.as_str(), spot.x))
        })
        .collect();
    let times = lines.iter().flat_map(|line| &line.spots).map(|spot| spot.x);
    let scale = Scale::factors(ValueUnit::Microseconds, times);
    Chart {
        title: format!("Share that succeeded within a time: {}", scenario.title),
        subtitle: format!("{} All rounds together.", view.modelled(scenario)),
        summary: format!(
            "Half of all requests succeeded within a time that goes {}.",
            ends_sentence(&half, ValueUnit::Microseconds)
        ),
        x: Axis { title: "latency (logarithmic)".to_owned(), scale, unit: ValueUnit::Microseconds },
        y: Axis {
            title: "share of requests that succeeded".to_owned(),
            scale: Scale::Linear { low: 0.0, high: 1.0, base: 1.0 },
            unit: ValueUnit::Share,
        },
        lines,
        notes: view.notes(&[scenario]),
    }
}

fn series(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    (owner, contender): (usize, &ContenderRecord),
) -> Option<Series> {
    let mut all: Option<Histogram<u64>> = None;
    let mut failed = 0;
    for outcome in view.runs(scenario, contender).filter_map(|run| run.outcome.as_ref()) {
        failed += outcome.errors.total();
        let Some(one) = histogram(outcome) else { continue };
        match &mut all {
            Some(sum) => sum.add(&one).ok()?,
            None => all = Some(one),
        }
    }
    let all = all.filter(|sum| !sum.is_empty())?;
    let mut spots = steps(&all, failed, &contender.name);
    let last = spots.last_mut()?;
    last.failed = view.is_marred(scenario, contender);
    let hollow = is_unequal(contender);
    Some(Series { owner, name: contender.name.clone(), spots, hollow })
}

/// The histogram of an outcome; `None` if it cannot be decoded, which leaves the round out.
fn histogram(outcome: &Outcome) -> Option<Histogram<u64>> {
    let mut found = decoded(&outcome.histogram).ok()?;
    found.auto(true);
    Some(found)
}

/// A step function: each step is as high as the share of requests with that latency.
fn steps(all: &Histogram<u64>, failed: u64, name: &str) -> Vec<Spot> {
    let total = float(all.len() + failed);
    let mut spots: Vec<Spot> = Vec::new();
    let (mut below, mut drawn) = (0.0, 0.0);
    let mut marks = MARKED.into_iter().peekable();
    for value in all.iter_recorded() {
        let x = float(value.value_iterated_to()).max(1.0);
        let share = float(value.count_since_last_iteration()) / total;
        let reached = below + share;
        let is_last = value.value_iterated_to() >= all.max();
        if reached - drawn >= 1.0 / POINTS_MAX || spots.is_empty() || is_last {
            let marked = marks.peek().is_some_and(|mark| reached >= *mark);
            while marks.next_if(|mark| reached >= *mark).is_some() {}
            let (percent, time) =
                (ValueUnit::Share.write(reached), ValueUnit::Microseconds.write(x));
            let tip = format!("{name}: {percent} within {time}");
            spots.push(Spot { x, y: Some(drawn), ..Spot::default() });
            spots.push(Spot { x, y: Some(reached), marked, tip, ..Spot::default() });
            drawn = reached;
        }
        below = reached;
    }
    spots
}
