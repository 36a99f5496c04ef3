//! Load generators of others: runs one, and makes an outcome of what it prints.
//!
//! `ab`, `wrk` and `h2load` hold what differs. None of them has a warm-up, a distribution as fine
//! as ours, or a time series; the built-in generator has all of them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::file::{GeneratorKind, ScenarioSpec};
use super::tool::{self, Tool, ToolError, ToolOutput};
use crate::figures::real;
use crate::load::usage::Counters;
use crate::outcome::{
    Errors, FORMAT, GeneratorUsage, Kernel, Latency, ModelSummary, Outcome, success_share,
};
use crate::plan::HttpVersion;

/// Share of its threads' time from which on a generator counts as saturated.
const BUSY: f64 = 0.95;

/// A run of such a generator.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignRun<'a> {
    pub(super) scenario: &'a ScenarioSpec,
    pub(super) url: &'a str,
    /// CPUs of the generator.
    pub(super) cpus: &'a [u32],
}

impl ForeignRun<'_> {
    /// Its threads: as many as it has CPUs, unless the file says otherwise.
    pub(super) fn threads(&self) -> u64 {
        let most = self.scenario.connections.max(1);
        let threads = self.scenario.threads.map_or(self.cpus.len() as u64, u64::from);
        threads.clamp(1, most)
    }
}

/// Returns why a generator cannot be used; `None` if it is installed.
pub(super) fn missing(kind: GeneratorKind) -> Option<String> {
    let packages = match kind {
        GeneratorKind::Own => return None,
        GeneratorKind::Ab => "apache2-utils (Debian, Ubuntu), dnf install httpd-tools (Fedora)",
        GeneratorKind::Wrk => "wrk (Debian, Ubuntu)",
        GeneratorKind::H2load => "nghttp2-client (Debian, Ubuntu), dnf install nghttp2 (Fedora)",
    };
    let name = kind.word();
    let why = format!("there is no program {name}; to install it: apt-get install {packages}");
    (!tool::find(name)).then_some(why)
}

/// Runs it to its end.
///
/// - `command`: its command line.
/// - `parse`: makes an outcome of its output, without what only the machine can provide.
/// - `most`: the time-out.
///
/// # Errors
/// A sentence that says why there is no outcome; `None` if the contest was stopped.
pub(super) fn measure(
    run: ForeignRun<'_>,
    command: &[String],
    parse: fn(&ToolOutput, ForeignRun<'_>) -> Result<Outcome, String>,
    (most, stop): (Duration, &AtomicBool),
) -> Result<Outcome, Option<String>> {
    let name = run.scenario.generator.word();
    let (began, kernel, cpu) = (SystemTime::now(), Counters::read(), children_s());
    let tool = Tool { command, folder: None, environment: &[], cpus: run.cpus, most };
    let output = match tool.run(stop) {
        Ok(output) => output,
        Err(ToolError::Interrupted) => return Err(None),
        Err(error) => return Err(Some(format!("{name}: {error}"))),
    };
    let cpu = [0, 1].map(|at| children_s()[at] - cpu[at]);
    let kernel = Counters::read().since(&kernel);
    if !output.status.success() {
        let code = output.status.code().unwrap_or(-1);
        return Err(Some(format!("{name}: exit code {code}: {}", output.last_words())));
    }
    let mut outcome = parse(&output, run)
        .map_err(|why| Some(format!("{name}: {why}; {}", output.last_words())))?;
    outcome.started_unix_s = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    outcome.success_share = success_share(outcome.requests, outcome.errors.total());
    outcome.kernel = kernel;
    outcome.generator = own_use(name, cpu, outcome.duration_s * f64::from(outcome.model.threads));
    Ok(outcome)
}

/// Returns an outcome without figures.
///
/// - `threads`: threads of the generator.
pub(super) fn blank(run: ForeignRun<'_>, threads: u64) -> Outcome {
    let scenario = run.scenario;
    Outcome {
        format: FORMAT,
        tool: String::new(),
        urls: vec![run.url.to_owned()],
        model: ModelSummary {
            name: scenario.model.word().to_owned(),
            sentence: scenario.sentence(),
            connections: scenario.connections,
            rate_per_s: None,
            pipeline: scenario.pipeline,
            protocol: if scenario.http2 { HttpVersion::Http2 } else { HttpVersion::Http11 }
                .name()
                .to_owned(),
            keep_alive: scenario.keep_alive,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            io: "epoll".to_owned(),
        },
        started_unix_s: 0.0,
        duration_s: 0.0,
        requests: 0,
        requests_in_window: 0,
        requests_late: 0,
        requests_before: 0,
        sent: 0,
        unanswered: 0,
        unsent: 0,
        requests_per_s: 0.0,
        success_share: None,
        errors: Errors::default(),
        statuses: BTreeMap::new(),
        bytes_received: 0,
        bytes_received_per_s: None,
        // They do not report it.
        bytes_sent: 0,
        connections_opened: 0,
        // They do not count which connections had a response.
        connections: None,
        ramp_up_s: 0.0,
        connections_missing: 0,
        connections_unserved: 0,
        latency_us: Latency::default(),
        service_us: None,
        connect_us: None,
        tls: None,
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
        websocket: None,
    }
}

/// Parses a time such as `1.5ms` into microseconds.
pub(super) fn micros(text: &str) -> Option<f64> {
    // The unit of minutes is a part of no other; that of seconds is a part of the first two.
    const UNITS: [(&str, f64); 5] =
        [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
    let of = |(unit, factor): &(&str, f64)| {
        text.strip_suffix(unit)?.parse::<f64>().ok().map(|number| number * factor)
    };
    UNITS.iter().find_map(of)
}

/// Its own resource usage.
///
/// - `cpu_s`: in user space and in the kernel.
/// - `threads_s`: the time of all its threads together.
fn own_use(name: &str, cpu_s: [f64; 2], threads_s: f64) -> GeneratorUsage {
    let [cpu_user_s, cpu_system_s] = cpu_s;
    let cpu_s = cpu_user_s + cpu_system_s;
    let share = if threads_s > 0.0 { (cpu_s / threads_s).min(1.0) } else { 0.0 };
    let bottleneck = share >= BUSY;
    let whether = if bottleneck { "was" } else { "was not" };
    let verdict =
        format!("{name} {whether} the bottleneck: it ran {:.0} % of the time.", share * 100.0);
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
mod tests {
    use super::*;

    #[test]
    fn threads_that_run_all_the_time_are_the_bottleneck() {
        let found = own_use("wrk", [0.4, 1.54], 2.0);
        assert!(found.bottleneck && found.verdict.contains("97 %"), "{found:?}");
        assert!(!own_use("ab", [0.2, 0.3], 1.0).bottleneck);
        assert!(!own_use("ab", [0.0, 0.0], 0.0).bottleneck);
    }

    #[test]
    fn a_time_with_a_unit_is_microseconds() {
        let found = ["340.05us", "1.5ms", "2s", "1.00m", "x"].map(micros);
        assert_eq!(found, [Some(340.05), Some(1_500.0), Some(2e6), Some(60e6), None]);
    }
}
