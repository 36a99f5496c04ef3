//! Selects the rounds that can be compared.
//!
//! A round in which a hypervisor took CPU time is void, and is left out if others remain. A server
//! that failed, or did not serve all connections, did other work than the others: its row has
//! figures but no ratio, and no ratio refers to it.

use crate::figures::{counted, grouped, percent};
use crate::record::RunRecord;
use crate::steal::VOID;

/// Returns why a round is void, in a sentence; `None` if it is valid.
pub(super) fn void(run: &RunRecord) -> Option<String> {
    let measured = run.outcome.as_ref().map_or(0.0, |outcome| outcome.steal_share);
    let share = run.usage.steal_share.max(measured);
    (share >= VOID).then(|| {
        format!(
            "Round {} is void: the hypervisor took {} of the machine's CPU time.",
            run.round,
            percent(share)
        )
    })
}

/// Returns why a row has no ratio, in a few words; `None` if it has one.
pub(super) fn unfit(runs: &[&RunRecord]) -> Option<String> {
    let outcomes = || runs.iter().filter_map(|run| run.outcome.as_ref());
    let failures: u64 = outcomes().map(|outcome| outcome.errors.total()).sum();
    let most = |of: fn(&crate::outcome::Outcome) -> u64| outcomes().map(of).max().unwrap_or(0);
    let unserved = most(|outcome| outcome.connections_unserved);
    let missing = most(|outcome| outcome.connections_missing);
    let held = |outcome: &crate::outcome::Outcome| {
        outcome.held.as_ref().map_or(0, |held| held.asked.saturating_sub(held.opened) + held.lost)
    };
    let unheld = outcomes().map(held).max().unwrap_or(0);
    let mut why = Vec::new();
    if failures > 0 {
        why.push(counted(failures, "failure"));
    }
    if unserved > 0 {
        let all = most(|outcome| outcome.model.connections);
        why.push(format!(
            "{} of {} never had a response",
            grouped(unserved),
            counted(all, "connection")
        ));
    }
    if missing > 0 {
        why.push(format!("{} were not open when the load started", counted(missing, "connection")));
    }
    if unheld > 0 {
        why.push(format!("{} could not be held", counted(unheld, "connection")));
    }
    if runs.iter().any(|run| run.outcome.is_some() && run.failure.is_some()) {
        why.push("it did not run to the end".to_owned());
    }
    if why.is_empty() && runs.iter().all(|run| void(run).is_some()) && !runs.is_empty() {
        why.push("every round is void".to_owned());
    }
    (!why.is_empty()).then(|| why.join(", "))
}
