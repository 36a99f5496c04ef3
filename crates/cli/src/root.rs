//! Checks the folder before the start, so that a mistake is one line instead of a 404.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Returns what is wrong with the folder to serve, if anything is.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let shown = root.display();
    let found = fs::metadata(root).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(root),
        ErrorKind::PermissionDenied => {
            format!("{shown}: no permission to look at this folder; check `ls -ld` of each part")
        }
        _ => format!("{shown}: {error}; give a folder that can be read"),
    })?;
    if !found.is_dir() {
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new(".")).display();
        return Err(format!("{shown}: not a folder; to serve the folder it is in, give {folder}"));
    }
    match fs::read_dir(root) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{shown}: cannot read this folder ({error}); `chmod u+rx` it")),
    }
}

fn missing(root: &Path) -> String {
    let shown = root.display();
    format!("{shown}: no such folder; create it with `mkdir -p {shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_well() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(check(folder.path()), Ok(()));
    }

    #[test]
    fn a_missing_folder_says_how_to_make_it() {
        let line = check(Path::new("public/none")).expect_err("missing");
        assert_eq!(line, "public/none: no such folder; create it with `mkdir -p public/none`");
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page.html");
        fs::write(&file, "x").expect("written");
        let line = check(&file).expect_err("a file");
        let parent = folder.path().display();
        assert!(line.ends_with(&format!("to serve the folder it is in, give {parent}")), "{line}");
    }
}
