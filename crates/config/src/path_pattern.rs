//! Patterns of paths in rules: `*` is anything within a segment, `**` is anything.

/// Returns whether a pattern can be one: it begins with a slash, and has no third `*` in a row.
pub(super) fn is_path_pattern(text: &str) -> bool {
    text.starts_with('/') && !text.contains("***") && !text.chars().any(char::is_control)
}

/// Returns whether a path matches a pattern.
///
/// - `path`: decoded, from its first slash on.
///
/// The time is bounded by the product of both lengths, whatever they hold.
pub fn path_matches(pattern: &str, path: &[u8]) -> bool {
    let literal = pattern.find('*').unwrap_or(pattern.len());
    if !path.starts_with(&pattern.as_bytes()[..literal]) {
        return false;
    }
    // `ends[at]`: what is behind of the pattern so far may end before byte `at` of the path.
    let mut ends = vec![false; path.len() + 1];
    ends[0] = true;
    let mut rest = pattern.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"**") {
            spread(&mut ends, |_| true, path);
            rest = behind;
            continue;
        }
        if *first == b'*' {
            spread(&mut ends, |byte| byte != b'/', path);
        } else {
            for at in (0..path.len()).rev() {
                ends[at + 1] = ends[at] && path[at] == *first;
            }
            ends[0] = false;
        }
        rest = behind;
    }
    ends[path.len()]
}

/// Lets any number of bytes that may follow.
fn spread(ends: &mut [bool], may_follow: impl Fn(u8) -> bool, path: &[u8]) {
    for at in 0..path.len() {
        ends[at + 1] |= ends[at] && may_follow(path[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_stand_for_a_part_or_for_all() {
        for (pattern, path, expected) in [
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a", "/ab", false),
            ("/*", "/", true),
            ("/*", "/a.pdf", true),
            ("/*", "/a/b", false),
            ("/**", "/a/b", true),
            ("/a/**", "/a/", true),
            ("/a/**", "/a", false),
            ("/*.pdf", "/a.pdf", true),
            ("/*.pdf", "/x/a.pdf", false),
            ("/**.pdf", "/x/a.pdf", true),
            ("/**/*.pdf", "/x/a.pdf", true),
            ("/**/*.pdf", "/a.pdf", false),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/b/c", false),
            ("/a/**/c", "/a/b/b/c", true),
            ("/a*b*c", "/axxbxxbc", true),
            ("/a*b*c", "/axxbxxb", false),
        ] {
            assert_eq!(path_matches(pattern, path.as_bytes()), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_cost_no_more_than_the_product_of_the_lengths() {
        let pattern = format!("/{}b", "*a".repeat(500));
        assert!(!path_matches(&pattern, format!("/{}", "a".repeat(4_000)).as_bytes()));
    }

    proptest! {
        #[test]
        fn a_text_without_stars_matches_itself_alone(
            path in "/[a-z/]{0,12}", other in "/[a-z/]{0,12}",
        ) {
            prop_assert!(path_matches(&path, path.as_bytes()));
            prop_assert_eq!(path_matches(&path, other.as_bytes()), path == other);
        }

        #[test]
        fn two_stars_match_whatever_stands_between(
            head in "/[a-z]{0,5}", middle in "[a-z/]{0,9}", tail in "[a-z]{0,5}",
        ) {
            let path = format!("{head}{middle}{tail}");
            let matched = path_matches(&format!("{head}**{tail}"), path.as_bytes());
            prop_assert!(matched);
            let matched = path_matches(&format!("{head}*{tail}"), path.as_bytes());
            prop_assert!(matched || middle.contains('/'));
        }
    }
}
