//! `ApacheBench` as the load generator, which the older experiments used.
//!
//! Its output is parsed line by line; latencies come from its table of percentiles. It records no
//! time finer than a millisecond, so there is no distribution and no time series. The built-in
//! generator has both.

use std::collections::BTreeMap;
use std::fs;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::file::ScenarioSpec;
use super::tool::{self, Tool, ToolError};
use crate::figures::real;
use crate::load::usage::Counters;
use crate::outcome::{
    Errors, FORMAT, GeneratorUsage, Kernel, Latency, ModelSummary, Outcome, success_share,
};

/// Share of its time from which on its only thread counts as saturated.
const BUSY: f64 = 0.95;
/// Its percentiles are whole numbers.
const PERCENTILES: [&str; 9] = ["50", "66", "75", "80", "90", "95", "98", "99", "100"];

/// Returns why it cannot be used; `None` if it is installed.
pub(super) fn missing() -> Option<String> {
    let why = "there is no program ab; to install it: apt-get install apache2-utils (Debian, \
               Ubuntu), dnf install httpd-tools (Fedora)";
    (!tool::find("ab")).then(|| why.to_owned())
}

/// Runs it against a URL.
///
/// - `most`: the time-out.
///
/// # Errors
/// A sentence that says why there is no outcome; `None` if the contest was stopped.
pub(super) fn measure(
    scenario: &ScenarioSpec,
    url: &str,
    cpus: &[u32],
    most: Duration,
    stop: &AtomicBool,
) -> Result<Outcome, Option<String>> {
    let command = arguments(scenario, url);
    let (began, kernel, cpu) = (SystemTime::now(), Counters::read(), children_s());
    let tool = Tool { command: &command, folder: None, environment: &[], cpus, most };
    let output = match tool.run(stop) {
        Ok(output) => output,
        Err(ToolError::Interrupted) => return Err(None),
        Err(error) => return Err(Some(format!("ab: {error}"))),
    };
    let cpu = [0, 1].map(|at| children_s()[at] - cpu[at]);
    let kernel = Counters::read().since(&kernel);
    if !output.status.success() {
        let code = output.status.code().unwrap_or(-1);
        return Err(Some(format!("ab: exit code {code}: {}", output.last_words())));
    }
    let found = outcome(&output.stdout, &output.stderr, scenario, url);
    let mut outcome = found.map_err(|why| Some(format!("ab: {why}; {}", output.last_words())))?;
    outcome.started_unix_s = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    outcome.kernel = kernel;
    outcome.generator = own_use(cpu, outcome.duration_s);
    Ok(outcome)
}

/// Returns a scenario's ab command. The percentiles go to standard error, because with `-q` it is
/// otherwise empty.
fn arguments(scenario: &ScenarioSpec, url: &str) -> Vec<String> {
    // `-t` sets a number of requests too, so `-n` follows it.
    let seconds = scenario.duration.as_secs_f64().ceil().max(1.0);
    let requests = scenario.requests.unwrap_or(1);
    let connections = scenario.connections.min(requests);
    let mut words: Vec<String> = ["ab", "-q", "-r", "-s", "30", "-t"].map(str::to_owned).into();
    words.extend([seconds.to_string(), "-n".to_owned(), requests.to_string()]);
    words.extend(["-c".to_owned(), connections.to_string()]);
    words.extend(["-e", "/dev/stderr"].map(str::to_owned));
    words.extend(scenario.keep_alive.then(|| "-k".to_owned()));
    words.extend(scenario.arguments.iter().cloned());
    words.push(url.to_owned());
    words
}

/// Parses its output into an outcome, except what only the machine can provide.
///
/// - `output`: its standard output.
/// - `table`: its percentiles: a line for each, with milliseconds.
fn outcome(
    output: &str,
    table: &str,
    scenario: &ScenarioSpec,
    url: &str,
) -> Result<Outcome, String> {
    let complete: u64 = needed(output, "Complete requests:")?;
    let duration_s: f64 = needed(output, "Time taken for tests:")?;
    let mean_ms: f64 = needed(output, "Time per request:")?;
    let status = field(output, "Non-2xx responses:").unwrap_or(0);
    let errors = Errors { status, ..errors(output) };
    let requests = complete.saturating_sub(errors.total());
    let latency_us = Latency { count: complete, mean: mean_ms * 1e3, ..latencies(output, table)? };
    Ok(Outcome {
        format: FORMAT,
        tool: version(output),
        urls: vec![url.to_owned()],
        model: model(scenario),
        started_unix_s: 0.0,
        duration_s,
        requests,
        requests_in_window: requests,
        requests_late: 0,
        requests_before: 0,
        sent: complete,
        unanswered: 0,
        requests_per_s: if duration_s > 0.0 { real(requests) / duration_s } else { 0.0 },
        success_share: success_share(requests, errors.total()),
        errors,
        statuses: BTreeMap::new(),
        bytes_received: needed(output, "Total transferred:")?,
        bytes_received_per_s: None,
        // It does not report it.
        bytes_sent: 0,
        connections_opened: if scenario.keep_alive { scenario.connections } else { complete },
        // It does not count which connections had a response.
        connections: None,
        ramp_up_s: 0.0,
        connections_missing: 0,
        connections_unserved: 0,
        latency_us,
        service_us: None,
        connect_us: None,
        first_byte_us: None,
        histogram: String::new(),
        generator: GeneratorUsage::default(),
        kernel: Kernel::default(),
        retransmits: None,
        steal_share: 0.0,
        warnings: Vec::new(),
        series: Vec::new(),
        steps: Vec::new(),
        held: None,
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

fn model(scenario: &ScenarioSpec) -> ModelSummary {
    ModelSummary {
        name: scenario.model.word().to_owned(),
        sentence: scenario.sentence(),
        connections: scenario.connections,
        rate_per_s: None,
        pipeline: 1,
        keep_alive: scenario.keep_alive,
        threads: 1,
        io: "epoll".to_owned(),
    }
}

/// Its own resource usage.
///
/// - `cpu_s`: in user space and in the kernel.
fn own_use(cpu_s: [f64; 2], wall_s: f64) -> GeneratorUsage {
    let [cpu_user_s, cpu_system_s] = cpu_s;
    let cpu_s = cpu_user_s + cpu_system_s;
    let share = if wall_s > 0.0 { (cpu_s / wall_s).min(1.0) } else { 0.0 };
    let bottleneck = share >= BUSY;
    let whether = if bottleneck { "was" } else { "was not" };
    let verdict =
        format!("ab {whether} the bottleneck: its thread ran {:.0} % of the time.", share * 100.0);
    GeneratorUsage {
        cpu_s,
        cpu_user_s,
        cpu_system_s,
        cpu_share: share,
        busiest_thread_share: share,
        bottleneck,
        verdict,
    }
}

/// CPU seconds, in user space and in the kernel, of all child processes that were waited for.
fn children_s() -> [f64; 2] {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold any character.
    let rest = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0.0);
    [13, 14].map(|at| ticks(at) / real(rustix::param::clock_ticks_per_second()))
}

#[cfg(test)]
mod tests;
