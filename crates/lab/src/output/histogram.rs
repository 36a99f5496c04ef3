//! Latency histograms: as text within JSON, and as interval logs of `HdrHistogram` V2.
//!
//! Values are whole microseconds.

use crate::figures::real;
use crate::outcome::{Latency, Outcome, is_told};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, LogIteratorError, Tag,
};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// The percentiles of a [`Latency`], as its keys.
pub const PERCENTILES: [(&str, f64); 11] = [
    ("50", 50.0),
    ("66", 66.0),
    ("75", 75.0),
    ("80", 80.0),
    ("90", 90.0),
    ("95", 95.0),
    ("98", 98.0),
    ("99", 99.0),
    ("99.9", 99.9),
    ("99.99", 99.99),
    ("100", 100.0),
];

/// The content of a log: the sum of its intervals, the first begin and the last end.
#[derive(Clone, Debug)]
pub struct HistogramLog {
    /// The sum of all intervals.
    pub histogram: Histogram<u64>,
    /// Begin and end of each interval, in seconds since 1970-01-01.
    pub spans: Vec<(f64, f64)>,
}

/// Decodes [`Outcome::histogram`].
///
/// # Errors
/// [`HistogramLogError::Histogram`] for any other text.
pub fn decoded(text: &str) -> Result<Histogram<u64>, HistogramLogError> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| HistogramLogError::Histogram)?;
    Deserializer::new().deserialize(&mut &bytes[..]).map_err(|_| HistogramLogError::Histogram)
}

/// Encodes a histogram for [`decoded`].
///
/// # Errors
/// [`HistogramLogError::Histogram`] if it has more values than the format can hold.
pub fn encoded(histogram: &Histogram<u64>) -> Result<String, HistogramLogError> {
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    written.map_err(|_| HistogramLogError::Histogram)?;
    Ok(STANDARD.encode(bytes))
}

/// Summarises a histogram as outcomes do.
pub fn latency(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let at = |percentile: f64| real(histogram.value_at_percentile(percentile));
    Latency {
        count: histogram.len(),
        min: real(histogram.min()),
        mean: histogram.mean(),
        sd: histogram.stdev(),
        max: real(histogram.max()),
        percentiles: PERCENTILES
            .iter()
            .filter(|(_, number)| is_told(histogram.len(), *number))
            .map(|(name, number)| ((*name).to_owned(), at(*number)))
            .collect(),
    }
}

/// Writes the log of one run, as a single interval.
///
/// # Errors
/// [`HistogramLogError::Histogram`] if the outcome's histogram cannot be decoded.
pub fn log(outcome: &Outcome) -> Result<String, HistogramLogError> {
    let histogram = decoded(&outcome.histogram)?;
    let seconds = |number: f64| Duration::try_from_secs_f64(number).unwrap_or_default();
    let started = UNIX_EPOCH + seconds(outcome.started_unix_s);
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let written = IntervalLogWriterBuilder::new()
        .add_comment(&format!("[{}: latency in microseconds]", outcome.tool))
        .add_comment(&format!("[{}]", outcome.model.sentence))
        .with_start_time(started)
        .with_base_time(started)
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|_| HistogramLogError::Histogram)
        .and_then(|mut log| {
            let took = seconds(outcome.duration_s);
            let tag = None::<Tag<'_>>;
            log.write_histogram(&histogram, Duration::ZERO, took, tag)
                .map_err(|_| HistogramLogError::Histogram)
        });
    written?;
    String::from_utf8(bytes).map_err(|_| HistogramLogError::Histogram)
}

/// Parses a log, of this or another tool that counts microseconds.
///
/// # Errors
/// [`HistogramLogError`] for text that is not a log, or an empty log.
pub fn read(text: &str) -> Result<HistogramLog, HistogramLogError> {
    let mut sum: Option<Histogram<u64>> = None;
    let mut spans = Vec::new();
    let mut base_s = 0.0;
    let number = |offset: usize| text[..offset.min(text.len())].lines().count() + 1;
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        let interval = match entry {
            Ok(LogEntry::Interval(interval)) => interval,
            Ok(LogEntry::BaseTime(base)) => {
                base_s = base.as_secs_f64();
                continue;
            }
            Ok(LogEntry::StartTime(_)) => continue,
            Err(LogIteratorError::ParseError { offset }) => {
                return Err(HistogramLogError::Line(number(offset)));
            }
        };
        let next = decoded(interval.encoded_histogram())?;
        let from_s = base_s + interval.start_timestamp().as_secs_f64();
        spans.push((from_s, from_s + interval.duration().as_secs_f64()));
        match &mut sum {
            None => sum = Some(next),
            Some(sum) => add(sum, &next)?,
        }
    }
    let histogram = sum.ok_or(HistogramLogError::Empty)?;
    Ok(HistogramLog { histogram, spans })
}

/// Adds the values of another histogram of any range.
///
/// # Errors
/// [`HistogramLogError::Range`] if a value is too large for any histogram of this precision.
pub fn add(sum: &mut Histogram<u64>, more: &Histogram<u64>) -> Result<(), HistogramLogError> {
    sum.auto(true);
    sum.add(more).map_err(|_| HistogramLogError::Range)
}

/// Error of a histogram or log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistogramLogError {
    /// This line, from 1, is neither a comment nor an interval.
    Line(usize),
    /// It has no interval.
    Empty,
    /// A histogram is not in the format `HdrHistogram` V2.
    Histogram,
    /// Two histograms cannot be added.
    Range,
}

impl fmt::Display for HistogramLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => {
                write!(f, "line {line}: expected a comment or `start,length,max,histogram`")
            }
            Self::Empty => f.write_str("expected at least one interval, found none"),
            Self::Histogram => {
                f.write_str("expected a histogram of HdrHistogram V2 in base64, found another text")
            }
            Self::Range => f.write_str("its histograms have ranges that cannot be added"),
        }
    }
}

impl std::error::Error for HistogramLogError {}
