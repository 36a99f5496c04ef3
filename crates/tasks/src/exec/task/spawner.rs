//! Starting tasks from any thread.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};

use crate::exec::error::SpawnError;
use crate::exec::executor::context;
use crate::exec::worker::workers_shared::WorkersShared;

/// Starts tasks on the workers of one server, from any thread. It does not keep them running.
#[derive(Clone)]
pub struct Spawner {
    shared: Weak<WorkersShared>,
}

impl Spawner {
    pub(crate) fn of(shared: &Arc<WorkersShared>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// Returns the spawner of the workers that run the current task.
    ///
    /// # Panics
    /// Outside a task.
    pub fn current() -> Self {
        context::with(|ctx| Self::of(&ctx.shared))
    }

    /// Starts a task on one of the workers, each in its turn. Its result can be sent through a
    /// [`crate::mailbox()`]; a panic in it is contained and counted.
    ///
    /// It never waits. Where as many tasks wait to be taken in as may, 1,024 per worker, it
    /// refuses; the shared schedulers take them at once, as long as a slot is free.
    ///
    /// # Errors
    /// [`SpawnError::Full`]: try later. [`SpawnError::Stopped`]: the workers have ended.
    pub fn spawn<F>(&self, future: F) -> Result<(), SpawnError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = self.shared.upgrade().ok_or(SpawnError::Stopped)?;
        shared.place_task(Box::pin(future))
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}
