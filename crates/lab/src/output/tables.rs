//! Tables of that page: parts of a request, percentiles, steps of a ramp.

use super::histogram::PERCENTILES;
use crate::figures::{counted, decimal, grouped, ms};
use crate::outcome::{Latency, Outcome, OutcomeStep, is_told};
use std::fmt::Write;

/// The known percentiles in ascending order.
pub(super) fn in_order(latency: &Latency) -> Vec<(&str, f64)> {
    let mut all: Vec<(&str, f64)> =
        latency.percentiles.iter().map(|(name, us)| (name.as_str(), *us)).collect();
    let number = |name: &str| name.parse::<f64>().unwrap_or(f64::MAX);
    all.sort_by(|(one, _), (other, _)| number(one).total_cmp(&number(other)));
    all
}

/// Connect, first byte and total: minimum, mean, deviation, median, maximum.
pub(super) fn parts(outcome: &Outcome) -> String {
    times(&[
        ("Connect", outcome.connect_us.as_ref()),
        ("First byte", outcome.first_byte_us.as_ref()),
        ("Service time", outcome.service_us.as_ref()),
        ("Total", Some(&outcome.latency_us)),
    ])
}

/// The same for given rows; one that was not measured is left out.
pub(super) fn times(rows: &[(&str, Option<&Latency>)]) -> String {
    let head = ["min", "mean", "sd", "median", "max", "count"].map(|name| format!("{name:>11}"));
    let mut text = format!("{:14}{}\n", "Times (ms)", head.concat());
    for (name, latency) in rows {
        let Some(latency) = latency.filter(|latency| latency.count > 0) else {
            continue;
        };
        let [min, mean, sd, max] = [latency.min, latency.mean, latency.sd, latency.max].map(ms);
        let median = latency.percentile("50").map_or("-".to_owned(), ms);
        let times = [min, mean, sd, median, max].map(|time| format!("{time:>11}")).concat();
        let count = grouped(latency.count);
        writeln!(text, "{name:14}{times}{count:>11}").expect("memory takes all");
    }
    text
}

/// Latency by percentile; on an open loop with the service time.
pub(super) fn percentiles(outcome: &Outcome) -> String {
    served(&outcome.latency_us, outcome.service_us.as_ref())
}

/// The same of any latency, with an optional second one.
pub(super) fn served(latency: &Latency, service: Option<&Latency>) -> String {
    let mut text = String::from("Percentage of the requests served within a certain time (ms)\n");
    if latency.count == 0 {
        text.push_str("    none succeeded\n");
    }
    if service.is_some() {
        text.push_str("             latency    service time\n");
        text.push_str("        (from when   (from when it\n");
        text.push_str("         it was due)      was sent)\n");
    }
    let is_known = |name: &str| latency.percentile(name).is_some();
    for (name, us) in in_order(latency).into_iter().filter(|(name, _)| is_known(name)) {
        let service_us = service.and_then(|service| service.percentile(name));
        let service_us = service_us.map(|us| format!("{:>16}", ms(us))).unwrap_or_default();
        let last = if name == "100" { " (longest request)" } else { "" };
        writeln!(text, "{name:>6} %{:>12}{service_us}{last}", ms(us)).expect("memory takes all");
    }
    let unknown = PERCENTILES.iter().filter(|(_, share)| !is_told(latency.count, *share));
    let names: Vec<String> = unknown.map(|(name, _)| format!("{name} %")).collect();
    if latency.count > 0 && !names.is_empty() {
        let responses = counted(latency.count, "response");
        writeln!(text, "    {responses} are too few for {}", names.join(", "))
            .expect("memory takes all");
    }
    text
}

/// The steps of a ramp, and its knee in words.
pub(super) fn steps(steps: &[OutcomeStep]) -> String {
    let head = ["due /s", "answered /s", "p50 ms", "p99 ms", "max ms", "errors"];
    let mut text = head.map(|name| format!("{name:>13}")).concat() + "  kept up\n";
    for step in steps {
        let latency = &step.latency_us;
        let at = |name: &str| latency.percentile(name).map_or_else(|| "-".to_owned(), ms);
        let columns = [
            decimal(step.rate_per_s),
            decimal(step.answered_per_s),
            at("50"),
            at("99"),
            ms(latency.max),
            grouped(step.errors),
        ];
        let columns = columns.map(|column| format!("{column:>13}")).concat();
        let kept_up = if step.kept_up { "yes" } else { "no" };
        writeln!(text, "{columns}  {kept_up}").expect("memory takes all");
    }
    writeln!(text, "Knee: {}", knee(steps)).expect("memory takes all");
    text
}

/// The rates between which the server ceased to keep up.
fn knee(steps: &[OutcomeStep]) -> String {
    let first = steps.iter().position(|step| !step.kept_up);
    let rate = |step: Option<&OutcomeStep>| decimal(step.map_or(0.0, |step| step.rate_per_s));
    match first {
        None => format!("not reached: it kept up with {} /s", rate(steps.last())),
        Some(0) => format!("below {} /s, the first step", rate(steps.first())),
        Some(at) => format!(
            "between {} /s, the last rate that it kept up with, and {} /s",
            rate(steps.get(at - 1)),
            rate(steps.get(at))
        ),
    }
}
