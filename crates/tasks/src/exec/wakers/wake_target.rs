//! Wake targets: where wake-ups from other threads go, by number.

use std::sync::{Arc, PoisonError, RwLock};

use crate::exec::wakers::task_id::{TaskId, WAKE_TARGETS_MAX};

/// The target of wake-ups from other threads: a worker, or a group of workers that share their
/// tasks.
pub(crate) trait WakeTarget: Send + Sync {
    /// Makes a task ready. Any thread.
    fn wake(&self, id: TaskId);
}

/// All wake targets of this process. A waker holds only a number, so it needs a place to look it
/// up; read on wake-ups between threads, written when a server starts or ends.
static WAKE_TARGETS: RwLock<Vec<Option<Arc<dyn WakeTarget>>>> = RwLock::new(Vec::new());

/// Enters a wake target and returns its number.
///
/// # Errors
/// 2,048 are in use.
pub(crate) fn enter(wake_target: Arc<dyn WakeTarget>) -> std::io::Result<u16> {
    let mut wake_targets = WAKE_TARGETS.write().unwrap_or_else(PoisonError::into_inner);
    let at = wake_targets.iter().position(Option::is_none).unwrap_or(wake_targets.len());
    if at >= WAKE_TARGETS_MAX {
        return Err(std::io::Error::other("at most 2,048 workers run in one process"));
    }
    if at == wake_targets.len() {
        wake_targets.push(None);
    }
    wake_targets[at] = Some(wake_target);
    Ok(u16::try_from(at).expect("checked against the maximum"))
}

/// Removes a wake target; wakers that still name it do nothing.
pub(crate) fn leave(number: u16) {
    let mut wake_targets = WAKE_TARGETS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(wake_target) = wake_targets.get_mut(usize::from(number)) {
        *wake_target = None;
    }
}

/// Makes a task ready by its wake target, if that is still there.
pub(crate) fn wake(id: TaskId) {
    let wake_targets = WAKE_TARGETS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(wake_target)) = wake_targets.get(usize::from(id.wake_target())) {
        wake_target.wake(id);
    }
}
