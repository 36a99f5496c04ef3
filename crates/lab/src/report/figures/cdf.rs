//! The distribution of latency, merged from the histograms of all rounds.

use hdrhistogram::Histogram;

use super::{Plot, ReportSection, push};
use crate::outcome::Outcome;
use crate::output::histogram::decoded;
use crate::plot::chart::{Axis, Chart, Scale, Series, Spot};
use crate::plot::units::{ValueUnit, float};
use crate::record::{ContenderRecord, ScenarioRecord};
use crate::report::view::{View, ends_sentence};

/// Maximum number of points of a line; more are indistinguishable.
const POINTS_MAX: f64 = 100.0;

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    for scenario in &view.record.scenarios {
        let lines: Vec<Series> =
            view.compared(scenario).filter_map(|one| series(view, scenario, one)).collect();
        if !lines.is_empty() {
            let chart = chart(view, scenario, lines);
            push(plots, ReportSection::Distribution, "latency-cdf", &scenario.name, chart);
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
    Chart {
        title: format!("Share that succeeded within a time: {}", scenario.title),
        subtitle: format!("{} All rounds together.", view.modelled(scenario)),
        summary: format!(
            "Half of all requests succeeded within a time that goes {}.",
            ends_sentence(&half, ValueUnit::Microseconds)
        ),
        x: Axis::new("latency", ValueUnit::Microseconds, Scale::Log),
        y: Axis::new("share of requests that succeeded", ValueUnit::Share, Scale::Share),
        step: true,
        lines,
        undrawn: view.undrawn(&[scenario]),
    }
}

fn series(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    (owner, contender): (usize, &ContenderRecord),
) -> Option<Series> {
    let mut all: Option<Histogram<u64>> = None;
    for outcome in view.runs(scenario, contender).filter_map(|run| run.outcome.as_ref()) {
        let Some(one) = histogram(outcome) else { continue };
        match &mut all {
            Some(sum) => sum.add(&one).ok()?,
            None => all = Some(one),
        }
    }
    let all = all.filter(|sum| !sum.is_empty())?;
    let spots = steps(&all);
    (!spots.is_empty()).then(|| Series { owner, name: contender.name.clone(), spots })
}

/// The histogram of an outcome; `None` if it cannot be decoded, which leaves the round out.
fn histogram(outcome: &Outcome) -> Option<Histogram<u64>> {
    let mut found = decoded(&outcome.histogram).ok()?;
    found.auto(true);
    Some(found)
}

/// A step function: each step is as high as the share of requests with that latency.
fn steps(all: &Histogram<u64>) -> Vec<Spot> {
    let total = float(all.len());
    let mut spots: Vec<Spot> = Vec::new();
    let (mut reached, mut drawn) = (0.0, 0.0);
    for value in all.iter_recorded() {
        let x = float(value.value_iterated_to()).max(1.0);
        if spots.is_empty() {
            spots.push(Spot { x, y: Some(0.0), ..Spot::default() });
        }
        reached += float(value.count_since_last_iteration()) / total;
        let is_last = value.value_iterated_to() >= all.max();
        if reached - drawn >= 1.0 / POINTS_MAX || is_last {
            spots.push(Spot { x, y: Some(reached), ..Spot::default() });
            drawn = reached;
        }
    }
    spots
}
