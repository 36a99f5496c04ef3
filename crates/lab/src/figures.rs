//! Numbers formatted for reading.

/// A number with thousands separators: `1,048,576`.
pub(crate) fn grouped(number: u64) -> String {
    grouped_text(&number.to_string())
}

/// A number without its fraction, with thousands separators: `11,095`.
pub(crate) fn whole(value: f64) -> String {
    grouped_text(&format!("{value:.0}"))
}

/// A formatted number with thousands separators added: `-1,234,567.8`.
pub(crate) fn grouped_text(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = sign.to_owned();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// The same with two decimals: `12,345.67`.
pub(crate) fn decimal(number: f64) -> String {
    let text = format!("{number:.2}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, "00"));
    match whole.parse() {
        Ok(whole) => format!("{}.{rest}", grouped(whole)),
        Err(_) => text,
    }
}

/// A noun with its number, in the plural if needed: `1 thread`, `2 threads`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Microseconds as milliseconds with three decimals: all times of one table have one unit.
pub(crate) fn ms(us: f64) -> String {
    format!("{:.3}", us / 1_000.0)
}

/// Bytes in the largest unit with a whole number in front: `1.23 MB` (powers of 1,024).
pub(crate) fn bytes(count: f64) -> String {
    let mut left = count;
    for unit in ["bytes", "KB", "MB", "GB"] {
        if left < 1_024.0 {
            return if unit == "bytes" { format!("{left:.0} {unit}") } else { in_unit(left, unit) };
        }
        left /= 1_024.0;
    }
    in_unit(left, "TB")
}

fn in_unit(number: f64, unit: &str) -> String {
    format!("{} {unit}", decimal(number))
}

/// A share of 0 to 1 in percent: `12.5 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A count as a floating-point number; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(decimal(1_234.567), "1,234.57");
        assert_eq!(decimal(-0.5), "-0.50");
        assert_eq!(counted(1, "thread"), "1 thread");
        assert_eq!(ms(1_234.0), "1.234");
        assert_eq!(bytes(12.0), "12 bytes");
        assert_eq!(bytes(1_536.0), "1.50 KB");
        assert_eq!(bytes(3.0 * 1_099_511_627_776.0), "3.00 TB");
        assert_eq!(percent(0.125), "12.5 %");
    }
}
