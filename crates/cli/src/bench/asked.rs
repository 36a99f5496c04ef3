//! From the flags of `gustnado bench` to what is to be done.

use super::flags::{all, one};
use super::load;
use crate::refusal::Refusal;
use clap::ArgMatches;
use gustnado::config::nearest;
use gustnado_lab::output::threshold::{Expected, METRICS, Threshold};
use gustnado_lab::plan::Plan;
use std::path::PathBuf;

/// What a person asked of `gustnado bench`.
#[derive(Debug)]
pub(crate) enum Job {
    /// Load a server.
    Load(Box<Asked>),
    /// Merge files of runs.
    Merge {
        /// Their names.
        files: Vec<PathBuf>,
        /// Whether an object is printed instead of a table.
        json: bool,
    },
}

/// One run, and what becomes of its outcome.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(super) plan: Plan,
    pub(super) thresholds: Vec<Threshold>,
    /// Whether hosts beside loopback may be loaded.
    pub(super) permitted: bool,
    pub(super) progress: Shown,
    pub(super) json: Option<Place>,
    pub(super) csv: Option<Place>,
    pub(super) csv_line: Option<PathBuf>,
    pub(super) hgrm: Option<PathBuf>,
}

/// Where progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Where standard error is a terminal.
    OnTerminals,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Where a text goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// To standard output, instead of the table.
    Standard,
    /// Into a file.
    File(PathBuf),
}

/// Reads the flags.
///
/// # Errors
/// The first of them that is not understood, in one line.
pub(crate) fn read(matches: &ArgMatches) -> Result<Job, Refusal> {
    if let Some(("merge", matches)) = matches.subcommand() {
        let files: Vec<PathBuf> = all(matches, "files").map(PathBuf::from).collect();
        if files.is_empty() {
            return Err(Refusal::of_usage(
                "merge: expected files that --json or --hgrm wrote, found none",
            ));
        }
        return Ok(Job::Merge { files, json: matches.get_flag("json") });
    }
    let place = |name: &str| match one(matches, name) {
        Some("-") => Some(Place::Standard),
        other => other.map(|path| Place::File(path.into())),
    };
    let (json, csv) = (place("json"), place("csv"));
    if json == Some(Place::Standard) && csv == Some(Place::Standard) {
        return Err(Refusal::of_usage(
            "--csv: --json goes to standard output, too; write --csv=FILE",
        ));
    }
    let progress = match (matches.get_flag("progress"), matches.get_flag("no-progress")) {
        (_, true) => Shown::Never,
        (true, _) => Shown::Always,
        _ => Shown::OnTerminals,
    };
    Ok(Job::Load(Box::new(Asked {
        plan: load::plan(matches)?,
        thresholds: all(matches, "fail-if").map(threshold).collect::<Result<_, _>>()?,
        permitted: matches.get_flag("i-own-this-host"),
        progress,
        json,
        csv,
        csv_line: one(matches, "csv-line").map(PathBuf::from),
        hgrm: one(matches, "hgrm").map(PathBuf::from),
    })))
}

fn threshold(text: &str) -> Result<Threshold, Refusal> {
    Threshold::parse(text).map_err(|error| {
        let near = match &error.expected {
            Expected::Metric(found) => nearest(found, METRICS.into_iter()),
            _ => None,
        };
        let near = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        Refusal::of_usage(format!("--fail-if: {error}{near}"))
    })
}
