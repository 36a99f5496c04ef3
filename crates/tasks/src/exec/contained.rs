//! Containment of panics in the program's code.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code of the program: a task, a handler, a hook, a destructor. Returns `None` if it
/// panicked; the panic hook has logged the message. A panic must not end the worker, which others
/// depend on.
#[inline]
pub fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}
