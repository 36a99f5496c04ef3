//! The tokio runtime that services find around them.

mod budget;

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{self, Poll};
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor};

use budget::with_budget;

/// Threads of the runtime that a server starts for its services. They wait for sockets and timers,
/// and run spawned tasks; the services themselves run on the workers.
const THREADS_MAX: usize = 2;

/// The error of a runtime without threads of its own.
const ONE_THREAD: &str = "on_tokio was given a runtime of one thread (flavor \"current_thread\"), \
    which nothing drives while that thread runs the server; expected one of several threads: leave \
    on_tokio out, or start it with flavor \"multi_thread\"";

/// The server's own runtime, from its first service that needs one to the server's end.
#[derive(Default)]
pub struct Tokio {
    runtime: OnceLock<Option<Runtime>>,
    failure: Mutex<Option<io::Error>>,
}

impl Tokio {
    /// Returns the runtime, started on the first call. If that fails, [`Tokio::failure`] returns
    /// the error.
    pub fn context(&self) -> Context {
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

    /// Returns the program's runtime. If it cannot be used, [`Tokio::failure`] returns the error.
    pub fn given(&self, handle: &Handle) -> Context {
        // Nothing drives it while its thread runs the server: a timer would never fire.
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            *self.locked() = Some(io::Error::new(io::ErrorKind::Unsupported, ONE_THREAD));
        }
        Context::Tokio(handle.clone())
    }

    /// Returns why a runtime could not be started, or cannot be used.
    pub fn failure(&self) -> Option<io::Error> {
        self.locked().take()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Option<io::Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tokio {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take().flatten() {
            // The server may be dropped inside a runtime, where blocking is not allowed.
            runtime.shutdown_background();
        }
    }
}

/// The runtime around a service while it runs.
#[derive(Clone)]
pub enum Context {
    Tokio(Handle),
    Nothing,
}

impl Context {
    /// Polls inside the runtime, if there is one, with a budget.
    #[inline]
    pub fn poll<T>(
        &self,
        waking: &mut task::Context<'_>,
        poll: impl FnOnce(&mut task::Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        match self {
            Self::Tokio(handle) => {
                let _entered = handle.enter();
                with_budget(waking, poll)
            }
            Self::Nothing => poll(waking),
        }
    }

    pub fn enter(&self) -> Option<EnterGuard<'_>> {
        match self {
            Self::Tokio(handle) => Some(handle.enter()),
            Self::Nothing => None,
        }
    }
}
