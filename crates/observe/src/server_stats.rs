//! The interface of pages about the server.

use crate::certificate_end::CertificateEnd;
use crate::last_reload::LastReload;
use crate::process::Process;
use crate::stats::{Stats, WebSocketCount, WorkerStats};

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

    /// Returns the result of the last reload; `None` before the first.
    fn last_reload(&self) -> Option<LastReload>;

    /// Adds what a WebSocket counts to the running worker's counters.
    fn count_websocket(&self, count: WebSocketCount);

    /// Returns whether the server is to be started again at once after its end, or another process
    /// takes its place.
    fn is_restarting(&self) -> bool;
}
