//! Standard output and result files. Files are opened before the load starts.

use super::options::{BenchOptions, Destination};
use gustnado_lab::outcome::Outcome;
use gustnado_lab::output::{csv, histogram, json, table};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};

/// An open result file with its name.
struct OutputFile {
    path: PathBuf,
    file: File,
}

/// The result files of a run.
pub(super) struct Results {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    csv_line: Option<OutputFile>,
    hgrm: Option<OutputFile>,
}

impl Results {
    /// Opens the requested files.
    ///
    /// # Errors
    /// A line that names the file that is not writable.
    pub(super) fn open(options: &BenchOptions) -> Result<Self, String> {
        let file = |place: &Option<Destination>| match place {
            Some(Destination::File(path)) => OutputFile::create(path).map(Some),
            _ => Ok(None),
        };
        let named = |path: &Option<PathBuf>| path.as_deref().map(OutputFile::create).transpose();
        Ok(Self {
            json: file(&options.json)?,
            csv: file(&options.csv)?,
            csv_line: options.csv_line.as_deref().map(OutputFile::append).transpose()?,
            hgrm: named(&options.hgrm)?,
        })
    }

    /// Writes all results, even if one of them fails.
    ///
    /// # Errors
    /// One line for each failed write.
    pub(super) fn write(self, options: &BenchOptions, outcome: &Outcome) -> Result<(), String> {
        let page = match (&options.json, &options.csv) {
            (Some(Destination::Standard), _) => json::text(outcome),
            (_, Some(Destination::Standard)) => csv::percentiles(outcome),
            _ => table::text(outcome),
        };
        let mut failures = Vec::new();
        failures.extend(print(&page).err());
        let log = || histogram::log(outcome).map_err(|error| format!("--hgrm: {error}"));
        for (sink, text) in [
            (self.json, Ok(json::text(outcome))),
            (self.csv, Ok(csv::percentiles(outcome))),
            (self.hgrm, log()),
        ] {
            let Some(sink) = sink else { continue };
            failures.extend(text.and_then(|text| sink.write(&text)).err());
        }
        if let Some(sink) = self.csv_line {
            let is_new = sink.file.metadata().is_ok_and(|data| data.len() == 0);
            let header = if is_new { csv::header() } else { String::new() };
            failures.extend(sink.write(&(header + &csv::line(outcome))).err());
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

impl OutputFile {
    fn create(path: &Path) -> Result<Self, String> {
        Self::of(path, File::create(path))
    }

    fn append(path: &Path) -> Result<Self, String> {
        Self::of(path, OpenOptions::new().append(true).create(true).open(path))
    }

    fn of(path: &Path, file: io::Result<File>) -> Result<Self, String> {
        match file {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(error) => Err(format!("{}: cannot be written: {error}", path.display())),
        }
    }

    fn write(mut self, text: &str) -> Result<(), String> {
        let path = &self.path;
        let line = |error| format!("{}: could not be written: {error}", path.display());
        self.file.write_all(text.as_bytes()).map_err(line)
    }
}

/// Prints on standard output. A closed pipe is no failure; a full disk is.
pub(super) fn print(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output: could not be written: {error}"))
        }
        _ => Ok(()),
    }
}
