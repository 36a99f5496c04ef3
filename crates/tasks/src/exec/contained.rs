//! Containment of panics in handlers and hooks.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a handler or a hook. Returns `None` if it panicked; the panic hook has logged the message.
/// A panic must not end the connection's task, which other requests depend on.
pub fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}
