//! Latency by percentile: the plot of the evaluation of 2018.

use super::{Plot, ReportSection, push};
use crate::plot::chart::{Axis, Chart, Scale, Series, Spot};
use crate::plot::units::{ValueUnit, index};
use crate::record::{ContenderRecord, ScenarioRecord};
use crate::report::view::{MedianRange, View, ends_sentence};

/// Those of the evaluation of 2018, at equal distances as there.
const PERCENTILES: [&str; 9] = ["50", "66", "75", "80", "90", "95", "98", "99", "100"];

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    for scenario in &view.record.scenarios {
        let chart = chart(view, scenario);
        push(plots, ReportSection::Percentiles, "percentiles", &scenario.name, chart);
    }
}

fn chart(view: &View<'_>, scenario: &ScenarioRecord) -> Chart {
    let lines: Vec<Series> =
        view.compared(scenario).filter_map(|one| series(view, scenario, one)).collect();
    let at_99: Vec<(&str, f64)> = lines
        .iter()
        .filter_map(|line| {
            let spot = line.spots.iter().find(|spot| (spot.x - 7.0).abs() < 0.5)?;
            Some((line.name.as_str(), spot.y?))
        })
        .collect();
    let summary = format!(
        "99 % of requests took at most, {}.",
        ends_sentence(&at_99, ValueUnit::Microseconds)
    );
    Chart {
        title: format!("Latency by percentile: {}", scenario.title),
        subtitle: view.measured(scenario),
        summary,
        x: Axis {
            names: PERCENTILES.map(str::to_owned).to_vec(),
            suffix: " % of requests".to_owned(),
            ..Axis::new("% of requests, the fastest first", ValueUnit::Number, Scale::Named)
        },
        y: Axis::new("latency", ValueUnit::Microseconds, Scale::Fit),
        step: false,
        lines,
        undrawn: view.undrawn(&[scenario]),
    }
}

fn series(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    (owner, contender): (usize, &ContenderRecord),
) -> Option<Series> {
    let measured: Vec<_> = view
        .runs(scenario, contender)
        .filter_map(|run| run.outcome.as_ref())
        .filter(|outcome| outcome.latency_us.count > 0)
        .collect();
    let mut spots = Vec::new();
    for (place, name) in PERCENTILES.iter().enumerate() {
        let values = measured.iter().filter_map(|outcome| outcome.latency_us.percentile(name));
        let Some(middle) = MedianRange::of(values) else { continue };
        spots.push(Spot { x: index(place), y: Some(middle.median), spread: middle.ends });
    }
    (!spots.is_empty()).then(|| Series { owner, name: contender.name.clone(), spots })
}
