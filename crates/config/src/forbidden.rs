//! Names that a folder never serves.

use super::fields::list;
use super::tunable::{SettingGroup, Tunable};
use super::wildcard::matches;

pub(super) const FORBIDDEN: Tunable = Tunable {
    name: "forbidden",
    group: SettingGroup::Folders,
    default: "",
    doc: "Names that are never served, such as *.php, or paths such as /admin/*",
    field: list!(
        routes.forbidden,
        "a name such as *.php, or a path of the folder such as /admin/*",
        is_pattern
    ),
};

/// Returns whether a text is a pattern of names: no control letters, and not too long.
fn is_pattern(text: &str) -> bool {
    let letters = 1..=255;
    letters.contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Returns whether a path of a folder is forbidden by one of its patterns.
///
/// - `path`: decoded, without a slash at its ends.
/// - `names_directory`: whether it had one at its end.
pub fn is_forbidden(patterns: &[String], path: &[u8], names_directory: bool) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let end: &[u8] = if names_directory && !path.is_empty() { b"/" } else { b"" };
    let whole = [b"/", path, end].concat();
    patterns.iter().any(|pattern| {
        let is_name = !pattern.contains('/');
        let mut names = path.split(|byte| *byte == b'/');
        is_matched(pattern, &whole) || is_name && names.any(|name| is_matched(pattern, name))
    })
}

/// Returns whether a name matches a pattern: `*` is any letters, `?` is one byte, and upper and
/// lower case do not count.
pub(crate) fn is_matched(pattern: &str, name: &[u8]) -> bool {
    matches(pattern.as_bytes(), name, |one, other| one.eq_ignore_ascii_case(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, path: &str) -> bool {
        let names_directory = path.ends_with('/');
        let path = path.trim_matches('/');
        is_forbidden(&[pattern.to_owned()], path.as_bytes(), names_directory)
    }

    #[test]
    fn names_are_matched_in_every_folder_and_paths_as_a_whole() {
        for (pattern, path) in [
            ("*.php", "/a.php"),
            ("*.php", "/x/A.PHP"),
            ("*.php", "/a.php/x"),
            ("secret", "/x/secret/y"),
            ("/admin*", "/admin"),
            ("/admin*", "/administrator/x"),
            ("/admin/*", "/admin/"),
            ("/admin/*", "/admin/a/b"),
            ("/admin/", "/admin/"),
            ("*/.*", "/a/.b"),
        ] {
            assert!(found(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.php", "/a.phps"),
            ("*.php", "/php"),
            ("/admin*", "/x/admin"),
            ("/admin/*", "/admin"),
            ("secret", "/secrets"),
        ] {
            assert!(!found(pattern, path), "{pattern} {path}");
        }
        assert!(!is_forbidden(&[], b"a", false));
    }
}
