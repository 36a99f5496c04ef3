//! Server CPU for each request, as bars: the picture at the top of the page.
//!
//! They are tables, so that they need no script and are as wide as the window lets them be.

use super::tables::ratio_text;
use super::view::View;
use crate::markup::Markup;
use crate::plot::units::ValueUnit;
use crate::record::{ContenderRecord, ScenarioRecord};
use crate::statistics::Figure;

/// Number of pictures that are shown at once; the others are folded.
const OPEN_MAX: usize = 3;
/// The longest bar, as a multiple of the shortest one. Longer ones have an open end: one slow
/// server must not make all others alike.
const LENGTH_MAX: f64 = 5.0;

/// Writes a picture for each scenario; of a sweep for its last point.
pub(super) fn write(page: &mut Markup, view: &View<'_>) {
    let scenarios = headlines(view);
    let (first, others) = scenarios.split_at(scenarios.len().min(OPEN_MAX));
    panels(page, view, first);
    if !others.is_empty() {
        page.open("details", &[("class", "more")]);
        let text = match others.len() {
            1 => "One more scenario".to_owned(),
            many => format!("{many} more scenarios"),
        };
        page.element("summary", &[], &text);
        panels(page, view, others);
        page.close();
    }
}

/// Returns the scenarios without the points of sweeps that have greater ones, in the order of the
/// file.
pub(super) fn headlines<'a>(view: &View<'a>) -> Vec<&'a ScenarioRecord> {
    let all = &view.record.scenarios;
    let is_last = |one: &&ScenarioRecord| {
        let same = all.iter().filter(|other| other.sweep.is_some() && other.sweep == one.sweep);
        same.map(|other| other.connections).max().is_none_or(|most| one.connections >= most)
    };
    all.iter().filter(is_last).collect()
}

fn panels(page: &mut Markup, view: &View<'_>, scenarios: &[&ScenarioRecord]) {
    page.open("div", &[("class", "panels")]);
    for scenario in scenarios {
        panel(page, view, scenario);
    }
    page.close();
}

fn panel(page: &mut Markup, view: &View<'_>, scenario: &ScenarioRecord) {
    let mut drawn: Vec<(&ContenderRecord, &Figure)> = Vec::new();
    let mut others: Vec<(&ContenderRecord, String)> = Vec::new();
    for (_, contender) in view.contenders() {
        let Some(row) = view.row(scenario, contender) else { continue };
        match (view.reason(scenario, contender), row.cpu_us_per_request.as_ref()) {
            (None, Some(figure)) => drawn.push((contender, figure)),
            (why, _) => others.push((contender, why.unwrap_or_else(|| "no figure".to_owned()))),
        }
    }
    drawn.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let least = drawn.first().map_or(0.0, |(_, figure)| figure.median);
    let most = drawn.iter().map(|(_, figure)| figure.high).fold(0.0, f64::max);
    let end = if least > 0.0 { most.min(least * LENGTH_MAX) } else { most };
    page.open("table", &[("class", "bars")]);
    page.element("caption", &[], &scenario.title);
    page.open("tbody", &[]);
    for (place, (contender, figure)) in drawn.iter().enumerate() {
        let class = if place == 0 { "best" } else { "" };
        bar(page, class, &contender.name, figure, end, contender.name == view.reference);
    }
    for (place, (contender, why)) in others.iter().enumerate() {
        page.open("tr", &[("class", if place == 0 { "out line" } else { "out" })]);
        page.element("th", &[("scope", "row")], &contender.name);
        page.element("td", &[("colspan", "2")], why);
        page.close();
    }
    page.close();
    page.close();
}

/// - `end`: the value at the end of the longest bar.
fn bar(page: &mut Markup, class: &str, name: &str, figure: &Figure, end: f64, is_reference: bool) {
    let place = |value: f64| (value / end * 100.0).clamp(0.0, 100.0);
    page.open("tr", &[("class", class)]);
    page.element("th", &[("scope", "row")], name);
    page.open("td", &[("class", "track")]);
    let class = if figure.median > end { "bar cut" } else { "bar" };
    let style = format!("width:{:.1}%", place(figure.median));
    page.element("span", &[("class", class), ("style", &style)], "");
    if figure.n > 1 && figure.high <= end {
        let (low, high) = (place(figure.low), place(figure.high));
        let style = format!("left:{low:.1}%;width:{:.1}%", high - low);
        page.element("span", &[("class", "whisker"), ("style", &style)], "");
    }
    page.close();
    page.open("td", &[]);
    page.element("b", &[], &ValueUnit::Microseconds.write(figure.median));
    let ratio = if is_reference { Some("1 ×".to_owned()) } else { figure.ratio.map(ratio_text) };
    if let Some(ratio) = ratio {
        page.text(" ");
        page.element("small", &[], &ratio);
    }
    page.close();
    page.close();
}
