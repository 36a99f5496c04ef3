//! How much each worker has had to do, for whoever asks.

/// What has come to one worker and gone from it. Totals count from the start and only grow.
///
/// Where workers share their tasks, one may add what another one ends: then only the sums over all
/// workers say what is live.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// The worker's number; a thread that only accepts has the one behind the last.
    pub worker: usize,
    /// The kernel's number of its thread, as in `/proc/self/task`; 0 before it runs.
    pub thread: u32,
    /// Connections that it has taken in.
    pub connections_added: u64,
    /// Connections that have ended on it.
    pub connections_removed: u64,
    /// Tasks that it has taken in: connections, acceptors, and what was spawned.
    pub tasks_added: u64,
    /// Tasks that have ended on it.
    pub tasks_ended: u64,
}
