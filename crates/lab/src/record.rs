//! The result of a contest: `contest.json`, from which reports and comparisons are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// The version of this shape; a reader refuses one it does not know.
pub const FORMAT: u32 = 1;

/// Everything that one contest found, as far as it came.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// Name and version of the program that measured.
    pub tool: String,
    /// What the contest is about.
    pub title: String,
    /// Its text below the title: why, and what is to be looked at. May be empty.
    pub about: String,
    /// Seconds since 1970-01-01.
    pub started_unix_s: f64,
    /// How long all of it took.
    pub took_s: f64,
    /// Why it ended early (interrupted, disk full), if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The machine.
    pub environment: Environment,
    /// How it was measured, in sentences.
    pub method: Vec<String>,
    /// The text of the contest's file.
    pub file: String,
    /// The contender that ratios are to.
    pub reference: String,
    /// Who took part, in the order of the file.
    pub contenders: Vec<ContenderRecord>,
    /// What was asked of them, in the order of the file.
    pub scenarios: Vec<ScenarioRecord>,
    /// Every measurement, in the order in which they were made.
    pub runs: Vec<RunRecord>,
}

/// The machine and its settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Environment {
    /// The model of the CPU.
    pub cpu: String,
    /// CPUs that may be used.
    pub cpus: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// The governor of the CPU's frequency, where there is one.
    pub governor: Option<String>,
    /// The distribution.
    pub system: Option<String>,
    /// Descriptors that a process may have: soft and hard limit.
    pub descriptors: (u64, u64),
    /// Settings of the kernel by name, those that matter to many connections.
    pub sysctls: BTreeMap<String, String>,
    /// The CPUs of the servers and those of the generator; the same where they are not apart.
    pub server_cpus: Vec<u32>,
    /// See `server_cpus`.
    pub generator_cpus: Vec<u32>,
    /// The commit of this program's sources, if known.
    pub commit: Option<String>,
}

/// A server that took part, or was to.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ContenderRecord {
    /// Its name in all tables and plots.
    pub name: String,
    /// What it is and how it is set up, in a sentence.
    pub about: String,
    /// `untuned` (as the distribution has it) or `tuned` (as its own documentation advises), or
    /// empty.
    pub tuning: String,
    /// The command it was started with, `{port}` and the like filled in.
    pub command: Vec<String>,
    /// The first line that its version command printed.
    pub version: Option<String>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a contender.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "state", content = "why", rename_all = "kebab-case")]
pub enum Fate {
    /// It took part in all that was measured.
    Ran,
    /// Its program is not on this machine.
    NotInstalled(String),
    /// It did not start, was not ready in time, or died.
    Failed(String),
    /// Its answers are not those of the reference: not the same work.
    Unequal(String),
}

/// What was asked of each contender.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ScenarioRecord {
    /// Its short name, unique.
    pub name: String,
    /// The same for people.
    pub title: String,
    /// Bytes of the body that is asked for.
    pub body_bytes: u64,
    /// Connections at once; for a scenario that holds idle ones, those.
    pub connections: u64,
    /// Whether connections carry more than one request.
    pub keep_alive: bool,
    /// `closed`, `open`, `ramp`, `hold` or `churn`.
    pub model: String,
    /// The model in one sentence.
    pub sentence: String,
    /// The sweep this scenario is a point of, if it is: points of one name make one line, drawn
    /// over `connections`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<String>,
}

/// One contender in one round of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct RunRecord {
    /// [`ContenderRecord::name`].
    pub contender: String,
    /// [`ScenarioRecord::name`].
    pub scenario: String,
    /// 1 and up.
    pub round: u32,
    /// What the generator found; `None` where it could not measure.
    pub outcome: Option<Outcome>,
    /// Why there is no outcome, or what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What the server used meanwhile.
    pub usage: Usage,
}

/// What a server used while it was measured: the sum over its processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Usage {
    /// Seconds of CPU in user space while the load ran.
    pub cpu_user_s: f64,
    /// Seconds of CPU in the kernel.
    pub cpu_system_s: f64,
    /// Whether these are of the time of measuring alone, as after a warm-up; else of all of the
    /// run.
    #[serde(default)]
    pub is_of_window: bool,
    /// The share of the whole machine's CPU time that its hypervisor gave to others, 0 to 1.
    #[serde(default)]
    pub steal_share: f64,
    /// Memory (proportional set size) before the first connection.
    pub memory_before_bytes: u64,
    /// The most memory it had.
    pub memory_peak_bytes: u64,
    /// The most descriptors it had open.
    pub descriptors_peak: u64,
    /// The most threads it had.
    pub threads_peak: u64,
    /// Its processes.
    pub processes: u64,
    /// Context switches it asked for by waiting.
    pub switches_voluntary: u64,
    /// Context switches that were forced on it.
    pub switches_forced: u64,
    /// Over time.
    pub samples: Vec<Sample>,
}

/// A server at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Sample {
    /// Seconds since the load began.
    pub at_s: f64,
    /// CPU seconds used since the load began, user and system.
    pub cpu_s: f64,
    /// Memory (proportional set size).
    pub memory_bytes: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}
