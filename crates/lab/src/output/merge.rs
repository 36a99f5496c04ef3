//! Merges runs: adds their requests and errors, and their latencies into one histogram.
//!
//! Inputs are objects of [`json`] and logs of `HdrHistogram` V2, in any mixture.

use super::histogram::{self, HistogramLogError};
use super::json::{self, OutcomeJsonError};
use super::table::{TableText, failures};
use super::tables;
use crate::figures::{bytes, decimal, grouped, ms, real};
use crate::outcome::{Errors, FORMAT, Latency, Outcome};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
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
    /// Successful and complete responses.
    pub requests: u64,
    /// Time in which at least one run measured; overlaps count once.
    pub duration_s: f64,
    /// Successful responses within the measurement of their run, per second of `duration_s`.
    pub requests_per_s: f64,
    /// All errors; left out if a file is a log, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// Bytes received; left out if a file is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
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
        let outcomes = || parts.iter().map(|(_, part)| part.outcome.as_deref());
        let count =
            |part: &RunFile| part.outcome.as_ref().map_or(part.histogram.len(), |o| o.requests);
        let requests = parts.iter().map(|(_, part)| count(part)).sum();
        let in_window = |part: &RunFile| match &part.outcome {
            Some(outcome) => outcome.responses_in_window(),
            None => real(part.histogram.len()),
        };
        let responded: f64 = parts.iter().map(|(_, part)| in_window(part)).sum();
        let duration_s = covered(parts.iter().flat_map(|(_, part)| part.spans.iter().copied()));
        let rate = if duration_s > 0.0 { responded / duration_s } else { 0.0 };
        Ok(Self {
            format: FORMAT,
            files: parts.iter().map(|(name, _)| name.clone()).collect(),
            requests,
            duration_s,
            requests_per_s: rate,
            errors: outcomes()
                .map(|outcome| Some(&outcome?.errors))
                .try_fold(Errors::default(), |sum, errors| Some(added(&sum, errors?))),
            bytes_received: outcomes().map(|outcome| Some(outcome?.bytes_received)).sum(),
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

fn added(one: &Errors, other: &Errors) -> Errors {
    Errors {
        refused: one.refused + other.refused,
        unconnected: one.unconnected + other.unconnected,
        no_port: one.no_port + other.no_port,
        reset: one.reset + other.reset,
        timed_out: one.timed_out + other.timed_out,
        short: one.short + other.short,
        status: one.status + other.status,
        length: one.length + other.length,
        body: one.body + other.body,
        unreadable: one.unreadable + other.unreadable,
    }
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
