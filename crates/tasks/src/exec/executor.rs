//! The executor of one thread: its context, the turns that it takes, and the wakers of its tasks.

pub(crate) mod block_on;
pub(crate) mod context;
pub(crate) mod eviction;
pub(crate) mod send_batch;
pub(crate) mod turn;
mod wake;
