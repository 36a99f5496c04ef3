//! The executor: what a task is, which one runs next, and how each kind of waiting ends.
//!
//! | to find | read |
//! | --- | --- |
//! | the loop of a worker, and what the running thread is | [`executor`] |
//! | which task runs next | [`schedule`] |
//! | tasks, groups of them, and what they await | [`task`] |
//! | deadlines and clocks | [`timers`] |
//! | values between tasks and threads | [`mailbox`] |
//! | wakers that are numbers | [`wakers`] |
//! | a worker as other threads reach it, and what all workers share | [`worker`] |
//!
//! Listeners and the autoscaler are above and reached through traits:
//! [`worker::arrival::IncomingHandler`] and [`worker::elastic::Elastic`].

pub(crate) mod charge;
pub(crate) mod contained;
pub(crate) mod cut_order;
pub(crate) mod dump;
pub(crate) mod error;
pub(crate) mod executor;
pub(crate) mod mailbox;
pub(crate) mod schedule;
pub(crate) mod task;
pub(crate) mod timers;
pub(crate) mod waits;
pub(crate) mod wakers;
pub(crate) mod worker;
