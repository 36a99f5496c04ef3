//! Starting tasks from any thread.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};

use crate::exec::crew::Crew;
use crate::exec::here;
use crate::exec::spawn_error::SpawnError;

/// Starts tasks on the workers of one server, from any thread. It does not keep them running.
#[derive(Clone)]
pub struct Spawner {
    crew: Weak<Crew>,
}

impl Spawner {
    pub(crate) fn of(crew: &Arc<Crew>) -> Self {
        Self { crew: Arc::downgrade(crew) }
    }

    /// The spawner of the workers that run the current task.
    ///
    /// # Panics
    /// Outside a task.
    pub fn current() -> Self {
        here::with(|here| Self::of(&here.crew))
    }

    /// Starts a task on one of the workers, each in its turn. What it comes to can be told through
    /// a [`crate::mailbox()`]; a panic in it is contained and counted.
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
        let crew = self.crew.upgrade().ok_or(SpawnError::Stopped)?;
        crew.place_task(Box::pin(future))
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}
