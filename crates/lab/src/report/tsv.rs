//! The figures of every run as tab-separated values: a heading, then a line for each.
//!
//! Times in microseconds, memory in bytes, CPU in seconds. A cell that does not apply is empty.
//! Tabs and line ends within names become spaces.

use std::fmt::Write as _;

use super::view::View;
use crate::figures::counted;
use crate::outcome::{ConnectionCounts, Errors, Latency, Outcome};
use crate::record::{RunRecord, ScenarioRecord};
use crate::statistics::{Column, other_work, value};

/// Writes a line for each run: `rounds.tsv`.
pub(super) fn rounds(view: &View<'_>) -> String {
    let mut text = String::new();
    let figures = Column::ALL.map(column_name);
    let errors = Errors::default().named().map(|(name, _)| format!("error_{}", snake(name)));
    let heading = [
        "scenario",
        "contender",
        "round",
        "failure",
        "not_comparable",
        "model",
        "connections",
        "pipeline",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain(figures.map(str::to_owned))
    .chain(COUNTED.map(|(name, _)| name.to_owned()))
    .chain(USED.map(|(name, _)| name.to_owned()))
    .chain(errors);
    line(&mut text, heading);
    for run in &view.record.runs {
        let scenario = view.record.scenarios.iter().find(|one| one.name == run.scenario);
        line(&mut text, cells(run, scenario));
    }
    text
}

/// Writes a line for each percentile of each kind of latency of each run: `percentiles.tsv`.
pub(super) fn percentiles(view: &View<'_>) -> String {
    let mut text = String::new();
    let heading = ["scenario", "contender", "round", "kind", "percentile", "us"];
    line(&mut text, heading.map(str::to_owned));
    for run in &view.record.runs {
        for (kind, latency) in run.outcome.iter().flat_map(kinds) {
            let mut sorted: Vec<(f64, &String, f64)> = latency
                .percentiles
                .iter()
                .filter(|(name, _)| latency.percentile(name).is_some())
                .map(|(name, us)| (name.parse().unwrap_or(f64::MAX), name, *us))
                .collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (_, percentile, us) in sorted {
                let (scenario, contender) = (run.scenario.clone(), run.contender.clone());
                let round = run.round.to_string();
                let rest = [kind.to_owned(), percentile.clone(), us.to_string()];
                line(&mut text, [scenario, contender, round].into_iter().chain(rest));
            }
        }
    }
    text
}

fn kinds(outcome: &Outcome) -> impl Iterator<Item = (&'static str, &Latency)> {
    let kinds = [
        ("latency", Some(&outcome.latency_us)),
        ("service", outcome.service_us.as_ref()),
        ("connect", outcome.connect_us.as_ref()),
        ("first_byte", outcome.first_byte_us.as_ref()),
    ];
    kinds.into_iter().filter_map(|(name, latency)| Some((name, latency?)))
}

fn column_name(column: Column) -> &'static str {
    match column {
        Column::CpuPerRequest => "server_cpu_us_per_request",
        Column::Rate => "requests_per_s",
        Column::P50 => "p50_us",
        Column::P99 => "p99_us",
        Column::P999 => "p99_9_us",
        Column::Max => "max_us",
        Column::BytesPerResponse => "bytes_per_response",
        Column::MemoryPerConnection => "memory_bytes_per_connection",
        Column::Failures => "failures",
    }
}

type OfOutcome = (&'static str, fn(&Outcome) -> String);
type OfRun = (&'static str, fn(&RunRecord) -> String);

const COUNTED: [OfOutcome; 20] = [
    ("requests", |o| o.requests.to_string()),
    ("requests_in_window", |o| o.requests_in_window.to_string()),
    ("requests_before", |o| o.requests_before.to_string()),
    ("requests_late", |o| o.requests_late.to_string()),
    ("sent", |o| o.sent.to_string()),
    ("duration_s", |o| o.duration_s.to_string()),
    ("started_unix_s", |o| o.started_unix_s.to_string()),
    ("bytes_received", |o| o.bytes_received.to_string()),
    ("bytes_sent", |o| o.bytes_sent.to_string()),
    ("connections_opened", |o| o.connections_opened.to_string()),
    ("connections_due", |o| connections(o, |of| Some(of.due))),
    ("connections_served", |o| connections(o, |of| Some(of.served))),
    ("connections_held", |o| connections(o, |of| of.held)),
    ("ramp_up_s", |o| o.ramp_up_s.to_string()),
    ("generator_cpu_s", |o| o.generator.cpu_s.to_string()),
    ("generator_cpu_share", |o| o.generator.cpu_share.to_string()),
    ("generator_bottleneck", |o| o.generator.bottleneck.to_string()),
    ("retransmits", |o| o.kernel.retransmits.to_string()),
    ("listen_drops", |o| o.kernel.listen_drops.to_string()),
    ("syn_cookies", |o| o.kernel.syn_cookies.to_string()),
];

const USED: [OfRun; 9] = [
    ("server_cpu_user_s", |r| r.usage.cpu_user_s.to_string()),
    ("server_cpu_system_s", |r| r.usage.cpu_system_s.to_string()),
    ("memory_before_bytes", |r| r.usage.memory_before_bytes.to_string()),
    ("memory_peak_bytes", |r| r.usage.memory_peak_bytes.to_string()),
    ("descriptors_peak", |r| r.usage.descriptors_peak.to_string()),
    ("threads_peak", |r| r.usage.threads_peak.to_string()),
    ("processes", |r| r.usage.processes.to_string()),
    ("switches_voluntary", |r| r.usage.switches_voluntary.to_string()),
    ("switches_forced", |r| r.usage.switches_forced.to_string()),
];

/// A count of the connections; empty where the generator does not know it.
fn connections(outcome: &Outcome, count: fn(&ConnectionCounts) -> Option<u64>) -> String {
    let count = outcome.connections.as_ref().and_then(count);
    count.map(|count| count.to_string()).unwrap_or_default()
}

/// Why a run is not comparable; empty if it is.
fn not_comparable(outcome: Option<&Outcome>) -> String {
    let Some(outcome) = outcome else { return "no figures".to_owned() };
    let failures = Some(outcome.errors.total()).filter(|count| *count > 0);
    let failures = failures.map(|count| counted(count, "failure"));
    failures.into_iter().chain(other_work(outcome)).collect::<Vec<_>>().join(", ")
}

fn cells(run: &RunRecord, scenario: Option<&ScenarioRecord>) -> Vec<String> {
    let outcome = run.outcome.as_ref();
    let of = |make: fn(&Outcome) -> String| outcome.map(make).unwrap_or_default();
    let mut cells = vec![
        run.scenario.clone(),
        run.contender.clone(),
        run.round.to_string(),
        run.failure.clone().unwrap_or_default(),
        not_comparable(outcome),
        of(|o| o.model.name.clone()),
        of(|o| o.model.connections.to_string()),
        of(|o| o.model.pipeline.to_string()),
    ];
    cells.extend(Column::ALL.map(|column| {
        let figure = scenario.and_then(|scenario| value(run, scenario, column));
        figure.map(|figure| figure.to_string()).unwrap_or_default()
    }));
    cells.extend(COUNTED.map(|(_, make)| of(make)));
    cells.extend(USED.map(|(_, make)| make(run)));
    let errors = outcome.map(|outcome| outcome.errors.named().map(|(_, n)| n.to_string()));
    cells.extend(errors.unwrap_or_default());
    cells
}

fn snake(name: &str) -> String {
    name.replace(' ', "_")
}

fn line(text: &mut String, cells: impl IntoIterator<Item = String>) {
    for (place, cell) in cells.into_iter().enumerate() {
        let gap = if place == 0 { "" } else { "\t" };
        let _ = write!(text, "{gap}{}", cell.replace(['\t', '\n', '\r'], " "));
    }
    text.push('\n');
}
