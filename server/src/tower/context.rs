//! The tokio runtime that services find around them.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

/// Threads of the runtime that a server starts for its services. They wait for sockets and timers,
/// and run what is spawned; the services themselves run on the workers.
const THREADS_MAX: usize = 2;

/// A server's own runtime, from the first service that wants one to the server's end.
#[derive(Default)]
pub(crate) struct Tokio {
    runtime: OnceLock<Option<Runtime>>,
    failure: Mutex<Option<io::Error>>,
}

impl Tokio {
    /// The runtime, started if it is not there yet. Should that fail, [`Tokio::failure`] has it.
    pub(super) fn context(&self) -> Context {
        let runtime = self.runtime.get_or_init(|| {
            let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
            let mut builder = Builder::new_multi_thread();
            let built =
                builder.worker_threads(threads).thread_name("gust-tokio").enable_all().build();
            built.map_err(|error| *self.locked() = Some(error)).ok()
        });
        match runtime {
            Some(runtime) => Context::Tokio(runtime.handle().clone()),
            None => Context::Nothing,
        }
    }

    /// Why it could not be started.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.locked().take()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Option<io::Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tokio {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take().flatten() {
            // Whoever ends the server may do so from inside a runtime, where nobody may wait.
            runtime.shutdown_background();
        }
    }
}

/// What is around a service while it runs.
#[derive(Clone)]
pub(super) enum Context {
    Tokio(Handle),
    Nothing,
}

impl Context {
    pub(super) fn enter(&self) -> Option<EnterGuard<'_>> {
        match self {
            Self::Tokio(handle) => Some(handle.enter()),
            Self::Nothing => None,
        }
    }
}
