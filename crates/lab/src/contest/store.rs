//! The record on disk: replaced atomically after each run.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::record::{FORMAT, Record};

/// Error of saving or loading a record.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    kind: StoreErrorKind,
}

#[derive(Debug)]
enum StoreErrorKind {
    Io(io::Error),
    Json(serde_json::Error),
    Format(u32),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            StoreErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "no such file or folder; name one that is there")
            }
            StoreErrorKind::Io(error) => write!(f, "{error}"),
            StoreErrorKind::Json(error) => write!(f, "this is no record of a contest: {error}"),
            StoreErrorKind::Format(found) => {
                write!(f, "expected a record of format {FORMAT}, found {found}; measure again")
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// Writes a record to a temporary file and renames it, so that the previous one survives a full
/// disk.
pub(super) fn save(record: &Record, path: &Path) -> Result<(), StoreError> {
    let failed = |kind| StoreError { path: path.to_owned(), kind };
    let text = serde_json::to_vec(record).map_err(|error| failed(StoreErrorKind::Json(error)))?;
    let temporary = path.with_extension("json.new");
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed(StoreErrorKind::Io(error))
    })
}

/// Reads a record from its file or folder.
///
/// # Errors
/// There is none, or it has another format.
pub fn read(path: &Path) -> Result<Record, StoreError> {
    #[derive(serde::Deserialize)]
    struct OfFormat {
        format: u32,
    }
    let path = if path.is_dir() { path.join(super::RECORD) } else { path.to_owned() };
    let failed = |kind| StoreError { path: path.clone(), kind };
    let text = fs::read(&path).map_err(|error| failed(StoreErrorKind::Io(error)))?;
    let of: OfFormat =
        serde_json::from_slice(&text).map_err(|error| failed(StoreErrorKind::Json(error)))?;
    if of.format != FORMAT {
        return Err(failed(StoreErrorKind::Format(of.format)));
    }
    serde_json::from_slice(&text).map_err(|error| failed(StoreErrorKind::Json(error)))
}
