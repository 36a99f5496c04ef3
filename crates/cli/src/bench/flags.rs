//! The values of flags, each read with its bounds and in its unit.

use crate::usage_error::UsageError;
use clap::ArgMatches;
use gustnado::config::Unit;
use std::str::FromStr;
use std::time::Duration;

/// The value of a flag, if given.
pub(super) fn one<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// All values of a repeatable flag.
pub(super) fn all<'a>(matches: &'a ArgMatches, name: &str) -> impl Iterator<Item = &'a str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str)
}

/// A whole number within bounds.
pub(super) fn number<T>(
    matches: &ArgMatches,
    name: &str,
    (least, most): (T, T),
) -> Result<Option<T>, UsageError>
where
    T: FromStr + PartialOrd + std::fmt::Display + Copy,
{
    let Some(text) = one(matches, name) else {
        return Ok(None);
    };
    match whole(text).and_then(|number| number.to_string().parse().ok()) {
        Some(number) if number >= least && number <= most => Ok(Some(number)),
        _ => Err(UsageError::of_usage(format!(
            "--{name}: expected a whole number from {least} to {most}, found {text:?}"
        ))),
    }
}

/// A whole number in human notation: `10000`, `10_000`, `10k`, `1.5M`, `1e6`.
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

/// A rate per second, which may have a fraction: `500`, `0.5`, `10k`.
pub(super) fn rate(name: &str, text: &str) -> Result<f64, UsageError> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    match digits.replace('_', "").parse::<f64>().map(|rate| rate * factor) {
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err(UsageError::of_usage(format!(
            "--{name}: expected requests per second such as 500 or 0.5 or 10k, found {text:?}"
        ))),
    }
}

/// A duration, or the default.
pub(super) fn duration(
    matches: &ArgMatches,
    name: &str,
    default: Duration,
) -> Result<Duration, UsageError> {
    let text = one(matches, name);
    let ms = text.map(|text| in_unit(Unit::Duration, name, text)).transpose()?;
    Ok(ms.map_or(default, Duration::from_millis))
}

/// Bytes per second, 1 and up.
pub(super) fn pace(matches: &ArgMatches, name: &str) -> Result<Option<u64>, UsageError> {
    let text = one(matches, name);
    let bytes = text.map(|text| in_unit(Unit::BytesPerSecond, name, text)).transpose()?;
    match bytes {
        Some(0) => Err(UsageError::of_usage(format!(
            "--{name}: expected at least 1 byte per second, found 0"
        ))),
        bytes => Ok(bytes),
    }
}

/// A value in a unit of the settings.
pub(super) fn in_unit(unit: Unit, name: &str, text: &str) -> Result<u64, UsageError> {
    unit.read(text).ok_or_else(|| {
        UsageError::of_usage(format!("--{name}: expected {}, found {text:?}", unit.form()))
    })
}
