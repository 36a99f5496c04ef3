//! The report of a drain.

use std::time::Duration;

/// The report of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections that were cut at the deadline.
    pub cut: usize,
    /// Duration of the drain.
    pub took: Duration,
}
