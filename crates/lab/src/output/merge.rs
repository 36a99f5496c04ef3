//! Merges runs: adds their requests and errors, and their latencies into one histogram.
//!
//! Inputs are objects of [`json`] and logs of `HdrHistogram` V2, in any mixture. What cannot be
//! added is left out: summaries without their histogram (`connect_us`, `first_byte_us`), the time
//! series, and the counters of whole machines.

use super::histogram::{self, HistogramLogError};
use super::json::{self, OutcomeJsonError};
use super::table::{TableText, failures};
use super::tables;
use crate::figures::{bytes, decimal, grouped, ms, real};
use crate::outcome::{Errors, FORMAT, Latency, Outcome, success_share};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One run, as far as its file describes it.
#[derive(Clone, Debug)]
pub struct RunFile {
    histogram: Histogram<u64>,
    /// Begin and end, in seconds since 1970-01-01.
    spans: Vec<(f64, f64)>,
    /// A log has none of these.
    outcome: Option<Box<Outcome>>,
}

/// Merged runs: the object that `gustnado bench merge --json` prints.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Merged {
    /// [`FORMAT`].
    pub format: u32,
    /// Names of the files.
    pub files: Vec<String>,
    /// The programs that measured, each once. Empty if all files are logs.
    pub tools: Vec<String>,
    /// The requested URLs, each once. Empty if all files are logs.
    pub urls: Vec<String>,
    /// The models of the runs in a sentence each, each once. Empty if all files are logs.
    pub models: Vec<String>,
    /// When the first run began to measure, in seconds since 1970-01-01.
    pub started_unix_s: f64,
    /// Successful and complete responses.
    pub requests: u64,
    /// Requests sent; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Requests without a response; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<u64>,
    /// Requests that were due and never sent; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent: Option<u64>,
    /// Time in which at least one run measured; overlaps count once.
    pub duration_s: f64,
    /// Successful responses within the measurement of their run, per second of `duration_s`.
    pub requests_per_s: f64,
    /// All errors; left out if a file is a log, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// Share of the requests that ended which succeeded, 0 to 1; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_share: Option<f64>,
    /// Responses by status code; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statuses: Option<BTreeMap<u16, u64>>,
    /// Bytes received; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Bytes received while measuring, per second of `duration_s`; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received_per_s: Option<f64>,
    /// Bytes sent; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Connections opened; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_opened: Option<u64>,
    /// CPU seconds of all generators; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_s: Option<f64>,
    /// The warnings of all runs, each with the name of its file.
    pub warnings: Vec<String>,
    /// Latency of all successful responses.
    pub latency_us: Latency,
    /// Its full histogram: `HdrHistogram` V2, compressed, base64. Values are microseconds.
    pub histogram: String,
}

impl RunFile {
    /// Parses a file that `--json` or `--hgrm` wrote.
    ///
    /// # Errors
    /// [`RunFileError`] for any other text.
    pub fn read(text: &str) -> Result<Self, RunFileError> {
        if text.trim_start().starts_with('{') {
            let outcome = json::read(text).map_err(RunFileError::Json)?;
            let histogram = histogram::decoded(&outcome.histogram).map_err(RunFileError::Log)?;
            let from_s = outcome.started_unix_s;
            let spans = vec![(from_s, from_s + outcome.duration_s)];
            return Ok(Self { histogram, spans, outcome: Some(Box::new(outcome)) });
        }
        let log = histogram::read(text).map_err(RunFileError::Log)?;
        Ok(Self { histogram: log.histogram, spans: log.spans, outcome: None })
    }
}

impl Merged {
    /// Merges runs, each with the name of its file.
    ///
    /// # Errors
    /// [`HistogramLogError`] if histograms cannot be added.
    pub fn of(parts: &[(String, RunFile)]) -> Result<Self, HistogramLogError> {
        let precision = parts.iter().map(|(_, part)| part.histogram.sigfig()).max();
        let mut sum =
            Histogram::new(precision.unwrap_or(3)).map_err(|_| HistogramLogError::Range)?;
        for (_, part) in parts {
            histogram::add(&mut sum, &part.histogram)?;
        }
        let runs = Runs(parts);
        let count =
            |part: &RunFile| part.outcome.as_ref().map_or(part.histogram.len(), |o| o.requests);
        let requests: u64 = parts.iter().map(|(_, part)| count(part)).sum();
        let errors = runs.errors();
        let in_window = |part: &RunFile| match &part.outcome {
            Some(outcome) => outcome.responses_in_window(),
            None => real(part.histogram.len()),
        };
        let responded: f64 = parts.iter().map(|(_, part)| in_window(part)).sum();
        let duration_s = covered(parts.iter().flat_map(|(_, part)| part.spans.iter().copied()));
        let per_s = |count: f64| if duration_s > 0.0 { count / duration_s } else { 0.0 };
        let spans = parts.iter().flat_map(|(_, part)| &part.spans);
        let begun = spans.map(|(from, _)| *from).reduce(f64::min);
        let in_window = |of: &Outcome| Some(of.bytes_received_per_s? * of.duration_s);
        Ok(Self {
            format: FORMAT,
            files: parts.iter().map(|(name, _)| name.clone()).collect(),
            tools: runs.distinct(|of| vec![of.tool.clone()]),
            urls: runs.distinct(|of| of.urls.clone()),
            models: runs.distinct(|of| vec![of.model.sentence.clone()]),
            started_unix_s: begun.unwrap_or(0.0),
            requests,
            sent: runs.sum(|of| of.sent),
            unanswered: runs.sum(|of| of.unanswered),
            unsent: runs.sum(|of| of.unsent),
            duration_s,
            requests_per_s: per_s(responded),
            success_share: errors.as_ref().and_then(|of| success_share(requests, of.total())),
            errors,
            statuses: runs.statuses(),
            bytes_received: runs.sum(|of| of.bytes_received),
            bytes_received_per_s: runs.all(in_window).map(|bytes| per_s(bytes.into_iter().sum())),
            bytes_sent: runs.sum(|of| of.bytes_sent),
            connections_opened: runs.sum(|of| of.connections_opened),
            generator_cpu_s: runs
                .all(|of| Some(of.generator.cpu_s))
                .map(|seconds| seconds.into_iter().sum()),
            warnings: runs.warnings(),
            latency_us: histogram::latency(&sum),
            histogram: histogram::encoded(&sum)?,
        })
    }

    /// Formats the page as text.
    pub fn table(&self) -> String {
        let mut page = TableText(String::new());
        for (index, file) in self.files.iter().enumerate() {
            page.line(if index == 0 { "Merged" } else { "" }, file);
        }
        page.line("Time taken for tests", &format!("{:.3} s", self.duration_s));
        page.line("Complete requests", &grouped(self.requests));
        let unknown = || "not known: a log does not say".to_owned();
        let failed = self.errors.as_ref().map_or_else(unknown, failures);
        page.line("Failed requests", &failed);
        if let Some(received) = self.bytes_received {
            page.line("Total transferred", &format!("{} received", bytes(real(received))));
        }
        page.line("Requests per second", &format!("{} /s (mean)", decimal(self.requests_per_s)));
        page.line("Time per request", &format!("{} ms (mean)", ms(self.latency_us.mean)));
        for warning in &self.warnings {
            page.line("Warning", warning);
        }
        page.gap();
        page.0.push_str(&tables::times(&[("Total", Some(&self.latency_us))]));
        page.gap();
        page.0.push_str(&tables::served(&self.latency_us, None));
        page.0
    }

    /// Formats one JSON object, with a line end.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("its keys are text, and memory is the only sink") + "\n"
    }
}

/// The files that are merged, each with its name.
struct Runs<'a>(&'a [(String, RunFile)]);

impl<'a> Runs<'a> {
    /// Returns the outcomes; a log has none.
    fn outcomes(&self) -> impl Iterator<Item = Option<&'a Outcome>> {
        self.0.iter().map(|(_, part)| part.outcome.as_deref())
    }

    /// Returns a value of each run; `None` if one of them does not have it.
    fn all<T>(&self, value: impl Fn(&Outcome) -> Option<T>) -> Option<Vec<T>> {
        self.outcomes().map(|outcome| value(outcome?)).collect()
    }

    fn sum(&self, count: impl Fn(&Outcome) -> u64) -> Option<u64> {
        self.all(|outcome| Some(count(outcome))).map(|counts| counts.into_iter().sum())
    }

    /// Returns the texts of all runs, each once.
    fn distinct(&self, texts: impl Fn(&Outcome) -> Vec<String>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for text in self.outcomes().flatten().flat_map(texts) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
        found
    }

    fn errors(&self) -> Option<Errors> {
        let all = self.all(|outcome| Some(outcome.errors.clone()))?;
        let mut sum = Errors::default();
        for errors in &all {
            sum.add(errors);
        }
        Some(sum)
    }

    fn statuses(&self) -> Option<BTreeMap<u16, u64>> {
        let mut sum = BTreeMap::new();
        for outcome in self.outcomes() {
            for (status, count) in &outcome?.statuses {
                *sum.entry(*status).or_default() += count;
            }
        }
        Some(sum)
    }

    fn warnings(&self) -> Vec<String> {
        let named = |(name, part): &(String, RunFile)| -> Vec<String> {
            let warnings = part.outcome.iter().flat_map(|outcome| &outcome.warnings);
            warnings.map(|warning| format!("{name}: {warning}")).collect()
        };
        self.0.iter().flat_map(named).collect()
    }
}

/// The total length of the union of intervals.
fn covered(spans: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut spans: Vec<(f64, f64)> = spans.collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut sum, mut reached) = (0.0, f64::NEG_INFINITY);
    for (from, to) in spans {
        sum += (to - from.max(reached)).max(0.0);
        reached = reached.max(to);
    }
    sum
}

/// Error of a file that is not a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunFileError {
    /// It begins as an object, but is not an outcome.
    Json(OutcomeJsonError),
    /// It is not a log.
    Log(HistogramLogError),
}

impl fmt::Display for RunFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected what `gustnado bench` writes with --json or --hgrm; ")?;
        match self {
            Self::Json(error) => write!(f, "as an object: {error}"),
            Self::Log(error) => write!(f, "as a log: {error}"),
        }
    }
}

impl std::error::Error for RunFileError {}
