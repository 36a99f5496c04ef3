//! The executor: tasks and their numbers, schedulers, timers, mailboxes, and what one turn of a
//! worker does.
//!
//! The state shared by all workers ([`workers_shared`]) is here, since tasks and connections need
//! it. Listeners and the autoscaler are above and reached through traits: [`arrival::Incoming`] and
//! [`autoscale::Autoscale`].

pub(crate) mod arrival;
pub(crate) mod autoscale;
pub(crate) mod block_on;
pub(crate) mod blocking;
pub(crate) mod context;
pub(crate) mod descriptors;
pub(crate) mod dump;
pub(crate) mod foreign;
pub(crate) mod gather;
pub(crate) mod group;
pub(crate) mod inbox;
pub(crate) mod look;
pub(crate) mod mailbox;
pub(crate) mod names;
pub(crate) mod pauses;
pub(crate) mod precise_timer;
pub(crate) mod schedule;
pub(crate) mod select;
pub(crate) mod send_batch;
pub(crate) mod spawn_error;
pub(crate) mod spawner;
pub(crate) mod start_error;
pub(crate) mod task;
pub(crate) mod task_id;
pub(crate) mod time;
pub(crate) mod turn;
pub(crate) mod waits;
pub(crate) mod wake;
pub(crate) mod wake_target;
pub(crate) mod worker_handle;
pub(crate) mod worker_metrics;
pub(crate) mod workers_shared;
pub(crate) mod workload;
