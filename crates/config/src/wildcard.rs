//! Matching of names by patterns of `*` (any bytes) and `?` (one byte).

/// Returns whether a name matches a pattern, in time that grows with the product of their lengths
/// at most.
///
/// - `is_same`: whether a byte of the pattern stands for a byte of the name.
pub(crate) fn matches(pattern: &[u8], name: &[u8], is_same: impl Fn(u8, u8) -> bool) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || is_same(*byte, name[in_name]) => {
                at += 1;
                in_name += 1;
            }
            _ => {
                // The last star takes one byte more.
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, in_name) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_bytes() {
        let found = |pattern: &str, name: &str| {
            matches(pattern.as_bytes(), name.as_bytes(), |one, other| one == other)
        };
        for (pattern, name) in
            [("*.toml", "a.toml"), ("*", "x"), ("a?c", "abc"), ("a*b*c", "aXbYbc"), ("**", "")]
        {
            assert!(found(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.toml", "a.tom"), ("?", ""), ("a?c", "ac"), ("a*b", "ac"), ("", "a"), ("A", "a")]
        {
            assert!(!found(pattern, name), "{pattern} {name}");
        }
    }
}
