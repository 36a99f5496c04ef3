//! The report of a contest: one self-contained page, a table in Markdown, and the figures as
//! tab-separated values.
//!
//! Statistics over rounds are in [`statistics`](crate::statistics), drawing is in
//! [`plot`](crate::plot), and the caller keeps the record.

mod bars;
mod figures;
pub mod markdown;
mod overview;
mod page;
mod tables;
#[cfg(test)]
mod tests;
mod tsv;
mod verdict;
mod view;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::record::Record;
use view::View;

/// Error of a report.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReportError {
    /// A file or folder could not be written.
    Unwritable {
        /// Its path.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl std::fmt::Display for ReportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReportError::Unwritable { path, .. } => {
                let path = path.display();
                write!(f, "cannot write {path}: is the disk full, or the folder not yours?")
            }
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReportError::Unwritable { error, .. } => Some(error),
        }
    }
}

/// Writes the report of `record` into `folder`, which is created if needed. Files of an earlier
/// report are overwritten.
///
/// Returns the files, `index.html` first.
pub fn write(record: &Record, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let view = View::of(record);
    let plots = figures::all(&view);
    fs::create_dir_all(folder)
        .map_err(|error| ReportError::Unwritable { path: folder.to_owned(), error })?;
    let mut written = Vec::new();
    for (name, content) in [
        ("index.html", page::write(&view, &plots)),
        ("rounds.tsv", tsv::rounds(&view)),
        ("percentiles.tsv", tsv::percentiles(&view)),
    ] {
        let path = folder.join(name);
        fs::write(&path, content)
            .map_err(|error| ReportError::Unwritable { path: path.clone(), error })?;
        written.push(path);
    }
    Ok(written)
}
