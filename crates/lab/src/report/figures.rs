//! The plots of a report and their order.

mod cdf;
mod cpu;
mod percentiles;
mod sweeps;
mod timeline;

use super::view::View;
use crate::plot::bars::Bars;
use crate::plot::drawing::{Drawing, Size};
use crate::plot::lines::{Chart, Series};
use crate::plot::scale::{Axis, Scale};
use crate::plot::units::ValueUnit;

/// A plot with its place in the report.
pub(super) struct Plot {
    /// Unique name of its files, without extension.
    pub(super) stem: String,
    /// Its section.
    pub(super) part: ReportSection,
    /// The chart.
    pub(super) kind: ChartKind,
}

/// Sections of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportSection {
    Cpu,
    Sweeps,
    Percentiles,
    Distribution,
    Time,
}

/// A chart of either kind.
pub(super) enum ChartKind {
    Bars(Bars),
    Lines(Chart),
}

impl ChartKind {
    pub(super) fn draw(&self, size: Size) -> Drawing {
        match self {
            ChartKind::Bars(bars) => bars.draw(size),
            ChartKind::Lines(chart) => chart.draw(size),
        }
    }

    pub(super) fn title(&self) -> &str {
        match self {
            ChartKind::Bars(bars) => &bars.title,
            ChartKind::Lines(chart) => &chart.title,
        }
    }

    pub(super) fn summary(&self) -> &str {
        match self {
            ChartKind::Bars(bars) => &bars.summary,
            ChartKind::Lines(chart) => &chart.summary,
        }
    }
}

impl ReportSection {
    pub(super) const ALL: [Self; 5] =
        [Self::Cpu, Self::Sweeps, Self::Percentiles, Self::Distribution, Self::Time];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Cpu => "Server CPU per request",
            Self::Sweeps => "Over the number of connections",
            Self::Percentiles => "Latency by percentile",
            Self::Distribution => "Latency, all of it",
            Self::Time => "Over time",
        }
    }

    pub(super) fn explanation(self) -> &'static str {
        match self {
            Self::Cpu => {
                "Server CPU per response: the CPU time of all its processes, divided by the \
                 successful responses. Unlike a rate it does not depend on the speed of the \
                 generator. Less is better."
            }
            Self::Sweeps => {
                "The same work with more and more connections. A server that scales keeps its \
                 rate, and its memory grows no faster than the connections."
            }
            Self::Percentiles => {
                "The latency that this percentage of requests did not exceed. 100 is the slowest \
                 request. Only successful responses have a latency; failures are marked."
            }
            Self::Distribution => {
                "The share of all requests that succeeded within a time. A line that \
                 ends below 100 % belongs to a server with requests that had no response or a \
                 wrong one."
            }
            Self::Time => {
                "Second by second, so that a decay, a stall or a leak is seen. The first and last \
                 moments are as they were measured."
            }
        }
    }
}

/// Returns every plot of a report.
pub(super) fn all(view: &View<'_>) -> Vec<Plot> {
    let mut plots = Vec::new();
    cpu::add(view, &mut plots);
    sweeps::add(view, &mut plots);
    percentiles::add(view, &mut plots);
    cdf::add(view, &mut plots);
    timeline::add(view, &mut plots);
    plots
}

/// The vertical axis for lines and their spread. Its title says whether it is logarithmic.
fn upwards(title: &str, unit: ValueUnit, from_zero: bool, lines: &[Series]) -> Axis {
    let values = lines.iter().flat_map(|line| &line.spots).flat_map(|spot| {
        spot.y.into_iter().chain(spot.spread.into_iter().flat_map(|(low, high)| [low, high]))
    });
    let scale =
        if from_zero { Scale::from_zero(unit, values) } else { Scale::fitting(unit, values) };
    let how = if scale.is_log() { " (logarithmic)" } else { "" };
    Axis { title: format!("{title}{how}"), scale, unit }
}

/// Adds a plot whose files are named after `what` and `name`, with a number if that name is taken.
fn push(plots: &mut Vec<Plot>, part: ReportSection, what: &str, name: &str, kind: ChartKind) {
    let base = if name.is_empty() { what.to_owned() } else { format!("{what}-{}", slug(name)) };
    let mut stem = base.clone();
    let mut number = 2;
    while plots.iter().any(|plot| plot.stem == stem) {
        stem = format!("{base}-{number}");
        number += 1;
    }
    plots.push(Plot { stem, part, kind });
}

/// Converts a name to part of a file name: small letters, digits and hyphens, 40 at most.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(40) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}
