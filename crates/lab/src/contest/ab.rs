//! `ApacheBench` as the load generator, which the older experiments used.
//!
//! Its output is parsed line by line; latencies come from its table of percentiles. It records no
//! time finer than a millisecond, so there is no distribution and no time series. The built-in
//! generator has both.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::foreign::{self, ForeignRun};
use super::tool::ToolOutput;
use crate::figures::real;
use crate::outcome::{Errors, Latency, Outcome};

/// Its percentiles are whole numbers.
const PERCENTILES: [&str; 9] = ["50", "66", "75", "80", "90", "95", "98", "99", "100"];

/// Returns a scenario's ab command. The percentiles go to standard error, because with `-q` it is
/// otherwise empty.
pub(super) fn arguments(ForeignRun { scenario, url, .. }: ForeignRun<'_>) -> Vec<String> {
    // `-t` sets a number of requests too, so `-n` follows it.
    let seconds = scenario.duration.as_secs_f64().ceil().max(1.0);
    let requests = scenario.requests.unwrap_or(1);
    let connections = scenario.connections.min(requests);
    let mut words: Vec<String> = ["ab", "-q", "-r", "-s", "30", "-t"].map(str::to_owned).into();
    words.extend([seconds.to_string(), "-n".to_owned(), requests.to_string()]);
    words.extend(["-c".to_owned(), connections.to_string()]);
    words.extend(["-e", "/dev/stderr"].map(str::to_owned));
    words.extend(scenario.keep_alive.then(|| "-k".to_owned()));
    words.extend(scenario.coding_arguments());
    words.extend(scenario.arguments.iter().cloned());
    words.push(url.to_owned());
    words
}

/// Parses its output into an outcome, except what only the machine can provide.
///
/// - `output`: its standard output.
/// - `table`: its percentiles: a line for each, with milliseconds.
pub(super) fn outcome(
    ToolOutput { stdout: output, stderr: table, .. }: &ToolOutput,
    run: ForeignRun<'_>,
) -> Result<Outcome, String> {
    parsed(output, table, run)
}

fn parsed(output: &str, table: &str, run: ForeignRun<'_>) -> Result<Outcome, String> {
    let complete: u64 = needed(output, "Complete requests:")?;
    let duration_s: f64 = needed(output, "Time taken for tests:")?;
    let mean_ms: f64 = needed(output, "Time per request:")?;
    let status = field(output, "Non-2xx responses:").unwrap_or(0);
    let errors = Errors { status, ..errors(output) };
    let requests = complete.saturating_sub(errors.total());
    let latency_us = Latency { count: complete, mean: mean_ms * 1e3, ..latencies(output, table)? };
    let keep_alive = run.scenario.keep_alive;
    Ok(Outcome {
        tool: version(output),
        duration_s,
        requests,
        requests_in_window: requests,
        sent: complete,
        requests_per_s: if duration_s > 0.0 { real(requests) / duration_s } else { 0.0 },
        errors,
        bytes_received: needed(output, "Total transferred:")?,
        connections_opened: if keep_alive { run.scenario.connections } else { complete },
        latency_us,
        ..foreign::blank(run, 1)
    })
}

fn needed<T: FromStr>(output: &str, label: &str) -> Result<T, String> {
    field(output, label).ok_or_else(|| format!("expected a line \"{label} NUMBER\", found none"))
}

/// The first number after a label at the beginning of a line.
fn field<T: FromStr>(output: &str, label: &str) -> Option<T> {
    let rest = output.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// `(Connect: 0, Receive: 0, Length: 5, Exceptions: 0)`, a line that is present if any request
/// failed.
fn errors(output: &str) -> Errors {
    let line = output.lines().map(str::trim).find(|line| line.starts_with("(Connect:"));
    let of = |label: &str| {
        let rest = line.and_then(|line| line.split(label).nth(1)).unwrap_or_default();
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    Errors {
        unconnected: of("Connect:"),
        reset: of("Receive:"),
        length: of("Length:"),
        unreadable: of("Exceptions:"),
        ..Errors::default()
    }
}

fn latencies(output: &str, table: &str) -> Result<Latency, String> {
    let lines = table.lines().filter_map(|line| line.split_once(','));
    let times: BTreeMap<&str, f64> =
        lines.filter_map(|(name, ms)| Some((name, ms.trim().parse::<f64>().ok()? * 1e3))).collect();
    let of = |name: &str| {
        times.get(name).copied().ok_or_else(|| format!("its table has no line for {name} %"))
    };
    let named = PERCENTILES.iter().map(|name| Ok(((*name).to_owned(), of(name)?)));
    // `Total:        4   12   4.4     12      32`: minimum, mean, deviation, median, maximum.
    let total = output.lines().find_map(|line| line.strip_prefix("Total:")).unwrap_or_default();
    let deviation_ms = total.split_whitespace().nth(2).and_then(|text| text.parse().ok());
    Ok(Latency {
        min: of("0")?,
        sd: deviation_ms.unwrap_or(0.0_f64) * 1e3,
        max: of("100")?,
        percentiles: named.collect::<Result<_, String>>()?,
        ..Latency::default()
    })
}

/// `This is ApacheBench, Version 2.3 <$Revision: 1903618 $>`, without its last part.
fn version(output: &str) -> String {
    let line = output.lines().next().unwrap_or_default().trim_start_matches("This is ");
    line.split(" <").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
