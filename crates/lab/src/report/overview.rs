//! The one table that says most: a row for each contender, for the page and for Markdown.

use std::time::{Duration, UNIX_EPOCH};

use super::bars::headlines;
use super::tables::{boxed, heading, ratio_text, small, unit};
use super::view::{View, fate};
use crate::figures::{counted, whole};
use crate::markup::Markup;
use crate::plot::units::float;
use crate::record::{ContenderRecord, Fate, ScenarioRecord};
use crate::statistics::Column;

/// Maximum number of columns with figures. A sweep of many points is shortened to its ends.
const COLUMNS_MAX: usize = 8;

/// The table.
pub(super) struct Overview {
    /// What the figures are, in a sentence.
    pub(super) caption: String,
    /// Headings of the columns with figures.
    pub(super) headings: Vec<String>,
    /// Rows: those that can be compared in some scenario first, in the order of the first column.
    pub(super) rows: Vec<OverviewRow>,
}

/// The row of one contender.
pub(super) struct OverviewRow {
    /// Its name.
    pub(super) name: String,
    /// Figures; `None` where there is none that can be compared.
    pub(super) cells: Vec<Option<OverviewCell>>,
    /// Why figures are missing.
    pub(super) remark: String,
}

/// One figure.
pub(super) struct OverviewCell {
    pub(super) value: f64,
    pub(super) figure: String,
    /// Its ratio to the reference. May be empty.
    pub(super) ratio: String,
}

impl OverviewRow {
    /// Returns whether it has a figure that can be compared.
    pub(super) fn is_compared(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }
}

/// Returns the table: of several scenarios the CPU for each request, of one all its figures.
pub(super) fn of(view: &View<'_>) -> Overview {
    let scenarios = columns(view);
    let several = scenarios.len() > 1;
    let reference = ratios(view);
    let (caption, headings, cells): (_, Vec<String>, Vec<(&ScenarioRecord, Column)>) = if several {
        let cells = scenarios.iter().map(|scenario| (*scenario, Column::CpuPerRequest));
        let titles = scenarios.iter().map(|scenario| scenario.title.clone());
        (
            format!("Server CPU for each request. Less is better.{reference}"),
            titles.chain([heading(Column::BytesPerResponse).to_owned()]).collect(),
            cells.collect(),
        )
    } else {
        let shown = [
            Column::CpuPerRequest,
            Column::Rate,
            Column::P50,
            Column::P99,
            Column::BytesPerResponse,
            Column::MemoryPerConnection,
        ];
        let title = scenarios.first().map_or(String::new(), |one| format!("{}.", one.title));
        let cells = scenarios.iter().flat_map(|one| shown.map(|column| (*one, column)));
        let heads = shown.map(|column| heading(column).to_owned());
        (format!("{title}{reference}"), heads.into(), cells.collect())
    };
    let whole = |contender| {
        let mut row = row(view, contender, &cells);
        if several {
            row.cells.push(bytes(view, contender, &scenarios));
        }
        row
    };
    let mut rows: Vec<OverviewRow> = view.contenders().map(|(_, one)| whole(one)).collect();
    let rank = |row: &OverviewRow| {
        let first = row.cells.iter().flatten().next().map(|cell| cell.value);
        (!row.is_compared(), row.cells.first().is_none_or(Option::is_none), first)
    };
    rows.sort_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        let by_value = a.2.unwrap_or(0.0).total_cmp(&b.2.unwrap_or(0.0));
        (a.0, a.1).cmp(&(b.0, b.1)).then(by_value)
    });
    Overview { caption, headings, rows }
}

/// Writes the table into a page.
pub(super) fn write(page: &mut Markup, overview: &Overview) {
    boxed(page, "overview-c", &overview.caption, |page| {
        page.open("thead", &[]);
        page.open("tr", &[]);
        page.element("th", &[("scope", "col")], "contender");
        for name in &overview.headings {
            page.element("th", &[("scope", "col")], name);
        }
        page.element("th", &[("scope", "col"), ("class", "prose")], "remark");
        page.close();
        page.close();
        page.open("tbody", &[]);
        let mut below = false;
        for row in &overview.rows {
            let class = match (row.is_compared(), below) {
                (true, _) => "",
                (false, false) => "out line",
                (false, true) => "out",
            };
            below = !row.is_compared();
            page.open("tr", &[("class", class)]);
            page.element("th", &[("scope", "row")], &row.name);
            for cell in &row.cells {
                page.open("td", &[]);
                match cell {
                    Some(cell) => {
                        page.element("b", &[], &cell.figure);
                        small(page, &cell.ratio);
                    }
                    None => page.text("–"),
                }
                page.close();
            }
            page.element("td", &[("class", "prose")], &row.remark);
            page.close();
        }
        page.close();
    });
}

/// Says what ratios refer to, and why not to the reference of the file.
fn ratios(view: &View<'_>) -> String {
    let (reference, named) = (view.reference, &view.record.reference);
    if view.record.contenders.len() < 2 || reference.is_empty() {
        return String::new();
    }
    let other = if reference == named {
        String::new()
    } else {
        format!(", because {named} cannot be compared everywhere")
    };
    format!(" × is the ratio to {reference}{other}; ≈ is within the noise.")
}

/// Returns the scenarios of the table, in the order of the file.
fn columns<'a>(view: &View<'a>) -> Vec<&'a ScenarioRecord> {
    let all = &view.record.scenarios;
    if all.len() <= COLUMNS_MAX {
        return all.iter().collect();
    }
    let headlines = headlines(view);
    let is_end = |one: &&ScenarioRecord| {
        let is_last = headlines.iter().any(|other| other.name == one.name);
        let same = all.iter().filter(|other| other.sweep == one.sweep);
        let least = same.map(|other| other.connections).min();
        is_last || least == Some(one.connections)
    };
    all.iter().filter(is_end).take(COLUMNS_MAX).collect()
}

fn row(
    view: &View<'_>,
    contender: &ContenderRecord,
    columns: &[(&ScenarioRecord, Column)],
) -> OverviewRow {
    let mut missing: Vec<String> = Vec::new();
    for scenario in &view.record.scenarios {
        missing.extend(view.reason(scenario, contender));
    }
    let cell = |(scenario, column): &(&ScenarioRecord, Column)| {
        if !view.is_compared(scenario, contender) {
            return None;
        }
        let figure = view.row(scenario, contender)?.figure(*column)?;
        Some(OverviewCell {
            value: figure.median,
            figure: unit(*column).write(figure.median),
            ratio: figure.ratio.map(ratio_text).unwrap_or_default(),
        })
    };
    let cells: Vec<_> = columns.iter().map(cell).collect();
    let scenarios = view.record.scenarios.iter();
    let all = scenarios.filter(|scenario| view.row(scenario, contender).is_some()).count();
    let remark = match (&contender.fate, missing.as_slice()) {
        (_, []) => String::new(),
        (Fate::Ran, [only]) if all == 1 => format!("not compared: {only}"),
        (Fate::Ran, some) if some.len() < all => {
            let count = u64::try_from(some.len()).unwrap_or(u64::MAX);
            format!("not compared in {}: {}", counted(count, "scenario"), some[0])
        }
        (Fate::Ran, some) => format!("not compared: {}", some[0]),
        _ => fate(contender).0.to_owned(),
    };
    OverviewRow { name: contender.name.clone(), cells, remark }
}

/// The bytes for each response, from the least to the greatest of several scenarios.
fn bytes(
    view: &View<'_>,
    contender: &ContenderRecord,
    scenarios: &[&ScenarioRecord],
) -> Option<OverviewCell> {
    let found = scenarios.iter().filter(|scenario| view.is_compared(scenario, contender));
    let found = found.filter_map(|scenario| view.row(scenario, contender)?.bytes_per_response);
    let medians: Vec<f64> = found.map(|figure| figure.median.round()).collect();
    let least = medians.iter().copied().reduce(f64::min)?;
    let most = medians.iter().copied().reduce(f64::max)?;
    let figure =
        if least < most { format!("{}–{}", whole(least), whole(most)) } else { whole(least) };
    Some(OverviewCell { value: least, figure, ratio: String::new() })
}

/// The machine and the conditions of a contest on one line.
pub(super) fn conditions(view: &View<'_>) -> String {
    let record = view.record;
    let machine = &record.environment;
    let rounds = match view.rounds() {
        1 => "one round".to_owned(),
        many => format!("{many} rounds"),
    };
    let commit = machine.commit.as_deref().unwrap_or("unknown");
    format!(
        "{}, commit {commit}, {}, {}; {rounds}, {}",
        day(record.started_unix_s),
        machine_name(view),
        machine.kernel,
        record.tool
    )
}

/// What makes a machine another one: its CPUs and its memory.
pub(super) fn machine_name(view: &View<'_>) -> String {
    const GIB: f64 = 1_073_741_824.0;
    let machine = &view.record.environment;
    // In whole GiB: what a kernel takes of it for itself differs a little from start to start.
    let gib = float(machine.memory_bytes) / GIB;
    format!("{} x {}, {gib:.0} GiB", machine.cpus, machine.cpu)
}

/// The day in UTC, such as `21 Nov 2026`, clamped to the years of HTTP's form (RFC 9110 §5.6.7).
fn day(unix_s: f64) -> String {
    const END_S: f64 = 253_402_300_799.0;
    let since = if unix_s.is_finite() { unix_s.clamp(0.0, END_S) } else { 0.0 };
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs_f64(since));
    date.split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")
}
