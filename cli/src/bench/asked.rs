//! From the flags of `gustnado bench` to what is to be done.

use super::load;
use crate::arguments::Refusal;
use crate::exit;
use clap::ArgMatches;
use gustnado::config::{Unit, nearest};
use gustnado_lab::output::threshold::{Expected, METRICS, Threshold};
use gustnado_lab::plan::Plan;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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
            return Err(refusal("merge: expected files that --json or --hgrm wrote, found none"));
        }
        return Ok(Job::Merge { files, json: matches.get_flag("json") });
    }
    let place = |name: &str| match one(matches, name) {
        Some("-") => Some(Place::Standard),
        other => other.map(|path| Place::File(path.into())),
    };
    let (json, csv) = (place("json"), place("csv"));
    if json == Some(Place::Standard) && csv == Some(Place::Standard) {
        return Err(refusal("--csv: --json goes to standard output, too; write --csv=FILE"));
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
        refusal(&format!("--fail-if: {error}{near}"))
    })
}

/// A refusal of the command line.
pub(super) fn refusal(line: &str) -> Refusal {
    Refusal { line: line.to_owned(), code: exit::USAGE }
}

/// The value of a flag, if it is given.
pub(super) fn one<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// All values of a flag that may be repeated.
pub(super) fn all<'a>(matches: &'a ArgMatches, name: &str) -> impl Iterator<Item = &'a str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str)
}

/// A whole number within bounds.
pub(super) fn number<T>(
    matches: &ArgMatches,
    name: &str,
    (least, most): (T, T),
) -> Result<Option<T>, Refusal>
where
    T: FromStr + PartialOrd + std::fmt::Display + Copy,
{
    let Some(text) = one(matches, name) else {
        return Ok(None);
    };
    match whole(text).and_then(|number| number.to_string().parse().ok()) {
        Some(number) if number >= least && number <= most => Ok(Some(number)),
        _ => Err(refusal(&format!(
            "--{name}: expected a whole number from {least} to {most}, found {text:?}"
        ))),
    }
}

/// A whole number as people write large ones: `10000`, `10_000`, `10k`, `1.5M`, `1e6`.
fn whole(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (digits, zeros) = match text.split_once(['e', 'E']) {
        Some((digits, zeros)) => (digits, zeros.parse::<usize>().ok().filter(|zeros| *zeros < 20)?),
        None if text.ends_with(['k', 'K']) => (&text[..text.len() - 1], 3),
        None if text.ends_with(['m', 'M']) => (&text[..text.len() - 1], 6),
        None => return None,
    };
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    // As text, so that nothing is rounded.
    let missing = zeros.checked_sub(behind.len())?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = !before.is_empty() && is_number(before) && is_number(behind);
    is_whole.then(|| [before, behind, &"0".repeat(missing)].concat().parse().ok()).flatten()
}

/// A rate per second, which may have a fraction.
pub(super) fn rate(name: &str, text: &str) -> Result<f64, Refusal> {
    match text.parse() {
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err(refusal(&format!(
            "--{name}: expected requests per second such as 500 or 0.5, found {text:?}"
        ))),
    }
}

/// A duration, or the default.
pub(super) fn duration(
    matches: &ArgMatches,
    name: &str,
    default: Duration,
) -> Result<Duration, Refusal> {
    let text = one(matches, name);
    let ms = text.map(|text| in_unit(Unit::Duration, name, text)).transpose()?;
    Ok(ms.map_or(default, Duration::from_millis))
}

/// Bytes per second, 1 and up.
pub(super) fn pace(matches: &ArgMatches, name: &str) -> Result<Option<u64>, Refusal> {
    let text = one(matches, name);
    let bytes = text.map(|text| in_unit(Unit::BytesPerSecond, name, text)).transpose()?;
    match bytes {
        Some(0) => Err(refusal(&format!("--{name}: expected at least 1 byte per second, found 0"))),
        bytes => Ok(bytes),
    }
}

fn in_unit(unit: Unit, name: &str, text: &str) -> Result<u64, Refusal> {
    unit.read(text)
        .ok_or_else(|| refusal(&format!("--{name}: expected {}, found {text:?}", unit.form())))
}
