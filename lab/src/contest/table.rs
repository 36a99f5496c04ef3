//! What a person sees in the terminal: a line for each run, and the table at the end.

use std::fmt::Write;

use crate::figures::grouped_text;
use crate::record::{Fate, Record, Run};
use crate::statistics::{Column, Figure, Row, Verdict, summarise};

/// One run in a line.
pub(super) fn progress(run: &Run, connections: u64) -> String {
    let Run { contender, scenario, round, .. } = run;
    let what = format!("{scenario} ({connections}) round {round}, {contender}");
    let failure = run.failure.as_ref().map_or(String::new(), |why| format!("; {why}"));
    let Some(outcome) = &run.outcome else { return format!("{what}: no figures{failure}") };
    let cpu_s = run.usage.cpu_user_s + run.usage.cpu_system_s;
    let cpu = match outcome.requests {
        0 => "-".to_owned(),
        requests => short(cpu_s * 1e6 / float(requests)),
    };
    let p99 = outcome.latency_us.percentiles.get("99").map_or("-".to_owned(), |of| time(*of));
    let rate = short(outcome.requests_per_s);
    let failures = match outcome.errors.total() {
        0 => String::new(),
        failures => format!(", {failures} failures"),
    };
    format!("{what}: {cpu} µs CPU/request, {rate}/s, p99 {p99}{failures}{failure}")
}

/// All scenarios, each with a row for each contender.
///
/// - `bold`: makes a heading stand out.
pub fn text(record: &Record, bold: &dyn Fn(&str) -> String) -> String {
    let rows = summarise(record);
    let mut page = String::new();
    for scenario in &record.scenarios {
        let of_scenario: Vec<&Row> =
            rows.iter().filter(|row| row.scenario == scenario.name).collect();
        let _ = writeln!(page, "\n{}: {}", bold(&scenario.title), scenario.sentence);
        page.push_str(&grid(&of_scenario));
        for row in of_scenario {
            for note in &row.notes {
                let _ = writeln!(page, "  {}: {note}", row.contender);
            }
        }
    }
    let _ = writeln!(
        page,
        "\nEach figure: the median over rounds, (least–greatest), then × the ratio to {} [95 % \
         interval]; ≈ where the difference is within the noise.",
        record.reference
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
                (Some(outcome), failure) => {
                    let failures = outcome.errors.total();
                    let well = if failures == 0 && failure.is_none() && outcome.requests > 0 {
                        "ok"
                    } else {
                        "NOT WELL"
                    };
                    let rate = short(outcome.requests_per_s);
                    let why = failure.as_ref().map_or(String::new(), |why| format!("; {why}"));
                    format!("{well}: {rate} requests/s, {failures} failures{why}")
                }
                (None, why) => format!("FAILED: {}", why.as_deref().unwrap_or("no figures")),
            },
        };
        let version = contender.version.as_deref().unwrap_or("");
        let line = format!("{:width$}  {words}  {version}", contender.name);
        let _ = writeln!(page, "{}", line.trim_end());
    }
    page
}

/// Whether every contender that is installed did well.
pub fn is_well(record: &Record) -> bool {
    let fine = |one: &crate::record::Contender| match one.fate {
        Fate::NotInstalled(_) => true,
        Fate::Failed(_) | Fate::Unequal(_) => false,
        Fate::Ran => record.runs.iter().any(|run| {
            let whole = |of: &crate::outcome::Outcome| of.errors.total() == 0 && of.requests > 0;
            run.contender == one.name
                && run.failure.is_none()
                && run.outcome.as_ref().is_some_and(whole)
        }),
    };
    record.contenders.iter().all(fine)
}

/// Two lines for each row: medians with spread, and ratios with intervals.
fn grid(rows: &[&Row]) -> String {
    let mut lines: Vec<Vec<String>> = vec![heading()];
    let mut missing = Vec::new();
    for row in rows {
        if let Some(why) = &row.missing {
            missing.push(format!("  {}: {why}\n", row.contender));
            continue;
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
        lines.push(spreads);
        if ratios.iter().any(|text| !text.is_empty()) {
            lines.push(ratios);
        }
    }
    let mut page = if lines.len() > 1 { aligned(&lines) } else { String::new() };
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

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut page = String::new();
    for line in lines {
        let mut text = String::from(" ");
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            let cell = if at == 0 { format!(" {cell}{space}") } else { format!("  {space}{cell}") };
            text.push_str(&cell);
        }
        let _ = writeln!(page, "{}", text.trim_end());
    }
    page
}

fn spread(column: Column, figure: &Figure) -> String {
    if figure.n < 2 {
        return "(one round)".to_owned();
    }
    let (low, high) = (shown(column, figure.low), shown(column, figure.high));
    // The unit stands behind the second one; behind the first it is only said where it differs.
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
        (Verdict::Noise, Some((low, high))) => {
            format!("≈{value} [{}–{}]", factor(low), factor(high))
        }
        (_, Some((low, high))) => format!("×{value} [{}–{}]", factor(low), factor(high)),
        (_, None) => format!("×{value}"),
    }
}

/// A ratio to two or three places.
pub(super) fn factor(value: f64) -> String {
    if value >= 1_000.0 {
        ">999".to_owned()
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A figure with its unit where the column does not say it.
pub(super) fn shown(column: Column, value: f64) -> String {
    match column {
        Column::CpuPerRequest | Column::Rate => short(value),
        Column::P50 | Column::P99 | Column::P999 | Column::Max => time(value),
        Column::MemoryPerConnection => bytes(value),
        Column::Failures => format!("{value:.0}"),
    }
}

/// Microseconds in the unit that fits.
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

/// A number to three places or so.
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

#[expect(clippy::cast_precision_loss, reason = "figures are shown to three places")]
fn float(count: u64) -> f64 {
    count as f64
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
        let text = aligned(&[line(&["", "rate"]), line(&["nginx", "1"])]);
        assert_eq!(text, "         rate\n  nginx     1\n");
    }
}
