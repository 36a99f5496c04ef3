//! Errors of settings that cannot be used. Each is one line: place, expected, found, remedy.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Error of what a route asks of its clients.
#[derive(Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A file cannot be read.
    #[error("{setting} {path:?} cannot be read: {error}; name a file that can")]
    Unreadable {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line of a file is not one that is taken.
    #[error("{setting} {path:?}, line {line}: {problem}")]
    Line {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Expected, found, remedy.
        problem: String,
    },
    /// A file has nothing in it.
    #[error("{setting} {path:?}: expected {expected}, found none; {remedy}")]
    Empty {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A setting has a value that it cannot have.
    #[error("{setting}: {problem}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Expected, found, remedy.
        problem: String,
    },
    /// A rule of header fields, or a rewrite, cannot be applied.
    #[error("{0}")]
    Rule(String),
    /// The system has no random bytes.
    #[error("the system gives no random bytes ({0}); try again")]
    Random(io::Error),
}

impl AccessError {
    /// Returns the name of the setting that it is of; `None` for one of a rule.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { setting, .. }
            | Self::Line { setting, .. }
            | Self::Empty { setting, .. }
            | Self::Setting { setting, .. } => Some(setting),
            Self::Rule(_) | Self::Random(_) => None,
        }
    }
}
