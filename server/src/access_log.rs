//! The access log: a line for each request that was answered, refused or cut.
//!
//! A [`Format`] is compiled once. Each connection keeps what it must know of its open requests in a
//! [`Journal`]; when an answer's last byte has been handed to the kernel, its line is written into
//! the buffer of the running worker, and the [`Sink`] brings buffers into the file. Where the log
//! is off, there is none of this: a connection asks once per request whether there is a log.

mod escape;
mod format;
mod guess;
mod journal;
mod line;
mod output;
mod sink;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub use format::FormatError;
pub(crate) use journal::{Journal, final_answer};

use crate::config::Config;
use crate::server::StartError;
use format::Format;
use line::Line;
use sink::Sink;

/// How long a server that ends waits for the log's reader.
const END_WITHIN: Duration = Duration::from_secs(1);

/// What is written of each request, and where to.
pub(crate) struct AccessLog {
    format: Format,
    sink: Arc<Sink>,
}

impl AccessLog {
    /// The log that a configuration asks for, if it does.
    ///
    /// - `places`: how many workers may write.
    /// - `lost`: counts lines that could not be written.
    /// - `old`: the log so far, whose file is written on if it is the same.
    ///
    /// # Errors
    /// The format is wrong, which is said of a log that is off too; the file cannot be opened.
    pub(crate) fn of(
        config: &Config,
        places: usize,
        lost: &Arc<AtomicU64>,
        old: Option<&Self>,
    ) -> Result<Option<Arc<Self>>, StartError> {
        let format = Self::format_of(config)?;
        let Some(path) = &config.access_log else { return Ok(None) };
        let sink = match old {
            Some(old) if old.sink.path() == path => Arc::clone(&old.sink),
            _ => Self::open(path, places, lost)?,
        };
        Ok(Some(Arc::new(Self { format, sink })))
    }

    /// What a configuration wants a line to be.
    pub(crate) fn format_of(config: &Config) -> Result<Format, StartError> {
        Format::new(&config.access_log_format).map_err(StartError::AccessLogFormat)
    }

    fn open(path: &Path, places: usize, lost: &Arc<AtomicU64>) -> Result<Arc<Sink>, StartError> {
        let failed = |error| StartError::AccessLog { path: path.to_owned(), error };
        Sink::open(path, places, Arc::clone(lost)).map_err(failed)
    }

    /// Writes a line, or as much of it as memory is set aside for: no worker waits for a reader.
    fn write(&self, place: usize, line: &Line<'_>) {
        self.sink.push(place, |buffer| self.format.write(line, buffer));
    }

    /// Brings what was written so far into the file.
    pub(crate) fn flush(&self) {
        self.sink.flush();
    }

    /// The same for a server that ends: a reader that is slow gets a second.
    pub(crate) fn finish(&self) {
        self.sink.finish(END_WITHIN);
    }

    /// Opens the file anew, which by now may be another one: the old one was moved away.
    pub(crate) fn reopen(&self) -> Result<(), StartError> {
        let failed = |error| StartError::AccessLog { path: self.sink.path().to_owned(), error };
        self.sink.reopen().map_err(failed)
    }
}
