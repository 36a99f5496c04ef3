//! The access log: a line for each request that was answered, refused or cut.
//!
//! A `Format` is compiled once. Each connection keeps what it must know of its open requests in a
//! [`Journal`]; when an answer's last byte has been handed to the kernel, its line is written into
//! the buffer of the running worker, and the thread of the `Sink` writes buffers into the file.
//! Where the log is off, there is none of this: a connection asks once per request whether there is
//! a log.

mod escape;
mod format;
mod guess;
mod journal;
mod line;
mod output;
mod sink;
mod terminal;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

pub use format::FormatError;
pub use journal::Journal;
pub use output::unblocked_terminal;

use format::Format;
use gustnado_config::Config;
use line::Line;
use sink::{Shared, Sink};

/// How long a server that ends waits for its logs' disks and readers.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Why there is no log.
pub enum LogError {
    /// Its format is wrong.
    Format(FormatError),
    /// Its file cannot be opened.
    File { path: PathBuf, error: io::Error },
}

/// What is written of each request, and where to.
pub struct AccessLog {
    format: Format,
    sink: Arc<Sink>,
}

impl AccessLog {
    /// The log that a configuration asks for, if it does.
    ///
    /// - `places`: how many workers may write.
    /// - `logs`: all logs of the server.
    /// - `old`: the log so far, whose file is written on if it is the same.
    ///
    /// # Errors
    /// The format is wrong, which is said of a log that is off too; the file cannot be opened.
    pub fn of(
        config: &Config,
        places: usize,
        logs: &Logs,
        old: Option<&Self>,
    ) -> Result<Option<Arc<Self>>, LogError> {
        let format = Self::format_of(config)?;
        let Some(path) = &config.access_log else { return Ok(None) };
        let sink = match old {
            Some(old) if old.sink.path() == path => Arc::clone(&old.sink),
            _ => Arc::new(logs.open(path, places)?),
        };
        Ok(Some(Arc::new(Self { format, sink })))
    }

    /// What a configuration wants a line to be.
    pub fn format_of(config: &Config) -> Result<Format, LogError> {
        Format::new(&config.access_log_format).map_err(LogError::Format)
    }

    /// Writes a line, or as much of it as memory is set aside for: no worker waits for a reader.
    fn write(&self, place: usize, line: &Line<'_>) {
        self.sink.push(place, |buffer| self.format.write(line, buffer));
    }

    /// Has what was written so far brought into the file. Waits a second at most.
    pub fn flush(&self) {
        self.sink.shared().flush();
    }

    /// Opens the file anew, which by now may be another one: the old one was moved away. Waits a
    /// second at most.
    pub fn reopen(&self) -> Result<(), LogError> {
        let failed = |error| LogError::File { path: self.sink.path().to_owned(), error };
        self.sink.shared().reopen().map_err(failed)
    }
}

/// All logs of a server: the one that counts, and those that a reload has replaced and that
/// connections may still write.
#[derive(Default)]
pub struct Logs {
    lost: Arc<AtomicU64>,
    open: Mutex<Vec<Weak<Shared>>>,
}

impl Logs {
    fn open(&self, path: &Path, places: usize) -> Result<Sink, LogError> {
        let failed = |error| LogError::File { path: path.to_owned(), error };
        let sink = Sink::open(path, places, Arc::clone(&self.lost)).map_err(failed)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|log| log.strong_count() > 0);
        open.push(Arc::downgrade(sink.shared()));
        Ok(sink)
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Has all lines written, at the end of the server. Waits a second at most.
    pub fn finish(&self) {
        let until = Instant::now() + END_WITHIN;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        open.iter().filter_map(Weak::upgrade).for_each(|log| log.finish(until));
    }
}
