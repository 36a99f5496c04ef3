//! Server CPU for each request, as bars.

use super::{ChartKind, Plot, ReportSection, push};
use crate::plot::bars::{Bar, BarGroup, Bars};
use crate::plot::units::{ValueUnit, interval_text, times};
use crate::record::{ContenderRecord, Fate, ScenarioRecord};
use crate::report::view::{View, ends_sentence, is_unequal};
use crate::statistics::{Ratio, Significance};

/// Number of bars from which on each scenario has its own plot.
const BARS_MAX: usize = 36;

pub(super) fn add(view: &View<'_>, plots: &mut Vec<Plot>) {
    let scenarios: Vec<&ScenarioRecord> = view.record.scenarios.iter().collect();
    if scenarios.is_empty() {
        return;
    }
    if scenarios.len() * view.record.contenders.len() <= BARS_MAX {
        push(
            plots,
            ReportSection::Cpu,
            "cpu-per-request",
            "",
            ChartKind::Bars(bars(view, &scenarios)),
        );
        return;
    }
    for scenario in scenarios {
        let kind = ChartKind::Bars(bars(view, &[scenario]));
        push(plots, ReportSection::Cpu, "cpu-per-request", &scenario.name, kind);
    }
}

fn bars(view: &View<'_>, scenarios: &[&ScenarioRecord]) -> Bars {
    let groups = scenarios
        .iter()
        .map(|scenario| BarGroup {
            title: format!("{} (model: {})", scenario.title, scenario.model),
            bars: view.contenders().map(|one| bar(view, scenario, one)).collect(),
        })
        .collect();
    let first: Vec<(&str, f64)> = view
        .contenders()
        .filter_map(|(_, contender)| {
            let figure = view.compared(scenarios[0], contender)?.cpu_us_per_request?;
            Some((contender.name.as_str(), figure.median))
        })
        .collect();
    let rounds = match view.rounds() {
        0 | 1 => "One round.".to_owned(),
        many => format!("Median of {many} rounds; whiskers: the least and the greatest."),
    };
    let reference = &view.record.reference;
    let pipelining = view.pipelining(scenarios);
    Bars {
        title: "Server CPU for each request".to_owned(),
        subtitle: format!("{rounds} Factors are to {reference}. {pipelining} Less is better."),
        summary: format!(
            "Server CPU for each request in “{}”: {}.",
            scenarios[0].title,
            ends_sentence(&first, ValueUnit::Microseconds)
        ),
        unit: ValueUnit::Microseconds,
        groups,
        notes: view.notes(scenarios),
    }
}

fn bar(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    (owner, contender): (usize, &ContenderRecord),
) -> Bar {
    let row = view.row(scenario, contender);
    let is_unfit = row.is_some_and(|row| row.unfit.is_some() && row.missing.is_none());
    let figure = view.compared(scenario, contender).and_then(|row| row.cpu_us_per_request);
    let remark = match (figure, &contender.fate) {
        (None, Fate::Ran) if is_unfit => "not comparable".to_owned(),
        (Some(figure), _) => figure.ratio.map(factor).unwrap_or_default(),
        (None, Fate::NotInstalled(_)) => "not installed".to_owned(),
        (None, Fate::Failed(_)) => "did not run".to_owned(),
        (None, Fate::Unequal(_)) => "not the same work".to_owned(),
        (None, Fate::Ran) => "no figure".to_owned(),
    };
    Bar {
        owner,
        name: contender.name.clone(),
        value: figure.map(|figure| figure.median),
        spread: figure.filter(|figure| figure.n > 1).map(|figure| (figure.low, figure.high)),
        failed: view.is_marred(scenario, contender),
        hollow: is_unequal(contender),
        remark,
    }
}

/// A ratio in a few words: `1.32 × (1.28–1.36)`.
fn factor(ratio: Ratio) -> String {
    let value = times(ratio.value);
    match (ratio.verdict, ratio.interval) {
        (Significance::Noise, _) => format!("{value} ×, within the noise"),
        (_, Some(ends)) => format!("{value} × ({})", interval_text(ends)),
        (_, None) => format!("{value} ×"),
    }
}
