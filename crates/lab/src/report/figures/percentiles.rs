//! Latency by percentile: the plot of the evaluation of 2018.

use super::{ChartKind, Plot, ReportSection, push, upwards};
use crate::plot::lines::{Chart, Series, Spot};
use crate::plot::scale::{Axis, Scale};
use crate::plot::units::{ValueUnit, index};
use crate::record::{ContenderRecord, ScenarioRecord};
use crate::report::view::{MedianRange, View, ends_sentence, is_unequal};

/// Those of the evaluation of 2018, at equal distances as there.
const PERCENTILES: [&str; 9] = ["50", "66", "75", "80", "90", "95", "98", "99", "100"];

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    for scenario in &view.record.scenarios {
        let kind = ChartKind::Lines(chart(view, scenario));
        push(plots, ReportSection::Percentiles, "percentiles", &scenario.name, kind);
    }
}

fn chart(view: &View<'_>, scenario: &ScenarioRecord) -> Chart {
    let lines: Vec<Series> =
        view.contenders().filter_map(|one| series(view, scenario, one)).collect();
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
            title: "percent of requests that took at most so long".to_owned(),
            scale: Scale::Named(PERCENTILES.map(str::to_owned).to_vec()),
            unit: ValueUnit::Number,
        },
        y: upwards("latency", ValueUnit::Microseconds, false, &lines),
        lines,
        notes: view.notes(&[scenario]),
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
        spots.push(Spot {
            x: index(place),
            y: Some(middle.median),
            spread: middle.ends,
            failed: false,
            marked: true,
            tip: format!("{}, {name} %: {}", contender.name, middle.write(ValueUnit::Microseconds)),
        });
    }
    let last = spots.last_mut()?;
    last.failed = view.is_marred(scenario, contender);
    let hollow = is_unequal(contender);
    Some(Series { owner, name: contender.name.clone(), spots, hollow })
}
