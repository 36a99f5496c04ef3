//! A mutex that stays usable after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex without poisoning.
///
/// A task's panic is contained and its worker lives on, so a lock that it held has to stay usable.
/// That is sound where each critical section leaves its value whole, as all of ours do.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// Makes an unlocked one.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until the lock is free, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
