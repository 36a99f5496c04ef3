//! `gustnado bench`: loads a server, shows progress, and reports the outcome.
//!
//! [`arguments`] declares the flags; `options` and `load` read them. `gustnado_lab` measures. This
//! module adds the permission to load a host, progress, signals, result files, and the exit code.

mod arguments;
mod flags;
mod interrupt;
mod load;
mod merge;
mod options;
mod permission;
mod progress;
mod rates;
mod requests;
mod results;
mod sources;
mod targets;

#[cfg(test)]
mod tests;

pub(crate) use arguments::command;
pub(crate) use options::{BenchOptions, BenchSubcommand, read};

use crate::figures::grouped;
use crate::output::Console;
use crate::{doctor, exit};
use gustnado_lab::load::{LoadError, StopHandle};
use gustnado_lab::outcome::Outcome;
use gustnado_lab::output::threshold::ThresholdResult;
use interrupt::Interrupt;
use progress::BenchProgress;
use results::Results;

/// Runs the subcommand and returns the exit code.
pub(crate) fn run(subcommand: BenchSubcommand) -> u8 {
    let output = Console::new(false);
    match subcommand {
        BenchSubcommand::Load(options) => measure(&options, output),
        BenchSubcommand::Merge { files, json } => merge::run(&files, json, output),
    }
}

fn measure(options: &BenchOptions, output: Console) -> u8 {
    if let Err(error) = permission::check(&options.plan, options.permitted) {
        output.error(&error.line);
        return error.code;
    }
    if let Some(warning) = doctor::no_room(options.plan.connections) {
        output.warn(&warning);
    }
    // Before the load, so that a wrong path costs no measurement.
    let results = match Results::open(options) {
        Ok(results) => results,
        Err(line) => {
            output.error(&line);
            return exit::FAILED;
        }
    };
    let meter = BenchProgress::new(options.progress, &options.plan);
    let stop = StopHandle::default();
    let interrupt = match Interrupt::watch(stop.clone(), meter.clone(), output) {
        Ok(interrupt) => interrupt,
        Err(error) => {
            output.error(&format!("cannot wait for signals: {error}"));
            return exit::FAILED;
        }
    };
    let found = gustnado_lab::load::run(&options.plan, &meter, &stop);
    meter.clear();
    let signal = interrupt.end();
    if let Err(error) = &found {
        output.error(&format!("bench: {error}"));
    }
    let (outcome, traced) = match found {
        Ok(outcome) => (outcome, true),
        Err(LoadError::Trace { found: Some(outcome), .. }) => (*outcome, false),
        Err(_) => return signal.map_or(exit::FAILED, exit::by_signal_code),
    };
    let written = results.write(options, &outcome);
    if let Err(line) = &written {
        output.error(line);
    }
    let code = check_thresholds(options, &outcome, output);
    match signal {
        Some(signal) => exit::by_signal_code(signal),
        None if written.is_err() || !traced => exit::FAILED,
        None => code,
    }
}

/// Checks the thresholds and returns the exit code.
fn check_thresholds(options: &BenchOptions, outcome: &Outcome, output: Console) -> u8 {
    let mut struck = false;
    for threshold in &options.thresholds {
        let text = threshold.text();
        match threshold.evaluate(outcome) {
            ThresholdResult::Kept => continue,
            ThresholdResult::Struck(found) => {
                output.error(&format!("--fail-if {text}: found {found}"));
            }
            ThresholdResult::Nothing => {
                output.error(&format!(
                    "--fail-if {text}: nothing to compare: there was no successful response"
                ));
            }
        }
        struck = true;
    }
    if outcome.requests == 0 {
        output.error(&nothing(outcome));
        return exit::FAILED;
    }
    if struck { exit::THRESHOLD } else { exit::CLEAN }
}

/// Returns why an outcome is empty, in one line.
fn nothing(outcome: &Outcome) -> String {
    let kinds = outcome.errors.named();
    let most = kinds.iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0);
    let url = outcome.urls.first().map_or("the server", String::as_str);
    if let Some(held) = outcome.held.as_ref().filter(|held| held.opened < held.asked) {
        return format!(
            "bench: nothing was measured: {url} accepts {} of the {} connections to hold, and \
             those that send requests wait behind the others; hold fewer with --hold {}, \
             take more",
            grouped(held.opened),
            grouped(held.asked),
            held.opened.saturating_sub(outcome.model.connections)
        );
    }
    match most {
        Some(("refused", count)) => {
            format!("bench: nothing was measured: {count} refused; does a server listen at {url}?")
        }
        Some(("status", count)) => {
            let found: Vec<String> = outcome.statuses.keys().map(u16::to_string).collect();
            format!(
                "bench: nothing was measured: {count} responses of {url} had status {}; if that is \
                 expected, use --status {}",
                found.join(" or "),
                found.join(",")
            )
        }
        Some((kind, count)) => {
            format!("bench: nothing was measured: {kind} {count} times; see what {url} is")
        }
        None => {
            format!("bench: nothing was measured: {url} gave no answer in time; try a longer -d")
        }
    }
}
