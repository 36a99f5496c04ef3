//! The values of flags, each read with its bounds and in its unit.

use crate::usage_error::UsageError;
use clap::ArgMatches;
use gustnado::config::Unit;
use gustnado_lab::notation::{real, whole};
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

/// A rate per second, which may have a fraction: `500`, `0.5`, `10k`.
pub(super) fn rate(name: &str, text: &str) -> Result<f64, UsageError> {
    match real(text) {
        Some(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
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
