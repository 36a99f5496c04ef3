//! The nearest valid name to a mistyped one.

/// Returns the candidate that `found` most probably meant, if any is near enough to be worth
/// saying.
///
/// Near enough is at most a third of the longer name's length in edits, and at least one. Upper and
/// lower case, `-` and `_` count as equal.
pub fn nearest<'a>(found: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let found = folded(found);
    candidates
        .map(|name| (distance(&found, &folded(name)), name))
        .filter(|(edits, name)| *edits <= (name.len().max(found.len()) / 3).max(1))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

fn folded(name: &str) -> Vec<u8> {
    // The bound keeps the quadratic comparison small, whatever a person pastes.
    name.bytes()
        .take(64)
        .map(|byte| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() })
        .collect()
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between two
/// names (optimal string alignment). Three rows of the table are all that it looks back on.
fn distance(left: &[u8], right: &[u8]) -> usize {
    let mut before: Vec<usize> = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut row = last.clone();
    for (i, a) in left.iter().enumerate() {
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            let swapped = i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b;
            if swapped {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["pool", "pool-shared", "queue", "queue-shared"];

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        for (found, meant) in [
            ("poll", "pool"),
            ("qeue", "queue"),
            ("Queue_Shared", "queue-shared"),
            ("poolshared", "pool-shared"),
            ("queu", "queue"),
        ] {
            assert_eq!(nearest(found, NAMES.into_iter()), Some(meant), "{found}");
        }
    }

    #[test]
    fn a_name_far_from_all_finds_none() {
        for found in ["", "x", "scheduler-of-my-dreams", "auto"] {
            assert_eq!(nearest(found, NAMES.into_iter()), None, "{found}");
        }
    }

    #[test]
    fn swapping_two_letters_is_one_edit() {
        assert_eq!(distance(b"port", b"prot"), 1);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }
}
