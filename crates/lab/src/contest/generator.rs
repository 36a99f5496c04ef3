//! Runs the load generator as a process of its own and reads its outcome from its output.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::file::{GeneratorKind, ModelSpec, PageSpec, ScenarioSpec};
use super::foreign::{self, ForeignRun};
use super::tool::{Tool, ToolError};
use super::{ab, h2load, wrk};
use crate::outcome::{FORMAT, Outcome};
use crate::output::json::{self, OutcomeJsonError};

/// Additional time for opening, serving and closing all connections, and for each of them.
const OVERHEAD: Duration = Duration::from_mins(1);
const OVERHEAD_EACH: Duration = Duration::from_millis(2);

/// Returns why a scenario cannot be measured: its generator is not installed.
pub(super) fn missing(scenario: &ScenarioSpec) -> Option<String> {
    foreign::missing(scenario.generator)
}

/// The address of the load.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadTarget<'a> {
    pub(super) url: &'a str,
    /// A Unix socket to connect to, instead of the URL's host.
    pub(super) socket: Option<&'a Path>,
}

/// Runs it against a server.
///
/// - `program`: the generator and its first arguments.
///
/// # Errors
/// A sentence that says why there is no outcome; `None` if the contest was stopped.
pub(super) fn measure(
    program: &[String],
    scenario: &ScenarioSpec,
    LoadTarget { url, socket }: LoadTarget<'_>,
    cpus: &[u32],
    stop: &AtomicBool,
) -> Result<Outcome, Option<String>> {
    let all = u32::try_from(scenario.connections.saturating_add(scenario.probes));
    let each = OVERHEAD_EACH.saturating_mul(all.unwrap_or(u32::MAX));
    let most = scenario.warm_up + scenario.duration + OVERHEAD + each;
    let run = ForeignRun { scenario, url, cpus };
    let limits = (most, stop);
    if scenario.generator != GeneratorKind::Own && socket.is_some() {
        let name = scenario.generator.word();
        return Err(Some(format!("{name} connects to no Unix socket; leave out the generator")));
    }
    match scenario.generator {
        GeneratorKind::Own => {}
        GeneratorKind::Ab => {
            return foreign::measure(run, &ab::arguments(run), ab::outcome, limits);
        }
        GeneratorKind::Wrk => {
            return foreign::measure(run, &wrk::arguments(run), wrk::outcome, limits);
        }
        GeneratorKind::H2load => {
            return foreign::measure(run, &h2load::arguments(run), h2load::outcome, limits);
        }
    }
    let mut command: Vec<String> =
        program.iter().cloned().chain(arguments(scenario, url, cpus.len())).collect();
    if let Some(path) = socket {
        command.extend(["--unix-socket".to_owned(), path.display().to_string()]);
    }
    let tool = Tool { command: &command, folder: None, environment: &[], cpus, most };
    let output = match tool.run(stop) {
        Ok(output) => output,
        Err(ToolError::Interrupted) => return Err(None),
        Err(error) => return Err(Some(format!("the load generator: {error}"))),
    };
    let words = || match output.status.code() {
        Some(0) => output.last_words(),
        code => format!("exit code {}: {}", code.unwrap_or(-1), output.last_words()),
    };
    let json = output.stdout.find('{').map_or("", |at| &output.stdout[at..]);
    json::read(json).map_err(|error| {
        Some(match error {
            OutcomeJsonError::Format(found) => format!(
                "the load generator prints format {found} and this reads {FORMAT}; use one version"
            ),
            error => format!("the load generator printed no outcome ({error}); {}", words()),
        })
    })
}

/// Returns the arguments of `gustnado bench` for a scenario.
fn arguments(scenario: &ScenarioSpec, url: &str, cpus: usize) -> Vec<String> {
    let mut words: Vec<String> = vec![url.to_owned(), "--json".to_owned()];
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    let requesting = match scenario.model {
        ModelSpec::Hold => scenario.probes,
        _ => scenario.connections,
    };
    let threads = scenario.threads.map_or(cpus, |threads| threads as usize);
    add("-c", requesting.to_string());
    add("-d", seconds(scenario.duration));
    add("-t", threads.clamp(1, usize::try_from(requesting).unwrap_or(1)).to_string());
    if let Some(requests) = scenario.requests {
        add("-n", requests.to_string());
    }
    if let Some(rate) = scenario.rate {
        add("--rate", rate.to_string());
    }
    if scenario.model == ModelSpec::Hold {
        add("--hold", scenario.connections.to_string());
    }
    if !scenario.warm_up.is_zero() {
        add("--warm-up", seconds(scenario.warm_up));
    }
    if scenario.pipeline > 1 {
        add("--streams", scenario.pipeline.to_string());
    }
    if !scenario.accept_status.is_empty() {
        let range = |(from, to): &(u16, u16)| format!("{from}-{to}");
        let ranges: Vec<String> = scenario.accept_status.iter().map(range).collect();
        add("--status", ranges.join(","));
    }
    if scenario.http2 {
        let is_tls = url.starts_with("https:");
        words.push(if is_tls { "--h2" } else { "--h2c" }.to_owned());
    }
    if let Some(PageSpec::Messages(messages)) = &scenario.page {
        words.extend(["--ws", "--ws-bytes"].map(str::to_owned));
        words.push(messages.bytes.to_string());
        words.extend(messages.is_broadcast.then(|| "--ws-broadcast".to_owned()));
    }
    match scenario.model {
        ModelSpec::Churn => words.push("--churn".to_owned()),
        _ if !scenario.keep_alive => words.push("--no-keep-alive".to_owned()),
        _ => {}
    }
    words.extend(scenario.coding_arguments());
    words.extend(scenario.arguments.iter().cloned());
    words
}

/// Formats a duration for the generator.
fn seconds(length: Duration) -> String {
    format!("{}ms", length.as_millis())
}

#[cfg(test)]
mod tests {
    use super::super::file::MessageSpec;
    use super::*;
    use gustnado_http::content_coding::ContentCoding;

    pub(super) fn scenario() -> ScenarioSpec {
        ScenarioSpec {
            name: "page".to_owned(),
            connections: 100,
            probes: 1,
            duration: Duration::from_millis(1_500),
            keep_alive: true,
            pipeline: 1,
            rounds: 1,
            ..ScenarioSpec::default()
        }
    }

    #[test]
    fn a_scenario_becomes_the_generators_arguments() {
        let plain = arguments(&scenario(), "http://127.0.0.1:1/x", 2).join(" ");
        assert_eq!(plain, "http://127.0.0.1:1/x --json -c 100 -d 1500ms -t 2");
        let hold = ScenarioSpec {
            model: ModelSpec::Hold,
            rate: Some(50.0),
            warm_up: Duration::from_secs(1),
            arguments: vec!["--check-every".to_owned(), "1".to_owned()],
            ..scenario()
        };
        assert_eq!(
            arguments(&hold, "u", 2).join(" "),
            "u --json -c 1 -d 1500ms -t 1 --rate 50 --hold 100 --warm-up 1000ms --check-every 1"
        );
        let others = ScenarioSpec { accept_status: vec![(200, 399), (404, 404)], ..scenario() };
        assert!(arguments(&others, "u", 1).join(" ").ends_with("--status 200-399,404-404"));
        let streams = ScenarioSpec { http2: true, pipeline: 32, ..scenario() };
        let both = ["http://a/", "https://a/"].map(|url| arguments(&streams, url, 1).join(" "));
        assert!(both[0].ends_with(" --streams 32 --h2c"), "{both:?}");
        assert!(both[1].ends_with(" --streams 32 --h2"), "{both:?}");
        let messages = MessageSpec { path: "chat".to_owned(), bytes: 1_024, is_broadcast: true };
        let messages = ScenarioSpec { page: Some(PageSpec::Messages(messages)), ..scenario() };
        let words = arguments(&messages, "u", 1).join(" ");
        assert!(words.ends_with(" -t 1 --ws --ws-bytes 1024 --ws-broadcast"), "{words}");
        let coded = ScenarioSpec { coding: Some(ContentCoding::Brotli), ..scenario() };
        let words = arguments(&coded, "u", 1);
        assert!(words.ends_with(&["-H", "Accept-Encoding: br"].map(str::to_owned)), "{words:?}");
        let churn = ScenarioSpec { model: ModelSpec::Churn, requests: Some(9), ..scenario() };
        assert_eq!(
            arguments(&churn, "u", 1).join(" "),
            "u --json -c 100 -d 1500ms -t 1 -n 9 --churn"
        );
    }

    #[test]
    fn a_scenario_is_said_in_a_sentence_with_its_numbers() {
        let kept = ScenarioSpec { keep_alive: false, requests: Some(13_000), ..scenario() };
        assert_eq!(
            kept.sentence(),
            "100 connections, each of which sends a request once it has a response, with a \
             connection for each request, until 13,000 requests have a response."
        );
    }

    #[test]
    fn a_load_by_another_generator_says_so() {
        let by_ab = ScenarioSpec { generator: GeneratorKind::Ab, ..scenario() };
        let sentence = by_ab.sentence();
        assert!(sentence.starts_with("by ab: 100 connections, "), "{sentence}");
        assert_eq!(missing(&scenario()), None);
    }

    #[test]
    fn a_generator_that_prints_no_outcome_is_quoted() {
        let program = ["sh", "-c", "echo no such flag >&2; exit 2"].map(str::to_owned);
        let stop = AtomicBool::new(false);
        let target = LoadTarget { url: "u", socket: None };
        let error = measure(&program, &scenario(), target, &[], &stop).expect_err("no outcome");
        let error = error.expect("not interrupted");
        assert!(error.contains("exit code 2: no such flag"), "{error}");
    }
}
