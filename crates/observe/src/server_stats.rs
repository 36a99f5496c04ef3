//! The interface of pages about the server.

use crate::certificate_end::CertificateEnd;
use crate::stats::{Stats, WorkerStats};

/// A server whose counters can be read.
pub trait ServerStats: Send + Sync {
    /// Returns `epoll` or `io_uring`.
    fn backend(&self) -> &'static str;

    /// Returns the scheduler's name, as in its setting.
    fn scheduler(&self) -> &'static str;

    /// Returns the counters of the whole server.
    fn stats(&self) -> Stats;

    /// Returns the counters of each worker.
    fn stats_by_worker(&self) -> Vec<WorkerStats>;

    /// Returns when the certificate of each site ends.
    fn certificate_ends(&self) -> Vec<CertificateEnd>;
}
