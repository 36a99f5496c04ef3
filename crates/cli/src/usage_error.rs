//! The error of a command line, or of a file that it names.

use crate::exit;

/// An error message with its exit code.
#[derive(Debug)]
pub(crate) struct UsageError {
    /// The message: one line, or one for each mistake in a file.
    pub(crate) line: String,
    /// The exit code.
    pub(crate) code: u8,
}

impl UsageError {
    /// Returns the error of a wrong command line.
    pub(crate) fn of_usage(line: impl Into<String>) -> Self {
        Self { line: line.into(), code: exit::USAGE }
    }
}
