//! `wrk` as the load generator: the one that most published figures come from.
//!
//! With `--latency` it prints four percentiles and the greatest latency.

use std::collections::BTreeMap;

use super::foreign::{self, ForeignRun, micros};
use super::tool::ToolOutput;
use crate::figures::real;
use crate::outcome::{Errors, Latency, Outcome};

/// Returns its command. It measures whole seconds.
pub(super) fn arguments(run: ForeignRun<'_>) -> Vec<String> {
    let scenario = run.scenario;
    let seconds = scenario.duration.as_secs_f64().ceil().max(1.0);
    let mut words = vec!["wrk".to_owned(), "--latency".to_owned()];
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    add("-t", run.threads().to_string());
    add("-c", scenario.connections.to_string());
    add("-d", format!("{seconds}s"));
    if !scenario.keep_alive {
        add("-H", "Connection: close".to_owned());
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
    // `190000 requests in 1.00s, 28.00MB read`
    let total = output.lines().find(|line| line.contains(" requests in "));
    let total = total.ok_or("expected a line \"NUMBER requests in TIME\", found none")?;
    let words: Vec<&str> = total.split_whitespace().map(|word| word.trim_matches(',')).collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let complete: u64 = word(0).parse().map_err(|_| format!("no number of requests: {total}"))?;
    let duration_s = micros(word(3)).ok_or_else(|| format!("no time: {total}"))? / 1e6;
    let errors = errors(output);
    let requests = complete.saturating_sub(errors.status);
    let keep_alive = run.scenario.keep_alive;
    Ok(Outcome {
        tool: "wrk".to_owned(),
        duration_s,
        requests,
        requests_in_window: requests,
        sent: complete + errors.reset + errors.timed_out,
        requests_per_s: if duration_s > 0.0 { real(requests) / duration_s } else { 0.0 },
        errors,
        bytes_received: bytes(word(4)).unwrap_or_default(),
        connections_opened: if keep_alive { run.scenario.connections } else { complete },
        latency_us: latencies(output, complete)?,
        ..foreign::blank(run, run.threads())
    })
}

/// `Socket errors: connect 0, read 3, write 0, timeout 1` and `Non-2xx or 3xx responses: 5`, lines
/// that are there if any request failed.
fn errors(output: &str) -> Errors {
    let line = |label: &str| output.lines().find_map(|line| line.trim().strip_prefix(label));
    let sockets = line("Socket errors:").unwrap_or_default();
    let of = |label: &str| {
        let part = sockets.split(',').find_map(|part| part.trim().strip_prefix(label));
        part.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let status = line("Non-2xx or 3xx responses:");
    Errors {
        unconnected: of("connect"),
        reset: of("read") + of("write"),
        timed_out: of("timeout"),
        status: status.and_then(|number| number.trim().parse().ok()).unwrap_or(0),
        ..Errors::default()
    }
}

fn latencies(output: &str, count: u64) -> Result<Latency, String> {
    let mut percentiles = BTreeMap::new();
    for line in output.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(time), None) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if let (Some(name), Some(time)) = (name.strip_suffix('%'), micros(time)) {
            percentiles.insert(name.to_owned(), time);
        }
    }
    if !percentiles.contains_key("50") {
        return Err("its distribution has no line for 50 %".to_owned());
    }
    // `Latency   340.05us    1.00ms  20.00ms   95.00%`: mean, deviation, maximum.
    let line = output.lines().find_map(|line| line.trim().strip_prefix("Latency "));
    let line = line.unwrap_or_default();
    let times: Vec<f64> = line.split_whitespace().filter_map(micros).collect();
    let time = |at: usize| times.get(at).copied().unwrap_or_default();
    percentiles.insert("100".to_owned(), time(2));
    // It does not report the least one.
    Ok(Latency { count, min: 0.0, mean: time(0), sd: time(1), max: time(2), percentiles })
}

/// Parses a size such as `28.00MB`.
fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))?;
    let (whole, hundredths) = number.split_once('.').unwrap_or((number, "0"));
    let hundredths: u64 = format!("{hundredths:0<2}").get(..2)?.parse().ok()?;
    Some((whole.parse::<u64>().ok()? * 100 + hundredths) * factor / 100)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::contest::file::{self, ScenarioSpec};

    const SAID: &str = "\
Running 1s test @ http://127.0.0.1:8080/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   340.05us    1.00ms  20.00ms   95.00%
    Req/Sec    95.00k    12.01k  120.00k    70.00%
  Latency Distribution
     50%  300.00us
     75%  400.00us
     90%    1.20ms
     99%    5.00ms
  190010 requests in 1.10s, 28.50MB read
  Socket errors: connect 1, read 2, write 0, timeout 3
  Non-2xx or 3xx responses: 10
Requests/sec: 172736.36
Transfer/sec:     25.91MB
";

    fn scenario(more: &str) -> ScenarioSpec {
        let text = format!(
            "[[contender]]\npreset = \"nginx\"\n[[scenario]]\nname = \"a\"\n\
             generator = \"wrk\"\nconnections = 64\nduration = \"900ms\"\n{more}"
        );
        file::parse(Path::new("c.toml"), &text).expect("it is right").scenarios.remove(0)
    }

    #[test]
    fn a_scenario_becomes_a_command_of_wrk() {
        let (plain, closing) = (scenario(""), scenario("keep_alive = false\nthreads = 2\n"));
        let words = |scenario: &ScenarioSpec| {
            arguments(ForeignRun { scenario, url: "u", cpus: &[1] }).join(" ")
        };
        assert_eq!(words(&plain), "wrk --latency -t 1 -c 64 -d 1s u");
        assert_eq!(words(&closing), "wrk --latency -t 2 -c 64 -d 1s -H Connection: close u");
    }

    #[test]
    fn what_it_prints_is_an_outcome() {
        let scenario = scenario("");
        let run = ForeignRun { scenario: &scenario, url: "u", cpus: &[0, 1] };
        let found = parsed(SAID, run).expect("all is there");
        assert_eq!((found.requests, found.sent, found.model.threads), (190_000, 190_015, 2));
        let Errors { unconnected, reset, timed_out, status, .. } = found.errors;
        assert_eq!((unconnected, reset, timed_out, status), (1, 2, 3, 10));
        assert!((found.requests_per_s - 172_727.27).abs() < 1.0, "{found:?}");
        assert_eq!(found.bytes_received, 2_850 * (1 << 20) / 100);
        let latency = found.latency_us;
        assert_eq!(latency.percentile("99"), Some(5_000.0));
        assert!((latency.mean - 340.05).abs() < 1e-9 && (latency.max - 20_000.0).abs() < 1e-9);
        let error = parsed("unable to connect", run).expect_err("nothing is there");
        assert!(error.contains("requests in"), "{error}");
    }
}
