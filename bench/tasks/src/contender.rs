//! What is measured of each runtime.

use std::time::Duration;

/// Tasks in the ring.
pub(crate) const RING_TASKS: u64 = 1_000;
/// Tasks that are spawned before the first of them is joined.
pub(crate) const BATCH: u64 = 1_000;
/// Room in the mailbox that many messages go through.
pub(crate) const STREAM_CAPACITY: usize = 128;

/// A runtime on one thread. Each measurement takes a number of steps and says how long they took.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Spawns a task and joins it, again and again.
    pub(crate) one_by_one: fn(u64) -> Duration,
    /// Spawns [`BATCH`] tasks, then joins them.
    pub(crate) in_batches: fn(u64) -> Duration,
    /// Two tasks send a number to and fro.
    pub(crate) ping_pong: fn(u64) -> Duration,
    /// [`RING_TASKS`] tasks pass a number on.
    pub(crate) ring: fn(u64) -> Duration,
    /// One task sends, one receives, with room for [`STREAM_CAPACITY`] between them.
    pub(crate) stream: fn(u64) -> Duration,
    /// Runs this many tasks until each sleeps for an hour, and calls what it was given then.
    pub(crate) sleepers: fn(usize, bool, &mut dyn FnMut()),
}
