//! Wakers as numbers: the number of a task, where its wake-ups go, and the wakers of others.

pub(crate) mod foreign;
pub(crate) mod task_id;
pub(crate) mod wake_target;

use std::task::Waker;

/// Keeps the waker of a waiting task. Returns the one that it replaces.
pub(crate) fn replace(kept: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    match kept {
        Some(kept) if kept.will_wake(waker) => None,
        _ => kept.replace(waker.clone()),
    }
}
