//! The options of `gustnado bench`, read from its flags.

use super::flags::{all, one};
use super::load;
use crate::usage_error::UsageError;
use clap::ArgMatches;
use gustnado::config::nearest;
use gustnado_lab::output::threshold::{ExpectedToken, METRICS, Threshold};
use gustnado_lab::plan::LoadPlan;
use std::path::PathBuf;

/// A subcommand of `gustnado bench`.
#[derive(Debug)]
pub(crate) enum BenchSubcommand {
    /// Loads a server.
    Load(Box<BenchOptions>),
    /// Merges result files.
    Merge {
        /// Their paths.
        files: Vec<PathBuf>,
        /// Whether to print JSON instead of a table.
        json: bool,
    },
}

/// Options of one run.
#[derive(Debug)]
pub(crate) struct BenchOptions {
    pub(super) plan: LoadPlan,
    pub(super) thresholds: Vec<Threshold>,
    /// Whether other hosts than loopback may be loaded.
    pub(super) permitted: bool,
    pub(super) progress: ProgressOutput,
    pub(super) json: Option<Destination>,
    pub(super) csv: Option<Destination>,
    pub(super) csv_line: Option<PathBuf>,
    pub(super) hgrm: Option<PathBuf>,
}

/// When to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgressOutput {
    /// If standard error is a terminal.
    OnTerminals,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Destination of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// Standard output, instead of the table.
    Standard,
    /// A file.
    File(PathBuf),
}

/// Reads the flags.
///
/// # Errors
/// The first mistake, in one line.
pub(crate) fn read(matches: &ArgMatches) -> Result<BenchSubcommand, UsageError> {
    if let Some(("merge", matches)) = matches.subcommand() {
        let files: Vec<PathBuf> = all(matches, "files").map(PathBuf::from).collect();
        if files.is_empty() {
            return Err(UsageError::of_usage(
                "merge: expected files that --json or --hgrm wrote, found none",
            ));
        }
        return Ok(BenchSubcommand::Merge { files, json: matches.get_flag("json") });
    }
    let destination = |name: &str| match one(matches, name) {
        Some("-") => Some(Destination::Standard),
        other => other.map(|path| Destination::File(path.into())),
    };
    let (json, csv) = (destination("json"), destination("csv"));
    if json == Some(Destination::Standard) && csv == Some(Destination::Standard) {
        return Err(UsageError::of_usage(
            "--csv: --json goes to standard output, too; write --csv=FILE",
        ));
    }
    let progress = match (matches.get_flag("progress"), matches.get_flag("no-progress")) {
        (_, true) => ProgressOutput::Never,
        (true, _) => ProgressOutput::Always,
        _ => ProgressOutput::OnTerminals,
    };
    Ok(BenchSubcommand::Load(Box::new(BenchOptions {
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

fn threshold(text: &str) -> Result<Threshold, UsageError> {
    Threshold::parse(text).map_err(|error| {
        let near = match &error.expected {
            ExpectedToken::Metric(found) => nearest(found, METRICS.into_iter()),
            _ => None,
        };
        let near = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        UsageError::of_usage(format!("--fail-if: {error}{near}"))
    })
}
