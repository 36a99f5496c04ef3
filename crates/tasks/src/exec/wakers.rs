//! Wakers as numbers: the number of a task, where its wake-ups go, and the wakers of others.

pub(crate) mod foreign;
pub(crate) mod task_id;
pub(crate) mod wake_target;
