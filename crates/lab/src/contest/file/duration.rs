//! Durations in a file: `"1.5s"`, `"200ms"`, `"30m"`, `"2h"`, or a number of seconds.

use std::time::Duration;

const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];

/// Returns the duration of a number of seconds; `None` if it is negative or beyond all bounds.
pub(super) fn of_seconds(seconds: f64) -> Option<Duration> {
    let bounded = seconds.is_finite() && (0.0..=1e6).contains(&seconds);
    bounded.then(|| Duration::from_secs_f64(seconds))
}

/// Parses a number with a unit.
pub(super) fn of_text(text: &str) -> Option<Duration> {
    let ends = |(unit, seconds): &(&str, f64)| {
        let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        of_seconds(number * seconds)
    };
    UNITS.iter().find_map(ends)
}

/// Formats a duration in the largest unit that needs no fraction.
pub(super) fn written(length: Duration) -> String {
    let millis = length.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        _ => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_as_it_is_read() {
        for text in ["0s", "200ms", "1500ms", "45s", "90s", "5m", "36h"] {
            assert_eq!(of_text(text).map(written).as_deref(), Some(text));
        }
        assert_eq!(of_text("1.5s"), Some(Duration::from_millis(1_500)));
        assert_eq!((of_text("soon"), of_text("1h1h"), of_seconds(-1.0)), (None, None, None));
    }
}
