//! A contest's file: TOML with contenders and scenarios.
//!
//! This module parses and validates it, and reports all its mistakes at once, each with its line.
//! It does not run anything.

mod duration;
mod error;
mod keys;
pub mod presets;
mod sentence;
mod settle;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::{FileError, FileProblem};

/// The longest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// A contest as its file says it, with presets filled in and sweeps spread out.
#[derive(Clone, Debug, PartialEq)]
pub struct ContestSpec {
    /// What it is about, in a line.
    pub title: String,
    /// Text below the title. May be empty.
    pub about: String,
    /// The name of the contender that ratios are to.
    pub reference: String,
    /// How often each scenario is measured for each contender, 1 to 100.
    pub rounds: u32,
    /// The folder that gets everything.
    pub output: PathBuf,
    /// Whether a server is started anew for each run.
    pub fresh: bool,
    /// How long all of it may take.
    pub time_limit: Duration,
    /// The CPUs of the servers; none: chosen.
    pub server_cpus: Option<Vec<u32>>,
    /// The CPUs of the generator; none: chosen.
    pub generator_cpus: Option<Vec<u32>>,
    /// What is asked for.
    pub page: PageSpec,
    /// Who takes part.
    pub contenders: Vec<ContenderSpec>,
    /// What is asked of them.
    pub scenarios: Vec<ScenarioSpec>,
    /// The folder that the file is in: what `{here}` stands for.
    pub folder: PathBuf,
    /// The file's own text.
    pub text: String,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageSpec {
    /// A file of that many bytes, made by the contest.
    Bytes(u64),
    /// This file, copied.
    File(PathBuf),
    /// Whatever the contenders have at this path; the answer of the reference is the right one.
    Path(String),
}

impl PageSpec {
    /// How long it is; 0 where that is only known once somebody has answered.
    pub(super) fn bytes(&self) -> u64 {
        if let Self::Bytes(bytes) = self { *bytes } else { 0 }
    }
}

/// A server that is to take part. Texts hold `{port}` and the like still.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContenderSpec {
    /// Its name, unique.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// `untuned`, `tuned` or nothing.
    pub tuning: String,
    /// The programs that it needs.
    pub needs: Vec<String>,
    /// Commands that succeed where it is installed.
    pub installed_if: Vec<Vec<String>>,
    /// How to install it.
    pub install: String,
    /// What starts it, in the foreground.
    pub command: Vec<String>,
    /// What prints its version.
    pub version: Vec<String>,
    /// What is run once before its first start.
    pub set_up: Vec<Vec<String>>,
    /// Files that are written before each start, by path.
    pub files: BTreeMap<String, String>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// Where the page is.
    pub url: String,
    /// The Unix socket that it listens on, instead of the URL's host.
    pub unix_socket: Option<String>,
    /// How long starting may take.
    pub ready_timeout: Duration,
    /// How long it has after TERM before KILL.
    pub stop_timeout: Duration,
    /// Why it takes part though its answers are not the same.
    pub allow_unequal: Option<String>,
}

/// What is asked of each contender.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioSpec {
    /// Its short name, unique.
    pub name: String,
    /// The same for people.
    pub title: String,
    /// The sweep that it is a point of.
    pub sweep: Option<String>,
    /// What is asked for, where it is not the page of the contest.
    pub page: Option<PageSpec>,
    /// Who makes the load.
    pub generator: GeneratorKind,
    /// How load is made.
    pub model: ModelSpec,
    /// Connections that ask; where idle ones are held, those.
    pub connections: u64,
    /// Where idle ones are held, connections that ask among them.
    pub probes: u64,
    /// Requests per second, where that is given.
    pub rate: Option<f64>,
    /// After so many requests it ends.
    pub requests: Option<u64>,
    /// After so long it ends.
    pub duration: Duration,
    /// Load before measuring.
    pub warm_up: Duration,
    /// Whether connections carry more than one request.
    pub keep_alive: bool,
    /// Requests under way at once on each connection.
    pub pipeline: u32,
    /// Threads of the generator; none: as many as it has CPUs.
    pub threads: Option<u32>,
    /// How often it is measured.
    pub rounds: u32,
    /// More arguments for the generator.
    pub arguments: Vec<String>,
}

/// Who makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorKind {
    /// `gustnado bench`.
    Own,
    /// `ApacheBench`, which the older experiments used.
    Ab,
}

/// How load is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelSpec {
    /// Each connection asks again as soon as it has its answer.
    Closed,
    /// At a fixed rate.
    Open,
    /// Idle connections are held, and others ask.
    Hold,
    /// Each request has its own connection.
    Churn,
}

impl ModelSpec {
    /// The word for it in a file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Hold => "hold",
            Self::Churn => "churn",
        }
    }
}

/// Reads a contest's file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(path: &Path) -> Result<ContestSpec, FileError> {
    let text = read_text(path)?;
    parse(path, &text)
}

/// Makes a contest of a file's text. Paths in it are relative to the file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(path: &Path, text: &str) -> Result<ContestSpec, FileError> {
    let keys::Checked { document, left, problems } = keys::check(path, text, &keys::CONTEST)?;
    let (shape, problems) = shape::read_whole(path, left, problems)?;
    settle::contest(path, text, (&document, problems), shape)
}

/// Makes a contender of a preset's text.
pub(super) fn parse_preset(name: &str, text: &str) -> Result<ContenderSpec, FileError> {
    let path = PathBuf::from(format!("{name}.toml"));
    let keys::Checked { left, problems, .. } = keys::check(&path, text, &keys::CONTENDER)?;
    let (shape, problems) = shape::read_whole(&path, left, problems)?;
    if !problems.is_empty() {
        return Err(FileError::new(&path, problems));
    }
    Ok(settle::plain_contender(shape))
}

fn read_text(path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| FileError::unreadable(path, &error))?;
    file.take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| FileError::unreadable(path, &error))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(FileError::too_large(path, BYTES_MAX));
    }
    Ok(text)
}
