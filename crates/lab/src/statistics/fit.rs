//! Selects the rounds and the rows that can be compared.
//!
//! A round in which a hypervisor took CPU time is void, and is left out if others remain. A server
//! that failed, did not serve or hold all connections, or responded outside the measured time, did
//! other work than the others: its row has figures but no ratio, and no ratio refers to it.

use crate::figures::{counted, grouped, grouped_text, percent, real};
use crate::outcome::{ConnectionCounts, Outcome};
use crate::record::RunRecord;
use crate::steal::VOID;

/// Share of the connections that must be served, and held, for a run to be comparable.
const SERVED_MIN: f64 = 0.99;
/// Share of the requests that may have their response outside the measured time, and the number
/// below which it is chance.
const OUTSIDE_MAX: f64 = 0.01;
const OUTSIDE_COUNT: f64 = 10.0;

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

/// Returns why a row is not comparable, in a few words; `None` if it is.
pub(super) fn unfit(runs: &[&RunRecord]) -> Option<String> {
    let outcomes = || runs.iter().filter_map(|run| run.outcome.as_ref());
    let failures: u64 = outcomes().map(|outcome| outcome.errors.total()).sum();
    let mut why = Vec::new();
    if failures > 0 {
        why.push(counted(failures, "failure"));
    }
    // Of several rounds, the one that served the fewest connections.
    let shares = outcomes().map(|outcome| (outcome, served_share(outcome)));
    let worst = shares.min_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut reasons: Vec<String> = worst.iter().flat_map(|(of, _)| other_work(of)).collect();
    if reasons.is_empty() {
        reasons = outcomes().map(other_work).find(|of| !of.is_empty()).unwrap_or_default();
    }
    why.extend(reasons);
    let without = runs.iter().filter(|run| run.outcome.is_none()).count();
    // Without any, the row has no figures, and says why.
    if (1..runs.len()).contains(&without) {
        why.push(format!("no result in {without} of {} rounds", runs.len()));
    }
    if runs.iter().any(|run| run.outcome.is_some() && run.failure.is_some()) {
        why.push("it did not run to the end".to_owned());
    }
    if why.is_empty() && runs.iter().all(|run| void(run).is_some()) && !runs.is_empty() {
        why.push("every round is void".to_owned());
    }
    (!why.is_empty()).then(|| why.join(", "))
}

/// Returns why the handshakes of a row were other work than those of the reference: they agreed on
/// another cipher or, where each request has its own, on another key exchange. `None` if they did
/// not.
pub(super) fn other_handshakes(runs: &[&RunRecord], reference: &[&RunRecord]) -> Option<String> {
    let agreed = |run: &&RunRecord| {
        let outcome = run.outcome.as_ref()?;
        let tls = outcome.tls.as_ref()?;
        let group = Some(&tls.group).filter(|_| !outcome.model.keep_alive);
        Some(group.map_or(tls.cipher.clone(), |group| format!("{group} and {}", tls.cipher)))
    };
    let other = reference.iter().find_map(agreed)?;
    let own = runs.iter().filter_map(agreed).find(|own| *own != other)?;
    let name = &reference.first()?.contender;
    Some(format!("TLS agreed on {own}, and with {name} on {other}"))
}

/// Returns why a run did other work than it was to do, failures apart. Empty if it did the same.
pub(crate) fn other_work(outcome: &Outcome) -> Vec<String> {
    let mut why = Vec::new();
    match &outcome.connections {
        Some(connections) => why.extend(unserved(outcome, connections)),
        // Of another generator, or an older record.
        None if outcome.connections_unserved > 0 => why.push(format!(
            "{} of {} never had a response",
            grouped(outcome.connections_unserved),
            counted(outcome.model.connections, "connection")
        )),
        None => {}
    }
    if let Some(held) = &outcome.held {
        let to_end = held.opened.saturating_sub(held.lost);
        if is_short(to_end, held.asked) {
            why.push(format!(
                "{} of {} were held to the end",
                grouped(to_end),
                counted(held.asked, "idle connection")
            ));
        }
    }
    why.extend(outside(outcome));
    why.extend(missed_rate(outcome));
    why
}

/// The share of the connections that were served, or held, whichever is less.
fn served_share(outcome: &Outcome) -> f64 {
    let share = |count: u64, all: u64| if all > 0 { real(count) / real(all) } else { 1.0 };
    let served = outcome.connections.as_ref().map_or(1.0, |of| {
        share(of.served, of.due).min(share(of.held.unwrap_or(of.asked), of.asked))
    });
    let held = outcome.held.as_ref();
    let held = held.map_or(1.0, |of| share(of.opened.saturating_sub(of.lost), of.asked));
    served.min(held)
}

fn is_short(count: u64, all: u64) -> bool {
    real(count) < SERVED_MIN * real(all)
}

fn unserved(outcome: &Outcome, connections: &ConnectionCounts) -> Vec<String> {
    let ConnectionCounts { asked, due, served, held, .. } = *connections;
    let mut why = Vec::new();
    if is_short(served, due) {
        why.push(format!(
            "{} of {} had a response while measuring ({})",
            grouped(served),
            counted(due, "connection"),
            cause(outcome, connections)
        ));
    }
    if let Some(held) = held.filter(|held| is_short(*held, asked)) {
        why.push(format!(
            "{} of {} were held to the end",
            grouped(held),
            counted(asked, "connection")
        ));
    }
    why
}

/// The most probable cause of connections without a response.
fn cause(outcome: &Outcome, connections: &ConnectionCounts) -> String {
    let errors = &outcome.errors;
    let dropped = outcome.kernel.listen_overflows.max(outcome.kernel.listen_drops);
    if errors.refused + errors.reset > 0 {
        let count = grouped(errors.refused + errors.reset);
        return format!("connection limit of the server: {count} refused or reset");
    }
    if outcome.responses_in_window() < 1.0 {
        return "it answered outside the measured time".to_owned();
    }
    if dropped > 0 {
        let handshakes = counted(dropped, "handshake");
        return format!("accept stall: the kernel dropped {handshakes} at its full queue");
    }
    if is_short(connections.opened, connections.asked) || errors.timed_out > 0 {
        let count = counted(errors.timed_out, "request");
        return format!("time-outs: {} opened, {count} without a response", connections.opened);
    }
    "connection limit or accept stall of the server: the others were open and waited".to_owned()
}

/// Requests whose CPU falls into the measured time and whose responses do not, or the other way
/// round. A steady load has as many under way at its end as at its begin.
fn outside(outcome: &Outcome) -> Option<String> {
    let ended = outcome.responses_in_window() + real(outcome.errors.total());
    let outside = real(outcome.sent) - ended;
    // At a fixed rate there are more at the end, unless there was a warm-up.
    let under_way = outcome.model.rate_per_s.map_or(0.0, |rate| outcome.under_way_more(rate));
    (outside > OUTSIDE_COUNT + under_way && outside > OUTSIDE_MAX * real(outcome.sent)).then(|| {
        format!(
            "{} of {} had no response within the measured time",
            grouped_text(&format!("{outside:.0}")),
            counted(outcome.sent, "request")
        )
    })
}

/// A rate that was not reached: the server had less to do than others that reached it.
fn missed_rate(outcome: &Outcome) -> Option<String> {
    let rate = outcome.model.rate_per_s.filter(|_| outcome.steps.is_empty())?;
    let ended = outcome.responses_in_window() + real(outcome.errors.total());
    outcome.misses_rate(rate, ended).then(|| {
        format!(
            "the rate was not reached: {:.1} of {rate:.1} requests per second had a response",
            outcome.requests_per_s
        )
    })
}
