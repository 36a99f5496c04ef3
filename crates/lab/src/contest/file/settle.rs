//! Resolves the raw tables of a file: presets, defaults, sweeps, and bounds.

use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::duration::Length;
use super::error::{FileError, FileProblem};
use super::keys::{Document, nearest};
use super::presets;
use super::{ContenderSpec, ContestSpec, GeneratorKind, ModelSpec, PageSpec, ScenarioSpec, shape};
use crate::figures::counted;
use crate::plan::LoadPlan;

const ROUNDS: RangeInclusive<u64> = 1..=100;
const CONNECTIONS: RangeInclusive<u64> = 1..=1_000_000;
const PAGE_BYTES: RangeInclusive<u64> = 0..=1 << 30;
/// Maximum time of one run with a number of requests.
const BY_REQUESTS: Duration = Duration::from_mins(2);
const URL: &str = "http://127.0.0.1:{port}/{page}";

/// Mistakes, collected with their lines.
struct Problems<'a> {
    document: &'a Document,
    found: Vec<FileProblem>,
}

impl Problems<'_> {
    fn say(&mut self, (list, at, key): (&str, usize, &str), text: String) {
        let line = self.document.line(list, at, key);
        let text = if key.is_empty() { text } else { format!("{key}: {text}") };
        self.found.push(FileProblem { line, text });
    }

    /// Reports a number that is out of bounds.
    fn bound(&mut self, place: (&str, usize, &str), found: u64, bounds: &RangeInclusive<u64>) {
        if !bounds.contains(&found) {
            let (from, to) = (bounds.start(), bounds.end());
            self.say(place, format!("expected {from} to {to}, found {found}; correct it"));
        }
    }
}

pub(super) fn contest(
    path: &Path,
    text: &str,
    (document, slips): (&Document, Vec<FileProblem>),
    shape: shape::RawContest,
) -> Result<ContestSpec, FileError> {
    let mut problems = Problems { document, found: Vec::new() };
    let rounds = shape.rounds.unwrap_or(3);
    problems.bound(("", 0, "rounds"), rounds.into(), &ROUNDS);
    let contenders = contenders(&mut problems, shape.contender);
    let scenarios = scenarios(&mut problems, shape.scenario, rounds);
    let reference = reference(&mut problems, shape.reference, &contenders);
    let time_limit = shape.time_limit.map_or(Duration::from_hours(2), |of| of.0);
    let minutes = time_limit.as_secs() / 60;
    problems.bound(("", 0, "time_limit"), minutes, &(1..=7 * 24 * 60));
    let page = page(&mut problems, path, shape.page, &scenarios);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(error) = wrong(path, &slips, problems.found) {
        return Err(error);
    }
    Ok(ContestSpec {
        title: shape.title.unwrap_or_else(|| stem.clone()),
        about: shape.about.trim().to_owned(),
        reference,
        rounds,
        output: shape.output.unwrap_or_else(|| format!("contest-{stem}").into()),
        fresh: shape.fresh.unwrap_or(true),
        time_limit,
        server_cpus: shape.server_cpus,
        generator_cpus: shape.generator_cpus,
        page,
        contenders,
        scenarios,
        folder: folder_of(path),
        text: text.to_owned(),
    })
}

/// Returns all mistakes of a file, if there are any. A wrong value was left out, and is not
/// reported as missing as well.
fn wrong(path: &Path, slips: &[FileProblem], found: Vec<FileProblem>) -> Option<FileError> {
    let key = |problem: &FileProblem| problem.text.split(':').next().map(str::to_owned);
    let slipped: Vec<Option<String>> = slips.iter().map(key).collect();
    let others = found.into_iter().filter(|problem| !slipped.contains(&key(problem)));
    let all: Vec<FileProblem> = slips.iter().cloned().chain(others).collect();
    (!all.is_empty()).then(|| FileError::new(path, all))
}

/// Returns a contender without a preset, unchecked.
pub(super) fn plain_contender(shape: shape::RawContender) -> ContenderSpec {
    let base = ContenderSpec {
        url: URL.to_owned(),
        ready_timeout: Duration::from_secs(10),
        stop_timeout: Duration::from_secs(5),
        ..ContenderSpec::default()
    };
    over(base, shape)
}

/// Overrides a preset with the values of a file.
fn over(base: ContenderSpec, shape: shape::RawContender) -> ContenderSpec {
    let length = |written: Option<Length>, base: Duration| written.map_or(base, |of| of.0);
    let mut files = base.files;
    files.extend(shape.files.unwrap_or_default());
    let mut environment = base.environment;
    environment.extend(shape.environment.unwrap_or_default());
    ContenderSpec {
        name: shape.name.unwrap_or(base.name),
        about: shape.about.unwrap_or(base.about),
        tuning: shape.tuning.unwrap_or(base.tuning),
        needs: shape.needs.unwrap_or(base.needs),
        installed_if: shape.installed_if.unwrap_or(base.installed_if),
        install: shape.install.unwrap_or(base.install),
        command: shape.command.unwrap_or(base.command),
        version: shape.version.unwrap_or(base.version),
        set_up: shape.set_up.unwrap_or(base.set_up),
        files,
        environment,
        url: shape.url.unwrap_or(base.url),
        unix_socket: shape.unix_socket.or(base.unix_socket),
        ready_timeout: length(shape.ready_timeout, base.ready_timeout),
        stop_timeout: length(shape.stop_timeout, base.stop_timeout),
        allow_unequal: shape.allow_unequal.or(base.allow_unequal),
    }
}

fn contenders(problems: &mut Problems<'_>, shapes: Vec<shape::RawContender>) -> Vec<ContenderSpec> {
    let mut settled: Vec<ContenderSpec> = Vec::new();
    if shapes.is_empty() {
        let text = "expected at least one [[contender]], found none; add `preset = \"gustnado\"`";
        problems.say(("", 0, ""), text.to_owned());
    }
    for (at, shape) in shapes.into_iter().enumerate() {
        let preset = shape.preset.clone();
        let contender = match preset.as_deref() {
            None => plain_contender(shape),
            Some(name) => {
                let Some(preset) = presets::find(name) else {
                    problems.say(("contender", at, "preset"), no_preset(name));
                    continue;
                };
                over(preset, shape)
            }
        };
        check_contender(problems, at, &contender);
        if settled.iter().any(|other| other.name == contender.name) {
            let text = format!("{:?} is taken by another contender; choose one", contender.name);
            problems.say(("contender", at, "name"), text);
        }
        settled.push(contender);
    }
    settled
}

fn check_contender(problems: &mut Problems<'_>, at: usize, contender: &ContenderSpec) {
    let mut say = |key, text: &str| problems.say(("contender", at, key), text.to_owned());
    if !is_name(&contender.name) {
        let found = &contender.name;
        say("name", &format!("expected 1 to 40 printable characters, found {found:?}; give one"));
    }
    if contender.command.first().is_none_or(String::is_empty) {
        say("command", "expected [\"program\", \"argument\", …] or a preset; say one of them");
    }
    if !["", "tuned", "untuned"].contains(&&*contender.tuning) {
        let found = &contender.tuning;
        say("tuning", &format!("expected \"tuned\" or \"untuned\", found {found:?}; correct it"));
    }
    if !contender.url.starts_with("http://127.0.0.1:{port}/") {
        let found = &contender.url;
        let text = "expected http://127.0.0.1:{port}/… because nothing but this machine is loaded";
        say("url", &format!("{text}, found {found:?}; correct it"));
    }
    let inside = |path: &str| {
        let parts = Path::new(path).components();
        !path.is_empty() && parts.into_iter().all(|part| matches!(part, Component::Normal(_)))
    };
    if let Some(path) = contender.files.keys().find(|path| !inside(path)) {
        say("files", &format!("expected names within its folder, found {path:?}; correct it"));
    }
    for (key, length) in
        [("ready_timeout", contender.ready_timeout), ("stop_timeout", contender.stop_timeout)]
    {
        if length > Duration::from_mins(5) {
            say(key, "expected 5 minutes at most, found more; shorten it");
        }
    }
}

fn no_preset(name: &str) -> String {
    let names = presets::names();
    match nearest(name, &names) {
        Some(near) => format!("{name:?} is no preset; did you mean {near:?}?"),
        None => format!("{name:?} is no preset; `gustnado contest --presets` lists them"),
    }
}

fn reference(problems: &mut Problems<'_>, said: Option<String>, all: &[ContenderSpec]) -> String {
    let first = all.first().map(|contender| contender.name.clone()).unwrap_or_default();
    let Some(name) = said else { return first };
    if !all.iter().any(|contender| contender.name == name) {
        let names: Vec<_> = all.iter().map(|contender| contender.name.as_str()).collect();
        let names = names.join(", ");
        let text = format!("expected a contender's name ({names}), found {name:?}; correct it");
        problems.say(("", 0, "reference"), text);
    }
    name
}

fn scenarios(
    problems: &mut Problems<'_>,
    shapes: Vec<shape::RawScenario>,
    rounds: u32,
) -> Vec<ScenarioSpec> {
    let mut settled: Vec<ScenarioSpec> = Vec::new();
    if shapes.is_empty() {
        let text = "expected at least one [[scenario]], found none; add one";
        problems.say(("", 0, ""), text.to_owned());
    }
    for (at, shape) in shapes.into_iter().enumerate() {
        let sweep = match shape.connections.clone() {
            None => vec![100],
            Some(shape::Connections::One(number)) => vec![number],
            Some(shape::Connections::Sweep(numbers)) => numbers,
        };
        if sweep.is_empty() {
            let text = "expected at least one number, found none; add one";
            problems.say(("scenario", at, "connections"), text.to_owned());
        }
        let base = scenario(problems, at, shape, rounds);
        for connections in &sweep {
            problems.bound(("scenario", at, "connections"), *connections, &CONNECTIONS);
            let point = point(&base, *connections, sweep.len() > 1);
            if settled.iter().any(|other| other.name == point.name) {
                let text = format!("{:?} is taken by another scenario; choose one", point.name);
                problems.say(("scenario", at, "name"), text);
            }
            settled.push(point);
        }
    }
    settled
}

/// One point of a sweep, or the scenario itself.
fn point(base: &ScenarioSpec, connections: u64, is_sweep: bool) -> ScenarioSpec {
    let mut point = ScenarioSpec { connections, ..base.clone() };
    if is_sweep {
        point.sweep = Some(base.name.clone());
        point.name = format!("{}-{connections}", base.name);
        point.title = format!("{}, {}", base.title, counted(connections, "connection"));
    }
    point
}

fn scenario(
    problems: &mut Problems<'_>,
    at: usize,
    shape: shape::RawScenario,
    rounds: u32,
) -> ScenarioSpec {
    let name = shape.name.unwrap_or_default();
    if !is_name(&name) {
        let text = format!("expected 1 to 40 printable characters, found {name:?}; give one");
        problems.say(("scenario", at, "name"), text);
    }
    let word = shape.model.as_deref().unwrap_or("closed");
    let models = [ModelSpec::Closed, ModelSpec::Open, ModelSpec::Hold, ModelSpec::Churn];
    let model = models.into_iter().find(|model| model.word() == word).unwrap_or_else(|| {
        let text = format!("expected closed, open, hold or churn, found {word:?}; correct it");
        problems.say(("scenario", at, "model"), text);
        ModelSpec::Closed
    });
    let generator = generator(problems, at, shape.generator.as_deref());
    if let Some(rounds) = shape.rounds {
        problems.bound(("scenario", at, "rounds"), rounds.into(), &ROUNDS);
    }
    let duration = shape.duration.map(|of| of.0);
    let by_requests = shape.requests.map(|_| BY_REQUESTS);
    let scenario = ScenarioSpec {
        title: shape.title.unwrap_or_else(|| name.clone()),
        name,
        sweep: None,
        page: own_page(problems, at, shape.bytes, shape.path),
        generator,
        model,
        connections: 1,
        probes: shape.probes.unwrap_or(1),
        rate: shape.rate,
        requests: shape.requests,
        duration: duration.or(by_requests).unwrap_or(Duration::from_secs(10)),
        warm_up: shape.warm_up.map_or(Duration::ZERO, |of| of.0),
        keep_alive: shape.keep_alive.unwrap_or(model != ModelSpec::Churn),
        pipeline: shape.pipeline.unwrap_or(1),
        threads: shape.threads,
        rounds: shape.rounds.unwrap_or(rounds),
        accept_status: accept_status(problems, at, shape.accept_status.as_deref()),
        arguments: shape.arguments,
    };
    check_scenario(problems, at, &scenario);
    if generator == GeneratorKind::Ab {
        check_ab(problems, at, &scenario);
    }
    scenario
}

/// Parses `200-399,404`.
fn accept_status(problems: &mut Problems<'_>, at: usize, text: Option<&str>) -> Vec<(u16, u16)> {
    let Some(text) = text else { return Vec::new() };
    let found: Option<Vec<_>> = text.split(',').map(LoadPlan::parse_statuses).collect();
    found.unwrap_or_else(|| {
        let form = "expected statuses from 200 to 599 such as \"200-399,404\" or \"2xx\"";
        let text = format!("{form}, found {text:?}; correct it");
        problems.say(("scenario", at, "accept_status"), text);
        Vec::new()
    })
}

fn generator(problems: &mut Problems<'_>, at: usize, word: Option<&str>) -> GeneratorKind {
    match word {
        None | Some("gustnado") => GeneratorKind::Own,
        Some("ab") => GeneratorKind::Ab,
        Some(word) => {
            let text = format!("expected gustnado or ab, found {word:?}; correct it");
            problems.say(("scenario", at, "generator"), text);
            GeneratorKind::Own
        }
    }
}

/// Reports what ab cannot do.
fn check_ab(problems: &mut Problems<'_>, at: usize, scenario: &ScenarioSpec) {
    let mut say = |key, text: &str| problems.say(("scenario", at, key), text.to_owned());
    if scenario.model != ModelSpec::Closed {
        say("model", "ab makes closed loads only; leave this out, or the generator");
    }
    if scenario.requests.is_none() {
        say("requests", "ab needs the number of requests; give it");
    }
    if !scenario.warm_up.is_zero() {
        say("warm_up", "ab has none; leave this out, or the generator");
    }
    if scenario.pipeline > 1 {
        say("pipeline", "ab has one request under way on each connection; leave this out");
    }
    if scenario.threads.is_some() {
        say("threads", "ab has one thread; leave this out");
    }
    if !scenario.accept_status.is_empty() {
        say("accept_status", "ab takes 2xx only; leave this out, or the generator");
    }
}

fn check_scenario(problems: &mut Problems<'_>, at: usize, scenario: &ScenarioSpec) {
    let place = |key| ("scenario", at, key);
    let threads = scenario.threads.unwrap_or(1);
    problems.bound(place("pipeline"), scenario.pipeline.into(), &(1..=1_024));
    problems.bound(place("probes"), scenario.probes, &(1..=10_000));
    problems.bound(place("threads"), threads.into(), &(1..=1_024));
    problems.bound(place("requests"), scenario.requests.unwrap_or(1), &(1..=1_000_000_000));
    if scenario.duration.is_zero() || scenario.duration > Duration::from_hours(1) {
        let text = "expected more than 0 s and at most 1 h; correct it";
        problems.say(place("duration"), text.to_owned());
    }
    if scenario.warm_up > Duration::from_mins(10) {
        problems.say(place("warm_up"), "expected 10 minutes at most; shorten it".to_owned());
    }
    let word = scenario.model.word();
    match (scenario.model, scenario.rate) {
        (ModelSpec::Open, None) => {
            let text = "an open model needs the requests per second that are due; give them";
            problems.say(place("rate"), text.to_owned());
        }
        (ModelSpec::Closed | ModelSpec::Churn, Some(_)) => {
            let text = format!("a rate is for the open model, not for {word:?}; leave one out");
            problems.say(place("rate"), text);
        }
        (_, Some(rate)) if !(rate > 0.0 && rate <= 1e8) => {
            let text = format!("expected more than 0 and at most 100000000, found {rate}");
            problems.say(place("rate"), format!("{text}; correct it"));
        }
        _ => {}
    }
    if scenario.model == ModelSpec::Churn && scenario.keep_alive {
        let text = "churn has a connection for each request; leave this out";
        problems.say(place("keep_alive"), text.to_owned());
    }
}

fn page(
    problems: &mut Problems<'_>,
    path: &Path,
    shape: shape::RawPage,
    scenarios: &[ScenarioSpec],
) -> PageSpec {
    let place = |key| ("page", 0, key);
    problems.bound(place("bytes"), shape.bytes.unwrap_or(0), &PAGE_BYTES);
    let page = match (shape.bytes, shape.file, shape.path) {
        (bytes, None, None) => PageSpec::Bytes(bytes.unwrap_or(4_096)),
        (None, Some(file), None) => {
            let path_of_page = path.parent().unwrap_or(Path::new("")).join(&file);
            if !path_of_page.is_file() {
                let found = path_of_page.display();
                problems.say(place("file"), format!("{found} is no file; name one that is there"));
            }
            PageSpec::File(path_of_page)
        }
        (None, None, Some(path)) => PageSpec::at(&path),
        _ => {
            let text = "expected one of bytes, file and path, found several; leave all but one out";
            problems.say(place(""), text.to_owned());
            PageSpec::Bytes(0)
        }
    };
    if matches!(page, PageSpec::Path(_)) {
        let by_length = |of: &&ScenarioSpec| matches!(of.page, Some(PageSpec::Bytes(_)));
        for scenario in scenarios.iter().filter(by_length) {
            let name = &scenario.name;
            let text = format!("has an answer of its own; leave out the bytes of {name:?}");
            problems.say(place("path"), text);
        }
    }
    page
}

/// The page of a scenario, if it is not the contest's.
fn own_page(
    problems: &mut Problems<'_>,
    at: usize,
    bytes: Option<u64>,
    path: Option<String>,
) -> Option<PageSpec> {
    problems.bound(("scenario", at, "bytes"), bytes.unwrap_or(0), &PAGE_BYTES);
    if bytes.is_some() && path.is_some() {
        let text = "expected one of bytes and path, found both; leave one out";
        problems.say(("scenario", at, "path"), text.to_owned());
    }
    path.map(|path| PageSpec::at(&path)).or(bytes.map(PageSpec::Bytes))
}

impl PageSpec {
    fn at(path: &str) -> Self {
        Self::Path(path.trim_start_matches('/').to_owned())
    }
}

/// The absolute path of the folder that contains a file.
fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    std::path::absolute(folder.join(".")).unwrap_or_else(|_| folder.to_owned())
}

fn is_name(name: &str) -> bool {
    let printable = |c: char| !c.is_control() && c != '/' && c != ',';
    (1..=40).contains(&name.chars().count()) && name.chars().all(printable)
}
