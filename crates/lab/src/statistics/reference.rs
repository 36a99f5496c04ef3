//! Chooses the contender that ratios refer to.

use super::Measured;
use crate::record::{Fate, Record};

/// Returns the contender that ratios refer to: the one that the contest's file names. If that one
/// failed in a scenario, which would leave it without any ratio, it is the contender that can be
/// compared in most scenarios.
pub fn choose(record: &Record) -> &str {
    let named = record.reference.as_str();
    let (fit, failed) = counts(record, named);
    if failed == 0 && fit > 0 {
        return named;
    }
    let mut best = (named, fit);
    for contender in record.contenders.iter().filter(|one| one.fate == Fate::Ran) {
        let (fit, _) = counts(record, &contender.name);
        if fit > best.1 {
            best = (&contender.name, fit);
        }
    }
    best.0
}

/// Returns the number of scenarios in which a contender can be compared, and in which it failed.
fn counts(record: &Record, name: &str) -> (usize, usize) {
    let mut counts = (0, 0);
    for scenario in &record.scenarios {
        let measured = Measured::of(record, name, scenario);
        if measured.has_outcome() && measured.unfit().is_none() {
            counts.0 += 1;
        } else if !measured.runs.is_empty() {
            counts.1 += 1;
        }
    }
    counts
}
