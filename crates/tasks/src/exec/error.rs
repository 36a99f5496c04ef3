//! Errors of starting workers or a task.

use std::{fmt, io};

/// The error of workers that did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkersStartError {
    /// A thread or its reactor could not be had.
    Thread(io::Error),
    /// The current thread runs tasks already: await the future in one of them.
    Nested,
}

impl fmt::Display for WorkersStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(error) => write!(f, "cannot start a worker: {error}"),
            Self::Nested => f.write_str("this thread runs tasks already: await the future in one"),
        }
    }
}

impl std::error::Error for WorkersStartError {}

/// The error of a task that was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// All task slots of the scheduler are taken, as many as may wait to be taken in by the workers
    /// do, or the group is full.
    Full,
    /// The workers have ended.
    Stopped,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "there is no room for another task",
            Self::Stopped => "the workers have ended",
        })
    }
}

impl std::error::Error for SpawnError {}
