//! Contests: measures servers side by side, one at a time, each with the same load generator.
//!
//! This module holds the order of events. [`mod@file`] reads the contest's file, `runner` starts
//! and stops servers, `generator` loads them, `sampling` reads their resource usage, `store` keeps
//! the record, and [`table`] and [`compare`] print it. Flags, signals and exit codes are the
//! command's.

mod ab;
pub mod compare;
mod correct;
mod counting;
mod cpus;
mod environment;
pub mod file;
mod folders;
mod foreign;
mod free_port;
mod generator;
mod h2load;
mod method;
mod narrow;
mod probe;
mod process;
mod process_tree;
pub mod reach;
mod runner;
mod sampling;
pub mod store;
pub mod table;
mod template;
#[cfg(test)]
mod tests;
mod tool;
mod unmeasured;
mod wrk;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::record::{self, Fate, Record, RunRecord};
pub use file::presets;
use file::{ContenderSpec, ContestSpec, PageSpec, ScenarioSpec};
use runner::{ReadyServer, ServerRunner, run_without_result, slug};
use store::{RecordFile, StoreError};
use unmeasured::Unmeasured;

/// The file of the record in the output folder.
pub const RECORD: &str = "contest.jsonl";

/// The previous record.
pub const PREVIOUS: &str = "contest.previous.jsonl";

/// The programs that a contest needs apart from the contenders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// The running program: the value of `{self}`.
    pub program: PathBuf,
    /// The load generator with its first arguments; URL and flags follow.
    pub generator: Vec<String>,
    /// The launcher of servers, which ends them with this process; may be empty.
    pub launcher: Vec<String>,
}

impl Tools {
    /// Returns those that are in one executable.
    pub fn of(program: &Path) -> Self {
        let with = |word: &str| vec![program.to_string_lossy().into_owned(), word.to_owned()];
        let mut launcher = with("contest-member");
        launcher.push(std::process::id().to_string());
        Self { program: program.to_owned(), generator: with("bench"), launcher }
    }
}

/// An event of a contest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContestEvent<'a> {
    /// A line of text.
    Line(&'a str),
    /// Progress.
    Progress {
        /// Completed runs.
        done: usize,
        /// All runs.
        all: usize,
        /// Estimated time for the others.
        left: Duration,
    },
}

/// Error that keeps a contest from beginning.
#[derive(Debug)]
pub enum ContestError {
    /// The output folder, or the temporary one, is not writable.
    Folder(PathBuf, std::io::Error),
    /// The record cannot be saved.
    Store(StoreError),
    /// The CPUs named in the file are not available.
    Cpus(String),
    /// The record to go on with is of another contest, in this respect.
    Changed(&'static str),
}

impl fmt::Display for ContestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path, error) => {
                write!(f, "{}: {error}; choose another with --output", path.display())
            }
            Self::Store(error) => write!(f, "{error}"),
            Self::Cpus(why) => write!(f, "{why}"),
            Self::Changed(what) => {
                write!(f, "--continue: {what} changed since; begin again without it")
            }
        }
    }
}

impl std::error::Error for ContestError {}

/// Runs a contest. Each run is appended to the record in the output folder, so that no measurement
/// is lost; [`Record::cut`] says whether it ended early.
///
/// - `goes_on`: whether the record in the output folder is continued: its runs are kept, and those
///   that are missing are added.
/// - `stop`: ends it early, after everything that it started.
/// - `on_event`: receives its events.
///
/// # Errors
/// It could not begin.
pub fn run(
    contest: &ContestSpec,
    tools: &Tools,
    goes_on: bool,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(ContestEvent<'_>),
) -> Result<Record, ContestError> {
    let (servers, generator) = (contest.server_cpus.as_deref(), contest.generator_cpus.as_deref());
    let division =
        cpus::divide(&cpus::allowed(), servers, generator).map_err(ContestError::Cpus)?;
    let output = &contest.output;
    let logs = output.join("logs");
    let of_folder = |error| ContestError::Folder(output.clone(), error);
    fs::create_dir_all(&logs).map_err(of_folder)?;
    environment::raise_descriptors();
    let mut record = begin(contest, tools, &division);
    let path = output.join(RECORD);
    if goes_on {
        take_over(&mut record, store::read(&path).map_err(ContestError::Store)?)?;
    }
    let runner = ServerRunner::build(contest, tools, stop, division, logs)
        .map_err(|error| ContestError::Folder(std::env::temp_dir(), error))?;
    // The previous measurement is kept for comparison, if there is one.
    let _ = fs::rename(&path, output.join(PREVIOUS));
    let file = RecordFile::create(&path, &record).map_err(ContestError::Store)?;
    let until = Instant::now() + contest.time_limit;
    let (begun, before_s) = (Instant::now(), record.took_s);
    let mut round =
        ContestRun { contest, runner, record, file, begun, before_s, until, stop, on_event };
    let prepared = round.prepare();
    let kept = round.file.describe(&round.record).map_err(|error| unkept(&error));
    match prepared.and(kept).and_then(|()| round.measure()) {
        Ok(()) => {}
        Err(cut) => {
            (round.on_event)(ContestEvent::Line(&cut));
            round.record.cut = Some(cut);
        }
    }
    round.record.verdicts = reach::judge(contest, &round.record);
    round.record.took_s = round.took_s();
    // A full disk was reported already, and the lines before are intact.
    let described = round.file.describe(&round.record);
    let _ = described.and_then(|()| round.file.end(&round.record));
    Ok(round.record)
}

/// Takes the runs of an earlier record of the same contest over.
fn take_over(record: &mut Record, earlier: Record) -> Result<(), ContestError> {
    let names = |of: &Record| -> Vec<String> {
        let contenders = of.contenders.iter().map(|one| one.name.clone());
        contenders.chain(of.scenarios.iter().map(|one| one.sentence.clone())).collect()
    };
    let what = if earlier.file != record.file {
        "the contest’s file"
    } else if names(&earlier) != names(record) {
        "the selection of contenders and scenarios"
    } else if (&earlier.tool, &earlier.environment.commit)
        != (&record.tool, &record.environment.commit)
    {
        "the program that measures"
    } else {
        record.started_unix_s = earlier.started_unix_s;
        record.took_s = earlier.took_s;
        record.runs = earlier.runs;
        return Ok(());
    };
    Err(ContestError::Changed(what))
}

fn unkept(error: &StoreError) -> String {
    format!(
        "the record could not be kept any further: {error}; free some space and go on with \
         --continue"
    )
}

/// Returns a record without measurements.
fn begin(contest: &ContestSpec, tools: &Tools, division: &cpus::CpuSplit) -> Record {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let contender = |of: &ContenderSpec| record::ContenderRecord {
        name: of.name.clone(),
        about: of.about.clone(),
        tuning: of.tuning.clone(),
        command: of.command.clone(),
        version: None,
        fate: Fate::Ran,
    };
    let scenario = |of: &ScenarioSpec| record::ScenarioRecord {
        name: of.name.clone(),
        title: of.title.clone(),
        body_bytes: of.page.as_ref().map_or(0, PageSpec::bytes),
        connections: of.connections,
        keep_alive: of.keep_alive,
        model: of.model.word().to_owned(),
        sentence: of.sentence(),
        sweep: of.sweep.clone(),
        contenders: of.contenders.clone(),
    };
    Record {
        format: record::FORMAT,
        tool: concat!("gustnado ", env!("CARGO_PKG_VERSION")).to_owned(),
        title: contest.title.clone(),
        about: contest.about.clone(),
        started_unix_s: now.as_secs_f64(),
        took_s: 0.0,
        cut: None,
        environment: environment::read(division, &tools.program),
        method: method::sentences(contest, division),
        file: contest.text.clone(),
        reference: contest.reference.clone(),
        contenders: contest.contenders.iter().map(contender).collect(),
        scenarios: contest.scenarios.iter().map(scenario).collect(),
        runs: Vec::new(),
        verdicts: Vec::new(),
    }
}

/// A contest under way. Errors are sentences that say why it ends early.
struct ContestRun<'a> {
    contest: &'a ContestSpec,
    runner: ServerRunner<'a>,
    record: Record,
    file: RecordFile,
    begun: Instant,
    /// Seconds that the contest had taken before it was continued.
    before_s: f64,
    until: Instant,
    stop: &'a AtomicBool,
    on_event: &'a mut dyn FnMut(ContestEvent<'_>),
}

const INTERRUPTED: &str = "interrupted: what was measured by then is kept";

impl ContestRun<'_> {
    /// Starts and checks each contender once. The reference comes first, because its response may
    /// be the measure of the others'.
    fn prepare(&mut self) -> Result<(), String> {
        let contest = self.contest;
        self.runner.set_up().map_err(|unmeasured| match unmeasured {
            Unmeasured::Fate(Fate::Failed(why)) => format!("its set_up {why}"),
            _ => INTERRUPTED.to_owned(),
        })?;
        let mut order: Vec<usize> = (0..contest.contenders.len()).collect();
        order.sort_by_key(|at| contest.contenders[*at].name != contest.reference);
        for at in order {
            let contender = &contest.contenders[at];
            self.check_time()?;
            match self.runner.prepare(contender) {
                Ok(version) => self.record.contenders[at].version = version,
                Err(unmeasured) => {
                    self.exclude(at, unmeasured)?;
                    continue;
                }
            }
            match self.runner.check(contender) {
                Ok(command) => {
                    self.record.contenders[at].command = command;
                    let version = self.record.contenders[at].version.clone().unwrap_or_default();
                    let name = &contender.name;
                    self.line(&format!("{name}: ready, the same bytes; {version}"));
                }
                Err(unmeasured) => self.exclude(at, unmeasured)?,
            }
        }
        for (at, scenario) in contest.scenarios.iter().enumerate() {
            self.record.scenarios[at].body_bytes = self.runner.body_bytes(scenario);
        }
        Ok(())
    }

    /// Records that a contender does not take part.
    fn exclude(&mut self, at: usize, unmeasured: Unmeasured) -> Result<(), String> {
        let Unmeasured::Fate(fate) = unmeasured else { return Err(INTERRUPTED.to_owned()) };
        let name = &self.record.contenders[at].name;
        let line = match &fate {
            Fate::Ran => format!("{name}: ready"),
            Fate::NotInstalled(why) => format!("{name}: not installed: {why}"),
            Fate::Failed(why) => format!("{name}: left out: {why}"),
            Fate::Unequal(why) => format!("{name}: left out, not the same work: {why}"),
        };
        self.line(&line);
        self.record.contenders[at].fate = fate;
        Ok(())
    }

    /// Runs all scenarios; in each all rounds; in each all contenders, one after the other.
    fn measure(&mut self) -> Result<(), String> {
        let contest = self.contest;
        let pairs = contest.contenders.iter().zip(&self.record.contenders);
        let taking_part = pairs.filter(|(_, known)| known.fate == Fate::Ran);
        let contenders: Vec<&ContenderSpec> = taking_part.map(|(contender, _)| contender).collect();
        let all: usize = contest
            .scenarios
            .iter()
            .map(|of| {
                of.rounds as usize * contenders.iter().filter(|one| of.has(&one.name)).count()
            })
            .sum();
        let (mut done, mut measured, begun) = (0, 0, Instant::now());
        for scenario in &contest.scenarios {
            let mut running = BTreeMap::new();
            for round in 1..=scenario.rounds {
                for contender in contenders.iter().filter(|one| scenario.has(&one.name)) {
                    self.check_time()?;
                    done += 1;
                    if self.has_run(contender, scenario, round) {
                        continue;
                    }
                    measured += 1;
                    let run = self.one_run(contender, scenario, round, &mut running)?;
                    let line = table::progress(&run, scenario.connections);
                    self.line(&format!("{done}/{all} {line}"));
                    let each = begun.elapsed() / measured;
                    let left = each * u32::try_from(all - done).unwrap_or(u32::MAX);
                    (self.on_event)(ContestEvent::Progress { done, all, left });
                    let kept = self.file.run(self.took_s(), &run);
                    self.record.runs.push(run);
                    kept.map_err(|error| unkept(&error))?;
                }
            }
        }
        Ok(())
    }

    /// - `running`: servers that stay up between rounds, if the file says so.
    fn one_run(
        &self,
        contender: &ContenderSpec,
        scenario: &ScenarioSpec,
        round: u32,
        running: &mut BTreeMap<String, ReadyServer>,
    ) -> Result<RunRecord, String> {
        if let Some(why) = generator::missing(scenario) {
            let fate = Fate::NotInstalled(format!("not measured: {why}"));
            return Ok(run_without_result(contender, scenario, round, &fate));
        }
        let ready = match running.remove(&contender.name) {
            Some(ready) => Ok(ready),
            None => self.runner.start(contender, scenario),
        };
        let measured = ready.and_then(|mut ready| {
            let mut run = self.runner.measure(contender, &mut ready, scenario, round)?;
            if run.outcome.is_some() {
                self.runner.count(contender, &ready, scenario, &mut run)?;
            }
            if !self.contest.fresh && run.outcome.is_some() {
                running.insert(contender.name.clone(), ready);
            }
            Ok(run)
        });
        match measured {
            Ok(run) => Ok(run),
            Err(Unmeasured::Interrupted) => Err(INTERRUPTED.to_owned()),
            Err(Unmeasured::Fate(fate)) => {
                Ok(run_without_result(contender, scenario, round, &fate))
            }
        }
    }

    fn line(&mut self, line: &str) {
        (self.on_event)(ContestEvent::Line(line));
    }

    fn check_time(&self) -> Result<(), String> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(INTERRUPTED.to_owned());
        }
        if Instant::now() > self.until {
            let limit = self.contest.time_limit.as_secs_f64() / 60.0;
            return Err(format!("its time_limit of {limit:.1} minutes was over"));
        }
        Ok(())
    }

    /// Returns whether a run is in the record already, because the contest was continued.
    fn has_run(&self, contender: &ContenderSpec, scenario: &ScenarioSpec, round: u32) -> bool {
        let wanted = (&contender.name, &scenario.name, round);
        self.record.runs.iter().any(|run| (&run.contender, &run.scenario, run.round) == wanted)
    }

    fn took_s(&self) -> f64 {
        self.before_s + self.begun.elapsed().as_secs_f64()
    }
}

/// Estimates the duration of a contest, for its first line.
pub fn estimate(contest: &ContestSpec) -> Duration {
    const AROUND: Duration = Duration::from_millis(1_500);
    let of = |scenario: &ScenarioSpec| {
        let length = match scenario.requests {
            Some(_) => scenario.duration.min(Duration::from_secs(5)),
            None => scenario.duration,
        };
        let part = contest.contenders.iter().filter(|one| scenario.has(&one.name)).count();
        let runs = scenario.rounds * u32::try_from(part).unwrap_or(u32::MAX);
        (length + scenario.warm_up + AROUND) * runs
    };
    contest.scenarios.iter().map(of).sum()
}

/// Returns the file with a contender's output.
pub fn log_of(output: &Path, contender: &str) -> PathBuf {
    output.join("logs").join(format!("{}.log", slug(contender)))
}
