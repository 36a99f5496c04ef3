//! The result of a contest: `contest.jsonl`, from which reports and comparisons are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// Version of the format; a reader refuses another one. Since 2 the record has a line for each run.
pub const FORMAT: u32 = 2;

/// The results of a contest, as far as it came.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// Name and version of the program that measured.
    pub tool: String,
    /// Title of the contest.
    pub title: String,
    /// Text below the title. May be empty.
    pub about: String,
    /// Begin, in seconds since 1970-01-01.
    pub started_unix_s: f64,
    /// Duration.
    pub took_s: f64,
    /// Cause of an early end (interrupted, disk full), if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The machine.
    pub environment: Environment,
    /// Method of measurement, in sentences.
    pub method: Vec<String>,
    /// The text of the contest's file.
    pub file: String,
    /// Name of the contender that ratios refer to.
    pub reference: String,
    /// Contenders, in the order of the file.
    pub contenders: Vec<ContenderRecord>,
    /// Scenarios, in the order of the file.
    pub scenarios: Vec<ScenarioRecord>,
    /// All runs, in chronological order.
    pub runs: Vec<RunRecord>,
    /// The figures to reach, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<ReachVerdict>,
}

/// A figure to reach, and what was found.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ReachVerdict {
    /// [`ScenarioRecord::name`].
    pub scenario: String,
    /// The contender that is judged.
    pub contender: String,
    /// The contender that it is compared with: then the figure and its limit are factors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What is judged, with its unit.
    pub quantity: String,
    /// The limit.
    pub limit: f64,
    /// Whether the limit is the least figure; otherwise it is the greatest.
    pub is_least: bool,
    /// The figure; `None` if there is none.
    pub found: Option<f64>,
    /// The 95 % interval of a factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Whether it was reached. A missing figure is not.
    pub is_met: bool,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The machine and its settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Environment {
    /// CPU model.
    pub cpu: String,
    /// Number of available CPUs.
    pub cpus: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Frequency governor of the CPU, if there is one.
    pub governor: Option<String>,
    /// The distribution.
    pub system: Option<String>,
    /// Limits on descriptors of a process: soft and hard.
    pub descriptors: (u64, u64),
    /// Kernel settings that matter for many connections, by name.
    pub sysctls: BTreeMap<String, String>,
    /// CPUs of the servers and of the generator; the same if they are shared.
    pub server_cpus: Vec<u32>,
    /// See `server_cpus`.
    pub generator_cpus: Vec<u32>,
    /// Commit of this program's sources, if known.
    pub commit: Option<String>,
}

/// A contender in a record.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ContenderRecord {
    /// Its name in all tables and plots.
    pub name: String,
    /// Description in a sentence.
    pub about: String,
    /// `untuned` (as the distribution packages it), `tuned` (as its documentation advises), or
    /// empty.
    pub tuning: String,
    /// Its command line, with placeholders replaced.
    pub command: Vec<String>,
    /// First line of its version command.
    pub version: Option<String>,
    /// Its fate.
    pub fate: Fate,
}

/// The fate of a contender.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "state", content = "why", rename_all = "kebab-case")]
pub enum Fate {
    /// It took part in all runs.
    Ran,
    /// Its program is not installed.
    NotInstalled(String),
    /// It did not start, was not ready in time, or died.
    Failed(String),
    /// Its responses differ from those of the reference: not the same work.
    Unequal(String),
}

/// A scenario in a record.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ScenarioRecord {
    /// Short unique name.
    pub name: String,
    /// Title, as it is shown.
    pub title: String,
    /// Bytes of the requested body.
    pub body_bytes: u64,
    /// Connections; for a scenario with idle ones, those.
    pub connections: u64,
    /// Whether connections carry more than one request.
    pub keep_alive: bool,
    /// `closed`, `open`, `ramp`, `hold` or `churn`.
    pub model: String,
    /// The model in one sentence.
    pub sentence: String,
    /// The sweep that this scenario is a point of, if it is: points of one name make one line,
    /// drawn over `connections`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<String>,
    /// The contenders that take part; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contenders: Vec<String>,
}

/// One contender in one round of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct RunRecord {
    /// [`ContenderRecord::name`].
    pub contender: String,
    /// [`ScenarioRecord::name`].
    pub scenario: String,
    /// Number of the round, from 1.
    pub round: u32,
    /// The generator's outcome; `None` if it has none.
    pub outcome: Option<Outcome>,
    /// Cause of a missing outcome, or its fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Resource usage of the server.
    pub usage: Usage,
}

/// Resource usage of a server during a run: the sum over its processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Usage {
    /// User CPU seconds under load.
    pub cpu_user_s: f64,
    /// System CPU seconds under load.
    pub cpu_system_s: f64,
    /// Whether these cover the measured time alone, as after a warm-up; else the whole run.
    #[serde(default)]
    pub is_of_window: bool,
    /// Share of the whole machine's CPU time that its hypervisor gave to others, 0 to 1.
    #[serde(default)]
    pub steal_share: f64,
    /// Memory (proportional set size) before the first connection.
    pub memory_before_bytes: u64,
    /// Peak memory.
    pub memory_peak_bytes: u64,
    /// Peak number of descriptors.
    pub descriptors_peak: u64,
    /// Peak number of threads.
    pub threads_peak: u64,
    /// Number of processes.
    pub processes: u64,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_forced: u64,
    /// Instructions in user space for each request, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_request: Option<f64>,
    /// System calls for each request, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls_per_request: Option<f64>,
    /// Time series.
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
