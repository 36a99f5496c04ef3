//! Chooses the contender that ratios refer to.

use super::Measured;
use crate::record::{Fate, Record};

/// Returns the contender that ratios refer to: the one that the contest's file names, unless
/// another one can be compared in more scenarios. A reference with failures would leave a scenario
/// without any ratio.
pub fn choose(record: &Record) -> &str {
    let unfit = |name: &str| {
        let measured = record.scenarios.iter().map(|scenario| Measured::of(record, name, scenario));
        measured.filter(|one| !one.has_outcome() || one.unfit().is_some()).count()
    };
    let taking_part = record.contenders.iter().filter(|one| one.fate == Fate::Ran);
    let ranked = taking_part.map(|one| ((unfit(&one.name), one.name != record.reference), one));
    match ranked.min_by_key(|(rank, _)| *rank) {
        Some(((unfit, _), one)) if unfit < record.scenarios.len() => &one.name,
        _ => &record.reference,
    }
}
