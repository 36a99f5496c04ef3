//! A worker as other threads reach it, and what all workers of a server share.

pub(crate) mod arrival;
pub(crate) mod cuts;
pub(crate) mod descriptors;
pub(crate) mod dump_request;
pub(crate) mod elastic;
pub(crate) mod evictions;
pub(crate) mod inbox;
pub(crate) mod throttle;
pub(crate) mod watchdog_waker;
pub(crate) mod worker_group;
pub(crate) mod worker_handle;
pub(crate) mod worker_metrics;
pub(crate) mod workers_shared;
