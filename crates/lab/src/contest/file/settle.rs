//! Reads the tables of a file into a contest: presets, sweeps, and what keys have to do with each
//! other.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::declared::{CONTENDER, CONTEST, PAGE, REACH, SCENARIO};
use super::drafts::{PageDraft, ScenarioDraft};
use super::error::FileError;
use super::keys::{nearest, read, set_defaults};
use super::raw::{KeyLines, Problems, RawTable};
use super::{
    ContenderSpec, ContestSpec, CountKind, GeneratorKind, MessageSpec, ModelSpec, PageSpec,
    ReachSpec, ScenarioSpec, presets,
};
use crate::figures::counted;
use crate::plan::LoadPlan;

/// Time of one run; with a number of requests, its maximum.
const DURATION: Duration = Duration::from_secs(10);
const BY_REQUESTS: Duration = Duration::from_mins(2);

/// Bytes of a message.
const MESSAGE_BYTES: u64 = 64;

/// Reads a whole file.
pub(super) fn contest(
    path: &Path,
    text: &str,
    table: RawTable<'_>,
) -> Result<ContestSpec, FileError> {
    let mut problems = Problems::default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut contest = ContestSpec {
        title: stem.clone(),
        output: format!("contest-{stem}").into(),
        folder: folder_of(path),
        text: text.to_owned(),
        ..ContestSpec::default()
    };
    set_defaults(CONTEST, &mut contest);
    let lines = read(CONTEST, table, &mut problems, &mut contest);
    contest.contenders = contenders(&mut problems, &lines, table);
    contest.scenarios = scenarios(&mut problems, &lines, (table, contest.rounds));
    check_names(&mut problems, &lines, (table, &mut contest));
    contest.page = page(&mut problems, path, table, &contest.scenarios);
    if problems.found.is_empty() { Ok(contest) } else { Err(FileError::new(path, problems.found)) }
}

/// Returns a contender without a preset: the defaults of its keys.
pub(super) fn plain_contender() -> ContenderSpec {
    let mut contender = ContenderSpec::default();
    set_defaults(CONTENDER, &mut contender);
    contender
}

/// Reads a contender over its preset, unchecked.
pub(super) fn contender(
    table: RawTable<'_>,
    problems: &mut Problems,
    mut base: ContenderSpec,
) -> (ContenderSpec, KeyLines) {
    let lines = read(CONTENDER, table, problems, &mut base);
    (base, lines)
}

fn contenders(
    problems: &mut Problems,
    lines: &KeyLines,
    table: RawTable<'_>,
) -> Vec<ContenderSpec> {
    let mut settled: Vec<ContenderSpec> = Vec::new();
    if !lines.has("contender") {
        let text = "expected at least one [[contender]], found none; add `preset = \"gustnado\"`";
        problems.say(lines, "", text);
    }
    for table in table.tables("contender") {
        let preset = table.word("preset");
        let base = preset.map_or_else(|| Some(plain_contender()), presets::find);
        let is_known = base.is_some();
        let (found, lines) = contender(table, problems, base.unwrap_or_else(plain_contender));
        if !is_known {
            problems.say(&lines, "preset", &no_preset(preset.unwrap_or_default()));
            continue;
        }
        check_contender(problems, &lines, &found);
        if settled.iter().any(|other| other.name == found.name) {
            let text = format!("{:?} is taken by another contender; choose one", found.name);
            problems.say(&lines, "name", &text);
        }
        settled.push(found);
    }
    settled
}

fn check_contender(problems: &mut Problems, lines: &KeyLines, contender: &ContenderSpec) {
    let mut say = |key, text: &str| problems.say(lines, key, text);
    if !is_name(&contender.name) {
        let found = &contender.name;
        say("name", &format!("expected 1 to 40 printable characters, found {found:?}; give one"));
    }
    if contender.command.first().is_none_or(String::is_empty) {
        say("command", "expected [\"program\", \"argument\", …] or a preset; say one of them");
    }
    let is_loopback = ["http", "https"]
        .iter()
        .any(|scheme| contender.url.starts_with(&format!("{scheme}://127.0.0.1:{{port}}/")));
    if !is_loopback {
        let found = &contender.url;
        let text = "expected http://127.0.0.1:{port}/… or https://…, because nothing but this \
                    machine is loaded";
        say("url", &format!("{text}, found {found:?}; correct it"));
    }
    let inside = |path: &str| {
        let parts = Path::new(path).components();
        !path.is_empty() && parts.into_iter().all(|part| matches!(part, Component::Normal(_)))
    };
    if let Some(path) = contender.files.keys().find(|path| !inside(path)) {
        say("files", &format!("expected names within its folder, found {path:?}; correct it"));
    }
}

fn no_preset(name: &str) -> String {
    let names = presets::names();
    match nearest(name, &names) {
        Some(near) => format!("{name:?} is no preset; did you mean {near:?}?"),
        None => format!("{name:?} is no preset; `gustnado contest --presets` lists them"),
    }
}

/// Checks the names of contenders where others refer to them, and fills in the first one.
fn check_names(
    problems: &mut Problems,
    lines: &KeyLines,
    (table, contest): (RawTable<'_>, &mut ContestSpec),
) {
    let all: Vec<&str> = contest.contenders.iter().map(|one| one.name.as_str()).collect();
    let first = (*all.first().unwrap_or(&"")).to_owned();
    let unknown = |name: &str| {
        let names = all.join(", ");
        (!all.contains(&name))
            .then(|| format!("expected a contender's name ({names}), found {name:?}; correct it"))
    };
    if contest.reference.is_empty() {
        contest.reference.clone_from(&first);
    } else if let Some(text) = unknown(&contest.reference) {
        problems.say(lines, "reference", &text);
    }
    for table in table.tables("scenario") {
        // The tables of a sweep are those of its first point.
        let name = table.word("name").unwrap_or_default();
        let is_of =
            |one: &&mut ScenarioSpec| one.name == name || one.sweep.as_deref() == Some(name);
        let reaches = table.tables("reach");
        for spec in contest.scenarios.iter_mut().filter(is_of) {
            if let Some(text) = spec.contenders.iter().find_map(|name| unknown(name)) {
                problems.say(&table.lines(), "contenders", &text);
            }
            for (reach, table) in spec.reach.iter_mut().zip(&reaches) {
                if reach.of.is_empty() {
                    reach.of.clone_from(&first);
                }
                if let Some(text) = unknown(&reach.of) {
                    problems.say(&table.lines(), "of", &text);
                }
                if let Some(text) = reach.to.as_deref().and_then(unknown) {
                    problems.say(&table.lines(), "to", &text);
                }
            }
        }
    }
}

fn scenarios(
    problems: &mut Problems,
    lines: &KeyLines,
    (table, rounds): (RawTable<'_>, u32),
) -> Vec<ScenarioSpec> {
    let mut settled: Vec<ScenarioSpec> = Vec::new();
    if !lines.has("scenario") {
        problems.say(lines, "", "expected at least one [[scenario]], found none; add one");
    }
    for table in table.tables("scenario") {
        let mut draft = ScenarioDraft::default();
        set_defaults(SCENARIO, &mut draft);
        draft.spec.rounds = rounds;
        let lines = read(SCENARIO, table, problems, &mut draft);
        draft.spec.reach = reaches(problems, table, &draft.spec);
        settle_scenario(problems, &lines, &mut draft);
        for connections in &draft.sweep {
            let point = point(&draft.spec, *connections, draft.sweep.len() > 1);
            if settled.iter().any(|other| other.name == point.name) {
                let text = format!("{:?} is taken by another scenario; choose one", point.name);
                problems.say(&lines, "name", &text);
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

/// Fills in the defaults that depend on other keys, and checks what keys have to do with each
/// other.
fn settle_scenario(problems: &mut Problems, lines: &KeyLines, draft: &mut ScenarioDraft) {
    let spec = &mut draft.spec;
    if !is_name(&spec.name) {
        let found = &spec.name;
        let text = format!("expected 1 to 40 printable characters, found {found:?}; give one");
        problems.say(lines, "name", &text);
    }
    if !lines.has("title") {
        spec.title.clone_from(&spec.name);
    }
    if !lines.has("duration") {
        spec.duration = if spec.requests.is_some() { BY_REQUESTS } else { DURATION };
    }
    if !lines.has("keep_alive") {
        spec.keep_alive = spec.model != ModelSpec::Churn;
    }
    if lines.has("streams") && (lines.has("pipeline") || !spec.http2) {
        let text = "it needs `http2 = true`, and no `pipeline`; leave one out";
        problems.say(lines, "streams", text);
    }
    if let Some(is_broadcast) = draft.websocket {
        settle_messages(problems, lines, draft, is_broadcast);
    } else {
        settle_page(problems, lines, draft);
    }
    let spec = &mut draft.spec;
    if let Some(text) = draft.accept_status.take().filter(|text| text != "2xx") {
        spec.accept_status = accept_status(problems, lines, &text);
    }
    let word = spec.model.word();
    match (spec.model, spec.rate) {
        (ModelSpec::Open, None) => {
            let text = "an open model needs the requests per second that are due; give them";
            problems.say(lines, "rate", text);
        }
        (ModelSpec::Closed | ModelSpec::Churn, Some(_)) => {
            let text = format!("a rate is for the open model, not for {word:?}; leave one out");
            problems.say(lines, "rate", &text);
        }
        _ => {}
    }
    if spec.model == ModelSpec::Churn && spec.keep_alive {
        let text = "churn has a connection for each request; leave this out";
        problems.say(lines, "keep_alive", text);
    }
    if spec.generator != GeneratorKind::Own {
        check_foreign(problems, lines, spec);
    }
}

/// Settles what messages a scenario has in place of requests.
fn settle_messages(
    problems: &mut Problems,
    lines: &KeyLines,
    draft: &mut ScenarioDraft,
    is_broadcast: bool,
) {
    let spec = &mut draft.spec;
    let path = draft.path.take().unwrap_or_default().trim_start_matches('/').to_owned();
    let bytes = draft.bytes.unwrap_or(MESSAGE_BYTES);
    spec.page = Some(PageSpec::Messages(MessageSpec { path, bytes, is_broadcast }));
    let is_other = spec.generator != GeneratorKind::Own || spec.http2;
    let is_other = is_other || spec.coding.is_some();
    if is_other || spec.model == ModelSpec::Churn || draft.send.is_some() {
        let text = "messages are sent by gustnado bench, by HTTP/1.1, on WebSockets that stay \
                    open; leave out generator, http2, coding, churn and what is to be sent";
        problems.say(lines, "websocket", text);
    }
}

/// Settles what page a scenario requests.
fn settle_page(problems: &mut Problems, lines: &KeyLines, draft: &mut ScenarioDraft) {
    let spec = &mut draft.spec;
    if draft.bytes.is_some() && draft.path.is_some() {
        let text = "expected one of bytes and path, found both; leave one out";
        problems.say(lines, "path", text);
    }
    spec.page = match (draft.path.take(), draft.send.take()) {
        (None, None) => draft.bytes.map(PageSpec::Bytes),
        (Some(path), None) => Some(PageSpec::at(&path)),
        (Some(path), Some(body)) => {
            Some(PageSpec::Post(path.trim_start_matches('/').to_owned(), body))
        }
        (None, Some(_)) => {
            problems.say(lines, "send", "it needs a path to send to; add `path`");
            None
        }
    };
    let is_post = spec.page.as_ref().is_some_and(|page| page.body().is_some());
    if is_post && spec.generator != GeneratorKind::Own {
        problems.say(lines, "send", "only gustnado bench sends a body; leave out the generator");
    }
}

/// Parses `200-399,404`.
fn accept_status(problems: &mut Problems, lines: &KeyLines, text: &str) -> Vec<(u16, u16)> {
    let found: Option<Vec<_>> = text.split(',').map(LoadPlan::parse_statuses).collect();
    found.unwrap_or_else(|| {
        let form = "expected statuses from 200 to 599 such as \"200-399,404\" or \"2xx\"";
        problems.say(lines, "accept_status", &format!("{form}, found {text:?}; correct it"));
        Vec::new()
    })
}

/// Reports what other generators cannot do.
fn check_foreign(problems: &mut Problems, lines: &KeyLines, spec: &ScenarioSpec) {
    let name = spec.generator.word();
    let mut say = |key, text: String| problems.say(lines, key, &text);
    if spec.model != ModelSpec::Closed {
        say("model", format!("{name} makes closed loads only; leave this out, or the generator"));
    }
    if spec.generator == GeneratorKind::Ab && spec.requests.is_none() {
        say("requests", "ab needs the number of requests; give it".to_owned());
    }
    if spec.generator == GeneratorKind::Wrk && spec.requests.is_some() {
        say("requests", "wrk ends after a time; give the duration in place of this".to_owned());
    }
    if spec.generator == GeneratorKind::H2load && !spec.keep_alive {
        say("keep_alive", "h2load keeps its connections; leave this out".to_owned());
    }
    if spec.pipeline > 1 && spec.generator != GeneratorKind::H2load {
        let text = "has one request under way on each connection; leave this out";
        say("pipeline", format!("{name} {text}"));
    }
    if spec.http2 && spec.generator != GeneratorKind::H2load {
        say("http2", format!("{name} speaks HTTP/1 only; leave this out, or the generator"));
    }
    if spec.threads.is_some() && spec.generator == GeneratorKind::Ab {
        say("threads", "ab has one thread; leave this out".to_owned());
    }
    if !spec.accept_status.is_empty() {
        say("accept_status", format!("{name} takes 2xx only; leave this out, or the generator"));
    }
}

/// Reads the figures that are to be reached.
fn reaches(problems: &mut Problems, table: RawTable<'_>, spec: &ScenarioSpec) -> Vec<ReachSpec> {
    let mut all = Vec::new();
    for table in table.tables("reach") {
        let mut reach = ReachSpec::default();
        set_defaults(REACH, &mut reach);
        let lines = read(REACH, table, problems, &mut reach);
        let limits = [reach.cpu, reach.memory, reach.rate, reach.instructions, reach.system_calls];
        if limits.iter().all(Option::is_none) {
            let text = "expected at least one figure to reach, such as `cpu = 1.05`; add one";
            problems.say(&lines, "", text);
        }
        for (kind, limit) in [
            (CountKind::Instructions, reach.instructions),
            (CountKind::SystemCalls, reach.system_calls),
        ] {
            if limit.is_some() && !spec.counts.contains(&kind) {
                let word = kind.word();
                let text = format!("nothing counts it here; add `count = [{word:?}]`");
                problems.say(&lines, word, &text);
            }
        }
        all.push(reach);
    }
    all
}

fn page(
    problems: &mut Problems,
    path: &Path,
    table: RawTable<'_>,
    scenarios: &[ScenarioSpec],
) -> PageSpec {
    let Some(table) = table.tables("page").into_iter().next() else { return PageSpec::default() };
    let mut draft = PageDraft::default();
    set_defaults(PAGE, &mut draft);
    let lines = read(PAGE, table, problems, &mut draft);
    let page = match (draft.bytes, draft.file, draft.path) {
        (None, None, None) => PageSpec::default(),
        (Some(bytes), None, None) => PageSpec::Bytes(bytes),
        (None, Some(file), None) => {
            let path_of_page = path.parent().unwrap_or(Path::new("")).join(&file);
            if !path_of_page.is_file() {
                let found = path_of_page.display();
                problems.say(
                    &lines,
                    "file",
                    &format!("{found} is no file; name one that is there"),
                );
            }
            PageSpec::File(path_of_page)
        }
        (None, None, Some(path)) => PageSpec::at(&path),
        _ => {
            let text = "expected one of bytes, file and path, found several; leave all but one out";
            problems.say(&lines, "", text);
            PageSpec::default()
        }
    };
    if matches!(page, PageSpec::Path(_)) {
        let by_length = |of: &&ScenarioSpec| matches!(of.page, Some(PageSpec::Bytes(_)));
        for scenario in scenarios.iter().filter(by_length) {
            let name = &scenario.name;
            let text = format!("has an answer of its own; leave out the bytes of {name:?}");
            problems.say(&lines, "path", &text);
        }
    }
    page
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
