//! Terminal output of a contest: a line for each run, and the final table.

use std::fmt::Write;
use std::ops::Range;

use crate::figures::{counted, grouped, grouped_text, percent, whole};
use crate::outcome::Outcome;
use crate::record::{Fate, Record, RunRecord};
use crate::statistics::{
    Column, ContenderFigures, Figure, Significance, cpu_us_per_request, other_work, reference,
    summarise,
};
use crate::steal::WORTH_A_WORD;

/// Formats one run as a line.
pub(super) fn progress(run: &RunRecord, connections: u64) -> String {
    let RunRecord { contender, scenario, round, .. } = run;
    let what = format!("{scenario} ({connections}) round {round}, {contender}");
    let failure = run.failure.as_ref().map_or(String::new(), |why| format!("; {why}"));
    let Some(outcome) = &run.outcome else { return format!("{what}: no figures{failure}") };
    let cpu = cpu_us_per_request(run).map_or("-".to_owned(), short);
    let p99 = outcome.latency_us.percentile("99").map_or("-".to_owned(), time);
    let rate = short(outcome.requests_per_s);
    let mut failures = match outcome.errors.total() {
        0 => String::new(),
        failures => format!(", {failures} failures"),
    };
    let other_work = other_work(outcome);
    if !other_work.is_empty() {
        let _ = write!(failures, "; NOT COMPARABLE: {}", other_work.join(", "));
    }
    let stolen = run.usage.steal_share.max(outcome.steal_share);
    if stolen >= WORTH_A_WORD {
        let _ = write!(failures, ", {} of CPU time stolen", percent(stolen));
    }
    format!("{what}: {cpu} µs CPU/request, {rate}/s, p99 {p99}{failures}{failure}")
}

/// Formats all scenarios, each with a row for each contender.
///
/// - `bold`: emphasises a heading.
/// - `columns`: maximum width of a line; a wider table continues below itself.
pub fn text(record: &Record, bold: &dyn Fn(&str) -> String, columns: usize) -> String {
    let rows = summarise(record);
    let mut page = String::new();
    for scenario in &record.scenarios {
        let of_scenario: Vec<&ContenderFigures> =
            rows.iter().filter(|row| row.scenario == scenario.name).collect();
        let _ = writeln!(page, "\n{}: {}", bold(&scenario.title), scenario.sentence);
        page.push_str(&grid(&of_scenario, columns));
        for row in of_scenario {
            if let (Some(why), None) = (&row.unfit, &row.missing) {
                let _ = writeln!(page, "  {}: not comparable: {why}", row.contender);
            }
            for note in &row.notes {
                let _ = writeln!(page, "  {}: {note}", row.contender);
            }
        }
    }
    let _ = writeln!(
        page,
        "\nEach figure: the median over rounds, (least–greatest), then × the ratio to {} [95 % \
         interval]; ≈ where the difference is within the noise. Fewer than three rounds have no \
         interval and no verdict. A row below the line did other work than those above it, and is \
         compared with nothing.",
        reference::choose(record)
    );
    page
}

/// A row for each contender: whether it is set up.
pub fn checks(record: &Record) -> String {
    let width = record.contenders.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    let mut page = String::new();
    for contender in &record.contenders {
        let run = record.runs.iter().find(|run| run.contender == contender.name);
        let words = match (&contender.fate, run) {
            (Fate::NotInstalled(why), _) => format!("not installed: {why}"),
            (Fate::Failed(why), _) => format!("FAILED: {why}"),
            (Fate::Unequal(why), _) => format!("NOT THE SAME WORK: {why}"),
            (Fate::Ran, None) => "not reached".to_owned(),
            (Fate::Ran, Some(run)) => match (&run.outcome, &run.failure) {
                (Some(outcome), failure) => checked(outcome, failure.as_deref()),
                (None, why) => format!("FAILED: {}", why.as_deref().unwrap_or("no figures")),
            },
        };
        let version = contender.version.as_deref().unwrap_or("");
        let line = format!("{:width$}  {words}  {version}", contender.name);
        let _ = writeln!(page, "{}", line.trim_end());
    }
    page
}

/// The problems of a contender's run.
fn checked(outcome: &Outcome, failure: Option<&str>) -> String {
    let (right, sent) = (grouped(outcome.requests), counted(outcome.sent, "request"));
    let mut why = Vec::new();
    let failed = outcome.errors.named().into_iter().filter(|(_, count)| *count > 0);
    why.extend(failed.map(|(kind, count)| format!("{kind} {}", grouped(count))));
    if outcome.unanswered > 0 {
        why.push(format!("{} had no response in time", counted(outcome.unanswered, "request")));
    }
    why.extend(failure.map(str::to_owned));
    why.extend(other_work(outcome));
    if outcome.requests == 0 && why.is_empty() {
        why.push("there was no response in time".to_owned());
    }
    if why.is_empty() {
        return format!("ok: {right} of {sent} succeeded");
    }
    format!("NOT WELL: {right} of {sent} succeeded; {}", why.join(", "))
}

/// Returns whether every installed contender succeeded.
pub fn is_well(record: &Record) -> bool {
    let fine = |one: &crate::record::ContenderRecord| match one.fate {
        Fate::NotInstalled(_) => true,
        Fate::Failed(_) | Fate::Unequal(_) => false,
        Fate::Ran => record.runs.iter().any(|run| {
            let whole = |of: &Outcome| {
                let all = of.errors.total() == 0 && of.unanswered == 0 && of.requests > 0;
                all && other_work(of).is_empty()
            };
            run.contender == one.name
                && run.failure.is_none()
                && run.outcome.as_ref().is_some_and(whole)
        }),
    };
    record.contenders.iter().all(fine)
}

/// The line above the rows that are not comparable.
const LINE: &str = "not comparable:";

/// Two lines for each row: medians with spread, and ratios with intervals. Rows that are not
/// comparable come last, below a line.
fn grid(rows: &[&ContenderFigures], columns: usize) -> String {
    let mut lines: Vec<Vec<String>> = vec![heading()];
    let mut missing = Vec::new();
    let (below, above): (Vec<&ContenderFigures>, Vec<_>) =
        rows.iter().copied().partition(|row| row.unfit.is_some() && row.missing.is_none());
    let first_below = below.first().map(|row| &row.contender);
    for row in above.into_iter().chain(below.clone()) {
        if let Some(why) = &row.missing {
            missing.push(format!("  {}: {why}\n", row.contender));
            continue;
        }
        if first_below == Some(&row.contender) {
            lines.push(vec![LINE.to_owned()]);
        }
        let mut figures = vec![row.contender.clone()];
        let mut spreads = vec![String::new()];
        let mut ratios = vec![String::new()];
        for column in Column::ALL {
            let figure = row.figure(column);
            figures.push(figure.map_or("-".to_owned(), |of| shown(column, of.median)));
            spreads.push(figure.map_or(String::new(), |of| spread(column, of)));
            ratios.push(figure.map_or(String::new(), ratio));
        }
        lines.push(figures);
        if spreads.iter().any(|text| !text.is_empty()) {
            lines.push(spreads);
        }
        if ratios.iter().any(|text| !text.is_empty()) {
            lines.push(ratios);
        }
    }
    let mut page = if lines.len() > 1 { aligned(&lines, columns) } else { String::new() };
    page.extend(missing);
    page
}

fn heading() -> Vec<String> {
    let titled = |column: Column| match column {
        Column::CpuPerRequest => "µs CPU/request".to_owned(),
        _ => column.title().to_owned(),
    };
    std::iter::once(String::new()).chain(Column::ALL.map(titled)).collect()
}

/// Aligns cells in columns. Those that do not fit into a line follow below, each time after the
/// first column.
fn aligned(lines: &[Vec<String>], columns: usize) -> String {
    let cells = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..cells).map(width).collect();
    let mut page = String::new();
    let mut from = 1;
    while from < cells {
        let mut used = 2 + widths[0];
        let fits = |width: &&usize| {
            used += 2 + **width;
            used <= columns
        };
        // At least one, however wide it is.
        let to = from + widths[from..].iter().take_while(fits).count().max(1);
        for line in lines {
            let _ = writeln!(page, "{}", part(line, &widths, from..to));
        }
        from = to;
    }
    page
}

/// The first cell of a line, and some others.
fn part(line: &[String], widths: &[usize], shown: Range<usize>) -> String {
    let blank = String::new();
    let padded = |at: usize| {
        let cell = line.get(at).unwrap_or(&blank);
        (cell, " ".repeat(widths[at] - cell.chars().count()))
    };
    let (first, space) = padded(0);
    let mut text = format!("  {first}{space}");
    for at in shown {
        let (cell, space) = padded(at);
        let _ = write!(text, "  {space}{cell}");
    }
    text.trim_end().to_owned()
}

fn spread(column: Column, figure: &Figure) -> String {
    if figure.n < 2 {
        return String::new();
    }
    let (low, high) = (shown(column, figure.low), shown(column, figure.high));
    // The unit follows the second one; the first one has it only if it differs.
    let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
    match low.rsplit_once(' ') {
        Some((number, _)) if unit(&low) == unit(&high) => format!("({number}–{high})"),
        _ => format!("({low}–{high})"),
    }
}

fn ratio(figure: &Figure) -> String {
    let Some(ratio) = figure.ratio else { return String::new() };
    let value = factor(ratio.value);
    match (ratio.verdict, ratio.interval) {
        (Significance::Noise, Some((low, high))) => {
            format!("≈{value} [{}–{}]", factor(low), factor(high))
        }
        (_, Some((low, high))) => format!("×{value} [{}–{}]", factor(low), factor(high)),
        (_, None) => format!("×{value}"),
    }
}

/// A ratio with two or three digits.
pub(super) fn factor(value: f64) -> String {
    if value >= 1_000.0 {
        ">999".to_owned()
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else if value < 0.005 {
        "<0.01".to_owned()
    } else {
        format!("{value:.2}")
    }
}

/// A figure with its unit, unless the column names it.
pub(super) fn shown(column: Column, value: f64) -> String {
    match column {
        Column::CpuPerRequest | Column::Rate => short(value),
        Column::P50 | Column::P99 | Column::P999 | Column::Max => time(value),
        Column::BytesPerResponse => whole(value),
        Column::MemoryPerConnection => bytes(value),
        Column::Failures => format!("{value:.0}"),
    }
}

/// Microseconds in a fitting unit.
fn time(us: f64) -> String {
    if us >= 1e6 {
        format!("{:.2} s", us / 1e6)
    } else if us >= 1e3 {
        format!("{} ms", short(us / 1e3))
    } else {
        format!("{us:.0} µs")
    }
}

fn bytes(value: f64) -> String {
    if value >= 1_048_576.0 {
        format!("{:.1} MiB", value / 1_048_576.0)
    } else if value >= 1_024.0 {
        format!("{:.1} KiB", value / 1_024.0)
    } else {
        format!("{value:.0} B")
    }
}

/// A number with about three digits.
fn short(value: f64) -> String {
    if value >= 1_000.0 {
        grouped_text(&format!("{value:.0}"))
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_to_three_places_in_a_unit_that_fits() {
        assert_eq!(short(1_234_567.0), "1,234,567");
        assert_eq!(short(123.4), "123");
        assert_eq!(short(1.234), "1.23");
        assert_eq!(time(900.0), "900 µs");
        assert_eq!(time(1_500.0), "1.50 ms");
        assert_eq!(time(2_500_000.0), "2.50 s");
        assert_eq!(bytes(2_048.0), "2.0 KiB");
        assert_eq!(factor(2.345), "2.35");
        assert_eq!(factor(12_345.0), ">999");
    }

    #[test]
    fn columns_are_aligned_to_the_right_behind_the_first() {
        let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let text = aligned(&[line(&["", "rate"]), line(&["nginx", "1"])], 80);
        assert_eq!(text, "         rate\n  nginx     1\n");
    }

    #[test]
    fn a_table_that_is_too_wide_goes_on_below_itself() {
        let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let lines = [line(&["", "rate", "p50", "p99"]), line(&["nginx", "1", "2", "3"])];
        let expected = "         rate  p50\n  nginx     1    2\n         p99\n  nginx    3\n";
        assert_eq!(aligned(&lines, 18), expected);
        let narrow = aligned(&lines, 1);
        assert_eq!(narrow.lines().count(), 6, "a cell in each line: {narrow}");
    }

    #[test]
    fn a_factor_is_never_wider_than_its_column() {
        for (value, text) in [(1.8e-17, "<0.01"), (2e23, ">999"), (0.25, "0.25"), (60.9, "60.9")] {
            assert_eq!(factor(value), text);
        }
    }
}
