//! The record on disk: JSON Lines. A line with everything but the runs comes first, and again when
//! something in it has changed; each run appends a line; the last line says how it ended.
//!
//! What was written stays as it is, so a full disk or a crash costs the last line at most.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::record::{FORMAT, Record, RunRecord};

/// What a record without its last line says of its end.
const BROKEN_OFF: &str = "it was broken off: what was measured by then is kept";

/// Error of saving or loading a record.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    kind: StoreErrorKind,
}

#[derive(Debug)]
enum StoreErrorKind {
    Io(io::Error),
    Json(usize, serde_json::Error),
    Format(u32),
    Empty,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            StoreErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "no such file or folder; name one that is there")
            }
            StoreErrorKind::Io(error) => write!(f, "{error}"),
            StoreErrorKind::Json(line, error) => {
                write!(f, "this is no record of a contest: line {line}: {error}")
            }
            StoreErrorKind::Format(found) => {
                write!(f, "expected a record of format {FORMAT}, found {found}; measure again")
            }
            StoreErrorKind::Empty => write!(f, "this is no record of a contest: it is empty"),
        }
    }
}

impl std::error::Error for StoreError {}

/// One line of a record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RecordLine {
    /// Everything but the runs.
    Contest(Box<Record>),
    /// A run, and how long the contest has taken by then.
    Run { took_s: f64, run: Box<RunRecord> },
    /// The end.
    End { took_s: f64, cut: Option<String> },
}

/// A record that is being written.
pub(super) struct RecordFile {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl RecordFile {
    /// Creates the file with a record that may have runs already. The file at this path is
    /// replaced.
    pub(super) fn create(path: &Path, record: &Record) -> Result<Self, StoreError> {
        let file = File::create(path).map_err(|error| StoreError {
            path: path.to_owned(),
            kind: StoreErrorKind::Io(error),
        })?;
        let mut this = Self { path: path.to_owned(), file, length: 0 };
        this.describe(record)?;
        for run in &record.runs {
            this.run(record.took_s, run)?;
        }
        Ok(this)
    }

    /// Appends everything but the runs.
    pub(super) fn describe(&mut self, record: &Record) -> Result<(), StoreError> {
        let head = Record { runs: Vec::new(), ..record.clone() };
        self.append(&RecordLine::Contest(Box::new(head)))
    }

    /// Appends a run.
    pub(super) fn run(&mut self, took_s: f64, run: &RunRecord) -> Result<(), StoreError> {
        self.append(&RecordLine::Run { took_s, run: Box::new(run.clone()) })
    }

    /// Appends how the contest ended.
    pub(super) fn end(&mut self, record: &Record) -> Result<(), StoreError> {
        self.append(&RecordLine::End { took_s: record.took_s, cut: record.cut.clone() })
    }

    fn append(&mut self, line: &RecordLine) -> Result<(), StoreError> {
        let failed = |kind| StoreError { path: self.path.clone(), kind };
        let mut text =
            serde_json::to_vec(line).map_err(|error| failed(StoreErrorKind::Json(0, error)))?;
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would spoil the next one. Where even this fails, readers leave it out.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(failed(StoreErrorKind::Io(error)));
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Reads a record from its file or folder. A last line that is not whole is left out.
///
/// # Errors
/// There is none, or it has another format.
pub fn read(path: &Path) -> Result<Record, StoreError> {
    let path = if path.is_dir() { of_folder(path) } else { path.to_owned() };
    let failed = |kind| StoreError { path: path.clone(), kind };
    let text = fs::read(&path).map_err(|error| failed(StoreErrorKind::Io(error)))?;
    parse(&text).map_err(failed)
}

/// Returns the record of a folder. One of format 1 is named, so that its format can be refused.
fn of_folder(folder: &Path) -> PathBuf {
    let (path, old) = (folder.join(super::RECORD), folder.join("contest.json"));
    if !path.exists() && old.exists() { old } else { path }
}

fn parse(text: &[u8]) -> Result<Record, StoreErrorKind> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let mut record: Option<Record> = None;
    let (mut runs, mut took_s, mut ended) = (Vec::new(), 0.0, None);
    for (place, line) in lines.enumerate() {
        if place == 0 {
            check_format(line)?;
        } else if !line.ends_with(b"\n") {
            break;
        }
        let line: RecordLine =
            serde_json::from_slice(line).map_err(|error| StoreErrorKind::Json(place + 1, error))?;
        match line {
            RecordLine::Contest(head) => (record, ended) = (Some(*head), None),
            RecordLine::Run { took_s: by_then, run } => {
                took_s = by_then;
                runs.push(*run);
            }
            RecordLine::End { took_s: all, cut } => {
                took_s = all;
                ended = Some(cut);
            }
        }
    }
    let record = record.ok_or(StoreErrorKind::Empty)?;
    let cut = ended.unwrap_or_else(|| Some(BROKEN_OFF.to_owned()));
    Ok(Record { took_s, cut, runs, ..record })
}

/// Checks the format of a record by its first line. Up to format 1 a record was one object.
fn check_format(line: &[u8]) -> Result<(), StoreErrorKind> {
    #[derive(Deserialize)]
    struct FirstLine {
        format: Option<u32>,
        contest: Option<FormatOnly>,
    }
    #[derive(Deserialize)]
    struct FormatOnly {
        format: u32,
    }
    let found: FirstLine =
        serde_json::from_slice(line).map_err(|error| StoreErrorKind::Json(1, error))?;
    match found.format.or(found.contest.map(|contest| contest.format)) {
        Some(FORMAT) | None => Ok(()),
        Some(other) => Err(StoreErrorKind::Format(other)),
    }
}

#[cfg(test)]
mod tests;
