//! The figures as a Markdown table.

use std::fmt::Write;

/// One thing that was measured.
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    /// Of each round, ours and tokio's.
    pub(crate) figures: [Vec<f64>; 2],
}

impl Row {
    pub(crate) fn new(what: String, unit: &'static str) -> Self {
        Self { what, unit, figures: [Vec::new(), Vec::new()] }
    }
}

/// Medians with the least and the most of each, and their ratio.
pub(crate) fn markdown(rows: &[Row], rounds: usize) -> String {
    let mut text = String::from(
        "| measured | unit | Gustnado | spread | tokio | spread | Gustnado / tokio |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        let [ours, theirs] = row.figures.each_ref().map(|figures| Summary::of(figures));
        let written = writeln!(
            text,
            "| {} | {} | {:.1} | {} | {:.1} | {} | {:.2} |",
            row.what,
            row.unit,
            ours.median,
            ours.spread(),
            theirs.median,
            theirs.spread(),
            ours.median / theirs.median,
        );
        debug_assert!(written.is_ok(), "a string takes all");
    }
    text + &format!(
        "\nMedians of {rounds} rounds, in turn; the spread is the least and the most.\n"
    )
}

struct Summary {
    median: f64,
    least: f64,
    most: f64,
}

impl Summary {
    fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(sorted.len() / 2),
            least: at(0),
            most: at(sorted.len().saturating_sub(1)),
        }
    }

    fn spread(&self) -> String {
        format!("{:.1} to {:.1}", self.least, self.most)
    }
}
