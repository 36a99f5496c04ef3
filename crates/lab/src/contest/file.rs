//! A contest's file: TOML with contenders and scenarios.
//!
//! This module parses and validates it, and reports all its mistakes at once, each with its line.
//! It does not run anything.

mod declared;
mod drafts;
mod duration;
mod error;
mod keys;
pub mod presets;
mod raw;
mod reference;
mod sentence;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gustnado_client::Http2Use;
use gustnado_http::content_coding::ContentCoding;
use toml::de::DeTable;

pub use error::{FileError, FileProblem};
pub use reference::reference;

/// Maximum length of a file.
const BYTES_MAX: u64 = 1 << 20;

/// A contest from its file, with presets filled in and sweeps expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContestSpec {
    /// Title, one line.
    pub title: String,
    /// Text below the title. May be empty.
    pub about: String,
    /// Name of the contender that ratios refer to.
    pub reference: String,
    /// Rounds of each scenario for each contender, 1 to 100.
    pub rounds: u32,
    /// Output folder.
    pub output: PathBuf,
    /// Whether a server is restarted for each run.
    pub fresh: bool,
    /// Time limit of the contest.
    pub time_limit: Duration,
    /// CPUs of the servers; `None`: chosen.
    pub server_cpus: Option<Vec<u32>>,
    /// CPUs of the generator; `None`: chosen.
    pub generator_cpus: Option<Vec<u32>>,
    /// Commands that run once before everything else.
    pub set_up: Vec<Vec<String>>,
    /// The requested page.
    pub page: PageSpec,
    /// Greatest share by which a response in a content coding may be longer than the first correct
    /// one.
    pub size_tolerance: f64,
    /// The contenders.
    pub contenders: Vec<ContenderSpec>,
    /// The scenarios.
    pub scenarios: Vec<ScenarioSpec>,
    /// The folder that contains the file: the value of `{here}`.
    pub folder: PathBuf,
    /// The text of the file.
    pub text: String,
}

impl ContestSpec {
    /// Returns whether a scenario with this page takes a status for a successful response.
    pub(super) fn accepts(&self, page: Option<&PageSpec>, status: u16) -> bool {
        let of_page = self.scenarios.iter().filter(|one| one.page.as_ref() == page);
        of_page.map(|one| one.accept_status.as_slice()).any(|ranges| match ranges {
            [] => (200..300).contains(&status),
            ranges => ranges.iter().any(|(from, to)| (*from..=*to).contains(&status)),
        })
    }

    /// Returns how a contender is asked whether it is ready: some speak HTTP/2 only.
    pub(super) fn http2_use(&self, contender: &str) -> Http2Use {
        let mut scenarios = self.scenarios.iter().filter(|scenario| scenario.has(contender));
        if scenarios.all(|scenario| scenario.http2) {
            Http2Use::Always
        } else {
            Http2Use::default()
        }
    }
}

/// What is requested: a page, and the content coding that its responses have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedContent {
    /// `None`: the page of the contest.
    pub page: Option<PageSpec>,
    /// `None`: no coding is accepted.
    pub coding: Option<ContentCoding>,
}

/// Content codings that may be requested.
pub(super) const CODINGS: [ContentCoding; 3] =
    [ContentCoding::Gzip, ContentCoding::Brotli, ContentCoding::Zstd];
/// Their words in a file, in the same order.
pub(super) const CODING_WORDS: &[&str] = &["gzip", "br", "zstd"];

/// A requested page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageSpec {
    /// A generated file of that many bytes.
    Bytes(u64),
    /// A copy of this file.
    File(PathBuf),
    /// Content that each contender provides at this path; the reference's response is the correct
    /// one.
    Path(String),
    /// The response to a POST of a body to this path.
    Post(String, BodySpec),
    /// Messages over a WebSocket.
    Messages(MessageSpec),
}

/// Messages over a `WebSocket`, in place of requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageSpec {
    /// The path at which it opens.
    pub path: String,
    /// Bytes of each message.
    pub bytes: u64,
    /// Each is sent to all; otherwise it is sent back.
    pub is_broadcast: bool,
}

impl MessageSpec {
    /// The words for what becomes of a message, `echo` first.
    pub(super) const WORDS: &'static [&'static str] = &["echo", "broadcast"];
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BodySpec {
    /// A text.
    Text(String),
    /// That many bytes.
    Bytes(u64),
}

impl BodySpec {
    /// The bytes that are sent.
    pub(super) fn content(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Bytes(bytes) => vec![b'x'; usize::try_from(*bytes).unwrap_or_default()],
        }
    }
}

impl Default for PageSpec {
    fn default() -> Self {
        Self::Bytes(4_096)
    }
}

impl PageSpec {
    /// Bytes of the page; 0 if they are only known after the first response.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) | Self::Messages(MessageSpec { bytes, .. }) => *bytes,
            _ => 0,
        }
    }

    /// The body of its request.
    pub(super) fn body(&self) -> Option<&BodySpec> {
        if let Self::Post(_, body) = self { Some(body) } else { None }
    }
}

/// A contender. Its texts still hold placeholders such as `{port}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContenderSpec {
    /// Unique name.
    pub name: String,
    /// Description in a sentence.
    pub about: String,
    /// `untuned`, `tuned` or empty.
    pub tuning: String,
    /// Programs that it needs.
    pub needs: Vec<String>,
    /// Commands that succeed if it is installed.
    pub installed_if: Vec<Vec<String>>,
    /// Command or hint that installs it.
    pub install: String,
    /// Command that starts it in the foreground.
    pub command: Vec<String>,
    /// Command that prints its version.
    pub version: Vec<String>,
    /// Commands that run once before its first start.
    pub set_up: Vec<Vec<String>>,
    /// Files that are written before each start, by path.
    pub files: BTreeMap<String, String>,
    /// Additional environment variables.
    pub environment: BTreeMap<String, String>,
    /// URL of the page.
    pub url: String,
    /// Unix socket that it listens on, instead of the URL's host.
    pub unix_socket: Option<String>,
    /// Time-out of its start.
    pub ready_timeout: Duration,
    /// Time between TERM and KILL.
    pub stop_timeout: Duration,
    /// The value of `{cpus}`; `None`: the number of CPUs of the servers.
    pub cpus: Option<u64>,
    /// Reason that it takes part although its responses differ.
    pub allow_unequal: Option<String>,
}

/// A scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioSpec {
    /// Short unique name.
    pub name: String,
    /// Title, as it is shown.
    pub title: String,
    /// The sweep that it is a point of.
    pub sweep: Option<String>,
    /// The requested page, if it is not the page of the contest.
    pub page: Option<PageSpec>,
    /// The content coding that requests accept and responses have.
    pub coding: Option<ContentCoding>,
    /// Names of the contenders that take part; empty: all.
    pub contenders: Vec<String>,
    /// The load generator.
    pub generator: GeneratorKind,
    /// The load model.
    pub model: ModelSpec,
    /// Connections with requests; if idle ones are held, the idle ones.
    pub connections: u64,
    /// If idle ones are held, the connections with requests.
    pub probes: u64,
    /// Requests per second, if set.
    pub rate: Option<f64>,
    /// Ends after this many requests.
    pub requests: Option<u64>,
    /// Ends after this time.
    pub duration: Duration,
    /// Time of load before measuring.
    pub warm_up: Duration,
    /// Whether connections carry more than one request.
    pub keep_alive: bool,
    /// Whether requests use HTTP/2.
    pub http2: bool,
    /// Requests in flight on each connection.
    pub pipeline: u32,
    /// Threads of the generator; `None`: as many as it has CPUs.
    pub threads: Option<u32>,
    /// Number of rounds.
    pub rounds: u32,
    /// Statuses of successful responses, as inclusive ranges. Empty: 2xx.
    pub accept_status: Vec<(u16, u16)>,
    /// Additional arguments of the generator.
    pub arguments: Vec<String>,
    /// What is counted for each request.
    pub counts: Vec<CountKind>,
    /// Requests sent for a count.
    pub count_requests: u64,
    /// Figures to reach.
    pub reach: Vec<ReachSpec>,
}

impl ScenarioSpec {
    /// Returns whether a contender takes part.
    pub fn has(&self, contender: &str) -> bool {
        self.contenders.is_empty() || self.contenders.iter().any(|name| name == contender)
    }

    /// Returns what is requested.
    pub(super) fn representation(&self) -> WantedContent {
        WantedContent { page: self.page.clone(), coding: self.coding }
    }

    /// Returns the arguments that have a generator send the field for the coding. All of them have
    /// this flag.
    pub(super) fn coding_arguments(&self) -> Vec<String> {
        let field = self.coding.map(|coding| format!("Accept-Encoding: {}", coding.name()));
        field.into_iter().flat_map(|field| ["-H".to_owned(), field]).collect()
    }
}

/// A load generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeneratorKind {
    /// `gustnado bench`.
    #[default]
    Own,
    /// `ApacheBench`, which the older experiments used.
    Ab,
    /// `wrk`.
    Wrk,
    /// `h2load`, of nghttp2, with HTTP/1.1 or HTTP/2.
    H2load,
}

impl GeneratorKind {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Own, Self::Ab, Self::Wrk, Self::H2load];
    /// Their words in a file, in the same order.
    pub(super) const WORDS: &'static [&'static str] = &["gustnado", "ab", "wrk", "h2load"];

    /// Its word in a file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Own => "gustnado",
            Self::Ab => "ab",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
        }
    }
}

/// Something that is counted exactly, for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountKind {
    /// Instructions in user space, by callgrind.
    Instructions,
    /// System calls, by strace.
    SystemCalls,
}

impl CountKind {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Instructions, Self::SystemCalls];
    /// Their words in a file, in the same order.
    pub(super) const WORDS: &'static [&'static str] = &["instructions", "system_calls"];

    /// Its word in a file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::SystemCalls => "system_calls",
        }
    }
}

/// Figures that a contender has to reach in a scenario: limits, or factors of another's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReachSpec {
    /// The contender that is judged.
    pub of: String,
    /// The contender that it is compared with.
    pub to: Option<String>,
    /// Most CPU per request.
    pub cpu: Option<f64>,
    /// Most memory for each connection.
    pub memory: Option<f64>,
    /// Least requests per second.
    pub rate: Option<f64>,
    /// Most instructions for each request.
    pub instructions: Option<f64>,
    /// Most system calls for each request.
    pub system_calls: Option<f64>,
}

/// A load model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelSpec {
    /// Closed loop: each connection sends a request as soon as it has a response.
    #[default]
    Closed,
    /// Open loop: requests at a fixed rate.
    Open,
    /// Idle connections are held, while others send requests.
    Hold,
    /// Each request has its own connection.
    Churn,
}

impl ModelSpec {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Closed, Self::Open, Self::Hold, Self::Churn];
    /// Their words in a file, in the same order.
    pub(super) const WORDS: &'static [&'static str] = &["closed", "open", "hold", "churn"];

    /// Its word in a file.
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
/// All its mistakes.
pub fn read(path: &Path) -> Result<ContestSpec, FileError> {
    let text = read_text(path)?;
    parse(path, &text)
}

/// Parses the text of a contest's file. Paths in it are relative to the file.
///
/// # Errors
/// All its mistakes.
pub fn parse(path: &Path, text: &str) -> Result<ContestSpec, FileError> {
    let table = parse_toml(path, text)?;
    settle::contest(path, text, raw::RawTable::of_file(text, &table))
}

/// Parses the text of a preset.
pub(super) fn parse_preset(name: &str, text: &str) -> Result<ContenderSpec, FileError> {
    let path = PathBuf::from(format!("{name}.toml"));
    let table = parse_toml(&path, text)?;
    let mut problems = raw::Problems::default();
    let table = raw::RawTable::of_file(text, &table);
    let (contender, _) = settle::contender(table, &mut problems, settle::plain_contender());
    if problems.found.is_empty() {
        Ok(contender)
    } else {
        Err(FileError::new(&path, problems.found))
    }
}

fn parse_toml<'a>(path: &Path, text: &'a str) -> Result<DeTable<'a>, FileError> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let problem = |error: &toml::de::Error| {
        let line = error.span().map_or(0, |span| raw::line_of(text, span.start));
        FileProblem { line, text: format!("{}; see https://toml.io", error.message().trim()) }
    };
    // Values after a mistake of syntax are often a consequence of it.
    if errors.is_empty() {
        Ok(table.into_inner())
    } else {
        Err(FileError::new(path, errors.iter().map(problem).collect()))
    }
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
