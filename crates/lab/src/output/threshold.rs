//! Thresholds of a run: it failed if `p99>5ms` holds.

use super::histogram::decoded;
use crate::figures::{decimal, percent, real};
use crate::outcome::Outcome;
use std::fmt;

/// The metrics of a threshold, apart from latency percentiles (`p0` to `p100`).
pub const METRICS: [&str; 7] = ["min", "mean", "max", "errors", "error_rate", "rps", "rate"];

/// A condition under which a run has failed: metric, comparison and bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    metric: Metric,
    operator: Operator,
    /// In microseconds, as a count, a share, or per second, by the metric.
    bound: f64,
    /// The text as written.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Percentile(f64),
    Min,
    Mean,
    Max,
    Errors,
    ErrorRate,
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// The result of a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdResult {
    /// The bound was kept.
    Kept,
    /// The run has failed; holds the value found, with its unit.
    Struck(String),
    /// There is no value: the run has no successful response.
    Nothing,
}

impl Threshold {
    /// Parses a threshold such as `p99>5ms`, `error_rate >= 1%` or `rps<1000`.
    ///
    /// Latencies are `pN`, `min`, `mean` and `max`, with bounds in `us`, `ms` or `s`. `errors` is
    /// compared with a count, `error_rate` with a share (`0.01` or `1%`) of all requests that
    /// ended, `rps` (or `rate`) with successful responses per second. A request without a response
    /// at the end of the run is an error here.
    ///
    /// # Errors
    /// [`ThresholdError`] has the position of the mistake and what was expected there.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let fail = |at: usize, expected: ExpectedToken| {
            let at = at + 1;
            Err(ThresholdError { text: text.to_owned(), at, expected })
        };
        let Some(split) = text.find(['>', '<', '=', '!']) else {
            return fail(text.chars().count(), ExpectedToken::Operator);
        };
        let (name, rest) = text.split_at(split);
        let Some(metric) = Metric::of(name.trim()) else {
            let begin = name.chars().take_while(|c| c.is_whitespace()).count();
            return fail(begin, ExpectedToken::Metric(name.trim().to_owned()));
        };
        let Some((operator, bound)) = Operator::split(rest) else {
            return fail(name.chars().count(), ExpectedToken::Operator);
        };
        let blank = bound.len() - bound.trim_start().len();
        let at = text[..text.len() - bound.len() + blank].chars().count();
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let bound = bound.trim();
        let end = bound.find(|c| !digits(c)).unwrap_or(bound.len());
        let (number, unit) = bound.split_at(end);
        let Ok(number) = number.parse::<f64>() else {
            return fail(at, ExpectedToken::Number);
        };
        let Some(factor) = metric.factor(unit.trim(), number) else {
            return fail(at + end, ExpectedToken::Unit(metric.units()));
        };
        Ok(Self { metric, operator, bound: number * factor, text: text.trim().to_owned() })
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the threshold for a run.
    pub fn evaluate(&self, outcome: &Outcome) -> ThresholdResult {
        match self.metric.measured(outcome) {
            None => ThresholdResult::Nothing,
            Some(found) if self.operator.holds(found, self.bound) => {
                ThresholdResult::Struck(self.metric.written(found))
            }
            Some(_) => ThresholdResult::Kept,
        }
    }
}

impl Metric {
    fn of(name: &str) -> Option<Self> {
        let percentile = || name.strip_prefix('p')?.parse::<f64>().ok();
        match name {
            "min" => Some(Self::Min),
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Max),
            "errors" => Some(Self::Errors),
            "error_rate" => Some(Self::ErrorRate),
            "rps" | "rate" => Some(Self::Rate),
            _ => percentile().filter(|p| (0.0..=100.0).contains(p)).map(Self::Percentile),
        }
    }

    fn is_time(self) -> bool {
        matches!(self, Self::Percentile(_) | Self::Min | Self::Mean | Self::Max)
    }

    /// The factor of a bound's unit.
    fn factor(self, unit: &str, number: f64) -> Option<f64> {
        match unit {
            "us" | "µs" if self.is_time() => Some(1.0),
            "ms" if self.is_time() => Some(1e3),
            "s" if self.is_time() => Some(1e6),
            // Zero needs no unit.
            "" if self.is_time() => (number == 0.0).then_some(1.0),
            "%" if self == Self::ErrorRate => Some(0.01),
            "/s" if self == Self::Rate => Some(1.0),
            "" => Some(1.0),
            _ => None,
        }
    }

    fn units(self) -> &'static str {
        match self {
            Self::ErrorRate => "a share such as 0.01 or 1%",
            Self::Errors => "a count without a unit",
            Self::Rate => "requests per second, without a unit or with /s",
            _ => "a unit: us, ms or s",
        }
    }

    fn measured(self, outcome: &Outcome) -> Option<f64> {
        let latency = &outcome.latency_us;
        let errors = real(outcome.errors.total() + outcome.unanswered);
        let ended = errors + real(outcome.requests);
        if self.is_time() && latency.count == 0 || self == Self::ErrorRate && ended == 0.0 {
            return None;
        }
        match self {
            Self::Percentile(percentile) => at(outcome, percentile),
            Self::Min => Some(latency.min),
            Self::Mean => Some(latency.mean),
            Self::Max => Some(latency.max),
            Self::Errors => Some(errors),
            Self::ErrorRate => Some(errors / ended),
            Self::Rate => Some(outcome.requests_per_s),
        }
    }

    fn written(self, found: f64) -> String {
        match self {
            Self::Errors => format!("{found:.0}"),
            Self::ErrorRate => percent(found),
            Self::Rate => format!("{} /s", decimal(found)),
            _ if found < 1_000.0 => format!("{found:.0} us"),
            _ if found < 1e6 => format!("{:.3} ms", found / 1e3),
            _ => format!("{:.3} s", found / 1e6),
        }
    }
}

/// The latency at a percentile: from the outcome, else from its histogram.
fn at(outcome: &Outcome, percentile: f64) -> Option<f64> {
    let said = outcome.latency_us.percentiles.get(&percentile.to_string()).copied();
    let counted = || Some(real(decoded(&outcome.histogram).ok()?.value_at_percentile(percentile)));
    said.or_else(counted)
}

impl Operator {
    /// Splits the operator off the beginning of a text.
    fn split(text: &str) -> Option<(Self, &str)> {
        let all =
            [(">=", Self::AtLeast), ("<=", Self::AtMost), (">", Self::Above), ("<", Self::Below)];
        all.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)))
    }

    fn holds(self, found: f64, bound: f64) -> bool {
        match self {
            Self::Above => found > bound,
            Self::AtLeast => found >= bound,
            Self::Below => found < bound,
            Self::AtMost => found <= bound,
        }
    }
}

/// A mistake in a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError {
    text: String,
    /// Position of the first wrong character, from 1.
    pub at: usize,
    /// The syntax that was expected there.
    pub expected: ExpectedToken,
}

/// The part that was expected in a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectedToken {
    /// The name of a metric; this was found.
    Metric(String),
    /// One of the four comparisons.
    Operator,
    /// A number.
    Number,
    /// One of these units.
    Unit(&'static str),
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, at) = (&self.text, self.at);
        write!(f, "{text:?}, character {at}: expected ")?;
        match &self.expected {
            ExpectedToken::Metric(found) => {
                let names = METRICS.join(", ");
                write!(f, "a percentile (p50, p99.9, …) or one of {names}; found {found:?}")
            }
            ExpectedToken::Operator => f.write_str("one of >, >=, < and <="),
            ExpectedToken::Number => f.write_str("a number"),
            ExpectedToken::Unit(units) => f.write_str(units),
        }
    }
}

impl std::error::Error for ThresholdError {}

#[cfg(test)]
mod tests;
