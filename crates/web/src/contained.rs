//! Panics of handlers and hooks end where they were called.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a handler or a hook. `None` if it panicked, with its message in the log.
pub fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}
