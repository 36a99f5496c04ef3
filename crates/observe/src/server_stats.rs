//! What a page about the server asks of it.

use crate::stats::{Stats, WorkerStats};

/// A server whose counters can be read.
pub trait ServerStats: Send + Sync {
    /// `epoll` or `io_uring`.
    fn backend(&self) -> &'static str;

    /// The scheduler's name, as its setting has it.
    fn scheduler(&self) -> &'static str;

    /// The counters in sum.
    fn stats(&self) -> Stats;

    /// The counters of each worker.
    fn stats_by_worker(&self) -> Vec<WorkerStats>;
}
