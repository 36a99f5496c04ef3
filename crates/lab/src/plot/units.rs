//! Numbers with units, formatted for reading.

use crate::figures::grouped_text;

/// The unit of a number. The script of plots knows them by their words in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueUnit {
    /// Microseconds, formatted in µs, ms or s.
    #[serde(rename = "us")]
    Microseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// A rate per second.
    #[serde(rename = "rate")]
    PerSecond,
    /// Bytes, formatted in KiB, MiB and so on.
    Bytes,
    /// A bare number.
    #[serde(rename = "count")]
    Number,
    /// A share of one, formatted in percent.
    Share,
    /// Busy CPUs.
    Cpus,
}

impl ValueUnit {
    /// Formats `value` with three significant digits and its unit; whole numbers in full.
    pub fn write(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        match self {
            ValueUnit::Microseconds if value.abs() >= 999_500.0 => {
                format!("{} s", digits(value / 1_000_000.0))
            }
            ValueUnit::Microseconds if value.abs() >= 999.5 => {
                format!("{} ms", digits(value / 1000.0))
            }
            ValueUnit::Microseconds => format!("{} µs", digits(value)),
            ValueUnit::Seconds => format!("{} s", digits(value)),
            ValueUnit::PerSecond => format!("{}/s", digits(value)),
            ValueUnit::Bytes => bytes(value),
            ValueUnit::Number => digits(value),
            ValueUnit::Share => format!("{} %", digits(value * 100.0)),
            ValueUnit::Cpus => format!("{} CPU", digits(value)),
        }
    }

    /// Formats a tick, as short as possible.
    pub fn write_tick(self, value: f64) -> String {
        let text = self.write(value);
        let (number, unit) = match text.find([' ', '/']) {
            Some(at) => text.split_at(at),
            None => (text.as_str(), ""),
        };
        if number == "0" {
            return "0".to_owned();
        }
        let number = if number.contains('.') {
            number.trim_end_matches('0').trim_end_matches('.')
        } else {
            number
        };
        format!("{number}{unit}")
    }
}

/// Bytes in the largest unit of which there is at least one.
fn bytes(value: f64) -> String {
    let names = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut left = value;
    let mut name = 0;
    while left.abs() >= 1024.0 && name + 1 < names.len() {
        left /= 1024.0;
        name += 1;
    }
    format!("{} {}", digits(left), names[name])
}

/// Three significant digits, or all digits before the point, in groups of three.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    let places = match size {
        _ if size == 0.0 => 0,
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.01 => 3,
        _ => return format!("{value:.1e}"),
    };
    grouped_text(&format!("{value:.places$}"))
}

/// A ratio, short enough for a narrow column: `0.28`, `1.32`.
pub fn times(value: f64) -> String {
    if (0.1..0.9995).contains(&value) { format!("{value:.2}") } else { digits(value) }
}

/// An interval of ratios: `1.28–1.36`. A distant end is marked as such.
pub fn interval_text((low, high): (f64, f64)) -> String {
    let end = |value: f64| match value {
        value if value >= 1_000.0 => ">999".to_owned(),
        value if value < 0.005 => "<0.01".to_owned(),
        value => times(value),
    };
    format!("{}–{}", end(low), end(high))
}

/// Both ends of a range, with a common unit once: `3.63–3.80 ms`.
pub fn range(unit: ValueUnit, low: f64, high: f64) -> String {
    let (low, high) = (unit.write(low), unit.write(high));
    let of = |text: &str| text.find([' ', '/']).map(|at| text[at..].to_owned());
    match (of(&low), of(&high)) {
        (Some(a), Some(b)) if a == b => {
            format!("{}–{high}", low.strip_suffix(&a).unwrap_or(&low))
        }
        _ => format!("{low}–{high}"),
    }
}

/// A count as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "counts and bytes here are far below 2^52")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// An index as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "lists here are far shorter than 2^52")]
pub fn index(place: usize) -> f64 {
    place as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        let cases = [
            (0.0, "0"),
            (0.012_34, "0.012"),
            (1.0, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (12_345.6, "12,346"),
            (-1_234_567.0, "-1,234,567"),
            (999.0, "999"),
        ];
        for (value, expected) in cases {
            assert_eq!(digits(value), expected);
        }
    }

    #[test]
    fn units_are_chosen_by_size() {
        assert_eq!(ValueUnit::Microseconds.write(12.0), "12.0 µs");
        assert_eq!(ValueUnit::Microseconds.write(1500.0), "1.50 ms");
        assert_eq!(ValueUnit::Microseconds.write(2_000_000.0), "2.00 s");
        assert_eq!(ValueUnit::Bytes.write(1024.0 * 1024.0), "1.00 MiB");
        assert_eq!(ValueUnit::Share.write(0.5), "50.0 %");
        assert_eq!(ValueUnit::Number.write(f64::NAN), "–");
    }

    #[test]
    fn a_range_says_its_unit_once() {
        assert_eq!(range(ValueUnit::Microseconds, 3630.0, 3800.0), "3.63–3.80 ms");
        assert_eq!(range(ValueUnit::Microseconds, 900.0, 1100.0), "900 µs–1.10 ms");
        assert_eq!(range(ValueUnit::PerSecond, 1000.0, 2000.0), "1,000–2,000/s");
    }

    #[test]
    fn an_interval_is_short_however_wide_it_is() {
        assert_eq!(interval_text((1.28, 1.362)), "1.28–1.36");
        assert_eq!(interval_text((1.8e-17, 2e23)), "<0.01–>999");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(ValueUnit::Microseconds.write_tick(2000.0), "2 ms");
        assert_eq!(ValueUnit::PerSecond.write_tick(10_000.0), "10,000/s");
        assert_eq!(ValueUnit::Bytes.write_tick(0.0), "0");
        assert_eq!(ValueUnit::Number.write_tick(100.0), "100");
        assert_eq!(ValueUnit::Cpus.write_tick(1.5), "1.5 CPU");
    }
}
