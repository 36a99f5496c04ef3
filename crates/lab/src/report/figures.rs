//! The plots of a report and their order.

mod cdf;
mod percentiles;
mod sweeps;
mod timeline;

use super::view::View;
use crate::plot::chart::Chart;

/// A plot with its place in the report.
pub(super) struct Plot {
    /// Unique name in the page.
    pub(super) stem: String,
    /// Its section.
    pub(super) part: ReportSection,
    /// The chart.
    pub(super) chart: Chart,
}

/// Sections of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportSection {
    Sweeps,
    Percentiles,
    Distribution,
    Time,
}

impl ReportSection {
    pub(super) const ALL: [Self; 4] =
        [Self::Sweeps, Self::Percentiles, Self::Distribution, Self::Time];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Sweeps => "Over the number of connections",
            Self::Percentiles => "Latency by percentile",
            Self::Distribution => "Latency, all of it",
            Self::Time => "Over time",
        }
    }

    pub(super) fn explanation(self) -> &'static str {
        match self {
            Self::Sweeps => {
                "The same work with more and more connections. A server that scales keeps its \
                 rate, and its memory grows no faster than the connections. A point that cannot \
                 be compared is left out."
            }
            Self::Percentiles => {
                "The latency that this percentage of requests did not exceed. 100 is the slowest \
                 request."
            }
            Self::Distribution => {
                "The share of requests that succeeded within a time, over all rounds."
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
    sweeps::add(view, &mut plots);
    percentiles::add(view, &mut plots);
    cdf::add(view, &mut plots);
    timeline::add(view, &mut plots);
    plots
}

/// Adds a plot that is named after `what` and `name`, with a number if that name is taken.
fn push(plots: &mut Vec<Plot>, part: ReportSection, what: &str, name: &str, chart: Chart) {
    let base = format!("{what}-{}", slug(name));
    let mut stem = base.clone();
    let mut number = 2;
    while plots.iter().any(|plot| plot.stem == stem) {
        stem = format!("{base}-{number}");
        number += 1;
    }
    plots.push(Plot { stem, part, chart });
}

/// Converts a name to part of a name in the page: small letters, digits and hyphens, 40 at most.
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
