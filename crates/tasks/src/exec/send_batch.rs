//! Which tasks wait with what they send, so that it leaves together.

use std::cell::{Cell, RefCell};

use crate::exec::task_id::TaskId;

/// Which tasks wait with what they send.
#[derive(Default)]
pub(crate) struct SendBatch {
    /// Tasks are to wait.
    pub(crate) is_open: Cell<bool>,
    pub(crate) held: RefCell<Vec<TaskId>>,
    /// When the first of them was found here.
    pub(crate) since_us: Cell<Option<u64>>,
    pub(crate) closed_until_ms: Cell<u64>,
}
