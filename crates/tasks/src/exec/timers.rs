//! Waiting for time: to a millisecond with the wheel of the worker, below that with a timerfd.

pub(crate) mod precise_timer;
pub(crate) mod time;
