//! Why a task was not started.

use std::fmt;

/// Why a task was not started.
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
