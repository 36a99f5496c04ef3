//! Values of objects that any Python thread may reach. The interpreter's lock admits one thread at
//! a time; a mutex lets Rust check that.
//!
//! Do not call Python while a value is borrowed: Python code may come back for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn borrow_mut(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn replace(&self, value: T) -> T {
        std::mem::replace(&mut self.borrow_mut(), value)
    }
}

impl<T: Default> Guarded<T> {
    pub(crate) fn take(&self) -> T {
        std::mem::take(&mut self.borrow_mut())
    }
}

impl<T: Copy> Guarded<T> {
    pub(crate) fn get(&self) -> T {
        *self.borrow_mut()
    }

    pub(crate) fn set(&self, value: T) {
        *self.borrow_mut() = value;
    }
}
