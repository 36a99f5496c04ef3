//! `h2load`, nghttp2's load generator, with HTTP/1.1 or HTTP/2.
//!
//! It prints the least, the greatest and the mean latency, and no percentile.

use std::collections::BTreeMap;

use super::foreign::{self, ForeignRun, micros};
use super::tool::ToolOutput;
use crate::figures::real;
use crate::outcome::{Errors, Latency, Outcome};

/// Returns its command.
pub(super) fn arguments(run: ForeignRun<'_>) -> Vec<String> {
    let scenario = run.scenario;
    let mut words = vec!["h2load".to_owned()];
    if !scenario.http2 {
        words.push("--h1".to_owned());
    }
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    let connections = scenario.connections.min(scenario.requests.unwrap_or(u64::MAX));
    add("-c", connections.to_string());
    add("-t", run.threads().min(connections).to_string());
    add("-m", scenario.pipeline.to_string());
    match scenario.requests {
        Some(requests) => add("-n", requests.to_string()),
        None => add("-D", scenario.duration.as_secs_f64().ceil().max(1.0).to_string()),
    }
    words.extend(scenario.coding_arguments());
    words.extend(scenario.arguments.iter().cloned());
    words.push(run.url.to_owned());
    words
}

/// Parses its output into an outcome, except what only the machine can provide.
pub(super) fn outcome(output: &ToolOutput, run: ForeignRun<'_>) -> Result<Outcome, String> {
    parsed(&output.stdout, run)
}

fn parsed(output: &str, run: ForeignRun<'_>) -> Result<Outcome, String> {
    let line = |label: &str| {
        let found = output.lines().find_map(|line| line.trim().strip_prefix(label));
        found.ok_or_else(|| format!("expected a line \"{label}\", found none"))
    };
    // `finished in 1.00s, 12345.00 req/s, 1.20MB/s`
    let time = line("finished in ")?.split(',').next().and_then(micros);
    let duration_s = time.ok_or("its line \"finished in\" has no time")? / 1e6;
    // `requests: 10 total, 10 started, 10 done, 9 succeeded, 1 failed, 1 errored, 0 timeout`
    let requests = line("requests: ")?;
    let count = |label: &str| number(requests, label);
    let statuses = line("status codes: ")?;
    let status = ["3xx", "4xx", "5xx"].map(|kind| number(statuses, kind)).iter().sum();
    let right = count("succeeded").min(number(statuses, "2xx"));
    let traffic = line("traffic: ")?;
    let bytes = traffic.split(['(', ')']).nth(1).and_then(|bytes| bytes.parse().ok());
    Ok(Outcome {
        tool: "h2load".to_owned(),
        duration_s,
        requests: right,
        requests_in_window: right,
        sent: count("started"),
        unanswered: count("started").saturating_sub(count("done")),
        requests_per_s: if duration_s > 0.0 { real(right) / duration_s } else { 0.0 },
        errors: Errors {
            status,
            reset: count("errored"),
            timed_out: count("timeout"),
            ..Errors::default()
        },
        bytes_received: bytes.unwrap_or_default(),
        connections_opened: run.scenario.connections,
        latency_us: latency(line("time for request:")?, count("done")),
        ..foreign::blank(run, run.threads())
    })
}

/// The number before a word: `10 total, 9 done`.
fn number(line: &str, word: &str) -> u64 {
    let part = line.split(',').find_map(|part| part.trim().strip_suffix(word));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// `46us      3.45ms       101us        54us    85.00%`: least, greatest, mean, deviation.
fn latency(line: &str, count: u64) -> Latency {
    let times: Vec<f64> = line.split_whitespace().filter_map(micros).collect();
    let time = |at: usize| times.get(at).copied().unwrap_or_default();
    let percentiles = BTreeMap::from([("100".to_owned(), time(1))]);
    Latency { count, min: time(0), max: time(1), mean: time(2), sd: time(3), percentiles }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::contest::file::{self, ScenarioSpec};

    const SAID: &str = "\
starting benchmark...
spawning thread #0: 10 total client(s). 1000 total requests
Application protocol: http/1.1
progress: 10% done

finished in 20.00ms, 49000.00 req/s, 8.40MB/s
requests: 1000 total, 1000 started, 995 done, 990 succeeded, 10 failed, 7 errored, 3 timeout
status codes: 985 2xx, 0 3xx, 4 4xx, 1 5xx
traffic: 168.95KB (173000) total, 150.39KB (154000) headers (space savings 0.00%), 13KB (13) data
                     min         max         mean         sd        +/- sd
time for request:       46us      3.45ms       101us        54us    85.00%
time for connect:       50us       200us       120us        30us    60.00%
time to 1st byte:      150us       400us       220us        50us    70.00%
req/s           :     900.00     1100.00     1000.00       40.00    60.00%
";

    fn scenario(more: &str) -> ScenarioSpec {
        let text = format!(
            "[[contender]]\npreset = \"nginx\"\n[[scenario]]\nname = \"a\"\n\
             generator = \"h2load\"\nconnections = 10\n{more}"
        );
        file::parse(Path::new("c.toml"), &text).expect("it is right").scenarios.remove(0)
    }

    #[test]
    fn a_scenario_becomes_a_command_of_h2load() {
        let words = |more: &str| {
            let scenario = scenario(more);
            arguments(ForeignRun { scenario: &scenario, url: "u", cpus: &[1] }).join(" ")
        };
        assert_eq!(words("duration = \"1500ms\""), "h2load --h1 -c 10 -t 1 -m 1 -D 2 u");
        let few = "requests = 5\npipeline = 16\nthreads = 9";
        assert_eq!(words(few), "h2load --h1 -c 5 -t 5 -m 16 -n 5 u");
        let streams = "requests = 5\nhttp2 = true\nstreams = 16";
        assert_eq!(words(streams), "h2load -c 5 -t 1 -m 16 -n 5 u");
    }

    #[test]
    fn what_it_prints_is_an_outcome() {
        let scenario = scenario("requests = 1000\n");
        let run = ForeignRun { scenario: &scenario, url: "u", cpus: &[0] };
        let found = parsed(SAID, run).expect("all is there");
        assert_eq!((found.requests, found.sent, found.unanswered), (985, 1_000, 5));
        let Errors { reset, timed_out, status, .. } = found.errors;
        assert_eq!((reset, timed_out, status, found.bytes_received), (7, 3, 5, 173_000));
        assert!((found.duration_s - 0.02).abs() < 1e-9, "{found:?}");
        let latency = found.latency_us;
        assert_eq!((latency.percentile("100"), latency.percentile("50")), (Some(3_450.0), None));
        assert!((latency.min - 46.0).abs() < 1e-9 && (latency.mean - 101.0).abs() < 1e-9);
    }
}
