//! Files that a subcommand writes, and that may be there already.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes a file.
///
/// - `force`: whether one that is there may be replaced.
///
/// # Errors
/// It is there already, or cannot be written: one line with the remedy.
pub(crate) fn write_new(path: &Path, text: &str, force: bool) -> Result<(), String> {
    let shown = path.display();
    let opened = if force { File::create(path) } else { File::create_new(path) };
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{shown}: it is there already; --force replaces it, or name another file")
        }
        _ => format!("{shown}: cannot be written: {error}; name another file"),
    })
}
