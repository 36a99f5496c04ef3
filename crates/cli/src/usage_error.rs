//! The error of a command line, or of a file that it names.

use crate::exit;

/// What a person is told, and what the command exits with.
#[derive(Debug)]
pub(crate) struct UsageError {
    /// What to print: a line, or one for each mistake in a file.
    pub(crate) line: String,
    /// What to exit with.
    pub(crate) code: u8,
}

impl UsageError {
    /// A command line that is not understood.
    pub(crate) fn of_usage(line: impl Into<String>) -> Self {
        Self { line: line.into(), code: exit::USAGE }
    }
}
