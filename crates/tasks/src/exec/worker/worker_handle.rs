//! A worker, or a group of workers, as other threads reach it.

use std::sync::Arc;

use crate::exec::error::SpawnError;
use crate::exec::schedule::BoxTask;
use crate::exec::wakers::wake_target::WakeTarget;
use crate::exec::worker::arrival::Arrival;
use crate::exec::worker::dump_request::DumpRequest;

/// A worker that connections and listeners can be handed to, and wake-ups sent to.
pub(crate) trait WorkerHandle: WakeTarget {
    /// Hands something over.
    fn arrive(&self, arrival: Arrival);

    /// Hands a task over, to be run here. The error gives it back.
    fn take_task(&self, task: BoxTask) -> Result<(), (BoxTask, SpawnError)>;

    /// Returns how many tasks were taken in past all workers, by the thread that brought them.
    fn tasks_taken(&self) -> u64;

    /// Writes all tasks that live here into a dump, at once or soon. Returns whether there is
    /// a worker to do it.
    fn reply(&self, look: &Arc<DumpRequest>) -> bool;

    /// Sends word that connections are to be closed, as many as
    /// [`crate::exec::worker::evictions::EvictionRequests`] says. Returns whether there is a worker
    /// to do it.
    fn evict(&self) -> bool;

    /// Makes all tasks ready, so that they see the phase has changed.
    fn wake_all(&self);
}
