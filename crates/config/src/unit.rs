//! Numbers with units: reading and writing them.

/// The unit of a setting. Its value is always kept in the unit's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain things: `4096`.
    Count,
    /// Milliseconds; written `500ms`, `30s`, `5m`, `2h`, `1d`, or plain seconds: `30`.
    Duration,
    /// Bytes; written `64k`, `10m`, `1g` (powers of 1,024), or plain bytes: `4096`.
    Bytes,
    /// Bytes per second; written like bytes, with or without `/s` at the end.
    BytesPerSecond,
    /// Microseconds, written as a plain number.
    Microseconds,
}

const DURATIONS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZES: [(&str, u64); 4] = [("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)];

impl Unit {
    /// Returns the form of its values, for messages.
    pub fn form(self) -> &'static str {
        match self {
            Self::Count => "a whole number",
            Self::Duration => "a duration such as 30s, 5m or 500ms",
            Self::Bytes => "a size such as 4096, 64k or 10m",
            Self::BytesPerSecond => "bytes per second such as 240 or 64k",
            Self::Microseconds => "whole microseconds",
        }
    }

    /// Returns the placeholder of the value in help and documentation.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Count => "N",
            Self::Duration => "TIME",
            Self::Bytes => "SIZE",
            Self::BytesPerSecond => "RATE",
            Self::Microseconds => "MICROSECONDS",
        }
    }

    /// Reads `text` into the unit's base; none for text that has another form than
    /// [`form`](Self::form), or is too large.
    pub fn read(self, text: &str) -> Option<u64> {
        let text = text.to_ascii_lowercase();
        let text = match self {
            Self::BytesPerSecond => text.strip_suffix("/s").unwrap_or(&text),
            _ => &text,
        };
        let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        let number: u64 = digits.parse().ok()?;
        number.checked_mul(self.factor(suffix.trim_start())?)
    }

    /// Writes `number` in the largest unit that shows it exactly, so that it parses back the same.
    pub fn format(self, number: u64) -> String {
        match self {
            Self::Count | Self::Microseconds => number.to_string(),
            Self::Duration if number == 0 => "0s".to_owned(),
            Self::Duration => in_largest(number, &DURATIONS),
            Self::Bytes => in_largest(number, &SIZES),
            Self::BytesPerSecond => format!("{}/s", in_largest(number, &SIZES)),
        }
    }

    fn factor(self, suffix: &str) -> Option<u64> {
        let named = |table: &[(&str, u64)], suffix: &str| {
            table.iter().find(|(name, _)| *name == suffix).map(|(_, factor)| *factor)
        };
        match self {
            Self::Count | Self::Microseconds => suffix.is_empty().then_some(1),
            Self::Duration if suffix.is_empty() => Some(1_000),
            Self::Duration => named(&DURATIONS, suffix),
            Self::Bytes | Self::BytesPerSecond => {
                // `64k`, `64kb` and `64kib` all mean 65,536 here, so that the difference need not
                // be looked up.
                let prefix = match suffix.strip_suffix("ib") {
                    Some("") => return None,
                    Some(prefix) => prefix,
                    None => suffix.strip_suffix('b').unwrap_or(suffix),
                };
                if prefix.is_empty() { Some(1) } else { named(&SIZES, prefix) }
            }
        }
    }
}

fn in_largest(number: u64, table: &[(&str, u64)]) -> String {
    let exact = |(_, factor): &&(&str, u64)| number >= *factor && number.is_multiple_of(*factor);
    match table.iter().find(exact) {
        Some((name, factor)) => format!("{}{name}", number / factor),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_with_and_without_a_unit() {
        for (text, ms) in [
            ("30", 30_000),
            ("30s", 30_000),
            ("30 s", 30_000),
            ("5m", 300_000),
            ("500ms", 500),
            ("2H", 7_200_000),
            ("1d", 86_400_000),
            ("0", 0),
        ] {
            assert_eq!(Unit::Duration.read(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64k", 65_536),
            ("64K", 65_536),
            ("64kb", 65_536),
            ("64KiB", 65_536),
            ("10m", 10_485_760),
            ("1g", 1 << 30),
            ("1t", 1 << 40),
            ("12b", 12),
        ] {
            assert_eq!(Unit::Bytes.read(text), Some(bytes), "{text}");
        }
        assert_eq!(Unit::BytesPerSecond.read("64k/s"), Some(65_536));
        assert_eq!(Unit::BytesPerSecond.read("240"), Some(240));
    }

    #[test]
    fn what_is_no_number_or_too_large_is_refused() {
        for text in ["", "s", "-1", "+1", "1.5s", "ten", "5x", "5 m s", "1m30s", "0x10", "５"] {
            assert_eq!(Unit::Duration.read(text), None, "{text:?}");
        }
        for text in ["i", "5ib", "64q", "k", "1kk", "64k/s"] {
            assert_eq!(Unit::Bytes.read(text), None, "{text:?}");
        }
        assert_eq!(Unit::Count.read("12k"), None);
        assert_eq!(Unit::Bytes.read("99999999999999999999"), None);
        assert_eq!(Unit::Bytes.read("18446744073709551615k"), None);
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for unit in
            [Unit::Count, Unit::Duration, Unit::Bytes, Unit::BytesPerSecond, Unit::Microseconds]
        {
            for number in [0, 1, 999, 1_000, 1_024, 60_000, 65_535, 65_536, 90_000, 1 << 40] {
                let text = unit.format(number);
                assert_eq!(unit.read(&text), Some(number), "{unit:?} {text}");
            }
        }
        assert_eq!(Unit::Duration.format(90_000), "90s");
        assert_eq!(Unit::Duration.format(1_500), "1500ms");
        assert_eq!(Unit::Bytes.format(16_384), "16k");
        assert_eq!(Unit::BytesPerSecond.format(240), "240/s");
    }
}
