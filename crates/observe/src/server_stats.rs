//! The interface of pages about the server.

use crate::certificate_end::CertificateEnd;
use crate::process::Process;
use crate::stats::{Stats, WorkerStats};

/// A server whose counters can be read.
pub trait ServerStats: Send + Sync {
    /// Returns `epoll` or `io_uring`.
    fn backend(&self) -> &'static str;

    /// Returns the scheduler's name, as in its setting.
    fn scheduler(&self) -> &'static str;

    /// Returns the counters of the whole server.
    fn stats(&self) -> Stats;

    /// Returns the counters of all processes that serve together, and what these use; those of this
    /// process, where it is the only one.
    fn stats_of_all(&self) -> (Stats, Process);

    /// Returns the counters of each worker of this process.
    fn stats_by_worker(&self) -> Vec<WorkerStats>;

    /// Returns when the certificate of each site ends.
    fn certificate_ends(&self) -> Vec<CertificateEnd>;
}
