//! Names of tasks that have one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exec::task_id::TaskId;

/// What tasks are called, by their numbers: a table that all workers share.
#[derive(Default)]
pub(crate) struct Names(Mutex<NamesById>);

pub(crate) type NamesById = HashMap<TaskId, Cow<'static, str>>;

impl Names {
    pub(crate) fn lock(&self) -> MutexGuard<'_, NamesById> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
