//! Every form of one fixed outcome. `GOLDEN=write cargo test -p gustnado-lab output` writes the
//! golden texts again; review the difference.

use super::histogram::{self, HistogramLogError};
use super::merge::{Merged, RunFile};
use super::{csv, json, table};
use crate::outcome::{
    ConnectionCounts, Deliveries, Errors, FORMAT, GeneratorUsage, HeldConnections, Kernel, Latency,
    ModelSummary, Outcome, OutcomeSecond, OutcomeStep, TlsSummary, WebSocketSummary,
};
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An outcome with a value in every field.
pub(super) fn outcome() -> Outcome {
    Outcome {
        format: FORMAT,
        tool: "gustnado 0.1.0".to_owned(),
        urls: vec!["http://127.0.0.1:8080/".to_owned(), "http://127.0.0.1:8080/a,b".to_owned()],
        model: model(),
        started_unix_s: 1_700_000_000.5,
        duration_s: 10.0,
        requests: 983,
        requests_in_window: 983,
        requests_late: 0,
        requests_before: 60,
        sent: 1_002,
        unanswered: 0,
        unsent: 0,
        requests_per_s: 98.3,
        errors: Errors { refused: 3, timed_out: 9, status: 5, ..Errors::default() },
        success_share: Some(0.983),
        statuses: BTreeMap::from([(200, 983), (404, 3), (503, 2)]),
        bytes_received: 1_234_567,
        bytes_received_per_s: Some(123_000.0),
        bytes_sent: 98_765,
        connections_opened: 53,
        connections: Some(ConnectionCounts {
            asked: 50,
            due: 50,
            opened: 50,
            served: 49,
            held: Some(48),
        }),
        ramp_up_s: 0.0125,
        connections_missing: 0,
        connections_unserved: 0,
        latency_us: latency(1.0),
        service_us: Some(latency(0.25)),
        connect_us: Some(latency(0.1)),
        tls: None,
        first_byte_us: Some(latency(0.5)),
        histogram: encoded(&[(700, 1_000)]),
        generator: GeneratorUsage {
            cpu_s: 1.25,
            cpu_user_s: 0.5,
            cpu_system_s: 0.75,
            cpu_share: 0.0625,
            busiest_thread_share: 0.07,
            bottleneck: false,
            verdict: "the generator had time to spare".to_owned(),
        },
        kernel: Kernel { retransmits: 4, listen_drops: 2, ..Kernel::default() },
        retransmits: Some(0),
        steal_share: 0.0,
        warnings: vec!["17 requests failed".to_owned()],
        series: vec![OutcomeSecond { at_s: 1.0, requests: 98, ..OutcomeSecond::default() }],
        steps: steps(),
        held: Some(HeldConnections { asked: 10_000, opened: 9_990, lost: 1, opening_s: 1.5 }),
        websocket: None,
    }
}

fn model() -> ModelSummary {
    ModelSummary {
        name: "open".to_owned(),
        sentence: "open loop: 100 requests per second are due, whatever the server does".to_owned(),
        connections: 50,
        rate_per_s: Some(100.0),
        pipeline: 4,
        protocol: "HTTP/1.1".to_owned(),
        keep_alive: true,
        threads: 2,
        io: "uring".to_owned(),
    }
}

fn latency(factor: f64) -> Latency {
    let values = [
        900.0,
        1_000.0,
        1_100.0,
        1_200.0,
        2_000.0,
        4_000.0,
        6_000.0,
        8_191.0,
        900_000.0,
        1_100_000.0,
        1_200_000.0,
    ];
    let names = histogram::PERCENTILES.map(|(name, _)| name.to_owned());
    Latency {
        count: 983,
        min: 120.0 * factor,
        mean: 1_250.0 * factor,
        sd: 800.0 * factor,
        max: 1_200_000.0 * factor,
        percentiles: names.into_iter().zip(values.map(|us| us * factor)).collect(),
    }
}

fn steps() -> Vec<OutcomeStep> {
    let step = |rate_per_s: f64, answered_per_s: f64, kept_up: bool| OutcomeStep {
        rate_per_s,
        answered_per_s,
        errors: u64::from(!kept_up),
        latency_us: latency(rate_per_s / 1_000.0),
        kept_up,
    };
    vec![step(1_000.0, 1_000.0, true), step(2_000.0, 1_999.0, true), step(3_000.0, 2_100.0, false)]
}

fn encoded(values: &[(u64, u64)]) -> String {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits can be kept");
    for (value, count) in values {
        histogram.record_n(*value, *count).expect("it grows");
    }
    histogram::encoded(&histogram).expect("it is small")
}

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/output/golden").join(name);
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&path, found).expect("the golden text is written");
    }
    let expected = std::fs::read_to_string(&path).expect("there is a golden text");
    assert_eq!(found, expected, "{name} differs from what is written now");
}

#[test]
fn the_page_of_an_open_model_shows_everything() {
    golden("open.txt", &table::text(&outcome()));
}

#[test]
fn the_page_of_a_closed_loop_leaves_out_what_does_not_apply() {
    let closed = Outcome {
        urls: vec!["http://127.0.0.1:8080/".to_owned()],
        model: ModelSummary {
            name: "closed".to_owned(),
            sentence: "closed loop: each of 50 connections sends a request once it has a response"
                .to_owned(),
            rate_per_s: None,
            pipeline: 1,
            protocol: "HTTP/1.1".to_owned(),
            ..model()
        },
        errors: Errors::default(),
        statuses: BTreeMap::from([(200, 983)]),
        service_us: None,
        steps: Vec::new(),
        held: None,
        warnings: Vec::new(),
        ..outcome()
    };
    golden("closed.txt", &table::text(&closed));
}

#[test]
fn the_page_of_a_run_without_an_answer_is_whole() {
    let none = Outcome {
        requests: 0,
        requests_in_window: 0,
        sent: 0,
        requests_per_s: 0.0,
        duration_s: 0.0,
        success_share: Some(0.0),
        bytes_received: 0,
        bytes_received_per_s: None,
        connections: Some(ConnectionCounts { asked: 50, due: 50, ..ConnectionCounts::default() }),
        latency_us: Latency::default(),
        service_us: None,
        connect_us: None,
        tls: None,
        first_byte_us: None,
        steps: Vec::new(),
        held: None,
        ..outcome()
    };
    let page = table::text(&none);
    golden("nothing.txt", &page);
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
}

#[test]
fn where_the_knee_is_is_said_in_words() {
    let page = |steps: &[OutcomeStep]| super::tables::steps(steps);
    let [low, middle, high] = &steps()[..] else { panic!("three steps") };
    let kept = page(&[low.clone(), middle.clone()]);
    assert!(kept.ends_with("Knee: not reached: it kept up with 2,000.00 /s\n"), "{kept}");
    let none = page(std::slice::from_ref(high));
    assert!(none.ends_with("Knee: below 3,000.00 /s, the first step\n"), "{none}");
}

#[test]
fn csv_has_percentiles_in_order_or_one_line_for_a_run() {
    golden("percentiles.csv", &csv::percentiles(&outcome()));
    golden("runs.csv", &(csv::header() + &csv::line(&outcome())));
}

#[test]
fn json_reads_back_as_it_was() {
    let text = json::text(&outcome());
    assert_eq!(json::read(&text).expect("it is an outcome"), outcome());
    assert!(text.ends_with("}\n"));
    let newer = text.replacen("\"format\": 1", "\"format\": 999", 1);
    let error = json::read(&newer).expect_err("a format that is not known").to_string();
    assert_eq!(error, "expected format 1, found format 999");
    assert!(json::read("{}").is_err() && json::read("[").is_err() && json::read("").is_err());
}

#[test]
fn a_log_reads_back_with_its_time_and_every_value() {
    let text = histogram::log(&outcome()).expect("its histogram can be read");
    assert!(text.contains("#[BaseTime: 1700000000.500 (seconds since epoch)]\n"), "{text}");
    let log = histogram::read(&text).expect("it is a log");
    assert_eq!((log.histogram.len(), log.histogram.max()), (1_000, 700));
    assert_eq!(log.spans, [(1_700_000_000.5, 1_700_000_010.5)]);
}

#[test]
fn a_text_that_is_no_log_is_refused_with_its_line() {
    let error = |text: &str| histogram::read(text).expect_err("no log");
    assert_eq!(error("#only a comment\n"), HistogramLogError::Empty);
    assert_eq!(error(""), HistogramLogError::Empty);
    assert_eq!(error("0.0,1.0,2.0,!!!!\n"), HistogramLogError::Histogram);
    assert_eq!(error("0.0,1.0,2.0,AAAA\n"), HistogramLogError::Histogram);
    assert_eq!(error("#comment\nhello\n"), HistogramLogError::Line(2));
    assert!(RunFile::read("#comment\nhello\n").is_err());
}

#[test]
fn merging_adds_what_each_run_has() {
    let first = RunFile::read(&json::text(&outcome())).expect("an outcome");
    let later = Outcome {
        started_unix_s: outcome().started_unix_s + 5.0,
        histogram: encoded(&[(900, 500), (70_000_000, 1)]),
        ..outcome()
    };
    let second = RunFile::read(&json::text(&later)).expect("an outcome");
    let merged = Merged::of(&[("a.json".to_owned(), first.clone()), ("b.json".to_owned(), second)]);
    let merged = merged.expect("they can be added");
    assert_eq!(merged.requests, 2 * 983);
    assert_eq!(merged.errors.as_ref().map(Errors::total), Some(2 * 17));
    assert_eq!(merged.bytes_received, Some(2 * 1_234_567));
    assert_eq!((merged.sent, merged.bytes_sent), (Some(2 * 1_002), Some(2 * 98_765)));
    assert_eq!(merged.statuses.as_ref().map(|of| of[&404]), Some(6));
    assert_eq!(merged.connections_opened, Some(106));
    assert_eq!(merged.success_share.map(f64::to_bits), Some(0.983_f64.to_bits()));
    let bytes_per_s = merged.bytes_received_per_s.expect("both say it");
    assert!((bytes_per_s - 2.0 * 123_000.0 * 10.0 / 15.0).abs() < 1e-3, "{bytes_per_s}");
    assert_eq!((merged.urls.len(), merged.tools.len(), merged.models.len()), (2, 1, 1));
    assert!((merged.started_unix_s - outcome().started_unix_s).abs() < 1e-6);
    assert_eq!(merged.warnings, ["a.json: 17 requests failed", "b.json: 17 requests failed"]);
    assert!((merged.duration_s - 15.0).abs() < 1e-6, "{}", merged.duration_s);
    assert_eq!(merged.latency_us.count, 1_501);
    assert!(merged.latency_us.max >= 70_000_000.0);
    assert_eq!(merged.latency_us.percentiles["50"].to_bits(), 700.0_f64.to_bits());
    let log = RunFile::read(&histogram::log(&outcome()).expect("a log")).expect("a log");
    let mixed = Merged::of(&[("a.json".to_owned(), first), ("a.hgrm".to_owned(), log)]);
    let mixed = mixed.expect("they can be added");
    assert_eq!((mixed.requests, mixed.errors.clone()), (983 + 1_000, None));
    assert_eq!((mixed.sent, mixed.statuses.clone(), mixed.success_share), (None, None, None));
    assert!((mixed.duration_s - 10.0).abs() < 1e-6, "the same time counts once");
    golden("merged.txt", &mixed.table());
}

/// Every key of a JSON value, such as `errors.refused` and `series[].at_s`.
fn keys(value: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    // These have keys that are measured, not declared.
    let open = ["statuses", "percentiles"].iter().any(|name| path.ends_with(name));
    match value {
        serde_json::Value::Object(object) if !open => {
            for (name, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                keys(value, &format!("{path}{dot}{name}"), found);
            }
        }
        serde_json::Value::Array(items) if items.iter().any(serde_json::Value::is_object) => {
            for item in items {
                keys(item, &format!("{path}[]"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// The latencies are written down once, and said to be of that form where they occur.
const LATENCIES: [&str; 6] = [
    "latency_us",
    "service_us",
    "connect_us",
    "first_byte_us",
    "steps[].latency_us",
    "websocket.deliveries.latency_us",
];

#[test]
fn every_field_of_the_json_is_documented_and_no_other() {
    let tls = TlsSummary {
        version: "TLSv1.3".to_owned(),
        cipher: "TLS13_AES_128_GCM_SHA256".to_owned(),
        group: "X25519MLKEM768".to_owned(),
        handshakes: 53,
        resumed: 3,
    };
    let deliveries = Deliveries { count: 900, per_s: 90.0, latency_us: latency(1.0) };
    let websocket = WebSocketSummary {
        message_bytes: 64,
        opened: 2,
        refused: 0,
        closed: 1,
        deliveries: Some(deliveries),
    };
    let all = Outcome { tls: Some(tls), websocket: Some(websocket), ..outcome() };
    let value = serde_json::to_value(all);
    let value = value.expect("it is an object");
    let mut written = BTreeSet::new();
    keys(&value, "", &mut written);
    for name in LATENCIES {
        let inside = format!("{name}.");
        let fields = written.iter().filter_map(|key| key.strip_prefix(&inside));
        let fields: Vec<String> = fields.map(|field| format!("LATENCY.{field}")).collect();
        assert_eq!(fields.len(), 6, "{name} is a latency");
        written.retain(|key| !key.starts_with(&inside));
        written.extend(fields);
        written.insert(name.to_owned());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench.md");
    let page = std::fs::read_to_string(page).expect("docs/bench.md is there");
    let section = page.split("## The JSON").nth(1).expect("docs/bench.md has `## The JSON`");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeSet<String> =
        rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect();
    let missing: Vec<_> = written.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&written).collect();
    assert!(missing.is_empty() && gone.is_empty(), "missing: {missing:?}, gone: {gone:?}");
}
