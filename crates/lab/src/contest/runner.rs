//! Prepares each server once, and starts, checks, measures and stops it.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::correct::CorrectContent;
use super::cpus::CpuSplit;
use super::file::{
    ContenderSpec, ContestSpec, GeneratorKind, ModelSpec, PageSpec, ScenarioSpec, WantedContent,
};
use super::folders::{self, ContestFolder};
use super::free_port::free_port;
use super::generator::{self, LoadTarget};
use super::probe::{self, ProbeRequest, ProbeResponse};
use super::process::{Launch, ServerProcess};
use super::sampling::{self, Sampler};
use super::template::Words;
use super::tool::{self, Tool, ToolError};
use super::unmeasured::{Unmeasured, failed, not_installed};
use super::{Tools, environment};
use crate::outcome::Outcome;
use crate::record::{Fate, RunRecord, Usage};

/// Time-outs of a version command and of a set-up command, which may compile much.
const VERSION: Duration = Duration::from_secs(20);
const SET_UP: Duration = Duration::from_mins(20);
/// Time-out of one response while a server is checked.
const ANSWER: Duration = Duration::from_secs(5);
/// Time for a server to close the generator's connections, which is its work, too.
const SETTLE: Duration = Duration::from_millis(200);
/// Interval between two attempts to reach a starting server.
const AGAIN: Duration = Duration::from_millis(20);

/// A running server that responds correctly.
#[derive(Debug)]
pub(super) struct ReadyServer {
    pub(super) server: ServerProcess,
    port: u16,
    /// Its command line.
    pub(super) command: Vec<String>,
}

/// Runs the servers of a contest.
#[derive(Debug)]
pub(super) struct ServerRunner<'a> {
    contest: &'a ContestSpec,
    pub(super) tools: &'a Tools,
    pub(super) stop: &'a AtomicBool,
    pub(super) division: CpuSplit,
    descriptors: u64,
    folders: ContestFolder,
    logs: PathBuf,
    correct: RefCell<CorrectContent>,
}

impl<'a> ServerRunner<'a> {
    /// Prepares folders and pages.
    ///
    /// - `logs`: an existing folder for the servers' output.
    pub(super) fn build(
        contest: &'a ContestSpec,
        tools: &'a Tools,
        stop: &'a AtomicBool,
        division: CpuSplit,
        logs: PathBuf,
    ) -> std::io::Result<Self> {
        let descriptors = environment::raise_descriptors();
        let folders = ContestFolder::make(contest)?;
        let correct = RefCell::new(CorrectContent::of(contest)?);
        Ok(Self { contest, tools, stop, division, descriptors, folders, logs, correct })
    }

    /// Bytes of a scenario's page as it is sent, known after the first response.
    pub(super) fn body_bytes(&self, scenario: &ScenarioSpec) -> u64 {
        self.correct.borrow().body_bytes(&scenario.representation())
    }

    /// Checks that a contender is installed, sets it up, and returns its version.
    pub(super) fn prepare(&self, contender: &ContenderSpec) -> Result<Option<String>, Unmeasured> {
        let words = self.words(contender, 0)?;
        let command = words.fill_all(&contender.command);
        let mut needs = words.fill_all(&contender.needs);
        if needs.is_empty() {
            needs.extend(command.first().cloned());
        }
        self.write_files(contender, &words)?;
        // A need with an absolute path may be a library.
        let is_file = |need: &Path| need.is_absolute() && need.is_file();
        let is_there = |need: &&String| tool::find(need) || is_file(Path::new(need));
        if let Some(missing) = needs.iter().find(|need| !is_there(need)) {
            return Err(not_installed(contender, &format!("there is no program {missing}")));
        }
        for command in &contender.installed_if {
            let output = self.tool(contender, command, &words, VERSION)?;
            if !output.status.success() {
                let found = format!("`{}` failed: {}", command.join(" "), output.last_line());
                return Err(not_installed(contender, &found));
            }
        }
        for set_up in &contender.set_up {
            let output = self.tool(contender, set_up, &words, SET_UP)?;
            if !output.status.success() {
                let (what, words) = (words.fill_all(set_up).join(" "), output.last_words());
                return Err(failed(format!("its set-up `{what}` failed: {words}")));
            }
        }
        // It may be the version of what was set up.
        if contender.version.is_empty() {
            return Ok(None);
        }
        Ok(self.tool(contender, &contender.version, &words, VERSION)?.first_line())
    }

    /// Runs the commands of the contest itself, in the folder of its file.
    pub(super) fn set_up(&self) -> Result<(), Unmeasured> {
        let contest = self.contest;
        let words = self.words_of_contest();
        for command in &contest.set_up {
            let (command, folder) = (words.fill_all(command), Some(contest.folder.as_path()));
            let environment = &[];
            let tool = Tool { command: &command, folder, environment, cpus: &[], most: SET_UP };
            let what = command.join(" ");
            let output = tool.run(self.stop).map_err(|error| match error {
                ToolError::Interrupted => Unmeasured::Interrupted,
                error => failed(format!("`{what}`: {error}")),
            })?;
            if !output.status.success() {
                return Err(failed(format!("`{what}` failed: {}", output.last_words())));
            }
        }
        Ok(())
    }

    /// Starts a contender, checks its responses for the pages of all its scenarios, and stops it.
    /// Returns its command line. One whose command names the page is started for each.
    pub(super) fn check(&self, contender: &ContenderSpec) -> Result<Vec<String>, Unmeasured> {
        let mut wanted = folders::representations_of(self.contest, &contender.name);
        let has_page = contender.command.iter().any(|word| word.contains("{page}"));
        if wanted.is_empty() {
            wanted.push(WantedContent { page: None, coding: None });
        }
        let mut command = Vec::new();
        for wanted in wanted.chunks(if has_page { 1 } else { wanted.len() }) {
            let ReadyServer { command: filled, .. } = self.start_for(contender, wanted, true)?;
            command = filled;
        }
        Ok(command)
    }

    /// Starts a contender for a scenario and waits until it responds correctly.
    pub(super) fn start(
        &self,
        contender: &ContenderSpec,
        scenario: &ScenarioSpec,
    ) -> Result<ReadyServer, Unmeasured> {
        self.start_for(contender, &[scenario.representation()], scenario.keep_alive)
    }

    fn start_for(
        &self,
        contender: &ContenderSpec,
        wanted: &[WantedContent],
        keep_alive: bool,
    ) -> Result<ReadyServer, Unmeasured> {
        let port = free_port().map_err(|error| failed(format!("no free port: {error}")))?;
        let page = wanted.first().and_then(|one| one.page.as_ref());
        let words = self
            .words(contender, port)?
            .with("page", folders::page_name(self.contest, page))
            .with("connection", if keep_alive { "keep-alive" } else { "close" });
        self.write_files(contender, &words)?;
        let folder = self.work(contender)?;
        let command = words.fill_all(&contender.command);
        let launch = Launch {
            command: &command,
            launcher: &self.tools.launcher,
            folder: &folder,
            environment: &variables(contender, &words),
            cpus: &self.division.servers,
            log: self.logs.join(format!("{}.log", slug(&contender.name))),
            stop_timeout: contender.stop_timeout,
        };
        let server = ServerProcess::start(&launch)
            .map_err(|error| failed(format!("it could not be started: {error}")))?;
        let mut ready = ReadyServer { server, port, command };
        for one in wanted {
            let response = self.first_response(contender, &mut ready, one)?;
            self.compare(contender, one, &response)?;
        }
        Ok(ready)
    }

    /// Measures one contender in one round of one scenario.
    pub(super) fn measure(
        &self,
        contender: &ContenderSpec,
        ready: &mut ReadyServer,
        scenario: &ScenarioSpec,
        round: u32,
    ) -> Result<RunRecord, Unmeasured> {
        let is_own = scenario.generator == GeneratorKind::Own;
        let tree = ready.server.tree().clone();
        let idle_bytes = sampling::memory_of(tree.clone());
        if !is_own && !scenario.warm_up.is_zero() {
            self.warm_up(contender, ready, scenario)?;
        }
        let expected = scenario.warm_up + scenario.duration;
        let sampler = Sampler::start(tree, expected, &self.division.generator)
            .map_err(|error| failed(format!("nothing could be sampled: {error}")))?;
        let found = self.generate(contender, ready, scenario);
        let measured = found.as_ref().ok().and_then(|found| found.as_ref().ok());
        if measured.is_some() {
            std::thread::sleep(SETTLE);
        }
        // What comes before the window is not of the load: requests that are not counted, and
        // opening the connections that are held.
        let is_of_window =
            is_own && (!scenario.warm_up.is_zero() || scenario.model == ModelSpec::Hold);
        let window = measured.filter(|_| is_of_window);
        let window = window.map(|of| (of.started_unix_s, of.started_unix_s + of.duration_s));
        // The first connection may be one of the warm-up.
        let usage = Usage { memory_before_bytes: idle_bytes, ..sampler.finish(window) };
        let (outcome, failure) = match found? {
            Ok(outcome) => (Some(outcome), None),
            Err(why) => (None, Some(why)),
        };
        let died = ready.server.ended().map(|how| format!("under load, {how}"));
        Ok(run(contender, scenario, round, usage).with(outcome, died.or(failure)))
    }

    /// Loads a server before another generator does, with the built-in one over kept connections:
    /// new ones would take the ports of the load that counts.
    fn warm_up(
        &self,
        contender: &ContenderSpec,
        ready: &ReadyServer,
        scenario: &ScenarioSpec,
    ) -> Result<(), Unmeasured> {
        let load = ScenarioSpec {
            generator: GeneratorKind::Own,
            duration: scenario.warm_up,
            warm_up: Duration::ZERO,
            requests: None,
            keep_alive: true,
            arguments: Vec::new(),
            ..scenario.clone()
        };
        match self.generate(contender, ready, &load)? {
            Ok(_) => Ok(()),
            Err(why) => Err(failed(format!("it was not warmed up: {why}"))),
        }
    }

    /// Loads a running server as a scenario says, whose arguments get their words filled in.
    /// Returns the outcome, or why there is none.
    pub(super) fn generate(
        &self,
        contender: &ContenderSpec,
        ready: &ReadyServer,
        scenario: &ScenarioSpec,
    ) -> Result<Result<Outcome, String>, Unmeasured> {
        let url = self.url(contender, ready.port, scenario.page.as_ref())?;
        let socket = self.socket(contender, ready.port)?;
        let mut scenario = scenario.clone();
        scenario.arguments = self.words(contender, ready.port)?.fill_all(&scenario.arguments);
        if let Some(body) = scenario.page.as_ref().and_then(PageSpec::body) {
            let file = self.folders.body(body).map_err(|error| failed(format!("{error}")))?;
            let kind = "Content-Type: application/json";
            let words = ["--method", "POST", "--header", kind, "--body-file"].map(str::to_owned);
            scenario.arguments.extend(words);
            scenario.arguments.push(file.display().to_string());
        }
        let target = LoadTarget { url: &url, socket: socket.as_deref() };
        let (program, cpus) = (&self.tools.generator, &self.division.generator);
        match generator::measure(program, &scenario, target, cpus, self.stop) {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(Some(why)) => Ok(Err(why)),
            Err(None) => Err(Unmeasured::Interrupted),
        }
    }

    /// Sends requests until a response has an accepted status or the time is over; then the last
    /// response counts.
    fn first_response(
        &self,
        contender: &ContenderSpec,
        ready: &mut ReadyServer,
        wanted: &WantedContent,
    ) -> Result<ProbeResponse, Unmeasured> {
        let page = wanted.page.as_ref();
        let until = Instant::now() + contender.ready_timeout;
        let url = self.url(contender, ready.port, page)?;
        let socket = self.socket(contender, ready.port)?;
        let request = ProbeRequest {
            socket: socket.as_deref(),
            url: &url,
            body: page.and_then(PageSpec::body),
            coding: wanted.coding,
        };
        let http2 = self.contest.http2_use(&contender.name);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Unmeasured::Interrupted);
            }
            if let Some(how) = ready.server.ended() {
                return Err(failed(format!("it did not start: {how}")));
            }
            let most = ANSWER.min(contender.ready_timeout);
            let asked = match page {
                Some(PageSpec::Messages(_)) => self.one_message(contender, ready, page)?,
                _ => probe::request(http2, request, most),
            };
            match asked {
                Ok(response) if self.contest.accepts(page, response.status) => return Ok(response),
                Ok(response) if Instant::now() > until => return Ok(response),
                Err(why) if Instant::now() > until => {
                    let seconds = contender.ready_timeout.as_secs_f32();
                    let output = match ready.server.tail() {
                        tail if tail.is_empty() => String::new(),
                        tail => format!("; it says: {tail}"),
                    };
                    return Err(failed(format!(
                        "it was not ready within {seconds} s: {why}{output}"
                    )));
                }
                _ => std::thread::sleep(AGAIN),
            }
        }
    }

    /// Sends one message over a WebSocket. The generator compares what comes back.
    fn one_message(
        &self,
        contender: &ContenderSpec,
        ready: &ReadyServer,
        page: Option<&PageSpec>,
    ) -> Result<Result<ProbeResponse, String>, Unmeasured> {
        let load = probe::one_message(page);
        let found = self.generate(contender, ready, &load)?;
        Ok(found.and_then(|outcome| probe::response_to_message(&outcome)))
    }

    /// Refuses unequal work, unless the file allows it with a reason.
    fn compare(
        &self,
        contender: &ContenderSpec,
        wanted: &WantedContent,
        found: &ProbeResponse,
    ) -> Result<(), Unmeasured> {
        // One that may differ is no measure for the others.
        if contender.allow_unequal.is_some() {
            return Ok(());
        }
        let mut correct = self.correct.borrow_mut();
        correct.compare(self.contest, wanted, found).map_err(|difference| {
            let name = folders::page_name(self.contest, wanted.page.as_ref());
            let coding = wanted.coding.map_or(String::new(), |of| format!(" in {}", of.name()));
            Unmeasured::Fate(Fate::Unequal(format!("{name}{coding}: {difference}")))
        })
    }

    fn tool(
        &self,
        contender: &ContenderSpec,
        command: &[String],
        words: &Words,
        most: Duration,
    ) -> Result<tool::ToolOutput, Unmeasured> {
        let command = words.fill_all(command);
        let folder = self.work(contender)?;
        let environment = variables(contender, words);
        let (folder, environment) = (Some(folder.as_path()), environment.as_slice());
        let tool = Tool { command: &command, folder, environment, cpus: &[], most };
        tool.run(self.stop).map_err(|error| match error {
            ToolError::Interrupted => Unmeasured::Interrupted,
            error => failed(format!("`{}`: {error}", command.join(" "))),
        })
    }

    fn url(
        &self,
        contender: &ContenderSpec,
        port: u16,
        page: Option<&PageSpec>,
    ) -> Result<String, Unmeasured> {
        let words = self.words(contender, port)?;
        let words = words.with("page", folders::page_name(self.contest, page));
        Ok(words.fill(&contender.url))
    }

    /// The Unix socket that a contender listens on, if it does.
    fn socket(&self, contender: &ContenderSpec, port: u16) -> Result<Option<PathBuf>, Unmeasured> {
        let Some(socket) = &contender.unix_socket else { return Ok(None) };
        Ok(Some(self.words(contender, port)?.fill(socket).into()))
    }

    fn words(&self, contender: &ContenderSpec, port: u16) -> Result<Words, Unmeasured> {
        let work = self.work(contender)?;
        let words = self.words_of_contest().with("port", port).with("work", work.display());
        Ok(contender.cpus.map_or(words.clone(), |cpus| words.with("cpus", cpus)))
    }

    /// The words that mean the same for all contenders.
    fn words_of_contest(&self) -> Words {
        let folder = &self.contest.folder;
        Words::default()
            .with("root", self.folders.root().display())
            .with("here", folder.display())
            .with("target", folders::cargo_target(folder).display())
            .with("page", folders::page_name(self.contest, None))
            .with("connection", "keep-alive")
            .with("cpus", self.division.servers.len().max(1))
            .with("descriptors", self.descriptors)
            .with("user", environment::user())
            .with("self", self.tools.program.display())
    }

    pub(super) fn work(&self, contender: &ContenderSpec) -> Result<PathBuf, Unmeasured> {
        let is_it = |other: &ContenderSpec| other.name == contender.name;
        let at = self.contest.contenders.iter().position(is_it).unwrap_or_default();
        self.folders.work(at).map_err(|error| failed(format!("its folder: {error}")))
    }

    fn write_files(&self, contender: &ContenderSpec, words: &Words) -> Result<(), Unmeasured> {
        let folder = self.work(contender)?;
        for (name, text) in &contender.files {
            write_file(&folder.join(name), &words.fill(text))
                .map_err(|error| failed(format!("its file {name}: {error}")))?;
        }
        Ok(())
    }
}

fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text.trim_start_matches('\n'))
}

/// Returns the record of a run without a result.
pub(super) fn run_without_result(
    contender: &ContenderSpec,
    scenario: &ScenarioSpec,
    round: u32,
    fate: &Fate,
) -> RunRecord {
    let why = match fate {
        Fate::Ran => "it was not measured".to_owned(),
        Fate::NotInstalled(why) | Fate::Failed(why) => why.clone(),
        Fate::Unequal(why) => format!("not the same work: {why}"),
    };
    run(contender, scenario, round, Usage::default()).with(None, Some(why))
}

fn run(contender: &ContenderSpec, scenario: &ScenarioSpec, round: u32, usage: Usage) -> RunRecord {
    let (contender, scenario) = (contender.name.clone(), scenario.name.clone());
    RunRecord { contender, scenario, round, outcome: None, failure: None, usage }
}

impl RunRecord {
    fn with(self, outcome: Option<Outcome>, failure: Option<String>) -> Self {
        Self { outcome, failure, ..self }
    }
}

fn variables(contender: &ContenderSpec, words: &Words) -> Vec<(String, String)> {
    let filled = |(name, value): (&String, &String)| (name.clone(), words.fill(value));
    contender.environment.iter().map(filled).collect()
}

/// Converts a name to a file name.
pub(super) fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' };
    name.chars().map(plain).collect()
}
