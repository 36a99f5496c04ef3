//! The reference of all counters, written from the table. `docs/counters.md` is its output.

use std::fmt::Write;

use super::counter::{Counter, Kind, Visibility};
use super::table::COUNTERS;

const HEAD: &str = "\
# Counters

What a server counts, by the names of the fields of `Stats` and `WorkerStats`. `Running::stats` and
`Running::stats_by_worker` give them to a Rust program, `Engine.stats` to a Python one. They are the
keys of the page of `--stats-path` and `stats_page()`, and of the line of `--stats-interval 10s`.
[Metrics](metrics.md) has them for Prometheus: one is `gustnado_requests_total`, and counters that
differ by a label are one metric, such as `gustnado_answers_total{class=\"5xx\"}`.

A counter starts at 0 with the server and only grows. A gauge is a current value. Those marked
with a star are fields of `Stats` only: pages, lines and Python leave them out. Those marked with
two stars are left out by lines alone.

This page is generated: `gustnado tuning --counters > docs/counters.md`.
";

/// Returns the content of `docs/counters.md`.
pub fn counters_reference() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Of the server\n\n| name | kind | meaning |\n| --- | --- | --- |\n");
    let of_server = COUNTERS.iter().filter(|counter| !counter.help.is_empty());
    of_server.for_each(|counter| push_row(&mut page, counter, counter.help));
    page.push_str(
        "\n`faults`, behind them, is the sum of `bad_requests`, `timeouts`, `files_cut` and \
         `panics`.\n\n## Of each worker\n\n| name | kind | meaning |\n| --- | --- | --- |\n",
    );
    let of_worker = COUNTERS.iter().filter(|counter| !counter.worker_help.is_empty());
    of_worker.for_each(|counter| push_row(&mut page, counter, counter.worker_help));
    page
}

fn push_row(page: &mut String, counter: &Counter, help: &str) {
    let star = match counter.visibility {
        Visibility::Everywhere => "",
        Visibility::OnPages => " \\*\\*",
        Visibility::InStats => " \\*",
    };
    let kind = match counter.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    let label = counter
        .label
        .map(|(family, label, value)| format!(" One of the `{family}`, by `{label}`: `{value}`."));
    let label = label.unwrap_or_default();
    // Writing to a string cannot fail.
    _ = writeln!(page, "| `{}`{star} | {kind} | {help}{label} |", counter.name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Stats;

    #[test]
    fn every_number_that_is_told_is_on_the_page_once() {
        let page = counters_reference();
        let (server, _) = page.split_once("## Of each worker").expect("two parts");
        for (name, _) in Stats::default().named() {
            let cell = format!("`{name}`");
            assert_eq!(
                server.matches(&cell).count(),
                if is_summand(name) { 2 } else { 1 },
                "{name}"
            );
        }
    }

    /// Returns whether it is a summand of `faults`.
    fn is_summand(name: &str) -> bool {
        matches!(name, "bad_requests" | "timeouts" | "files_cut" | "panics")
    }
}
