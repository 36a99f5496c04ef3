//! Settings that few need: the kernel's buffers, finer limits, what answers call themselves. They
//! stand in the table beside the others.

use super::numbers::{DAY, HOUR, millis, narrow};
use super::tunable::{Field, SettingGroup, Tunable};
use super::unit::Unit;
use super::{AnswerVersion, Listing, TrafficClass};
use std::time::Duration;

pub(super) const RECV_BUFFER_BYTES: Tunable = Tunable {
    name: "recv-buffer-bytes",
    group: SettingGroup::Address,
    default: "system",
    doc: "Bytes the kernel may hold received for a TCP connection (SO_RCVBUF)",
    field: Field::Number {
        unit: Unit::Bytes,
        min: 1_024,
        max: 1 << 30,
        zero: Some("system"),
        get: |config| config.recv_buffer_bytes as u64,
        set: |config, number| config.recv_buffer_bytes = narrow(number),
    },
};

pub(super) const SEND_BUFFER_BYTES: Tunable = Tunable {
    name: "send-buffer-bytes",
    group: SettingGroup::Address,
    default: "system",
    doc: "Bytes the kernel may hold to be sent on a TCP connection (SO_SNDBUF)",
    field: Field::Number {
        unit: Unit::Bytes,
        min: 1_024,
        max: 1 << 30,
        zero: Some("system"),
        get: |config| config.send_buffer_bytes as u64,
        set: |config, number| config.send_buffer_bytes = narrow(number),
    },
};

pub(super) const SOCKET_PREFERENCE: Tunable = Tunable {
    name: "socket-preference",
    group: SettingGroup::Address,
    default: "none",
    doc: "DSCP class of sent packets: low latency (AF21) or high throughput (AF11)",
    field: Field::Choice {
        names: &TrafficClass::NAMES,
        get: |config| config.socket_preference.as_str(),
        set: |config, place| config.socket_preference = TrafficClass::ALL[place],
    },
};

pub(super) const BLOCKING_QUEUE: Tunable = Tunable {
    name: "blocking-queue",
    group: SettingGroup::Engine,
    default: "1024",
    doc: "Blocking handlers that may wait for a thread; more get 503",
    field: Field::Number {
        unit: Unit::Count,
        min: 2,
        max: 1 << 20,
        zero: None,
        get: |config| config.blocking_queue as u64,
        set: |config, number| config.blocking_queue = narrow(number),
    },
};

pub(super) const LISTING: Tunable = Tunable {
    name: "listing",
    group: SettingGroup::Files,
    default: "auto",
    doc: "List folders without index.html; auto does at a terminal, on loopback only",
    field: Field::Choice {
        names: &Listing::NAMES,
        get: |config| config.listing.as_str(),
        set: |config, place| config.listing = Listing::ALL[place],
    },
};

pub(super) const FILE_THREADS: Tunable = Tunable {
    name: "file-threads",
    group: SettingGroup::Files,
    default: "4",
    doc: "Threads of each folder that wait for its disk, at most, so that no worker does",
    field: Field::Number {
        unit: Unit::Count,
        min: 1,
        max: 1_000,
        zero: Some("off"),
        get: |config| config.file_threads as u64,
        set: |config, number| config.file_threads = narrow(number),
    },
};

pub(super) const URING_BUFFERS: Tunable = Tunable {
    name: "uring-buffers",
    group: SettingGroup::Engine,
    default: "64",
    doc: "Receive buffers of 4 KiB per worker under io_uring; rounded up to a power of 2",
    field: Field::Number {
        unit: Unit::Count,
        min: 8,
        max: 16_384,
        zero: None,
        get: |config| u64::from(config.uring_buffers),
        set: |config, number| config.uring_buffers = narrow(number),
    },
};

pub(super) const LIMIT_TARGET_BYTES: Tunable = Tunable {
    name: "limit-target-bytes",
    group: SettingGroup::Limits,
    default: "8k",
    doc: "Largest request target; a larger one gets 414",
    field: Field::Number {
        unit: Unit::Bytes,
        min: 16,
        max: 65_535,
        zero: None,
        get: |config| config.limit_target_bytes as u64,
        set: |config, number| config.limit_target_bytes = narrow(number),
    },
};

pub(super) const LIMIT_HEADER_FIELDS: Tunable = Tunable {
    name: "limit-header-fields",
    group: SettingGroup::Limits,
    default: "100",
    doc: "Most header fields of a request; more get 431",
    field: Field::Number {
        unit: Unit::Count,
        min: 1,
        max: 10_000,
        zero: None,
        get: |config| config.limit_header_fields as u64,
        set: |config, number| config.limit_header_fields = narrow(number),
    },
};

pub(super) const READ_AHEAD_BYTES: Tunable = Tunable {
    name: "read-ahead-bytes",
    group: SettingGroup::Limits,
    default: "64k",
    doc: "Bytes of later requests that are taken while a handler is at work",
    field: Field::Number {
        unit: Unit::Bytes,
        min: 1_024,
        max: 1 << 30,
        zero: None,
        get: |config| config.read_ahead_bytes as u64,
        set: |config, number| config.read_ahead_bytes = narrow(number),
    },
};

pub(super) const STREAM_BUFFER_BYTES: Tunable = Tunable {
    name: "stream-buffer-bytes",
    group: SettingGroup::Limits,
    default: "16k",
    doc: "Bytes of a stream gathered into one send; 16 times as many of pieces from 4k on",
    field: Field::Number {
        unit: Unit::Bytes,
        min: 1,
        max: 1 << 26,
        zero: None,
        get: |config| config.stream_buffer_bytes as u64,
        set: |config, number| config.stream_buffer_bytes = narrow(number),
    },
};

pub(super) const FIRST_REQUEST_TIMEOUT: Tunable = Tunable {
    name: "first-request-timeout",
    group: SettingGroup::Time,
    default: "auto",
    doc: "How long a connection may stay without its first byte; auto is header-timeout",
    field: Field::Number {
        unit: Unit::Duration,
        min: 10,
        max: HOUR,
        zero: Some("auto"),
        get: |config| millis(config.first_request_timeout),
        set: |config, number| config.first_request_timeout = Duration::from_millis(number),
    },
};

pub(super) const DRAIN_ACCEPT: Tunable = Tunable {
    name: "drain-accept",
    group: SettingGroup::Time,
    default: "250ms",
    doc: "How long a drain goes on accepting connections at most; less when none come",
    field: Field::Number {
        unit: Unit::Duration,
        min: 0,
        max: DAY,
        zero: None,
        get: |config| millis(config.drain_accept),
        set: |config, number| config.drain_accept = Duration::from_millis(number),
    },
};

pub(super) const HALF_CLOSE_TIMEOUT: Tunable = Tunable {
    name: "half-close-timeout",
    group: SettingGroup::Time,
    default: "10s",
    doc: "How long a client that sends no more may wait for a handler",
    field: Field::Number {
        unit: Unit::Duration,
        min: 0,
        max: DAY,
        zero: None,
        get: |config| millis(config.half_close_timeout),
        set: |config, number| config.half_close_timeout = Duration::from_millis(number),
    },
};

pub(super) const ANSWER_VERSION: Tunable = Tunable {
    name: "answer-version",
    group: SettingGroup::Output,
    default: "1.1",
    doc: "HTTP version in status lines: the newest, 1.0 to all, or that of the request",
    field: Field::Choice {
        names: &AnswerVersion::NAMES,
        get: |config| config.answer_version.as_str(),
        set: |config, place| config.answer_version = AnswerVersion::ALL[place],
    },
};

pub(super) const STATS_INTERVAL: Tunable = Tunable {
    name: "stats-interval",
    group: SettingGroup::Output,
    default: "off",
    doc: "How often a line of statistics is written to standard error",
    field: Field::Number {
        unit: Unit::Duration,
        min: 10,
        max: HOUR,
        zero: Some("off"),
        get: |config| millis(config.stats_interval),
        set: |config, number| config.stats_interval = Duration::from_millis(number),
    },
};

pub(super) const ACCESS_LOG: Tunable = Tunable {
    name: "access-log",
    group: SettingGroup::Output,
    default: "",
    doc: "File that a line for each request is appended to; - is standard output",
    field: Field::Path {
        get: |config| config.access_log.as_deref(),
        set: |config, path| config.access_log = path,
    },
};

pub(super) const ACCESS_LOG_FORMAT: Tunable = Tunable {
    name: "access-log-format",
    group: SettingGroup::Output,
    default: "combined",
    doc: "What its lines say: common, combined, json, brief, or atoms such as %(h)s",
    field: Field::Text {
        what: "common, combined, json, or a format such as %(h)s %(r)s %(s)s",
        // The start says what exactly is wrong with one.
        allowed: |text| !text.is_empty(),
        get: |config| &config.access_log_format,
        set: |config, text| text.clone_into(&mut config.access_log_format),
    },
};
