//! Compares two records of the same contest, and separates changes from noise.

use std::fmt::Write;

use serde::Serialize;

use super::table::{factor, shown};
use crate::record::Record;
use crate::statistics::{Column, ContenderFigures, Ratio, Significance, change, summarise};

/// One figure in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureChange {
    /// The contender.
    pub contender: String,
    /// The scenario.
    pub scenario: String,
    /// The column of the figure.
    pub column: Column,
    /// The median in the older record.
    pub old: f64,
    /// The median in the newer record.
    pub new: f64,
    /// The ratio of the newer to the older one, with Welch's interval; `None` if one of them is 0,
    /// or the row is not comparable in one of the records.
    pub ratio: Option<Ratio>,
}

/// Returns the figures that two records share, in the order of the newer one.
pub fn changes(old: &Record, new: &Record) -> Vec<FigureChange> {
    let before = summarise(old);
    let mut changes = Vec::new();
    for row in summarise(new) {
        let same = |other: &&ContenderFigures| {
            other.contender == row.contender && other.scenario == row.scenario
        };
        let Some(earlier) = before.iter().find(same) else { continue };
        for column in Column::ALL {
            let (Some(then), Some(now)) = (earlier.figure(column), row.figure(column)) else {
                continue;
            };
            changes.push(FigureChange {
                contender: row.contender.clone(),
                scenario: row.scenario.clone(),
                column,
                old: then.median,
                new: now.median,
                ratio: change((old, new), &row.contender, &row.scenario, column),
            });
        }
    }
    changes
}

/// Formats changes: first a line for each significant one, then the number of those within the
/// noise, and of those that cannot be judged.
pub fn text(old: &Record, new: &Record) -> String {
    let changes = changes(old, new);
    let mut page = String::new();
    for line in apart(old, new) {
        let _ = writeln!(page, "note: {line}");
    }
    for line in other_work(old, new) {
        let _ = writeln!(page, "note: {line}");
    }
    let real = |one: &&FigureChange| {
        let verdict = one.ratio.map(|ratio| ratio.verdict);
        let failed = one.column == Column::Failures && differs(one.old, one.new);
        matches!(verdict, Some(Significance::Less | Significance::More)) || failed
    };
    let (significant, others): (Vec<&FigureChange>, Vec<&FigureChange>) =
        changes.iter().partition(real);
    for one in &significant {
        let _ = writeln!(page, "{}", line(one));
    }
    if significant.is_empty() {
        page.push_str("Nothing changed by more than noise.\n");
    }
    let unknown =
        |one: &&&FigureChange| one.ratio.is_some_and(|of| of.verdict == Significance::Unknown);
    let unknown = others.iter().filter(unknown).count();
    // Failures never have one.
    let without = |one: &&&FigureChange| one.ratio.is_none() && one.column != Column::Failures;
    let without = others.iter().filter(without).count();
    let noise = others.len() - unknown - without;
    let _ = writeln!(page, "{noise} other figures differ by no more than noise.");
    if without > 0 {
        let _ =
            writeln!(page, "{without} have no ratio: their row is not comparable, or one is 0.");
    }
    if unknown > 0 {
        let _ = writeln!(page, "{unknown} have a single round on one side, which is too few.");
    }
    if changes.is_empty() {
        page.push_str("The two have no contender in a scenario in common.\n");
    }
    page
}

fn line(one: &FigureChange) -> String {
    let FigureChange { contender, scenario, column, old, new, .. } = one;
    let (old, new) = (shown(*column, *old), shown(*column, *new));
    let title = column.title();
    let Some(Ratio { value, interval, verdict }) = one.ratio else {
        return format!("{scenario}, {contender}: {title} {old} -> {new}");
    };
    let better = (verdict == Significance::More) == column.more_is_better();
    let word = if better { "better" } else { "worse" };
    let interval = interval
        .map_or(String::new(), |(low, high)| format!(" [{}, {}]", factor(low), factor(high)));
    format!("{scenario}, {contender}: {title} {old} -> {new}, ×{}{interval}: {word}", factor(value))
}

/// Returns the rows of either record that are not comparable, which have no ratio.
fn other_work(old: &Record, new: &Record) -> Vec<String> {
    let of = |record: &Record, which: &str| -> Vec<String> {
        let unfit = |row: ContenderFigures| {
            let why = row.unfit.filter(|_| row.missing.is_none())?;
            Some(format!(
                "{}, {}: not comparable in the {which} record: {why}",
                row.scenario, row.contender
            ))
        };
        summarise(record).into_iter().filter_map(unfit).collect()
    };
    [of(old, "older"), of(new, "newer")].concat()
}

fn differs(old: f64, new: f64) -> bool {
    (old - new).abs() > 0.5
}

/// Returns differences between two records that make them less comparable.
fn apart(old: &Record, new: &Record) -> Vec<String> {
    let (then, now) = (&old.environment, &new.environment);
    let mut notes = Vec::new();
    let mut differ = |what: &str, then: &str, now: &str| {
        if then != now {
            notes.push(format!("{what} was {then:?} and is {now:?}"));
        }
    };
    differ("the CPU", &then.cpu, &now.cpu);
    differ("the kernel", &then.kernel, &now.kernel);
    differ(
        "the servers' CPUs",
        &format!("{:?}", then.server_cpus),
        &format!("{:?}", now.server_cpus),
    );
    for contender in &new.contenders {
        let Some(earlier) = old.contenders.iter().find(|one| one.name == contender.name) else {
            continue;
        };
        let version = |of: &Option<String>| of.clone().unwrap_or_default();
        let what = format!("the version of {}", contender.name);
        differ(&what, &version(&earlier.version), &version(&contender.version));
    }
    for scenario in &new.scenarios {
        let earlier = old.scenarios.iter().find(|one| one.name == scenario.name);
        if let Some(earlier) = earlier {
            let what = format!("the scenario {}", scenario.name);
            differ(&what, &earlier.sentence, &scenario.sentence);
        }
    }
    notes
}
