//! Settings of handlers: how many run at a time, on which threads, and how long others wait.

use super::fields::{duration, number};
use super::numbers::DAY;
use super::tunable::{SettingGroup, Tunable};

pub(super) const BLOCKING_THREADS: Tunable = Tunable {
    name: "blocking-threads",
    group: SettingGroup::Engine,
    default: "64",
    doc: "Threads for blocking handlers, at most; none is started before it is needed",
    field: number!(blocking_threads, Count, 1..=10_000),
};

pub(super) const BLOCKING_QUEUE: Tunable = Tunable {
    name: "blocking-queue",
    group: SettingGroup::Engine,
    default: "1024",
    doc: "Requests that wait for a thread; of more the oldest gets 503. 0: none waits",
    field: number!(blocking_queue, Count, 0..=1 << 20),
};

pub(super) const BLOCKING_QUEUE_TIMEOUT: Tunable = Tunable {
    name: "blocking-queue-timeout",
    group: SettingGroup::Limits,
    default: "10s",
    doc: "How long a request waits for a thread before it gets 503",
    field: duration!(blocking_queue_timeout, 1..=DAY),
};

pub(super) const LIMIT_CONCURRENCY: Tunable = Tunable {
    name: "limit-concurrency",
    group: SettingGroup::Limits,
    default: "off",
    doc: "Handlers that run at a time; further requests wait for one",
    field: number!(limit_concurrency, Count, 1..=1 << 20, or "off"),
};

pub(super) const HANDLER_QUEUE: Tunable = Tunable {
    name: "handler-queue",
    group: SettingGroup::Limits,
    default: "64",
    doc: "Requests that wait for a handler; of more the oldest gets 503. 0: none waits",
    field: number!(handler_queue, Count, 0..=1 << 20),
};

pub(super) const HANDLER_QUEUE_TIMEOUT: Tunable = Tunable {
    name: "handler-queue-timeout",
    group: SettingGroup::Limits,
    default: "1s",
    doc: "How long a request waits for a handler before it gets 503",
    field: duration!(handler_queue_timeout, 1..=DAY),
};

pub(super) const RESTART_HUNG: Tunable = Tunable {
    name: "restart-hung",
    group: SettingGroup::Time,
    default: "off",
    doc: "How long a handler may hold a worker; then the process ends, for a restart",
    field: duration!(restart_hung, 1_000..=DAY, or "off"),
};
