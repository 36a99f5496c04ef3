//! A record indexed for a report: runs by scenario and contender, and failures in words.

use std::fmt;

use crate::figures::grouped;
use crate::outcome::Errors;
use crate::plot::units::ValueUnit;
use crate::record::{ContenderRecord, Fate, Record, RunRecord, ScenarioRecord};
use crate::statistics::spread::spread;
use crate::statistics::{self, ContenderFigures};

/// Maximum length of a reason below a plot; tables have it in full.
const REASON_CHARS_MAX: usize = 80;

/// A record with derived values.
pub(super) struct View<'a> {
    pub(super) record: &'a Record,
    /// The contender that ratios refer to.
    pub(super) reference: &'a str,
    pub(super) rows: Vec<ContenderFigures>,
}

/// Median and range of a value over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianRange {
    pub(super) median: f64,
    /// `None` of a single round.
    pub(super) ends: Option<(f64, f64)>,
}

impl<'a> View<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        let reference = statistics::reference::choose(record);
        Self { record, reference, rows: statistics::summarise(record) }
    }

    /// Returns the figures of one contender in one scenario.
    pub(super) fn row(
        &self,
        scenario: &ScenarioRecord,
        contender: &ContenderRecord,
    ) -> Option<&ContenderFigures> {
        self.rows
            .iter()
            .find(|row| row.scenario == scenario.name && row.contender == contender.name)
    }

    /// Returns the runs of one contender in one scenario.
    pub(super) fn runs(
        &self,
        scenario: &ScenarioRecord,
        contender: &ContenderRecord,
    ) -> impl Iterator<Item = &'a RunRecord> {
        let (scenario, contender) = (scenario.name.clone(), contender.name.clone());
        self.record
            .runs
            .iter()
            .filter(move |run| run.scenario == scenario && run.contender == contender)
    }

    /// Returns the contenders with their indices.
    pub(super) fn contenders(&self) -> impl Iterator<Item = (usize, &'a ContenderRecord)> {
        self.record.contenders.iter().enumerate()
    }

    /// Number of rounds that were begun.
    pub(super) fn rounds(&self) -> u32 {
        self.record.runs.iter().map(|run| run.round).max().unwrap_or(0)
    }

    /// Returns the failed requests over all rounds; `None` without any.
    pub(super) fn failed(
        &self,
        scenario: &ScenarioRecord,
        contender: &ContenderRecord,
    ) -> Option<FailedRequests> {
        let mut errors = Errors::default();
        let mut sent = 0;
        for outcome in self.runs(scenario, contender).filter_map(|run| run.outcome.as_ref()) {
            sent += outcome.sent.max(outcome.requests + outcome.errors.total());
            add(&mut errors, &outcome.errors);
        }
        if errors.total() == 0 {
            return None;
        }
        let kinds: Vec<String> = errors
            .named()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{name} {}", grouped(count)))
            .collect();
        Some(FailedRequests { count: errors.total(), sent, kinds: kinds.join(", ") })
    }

    /// Returns whether a contender's figures in a scenario can be compared with others.
    pub(super) fn is_compared(
        &self,
        scenario: &ScenarioRecord,
        contender: &ContenderRecord,
    ) -> bool {
        let row = self.row(scenario, contender);
        let is_whole = row.is_some_and(|row| row.missing.is_none() && row.unfit.is_none());
        is_whole && !is_unequal(contender)
    }

    /// Returns the contenders of a scenario that can be compared, with their indices.
    pub(super) fn compared(
        &self,
        scenario: &ScenarioRecord,
    ) -> impl Iterator<Item = (usize, &'a ContenderRecord)> {
        self.contenders().filter(|(_, contender)| self.is_compared(scenario, contender))
    }

    /// Returns why a contender's figures in a scenario cannot be compared; `None` if they can, or
    /// if it takes no part.
    pub(super) fn reason(
        &self,
        scenario: &ScenarioRecord,
        contender: &ContenderRecord,
    ) -> Option<String> {
        let row = self.row(scenario, contender)?;
        if contender.fate != Fate::Ran {
            return Some(fate(contender).0.to_owned());
        }
        row.missing.clone().or_else(|| row.unfit.clone())
    }

    /// Names the contenders that are not drawn in a plot of some scenarios, and why, in a
    /// sentence; `None` if all are.
    pub(super) fn undrawn(&self, scenarios: &[&ScenarioRecord]) -> Option<String> {
        let mut all = Vec::new();
        for (_, contender) in self.contenders() {
            let reasons = scenarios
                .iter()
                .filter_map(|scenario| Some((*scenario, self.reason(scenario, contender)?)));
            let reasons: Vec<_> = reasons.collect();
            let Some((first, why)) = reasons.first() else { continue };
            let mut why = why.trim_end_matches('.').to_owned();
            if let Some((cut, _)) = why.char_indices().nth(REASON_CHARS_MAX) {
                why.truncate(cut);
                why.push('…');
            }
            let place = match reasons.len() {
                _ if contender.fate != Fate::Ran || scenarios.len() == 1 => String::new(),
                1 => format!(" in “{}”", first.title),
                many => format!(" in “{}”, and {} more", first.title, many - 1),
            };
            all.push(format!("{} ({why}{place})", contender.name));
        }
        (!all.is_empty()).then(|| format!("Not compared: {}.", all.join(", ")))
    }

    /// Describes the method of a scenario and the drawn part of its rounds: the subtitle of a plot.
    pub(super) fn measured(&self, scenario: &ScenarioRecord) -> String {
        let rounds = match self.rounds() {
            0 => "Nothing was measured.".to_owned(),
            1 => "One round.".to_owned(),
            many => format!("Median of {many} rounds, with the least and the greatest."),
        };
        format!("{} {rounds}", self.modelled(scenario))
    }

    /// Names the model of a scenario, and pipelining.
    pub(super) fn modelled(&self, scenario: &ScenarioRecord) -> String {
        let sentence = scenario.sentence.trim().trim_end_matches('.');
        let pipelining = self.pipelining(&[scenario]);
        format!("Model: {} – {sentence}. {pipelining}", scenario.model)
    }

    /// Describes pipelining in a sentence.
    pub(super) fn pipelining(&self, scenarios: &[&ScenarioRecord]) -> String {
        let depth = self
            .record
            .runs
            .iter()
            .filter(|run| scenarios.iter().any(|scenario| scenario.name == run.scenario))
            .filter_map(|run| run.outcome.as_ref())
            .map(|outcome| outcome.model.pipeline)
            .max();
        match depth {
            Some(depth) if depth > 1 => {
                format!("PIPELINED: {depth} requests at once on each connection.")
            }
            Some(_) => "No pipelining.".to_owned(),
            None => String::new(),
        }
    }
}

fn add(sum: &mut Errors, more: &Errors) {
    sum.refused += more.refused;
    sum.unconnected += more.unconnected;
    sum.no_port += more.no_port;
    sum.handshake += more.handshake;
    sum.reset += more.reset;
    sum.timed_out += more.timed_out;
    sum.short += more.short;
    sum.status += more.status;
    sum.length += more.length;
    sum.body += more.body;
    sum.unreadable += more.unreadable;
}

impl MedianRange {
    /// Returns that of values over rounds; `None` without values. NaN is left out.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let finite: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let found = spread(&finite)?;
        let ends = (finite.len() > 1).then_some((found.low, found.high));
        Some(Self { median: found.median, ends })
    }
}

/// Names a contender's fate in two or three words, with the reason.
pub(super) fn fate(contender: &ContenderRecord) -> (&'static str, &str) {
    match &contender.fate {
        Fate::Ran => ("took part", ""),
        Fate::NotInstalled(why) => ("not installed", why),
        Fate::Failed(why) => ("did not run", why),
        Fate::Unequal(why) => ("not the same work", why),
    }
}

/// Returns whether a contender's figures are not comparable, and are drawn hollow.
pub(super) fn is_unequal(contender: &ContenderRecord) -> bool {
    matches!(contender.fate, Fate::Unequal(_))
}

/// Returns a sentence with the minimum and maximum of named values.
pub(super) fn ends_sentence(values: &[(&str, f64)], unit: ValueUnit) -> String {
    let order = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let (Some(least), Some(most)) = (values.iter().min_by(order), values.iter().max_by(order))
    else {
        return "nothing could be measured".to_owned();
    };
    let (low, high) = (unit.write(least.1), unit.write(most.1));
    if values.len() == 1 {
        return format!("{low} with {}", least.0);
    }
    format!("from {low} with {} to {high} with {}", least.0, most.0)
}

/// Failed requests over all rounds. Its `Display` is `3 of 1,000 requests failed (reset 3)`.
#[derive(Clone, Debug)]
pub(super) struct FailedRequests {
    pub(super) count: u64,
    sent: u64,
    /// Their number by kind.
    kinds: String,
}

impl FailedRequests {
    /// The text after the count in a narrow column: `of 1,000 (reset 3)`.
    pub(super) fn rest(&self) -> String {
        format!("of {} ({})", grouped(self.sent), self.kinds)
    }
}

impl fmt::Display for FailedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, sent) = (grouped(self.count), grouped(self.sent));
        write!(f, "{count} of {sent} requests failed ({})", self.kinds)
    }
}
