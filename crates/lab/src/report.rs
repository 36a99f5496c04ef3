//! The report of a contest: one self-contained page, the plots as files, and the figures as
//! tab-separated values.
//!
//! Statistics over rounds are in [`statistics`](crate::statistics), drawing is in
//! [`plot`](crate::plot), and the caller writes `contest.json`.

mod figures;
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

use crate::plot::drawing::Size;
use crate::plot::png::{self, PngError};
use crate::plot::svg;
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
    /// A plot could not be rendered as a picture.
    Undrawable {
        /// Its file.
        path: PathBuf,
        /// The cause.
        error: PngError,
    },
}

impl std::fmt::Display for ReportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReportError::Unwritable { path, .. } => {
                let path = path.display();
                write!(f, "cannot write {path}: is the disk full, or the folder not yours?")
            }
            ReportError::Undrawable { path, .. } => write!(f, "cannot draw {}", path.display()),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReportError::Unwritable { error, .. } => Some(error),
            ReportError::Undrawable { error, .. } => Some(error),
        }
    }
}

/// Writes the report of `record` into `folder`, which is created if needed. Files of an earlier
/// report are overwritten.
///
/// Returns the files, `index.html` first. The tables and the page are written before the pictures,
/// because they matter most if the disk is full.
pub fn write(record: &Record, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let view = View::of(record);
    let plots = figures::all(&view);
    let pictures = folder.join("plots");
    fs::create_dir_all(&pictures)
        .map_err(|error| ReportError::Unwritable { path: pictures.clone(), error })?;

    let mut written = Vec::new();
    let mut put = |path: PathBuf, content: &[u8]| {
        fs::write(&path, content)
            .map_err(|error| ReportError::Unwritable { path: path.clone(), error })?;
        written.push(path);
        Ok(())
    };
    put(folder.join("index.html"), page::write(&view, &plots).as_bytes())?;
    put(folder.join("rounds.tsv"), tsv::rounds(&view).as_bytes())?;
    put(folder.join("percentiles.tsv"), tsv::percentiles(&view).as_bytes())?;
    for plot in &plots {
        let drawing = plot.kind.draw(Size::Wide);
        put(pictures.join(format!("{}.svg", plot.stem)), svg::file(&drawing).as_bytes())?;
        let path = pictures.join(format!("{}.png", plot.stem));
        let picture = png::file(&drawing)
            .map_err(|error| ReportError::Undrawable { path: path.clone(), error })?;
        put(path, &picture)?;
    }
    Ok(written)
}
