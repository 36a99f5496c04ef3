//! Numbers as people write them: `10_000`, `10k`, `1.5M`, `1e6`.

/// Reads a whole number: `10000`, `10_000`, `10k`, `1.5M`, `1e6`. `None` for anything else, and for
/// what is not whole.
pub fn whole(text: &str) -> Option<u64> {
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

/// Reads a number that may have a fraction: `500`, `0.5`, `10k`.
pub fn real(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    digits.replace('_', "").parse::<f64>().ok().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, number) in [("10000", 10_000), ("10_000", 10_000), ("10k", 10_000)] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        assert_eq!((whole("1.5M"), whole("1e6")), (Some(1_500_000), Some(1_000_000)));
        for text in ["", "k", "1.5", "1.2345k", "-1", "ten", "1e99"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!((real("0.5"), real("10k"), real("x")), (Some(0.5), Some(10_000.0), None));
    }
}
