//! Durations in a file: `"1.5s"`, `"200ms"`, `"30m"`, `"2h"`, or a number of seconds.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// A duration, from a text or a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Length(pub(super) Duration);

const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];

impl Length {
    fn of_seconds(seconds: f64) -> Option<Self> {
        let bounded = seconds.is_finite() && (0.0..=1e6).contains(&seconds);
        bounded.then(|| Self(Duration::from_secs_f64(seconds)))
    }

    fn of_text(text: &str) -> Option<Self> {
        let ends = |(unit, seconds): &(&str, f64)| {
            let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
            Self::of_seconds(number * seconds)
        };
        UNITS.iter().find_map(ends)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfLength)
    }
}

struct OfLength;

impl Visitor<'_> for OfLength {
    type Value = Length;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a length of time such as \"1.5s\", \"200ms\", \"30m\" or a number of seconds")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Length, E> {
        let unexpected = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        Length::of_text(text).ok_or_else(unexpected)
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Length, E> {
        let unexpected = || E::invalid_value(serde::de::Unexpected::Float(seconds), &self);
        Length::of_seconds(seconds).ok_or_else(unexpected)
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Length, E> {
        let unexpected = || E::invalid_value(serde::de::Unexpected::Signed(seconds), &self);
        let seconds = u32::try_from(seconds).ok();
        seconds.and_then(|of| Length::of_seconds(f64::from(of))).ok_or_else(unexpected)
    }
}
