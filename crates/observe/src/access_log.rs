//! The access log: a line for each request that got a response, was refused or was cut off.
//!
//! A `Format` is compiled once. A request's line is written when its exchange is finished, to the
//! buffer of the connection's first worker, and the thread of the `Sink` writes the buffers to the
//! file. Without a log there
//! is none of this: a connection tests once per request whether there is one.

mod escape;
mod format;
mod guess;
pub(crate) mod line;
mod output;
mod proxy_atom;
mod sink;
mod terminal;
mod tls_atom;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

pub use format::FormatError;
pub use output::unblocked_terminal;

use format::Format;
use gustnado_config::Config;
use line::Line;
use sink::{Shared, Sink};

/// How long the server waits at its end for the disks and readers of its logs.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Why a log cannot be opened.
pub enum LogError {
    /// Its format is wrong.
    Format(FormatError),
    /// Its file cannot be opened.
    File { path: PathBuf, error: io::Error },
}

/// The format of a log, and its destination.
pub struct AccessLog {
    format: Format,
    sink: Arc<Sink>,
}

impl AccessLog {
    /// Opens the log of a configuration, if it has one.
    ///
    /// - `places`: how many buffers the workers need.
    /// - `logs`: all logs of the server.
    /// - `old`: the log so far. If the path is the same, its file stays open.
    ///
    /// # Errors
    /// The format is wrong, which is an error even while the log is off; or the file cannot be
    /// opened.
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

    /// Compiles the format of a configuration.
    pub fn format_of(config: &Config) -> Result<Format, LogError> {
        Format::new(&config.access_log_format).map_err(LogError::Format)
    }

    /// Writes a line to a buffer. If the buffer is full the line is lost: no worker waits for a
    /// reader.
    pub(crate) fn write(&self, place: usize, line: &Line<'_>) {
        self.sink.push(place, |buffer| self.format.write(line, buffer));
    }

    /// Returns whether its lines contain the client's address.
    pub(crate) fn wants_address(&self) -> bool {
        self.format.wants_address
    }

    /// Returns whether its lines contain a field of the response.
    pub fn wants_response(&self) -> bool {
        self.format.wants_response
    }

    /// Returns whether its lines contain what a handshake has agreed on.
    pub(crate) fn wants_tls(&self) -> bool {
        self.format.wants_tls
    }

    /// Returns whether the format needs what a PROXY header says besides addresses.
    pub(crate) fn wants_proxy_info(&self) -> bool {
        self.format.wants_proxy_info
    }

    /// Writes all buffers to the file. Waits a second at most.
    pub fn flush(&self) {
        self.sink.shared().flush();
    }

    /// Reopens the file, which log rotation may have moved away. Waits a second at most.
    pub fn reopen(&self) -> Result<(), LogError> {
        let failed = |error| LogError::File { path: self.sink.path().to_owned(), error };
        self.sink.shared().reopen().map_err(failed)
    }
}

/// All logs of a server: the one in force, and replaced ones that connections may still write to.
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

    /// Returns how many lines could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes all buffers at the end of the server. Waits a second at most.
    pub fn finish(&self) {
        // One deadline for all logs, so that several frozen disks delay the end no longer than one.
        let until = Instant::now() + END_WITHIN;
        // Cloned, so that the lock is not held while a disk is waited for.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        open.iter().filter_map(Weak::upgrade).for_each(|log| log.finish(until));
    }
}
