//! How a drain ended.

use std::time::Duration;

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections that were cut at the deadline.
    pub cut: usize,
    /// How long it took.
    pub took: Duration,
}
