//! Figures to reach: judges a record by the limits of its file.
//!
//! A ratio is the geometric mean of the ratios within each round, as everywhere; an absolute figure
//! is the median. A count is the least of all rounds, because disturbances only add to it.

use std::fmt::Write;

use super::file::{ContestSpec, CountKind, ReachSpec};
use crate::figures::decimal;
use crate::record::{ReachVerdict, Record, RunRecord, ScenarioRecord};
use crate::statistics::spread::paired;
use crate::statistics::{Column, ContenderFigures, pairs_of, summarise};

/// A quantity that has a limit.
#[derive(Clone, Copy)]
enum Quantity {
    Measured(Column),
    Counted(CountKind),
}

impl Quantity {
    fn title(self) -> String {
        match self {
            Self::Measured(column) if column.unit().is_empty() => column.title().to_owned(),
            Self::Measured(column) => format!("{} ({})", column.title(), column.unit()),
            Self::Counted(CountKind::Instructions) => "instructions/request".to_owned(),
            Self::Counted(CountKind::SystemCalls) => "system calls/request".to_owned(),
        }
    }
}

/// What was found, or why there is nothing.
type ReachFound = Result<(f64, Option<(f64, f64)>), String>;

/// Judges every figure of a contest that is to be reached.
pub(super) fn judge(contest: &ContestSpec, record: &Record) -> Vec<ReachVerdict> {
    let rows = summarise(record);
    let mut verdicts = Vec::new();
    for scenario in &contest.scenarios {
        let known = record.scenarios.iter().find(|one| one.name == scenario.name);
        let Some(known) = known else { continue };
        for reach in &scenario.reach {
            for (quantity, limit) in limits(reach) {
                let found = found(record, &rows, known, (reach, quantity));
                verdicts.push(verdict(known, reach, (quantity, limit), found));
            }
        }
    }
    verdicts
}

fn limits(reach: &ReachSpec) -> Vec<(Quantity, f64)> {
    let all = [
        (Quantity::Measured(Column::CpuPerRequest), reach.cpu),
        (Quantity::Measured(Column::MemoryPerConnection), reach.memory),
        (Quantity::Measured(Column::Rate), reach.rate),
        (Quantity::Counted(CountKind::Instructions), reach.instructions),
        (Quantity::Counted(CountKind::SystemCalls), reach.system_calls),
    ];
    all.into_iter().filter_map(|(quantity, limit)| Some((quantity, limit?))).collect()
}

fn verdict(
    scenario: &ScenarioRecord,
    reach: &ReachSpec,
    (quantity, limit): (Quantity, f64),
    found: ReachFound,
) -> ReachVerdict {
    let is_least = matches!(quantity, Quantity::Measured(column) if column.more_is_better());
    let is_met = match &found {
        Ok((value, _)) if is_least => *value >= limit,
        Ok((value, _)) => *value <= limit,
        Err(_) => false,
    };
    ReachVerdict {
        scenario: scenario.name.clone(),
        contender: reach.of.clone(),
        to: reach.to.clone(),
        quantity: quantity.title(),
        limit,
        is_least,
        found: found.as_ref().ok().map(|(value, _)| *value),
        interval: found.as_ref().ok().and_then(|(_, interval)| *interval),
        is_met,
        why: found.err(),
    }
}

fn found(
    record: &Record,
    rows: &[ContenderFigures],
    scenario: &ScenarioRecord,
    (reach, quantity): (&ReachSpec, Quantity),
) -> ReachFound {
    for name in std::iter::once(&reach.of).chain(&reach.to) {
        let row = rows.iter().find(|row| row.contender == *name && row.scenario == scenario.name);
        let row = row.ok_or_else(|| format!("{name} does not take part"))?;
        if let Some(why) = row.missing.as_ref().or(row.unfit.as_ref()) {
            return Err(format!("{name}: {why}"));
        }
    }
    let runs = |name: &str| -> Vec<&RunRecord> {
        let is_of = |run: &&RunRecord| run.contender == name && run.scenario == scenario.name;
        record.runs.iter().filter(is_of).collect()
    };
    let of = runs(&reach.of);
    match (quantity, reach.to.as_deref()) {
        (Quantity::Measured(column), None) => {
            let row =
                rows.iter().find(|row| row.contender == reach.of && row.scenario == scenario.name);
            let figure = row.and_then(|row| row.figure(column));
            figure.map(|figure| (figure.median, None)).ok_or_else(unmeasured)
        }
        (Quantity::Measured(column), Some(to)) => {
            let pairs = pairs_of(of.into_iter(), runs(to).into_iter(), scenario, column);
            let ratio = paired(&pairs).ok_or_else(unmeasured)?;
            Ok((ratio.value, ratio.interval))
        }
        (Quantity::Counted(kind), None) => least(&of, kind).map(|count| (count, None)),
        (Quantity::Counted(kind), Some(to)) => {
            let (of, to) = (least(&of, kind)?, least(&runs(to), kind)?);
            Ok((of / to, None))
        }
    }
}

fn unmeasured() -> String {
    "not measured".to_owned()
}

/// The least count of all rounds.
fn least(runs: &[&RunRecord], kind: CountKind) -> Result<f64, String> {
    let counts = runs.iter().filter_map(|run| match kind {
        CountKind::Instructions => run.usage.instructions_per_request,
        CountKind::SystemCalls => run.usage.system_calls_per_request,
    });
    counts.min_by(f64::total_cmp).ok_or_else(|| "not counted".to_owned())
}

/// Formats the verdicts of a record, a line for each; empty without any.
pub fn text(record: &Record) -> String {
    let mut page = String::new();
    for one in &record.verdicts {
        let word = if one.is_met { "reached" } else { "NOT REACHED" };
        let ReachVerdict { scenario, contender, quantity, .. } = one;
        let of = one.to.as_ref().map_or(String::new(), |to| format!(" as a factor of {to}'s"));
        let bound = if one.is_least { "at least" } else { "at most" };
        // A factor has a third place, or what is just beyond a limit would look like it.
        let shown = |value: f64| match one.to {
            Some(_) => format!("{value:.3}"),
            None => decimal(value),
        };
        let found = match (one.found, &one.why) {
            (Some(found), _) => shown(found),
            (None, why) => why.clone().unwrap_or_default(),
        };
        let interval = one
            .interval
            .map_or(String::new(), |(low, high)| format!(" [{}, {}]", shown(low), shown(high)));
        let limit = shown(one.limit);
        let _ = writeln!(
            page,
            "{word:12} {scenario}, {contender}: {quantity}{of}: {found}{interval}, {bound} {limit}"
        );
    }
    page
}

/// Returns whether everything was reached.
pub fn is_reached(record: &Record) -> bool {
    record.verdicts.iter().all(|verdict| verdict.is_met)
}
