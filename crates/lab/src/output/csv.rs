//! Comma-separated values: percentiles of one run, or one line for each run.

use crate::outcome::Outcome;
use std::fmt::Write;

/// Formats latency percentiles under a header: `percentile,latency_us`, and on an open loop
/// `service_us` after it. A percentile with too few responses beyond it is left out.
pub fn percentiles(outcome: &Outcome) -> String {
    let service = outcome.service_us.as_ref();
    let mut text = String::from("percentile,latency_us");
    text.push_str(if service.is_some() { ",service_us\n" } else { "\n" });
    let latency = &outcome.latency_us;
    let known = |(name, _): &(&str, f64)| latency.percentile(name).is_some();
    for (name, us) in super::tables::in_order(latency).into_iter().filter(known) {
        write!(text, "{name},{us}").expect("memory takes all");
        if let Some(us) = service.and_then(|service| service.percentile(name)) {
            write!(text, ",{us}").expect("memory takes all");
        }
        text.push('\n');
    }
    text
}

/// The columns of [`line()`], one line for each run.
pub const COLUMNS: [&str; 32] = [
    "started_unix_s",
    "url",
    "model",
    "connections",
    "rate_per_s",
    "pipeline",
    "keep_alive",
    "threads",
    "io",
    "duration_s",
    "requests",
    "errors",
    "requests_per_s",
    "bytes_received",
    "latency_mean_us",
    "latency_sd_us",
    "latency_min_us",
    "latency_p50_us",
    "latency_p90_us",
    "latency_p99_us",
    "latency_p99.9_us",
    "latency_max_us",
    "generator_cpu_s",
    "bottleneck",
    "warnings",
    "connections_due",
    "connections_opened",
    "connections_served",
    "connections_held",
    "ramp_up_s",
    "success_share",
    "bytes_received_per_s",
];

/// Returns the header of a file of [`line()`]s, with its line end.
pub fn header() -> String {
    COLUMNS.join(",") + "\n"
}

/// Formats the run as one line, with its line end. A field that does not apply is empty.
pub fn line(outcome: &Outcome) -> String {
    let model = &outcome.model;
    let latency = &outcome.latency_us;
    let at = |name: &str| filled(latency.percentile(name));
    let connections = outcome.connections.as_ref();
    let fields: [String; COLUMNS.len()] = [
        outcome.started_unix_s.to_string(),
        quoted(&outcome.urls.join(" ")),
        quoted(&model.name),
        model.connections.to_string(),
        filled(model.rate_per_s),
        model.pipeline.to_string(),
        model.keep_alive.to_string(),
        model.threads.to_string(),
        quoted(&model.io),
        outcome.duration_s.to_string(),
        outcome.requests.to_string(),
        outcome.errors.total().to_string(),
        outcome.requests_per_s.to_string(),
        outcome.bytes_received.to_string(),
        latency.mean.to_string(),
        latency.sd.to_string(),
        latency.min.to_string(),
        at("50"),
        at("90"),
        at("99"),
        at("99.9"),
        latency.max.to_string(),
        outcome.generator.cpu_s.to_string(),
        outcome.generator.bottleneck.to_string(),
        outcome.warnings.len().to_string(),
        filled(connections.map(|of| of.due)),
        filled(connections.map(|of| of.opened)),
        filled(connections.map(|of| of.served)),
        filled(connections.and_then(|of| of.held)),
        outcome.ramp_up_s.to_string(),
        filled(outcome.success_share),
        filled(outcome.bytes_received_per_s),
    ];
    fields.join(",") + "\n"
}

/// A field that may not apply.
fn filled<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Quotes a field as in RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
