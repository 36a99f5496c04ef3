//! Summarises a contest in a few computed sentences.

use super::bars::headlines;
use super::view::{FailedRequests, View, fate, is_unequal};
use crate::plot::units::{ValueUnit, interval_text, times};
use crate::record::{ContenderRecord, Fate, ScenarioRecord};
use crate::statistics::spread::paired;
use crate::statistics::{Column, Ratio, Significance, pairs_of};

/// Returns the verdict in three lines at most: the winners, the first comparison, and those that
/// are not compared.
pub(super) fn lines(view: &View<'_>) -> Vec<String> {
    let mut lines = winners(view);
    lines.extend(uncompared(view));
    lines
}

/// Names the contenders that cannot be compared, in a sentence; `None` if all can.
fn uncompared(view: &View<'_>) -> Option<String> {
    let said = |(_, contender): (usize, &ContenderRecord)| {
        let scenarios = view.record.scenarios.iter();
        let of_it: Vec<_> = scenarios.filter(|one| view.row(one, contender).is_some()).collect();
        let missed = of_it.iter().filter(|one| view.reason(one, contender).is_some()).count();
        let all = of_it.len();
        let (name, words) = (&contender.name, fate(contender).0);
        match contender.fate {
            _ if missed == 0 => None,
            Fate::Ran if missed == all => Some(name.clone()),
            Fate::Ran => Some(format!("{name} in {missed} of {all} scenarios")),
            _ => Some(format!("{name} ({words})")),
        }
    };
    let names: Vec<String> = view.contenders().filter_map(said).collect();
    (!names.is_empty()).then(|| format!("Not compared: {}.", names.join(", ")))
}

/// Names the contenders with the least CPU usage, in two sentences at most.
pub(super) fn winners(view: &View<'_>) -> Vec<String> {
    let winners: Vec<Winner<'_>> =
        view.record.scenarios.iter().filter_map(|scenario| winner(view, scenario)).collect();
    if winners.is_empty() {
        return vec!["Nothing was measured that could be compared.".to_owned()];
    }
    let mut sentences: Vec<String> = Vec::new();
    if winners.len() > 1 && winners.iter().any(Winner::is_told) {
        sentences.push(counted(&winners));
    }
    // The scenario of the first picture, if it has a winner.
    let first = headlines(view).first().map(|scenario| &scenario.name);
    let shown = winners.iter().find(|winner| Some(&winner.scenario.name) == first);
    sentences.extend(shown.or(winners.first()).map(|winner| winner.sentence(view.rounds())));
    sentences
}

/// The contender with the least CPU usage in a scenario, and the next one.
struct Winner<'a> {
    scenario: &'a ScenarioRecord,
    name: &'a str,
    cpu_us: f64,
    next: Option<(&'a str, f64, Option<Ratio>)>,
}

/// Only contenders that did all of the same work can win.
fn winner<'a>(view: &View<'a>, scenario: &'a ScenarioRecord) -> Option<Winner<'a>> {
    let mut order: Vec<(&ContenderRecord, f64)> = view
        .contenders()
        .filter(|(_, contender)| !is_unequal(contender))
        // A server without responses in the measured time has used no CPU in it.
        .filter_map(|(_, contender)| {
            let figure = view.row(scenario, contender)?.cpu_us_per_request?;
            (figure.median > 0.0).then_some((contender, figure.median))
        })
        .collect();
    order.retain(|(contender, _)| {
        view.row(scenario, contender).is_some_and(|row| row.unfit.is_none())
    });
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (first, cpu_us) = *order.first()?;
    let next = order.get(1).map(|(second, more_us)| {
        (second.name.as_str(), *more_us, ratio(view, scenario, second, first))
    });
    Some(Winner { scenario, name: &first.name, cpu_us, next })
}

/// Ratio of CPU usage between two contenders, by their rounds.
fn ratio(
    view: &View<'_>,
    scenario: &ScenarioRecord,
    of: &ContenderRecord,
    to: &ContenderRecord,
) -> Option<Ratio> {
    let (of, to) = (view.runs(scenario, of), view.runs(scenario, to));
    paired(&pairs_of(of, to, scenario, Column::CpuPerRequest)).map(Ratio::from)
}

impl Winner<'_> {
    /// Returns whether there were enough rounds for a comparison.
    fn is_told(&self) -> bool {
        let ratio = self.next.as_ref().and_then(|(_, _, ratio)| *ratio);
        ratio.is_some_and(|ratio| ratio.verdict != Significance::Unknown)
    }

    fn is_clear(&self) -> bool {
        let ratio = self.next.as_ref().and_then(|(_, _, ratio)| *ratio);
        ratio.is_none_or(|ratio| matches!(ratio.verdict, Significance::Less | Significance::More))
    }

    fn sentence(&self, rounds: u32) -> String {
        let (title, name) = (&self.scenario.title, self.name);
        let least = ValueUnit::Microseconds.write(self.cpu_us);
        let Some((next, more_us, ratio)) = &self.next else {
            return format!(
                "In “{title}” {name} needs {least} of server CPU for each request; no other \
                 contender has a figure to compare."
            );
        };
        let more = ValueUnit::Microseconds.write(*more_us);
        let begin = format!("In “{title}” {name} needs {least} of server CPU for each request");
        match ratio {
            Some(Ratio { verdict: Significance::Noise, .. }) => format!(
                "{begin} and {next} {more}: over {rounds} rounds that difference is within the \
                 noise."
            ),
            Some(Ratio { value, interval: Some(ends), .. }) => format!(
                "{begin}, the least; next is {next} with {more}, {} times as much (95 % interval \
                 {}: more than noise).",
                times(*value),
                interval_text(*ends)
            ),
            _ => format!(
                "{begin} and {next} {more}. These rounds are too few to show whether that is more \
                 than noise: three or more make a verdict."
            ),
        }
    }
}

/// Counts the scenarios that each winner has won.
fn counted(winners: &[Winner<'_>]) -> String {
    let mut counts: Vec<(&str, u32, u32)> = Vec::new();
    for winner in winners {
        let clear = u32::from(winner.is_clear());
        match counts.iter_mut().find(|(name, ..)| *name == winner.name) {
            Some((_, wins, clearly)) => {
                *wins += 1;
                *clearly += clear;
            }
            None => counts.push((winner.name, 1, clear)),
        }
    }
    counts.sort_by_key(|(_, wins, _)| std::cmp::Reverse(*wins));
    let said: Vec<String> = counts
        .iter()
        .map(|(name, wins, clearly)| match wins - clearly {
            0 => format!("{name} in {wins}"),
            noise => format!("{name} in {wins} (in {noise} of them within the noise)"),
        })
        .collect();
    format!(
        "Of {} scenarios, the least server CPU for each request: {}.",
        winners.len(),
        said.join(", ")
    )
}

/// Names failed and missing contenders, in a sentence for each.
pub(super) fn troubles(view: &View<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    for (_, contender) in view.contenders() {
        let name = contender.name.as_str();
        match &contender.fate {
            Fate::NotInstalled(_) => absent.push(name),
            Fate::Failed(why) => sentences.push(format!("{name} did not run to the end: {why}.")),
            Fate::Unequal(why) => sentences
                .push(format!("{name} did not do the same work and is not compared: {why}.")),
            Fate::Ran => {}
        }
        sentences.extend(failures(view, contender));
        sentences.extend(other_work(view, contender));
    }
    if !absent.is_empty() {
        sentences.push(format!("Not installed on this machine: {}.", absent.join(", ")));
    }
    sentences
}

/// Names the first scenario in which a contender without failures did other work than the others,
/// and counts those.
fn other_work(view: &View<'_>, contender: &ContenderRecord) -> Option<String> {
    let mut unfit = view.record.scenarios.iter().filter_map(|scenario| {
        let row = view.row(scenario, contender)?;
        let is_silent = row.missing.is_none() && view.failed(scenario, contender).is_none();
        Some((scenario, row.unfit.as_ref().filter(|_| is_silent)?))
    });
    let (scenario, why) = unfit.next()?;
    let (name, title) = (&contender.name, &scenario.title);
    Some(match unfit.count() {
        0 => format!("{name} is not comparable in “{title}”: {why}."),
        others => {
            format!("{name} is not comparable in {} scenarios; in “{title}”: {why}.", others + 1)
        }
    })
}

/// Counts the scenarios with failed requests, and names the one with most of them.
fn failures(view: &View<'_>, contender: &ContenderRecord) -> Option<String> {
    let failed: Vec<(&ScenarioRecord, FailedRequests)> = view
        .record
        .scenarios
        .iter()
        .filter_map(|scenario| Some((scenario, view.failed(scenario, contender)?)))
        .collect();
    let (scenario, most) = failed.iter().max_by_key(|(_, failed)| failed.count)?;
    let (name, title, count) = (&contender.name, &scenario.title, failed.len());
    Some(match count {
        1 => format!("{name}: {most} in “{title}”."),
        _ => format!("{name}: requests failed in {count} scenarios; in “{title}” {most}."),
    })
}
