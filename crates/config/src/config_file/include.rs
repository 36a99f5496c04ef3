//! The key `include`: other files that belong to a configuration file.

use std::ffi::OsStr;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::wildcard::matches;

/// The most names of a folder that are compared with a pattern.
const NAMES_MAX: usize = 10_000;

/// Returns the files of a pattern, sorted: `sites/a.toml`, or with `*` and `?` in its names.
///
/// - `folder`: the folder that it begins in, as it was named.
///
/// # Errors
/// Why they cannot be listed, and the remedy. A pattern without a file is none; a name without one
/// is for the caller to find.
pub(crate) fn files(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    if pattern.is_empty() {
        return Err("expected a file such as sites/a.toml, or sites/*.toml, found \"\"".to_owned());
    }
    if pattern.contains("**") {
        return Err(format!(
            "expected * within one name, found {pattern:?}; name each folder: a/*.toml, a/*/*.toml"
        ));
    }
    let mut found = vec![folder.to_owned()];
    for component in Path::new(pattern).components() {
        let name = match component {
            Component::Normal(name) if is_pattern(name) => name,
            other => {
                for path in &mut found {
                    path.push(other);
                }
                continue;
            }
        };
        let mut next = Vec::new();
        for path in found {
            for name in names(&path, name)? {
                next.push(path.join(name));
            }
        }
        found = next;
    }
    if is_pattern(OsStr::new(pattern)) {
        let mut files = Vec::new();
        for path in found {
            match fs::metadata(&path) {
                Ok(meta) if meta.is_file() => files.push(path),
                Err(error) if !is_missing(&error) => return Err(unreadable(&path, &error)),
                _ => {}
            }
        }
        return Ok(files);
    }
    Ok(found)
}

/// Returns whether there is nothing, as opposed to something that cannot be looked at.
fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: &Error) -> String {
    format!("{}: {error}; let this user read it, or name the files", path.display())
}

fn is_pattern(name: &OsStr) -> bool {
    name.as_encoded_bytes().iter().any(|byte| b"*?".contains(byte))
}

/// Returns the names of a folder that match, sorted. A folder that is not there has none.
fn names(folder: &Path, pattern: &OsStr) -> Result<Vec<std::ffi::OsString>, String> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = match fs::read_dir(here) {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries.map_err(|error| unreadable(here, &error))?,
    };
    let mut found = Vec::new();
    for (count, entry) in entries.enumerate() {
        let entry = entry.map_err(|error| unreadable(here, &error))?;
        if count == NAMES_MAX {
            let shown = here.display();
            return Err(format!(
                "expected at most {NAMES_MAX} names in {shown}, found more; put the files into a \
                 folder of their own"
            ));
        }
        let name = entry.file_name();
        // As in a shell: hidden names are matched by a pattern that begins with a dot. Kubernetes
        // keeps its folders of former contents by such names.
        let (bytes, wanted) = (name.as_encoded_bytes(), pattern.as_encoded_bytes());
        if bytes.starts_with(b".") == wanted.starts_with(b".")
            && matches(wanted, bytes, |one, other| one == other)
        {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_sorted_and_without_hidden_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["sites/b.toml", "sites/a.toml", "sites/.c.toml", "sites/d.txt", "x/y.toml"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            std::fs::write(path, "").expect("a file");
        }
        std::fs::create_dir(folder.path().join("sites/folder.toml")).expect("a folder");
        let found = |pattern: &str| -> Vec<String> {
            let files = files(folder.path(), pattern).expect("they are listed");
            let short = |path: PathBuf| {
                path.strip_prefix(folder.path()).expect("below it").display().to_string()
            };
            files.into_iter().map(short).collect()
        };
        assert_eq!(found("sites/*.toml"), ["sites/a.toml", "sites/b.toml"]);
        assert_eq!(found("*/*.toml"), ["sites/a.toml", "sites/b.toml", "x/y.toml"]);
        assert_eq!(found("sites/.*.toml"), ["sites/.c.toml"]);
        assert_eq!(found("none/*.toml"), [""; 0]);
        assert_eq!(found("none.toml"), ["none.toml"]);
        assert_eq!(found("sites/a.toml/*"), [""; 0]);
        assert!(files(folder.path(), "a/**/b.toml").is_err());
        // What cannot be looked at may hold files: a link to itself does for any user.
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).expect("a link");
        let error = files(folder.path(), "loop/*.toml").expect_err("it cannot be listed");
        assert!(error.contains("loop: ") && error.contains("let this user read it"), "{error}");
        assert!(files(folder.path(), "l*p/a.toml").is_err());
    }
}
