//! Warnings about a run whose figures mean less than they seem to.
#![expect(clippy::cast_precision_loss, reason = "what a run counts stays far below 2^53")]

use super::counts::LatencyHistogram;
use super::standstill::Standstill;
use super::totals::Totals;
use crate::figures::{counted, grouped, grouped_text, percent};
use crate::outcome::{Kernel, Outcome};
use crate::plan::{HttpVersion, LoadModel, LoadPlan, StopCondition};
use crate::steal::WORTH_A_WORD;

/// A standstill of all connections is a stall from this many times the median latency on.
const STALL_RATIO: f64 = 100.0;
/// Before a stall, requests had been under way for this many times the median at most, or this
/// long.
const STALL_LAG_RATIO: f64 = 10.0;
const STALL_LAG_S: f64 = 0.001;

/// Returns all reasons for which the figures mean less than they seem to.
pub(super) fn warnings(
    plan: &LoadPlan,
    totals: &Totals,
    outcome: &Outcome,
    latency: &LatencyHistogram,
) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(early(plan, totals, outcome));
    found.extend(stolen(outcome));
    found.extend(unserved(totals, outcome));
    found.extend(hidden_stall(plan, totals, outcome, latency));
    found.extend(missed_rate(plan, totals, outcome));
    found.extend(knee(outcome));
    found.extend(ports(totals));
    found.extend(odd_connections(plan, totals, outcome));
    found.extend(kernel_words(&outcome.kernel));
    found.extend(sent_again(outcome));
    if totals.cut > 0 {
        found.push(format!(
            "The trace holds {} requests only; {} more were not kept.",
            grouped(totals.entries.len() as u64),
            grouped(totals.cut)
        ));
    }
    found
}

fn early(plan: &LoadPlan, totals: &Totals, outcome: &Outcome) -> Option<String> {
    let seconds = outcome.duration_s;
    if totals.gave_up {
        return Some("It was given up: nothing could be connected to for 10 s.".to_owned());
    }
    let StopCondition { requests, after } = plan.end;
    let all_asked = requests.is_some_and(|all| totals.done >= all);
    let in_time = after.is_some_and(|after| seconds + 0.05 >= after.as_secs_f64());
    let ramp = plan.ramp_length().is_some_and(|all| seconds + 0.05 >= all as f64 / 1e9);
    (!all_asked && !in_time && !ramp).then(|| {
        format!("It was stopped early after {seconds:.1} s: these are the figures until then.")
    })
}

/// Steal time of a hypervisor.
fn stolen(outcome: &Outcome) -> Option<String> {
    (outcome.steal_share >= WORTH_A_WORD).then(|| {
        format!(
            "The hypervisor took {} of this machine's CPU time meanwhile: latencies and rates hold \
             that, too. Measure again when its host has less to do.",
            percent(outcome.steal_share)
        )
    })
}

/// Connections that were not served: the figures leave them out.
fn unserved(totals: &Totals, outcome: &Outcome) -> Option<String> {
    let never = totals.requesting - totals.served;
    if never > 0 {
        return Some(format!(
            "{} of {} never had a response: the figures are those of the others alone, and say \
             nothing about this number of connections.",
            grouped(never),
            counted(totals.requesting, "connection")
        ));
    }
    let connections = outcome.connections.as_ref()?;
    (connections.served < connections.due).then(|| {
        format!(
            "Only {} of {} had a response while measuring: the figures are those of fewer \
             connections.",
            grouped(connections.served),
            counted(connections.due, "connection")
        )
    })
}

/// Coordinated omission of a closed loop: while the whole server stood still, it sent no requests
/// that would have waited. A single slow response is no stall, because the other connections
/// continue.
fn hidden_stall(
    plan: &LoadPlan,
    totals: &Totals,
    outcome: &Outcome,
    latency: &LatencyHistogram,
) -> Option<String> {
    let is_closed =
        matches!(plan.load, LoadModel::Closed | LoadModel::Hold { rate_per_s: None, .. });
    // With a single connection it is unknown whether another one would have been served.
    if !is_closed || totals.requesting < 2 {
        return None;
    }
    let median_s = latency.0.value_at_percentile(50.0).max(1) as f64 / 1e6;
    // Requests that were under way for long before are slow ones; the server did not stand still.
    let lag_s = STALL_LAG_S.max(STALL_LAG_RATIO * median_s);
    let is_stall = |standstill: &&Standstill| standstill.lag as f64 / 1e9 <= lag_s;
    let standstills = totals.standstills.iter().flatten().filter(is_stall);
    let lengths =
        standstills.map(|standstill| standstill.to.saturating_sub(standstill.from) as f64 / 1e9);
    let long = lengths.filter(|length| *length > STALL_RATIO * median_s);
    let (longest, sum) = long.fold((0.0_f64, 0.0), |(most, sum), one| (most.max(one), sum + one));
    let moved_s = outcome.duration_s - sum;
    if longest == 0.0 || moved_s <= 0.0 {
        return None;
    }
    let missing = sum * outcome.responses_in_window() / moved_s;
    let share = 100.0 * missing / (missing + outcome.responses_in_window());
    Some(format!(
        "The closed loop hides a stall: for {:.0} ms no connection had a response, and the median \
         is {:.3} ms, and meanwhile some {} requests were not sent that would have waited \
         ({share:.0} % of all). The percentiles lack them; measure with --rate to see them.",
        longest * 1e3,
        median_s * 1e3,
        grouped_text(&format!("{missing:.0}")),
    ))
}

fn missed_rate(plan: &LoadPlan, totals: &Totals, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let is_ramp = matches!(plan.load, LoadModel::Ramp { .. });
    if let Some(rate) = plan.last_rate().filter(|_| !is_ramp)
        && plan.end.requests.is_none_or(|all| totals.done < all)
        && outcome.misses_rate(rate, totals.in_window as f64)
    {
        found.push(format!(
            "The rate was not reached: {:.1} of {rate:.1} requests per second had a response in \
             time.",
            outcome.requests_per_s
        ));
    }
    if totals.unsent > 0 && !is_ramp {
        found.push(format!(
            "{} requests were due and never sent, for no connection was free: their latencies are \
             the time until the end. Give more connections, or a lower rate.",
            grouped(totals.unsent)
        ));
    }
    if totals.unanswered > 0 {
        let latencies = match plan.last_rate() {
            Some(_) => "their latencies are the time that they have waited",
            None => "no latency holds them",
        };
        found.push(format!(
            "{} had no response by the end, nor in 3 s after it: {latencies}.",
            counted(totals.unanswered, "request")
        ));
    }
    found
}

fn knee(outcome: &Outcome) -> Option<String> {
    let steps = &outcome.steps;
    let (first, last) = (steps.first()?, steps.last()?);
    if !steps.iter().any(|step| step.kept_up) {
        return Some(format!(
            "The ramp never kept up, not even at {} requests per second: begin lower.",
            first.rate_per_s
        ));
    }
    steps.iter().all(|step| step.kept_up).then(|| {
        format!(
            "The ramp found no knee: the server kept up to {} requests per second. Go higher.",
            last.rate_per_s
        )
    })
}

fn ports(totals: &Totals) -> Option<String> {
    (totals.errors.no_port > 0).then(|| {
        format!(
            "Local ports ran out {} times: closed connections keep theirs for a minute. On \
             loopback say --source 127.0.0.0/24, or keep connections alive.",
            grouped(totals.errors.no_port)
        )
    })
}

fn odd_connections(plan: &LoadPlan, totals: &Totals, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    if totals.opening.missing > 0 {
        found.push(format!(
            "{} were not open after {:.1} s of opening. Their requests count as failed until they \
             are.",
            counted(totals.opening.missing, "connection"),
            totals.opening.took as f64 / 1e9,
        ));
    }
    if totals.unmade > 0 {
        found.push(format!(
            "{} to connect failed while no request was due.",
            counted(totals.unmade, "attempt")
        ));
    }
    if totals.strays > 0 {
        found.push(format!(
            "On {} connections more came than was requested; they were closed.",
            grouped(totals.strays)
        ));
    }
    if let Some(held) = &outcome.held {
        if held.opened < held.asked {
            found.push(format!(
                "Only {} of {} connections could be held.",
                grouped(held.opened),
                grouped(held.asked)
            ));
        }
        if held.lost > 0 {
            found.push(format!(
                "{} held connections were closed by the server; see its time-out for idle ones.",
                grouped(held.lost)
            ));
        }
    }
    if plan.pipeline > 1 && plan.http != HttpVersion::Http2 && plan.websocket.is_none() {
        found.push(format!(
            "Requests were pipelined {} deep, which no browser does: compare only with the same.",
            plan.pipeline
        ));
    }
    found
}

fn kernel_words(kernel: &Kernel) -> Vec<String> {
    let all = "on the whole machine, which may have other work";
    let mut found = Vec::new();
    if kernel.listen_overflows + kernel.listen_drops > 0 {
        found.push(format!(
            "The kernel dropped {} at full listening sockets ({all}): the server \
             accepts too slowly, or its backlog is short (somaxconn).",
            counted(kernel.listen_overflows.max(kernel.listen_drops), "handshake")
        ));
    }
    if kernel.syn_cookies > 0 {
        found.push(format!(
            "The kernel sent {} ({all}): handshakes came faster than \
             tcp_max_syn_backlog allows.",
            counted(kernel.syn_cookies, "SYN cookie")
        ));
    }
    found
}

fn sent_again(outcome: &Outcome) -> Option<String> {
    let count = outcome.retransmits.filter(|count| *count > 0)?;
    Some(format!(
        "{} had to be sent again on these connections: some latencies hold a time-out of TCP.",
        counted(count, "segment")
    ))
}
