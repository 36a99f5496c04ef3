//! Lock-free parts, and what else keeps threads and processes in step. Knows no tasks, no workers.

pub(crate) mod atomic;
pub(crate) mod bucket;
mod cache_padded;
pub(crate) mod claim;
pub(crate) mod connection_slots;
pub(crate) mod ledger;
pub(crate) mod lock;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod parking;
pub(crate) mod queue;
pub(crate) mod ready_bits;
pub(crate) mod roles;
pub(crate) mod shared_load;
pub(crate) mod sleep_state;
