//! The one place where every setting is declared.

use super::text::{bare, is_address, is_field_text, is_host};
use super::tunable::{Field, Group, Tunable};
use super::unit::Unit;
use super::{Acceptor, Io, Placement, SchedulerKind, finer, pace, proxies};
use std::time::Duration;

pub(super) const HOUR: u64 = 3_600_000;
pub(super) const DAY: u64 = 24 * HOUR;

/// Every setting, in the order of `check` and of the documentation.
pub static TUNABLES: &[Tunable] = &[
    Tunable {
        name: "root",
        group: Group::Files,
        default: "",
        doc: "Folder to serve; without one the built-in page is served",
        field: Field::Path {
            get: |config| config.root.as_deref(),
            set: |config, path| config.root = path,
        },
    },
    Tunable {
        name: "listen",
        group: Group::Address,
        default: "",
        doc: "Where to listen, in place of host, port and uds; for instance 127.0.0.1:80",
        field: Field::List {
            what: "an address such as 127.0.0.1:80, [::1]:80, unix:/run/site.sock or fd:3",
            allowed: is_address,
            get: |config| &config.listen,
            set: |config, texts| config.listen = texts,
        },
    },
    Tunable {
        name: "host",
        group: Group::Address,
        default: "127.0.0.1",
        doc: "Name or address to listen on; 0.0.0.0 or :: is every interface",
        field: Field::Text {
            what: "a host name or an IP address",
            allowed: is_host,
            get: |config| &config.host,
            set: |config, text| bare(text).clone_into(&mut config.host),
        },
    },
    Tunable {
        name: "port",
        group: Group::Address,
        default: "8080",
        doc: "TCP port to listen on; 0 takes a free one and prints it",
        field: Field::Number {
            unit: Unit::Count,
            min: 0,
            max: 65535,
            zero: None,
            get: |config| u64::from(config.port),
            set: |config, number| config.port = narrow(number),
        },
    },
    Tunable {
        name: "uds",
        group: Group::Address,
        default: "",
        doc: "Unix socket to listen on, instead of host and port",
        field: Field::Path {
            get: |config| config.uds.as_deref(),
            set: |config, path| config.uds = path,
        },
    },
    Tunable {
        name: "backlog",
        group: Group::Address,
        default: "4096",
        doc: "Connections the kernel may hold ready until they are accepted",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 65_535,
            zero: None,
            get: |config| u64::from(config.backlog),
            set: |config, number| config.backlog = narrow(number),
        },
    },
    Tunable {
        name: "defer-accept",
        group: Group::Address,
        default: "true",
        doc: "Accept a TCP connection when its first bytes are here, or after a second",
        field: Field::Switch {
            get: |config| config.defer_accept,
            set: |config, on| config.defer_accept = on,
        },
    },
    proxies::FORWARDED_ALLOW_IPS,
    proxies::FORWARDED_FIELDS,
    proxies::PROXY_PROTOCOL,
    proxies::PROXY_ALLOW_FROM,
    finer::RECV_BUFFER_BYTES,
    finer::SEND_BUFFER_BYTES,
    finer::SOCKET_PREFERENCE,
    Tunable {
        name: "workers",
        group: Group::Engine,
        default: "auto",
        doc: "Worker threads; auto is the CPUs that affinity and cgroup allow",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 1_024,
            zero: Some("auto"),
            get: |config| config.workers as u64,
            set: |config, number| config.workers = narrow(number),
        },
    },
    Tunable {
        name: "workers-max",
        group: Group::Engine,
        default: "off",
        doc: "Worker threads at most; above workers, more are added while all are busy",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 1_024,
            zero: Some("off"),
            get: |config| config.workers_max as u64,
            set: |config, number| config.workers_max = narrow(number),
        },
    },
    Tunable {
        name: "grow-after",
        group: Group::Engine,
        default: "5ms",
        doc: "How long all workers must be held, or all slots taken, before one is added",
        field: Field::Number {
            unit: Unit::Duration,
            min: 1,
            max: HOUR,
            zero: None,
            get: |config| millis(config.grow_after),
            set: |config, number| config.grow_after = Duration::from_millis(number),
        },
    },
    Tunable {
        name: "shrink-period",
        group: Group::Engine,
        default: "10s",
        doc: "How often workers that are not needed go, a sixth and one at a time",
        field: Field::Number {
            unit: Unit::Duration,
            min: 10,
            max: DAY,
            zero: Some("never"),
            get: |config| millis(config.shrink_period),
            set: |config, number| config.shrink_period = Duration::from_millis(number),
        },
    },
    Tunable {
        name: "cache-workers",
        group: Group::Engine,
        default: "true",
        doc: "Threads of workers that went wait until they are needed again",
        field: Field::Switch {
            get: |config| config.cache_workers,
            set: |config, on| config.cache_workers = on,
        },
    },
    Tunable {
        name: "blocking-threads",
        group: Group::Engine,
        default: "64",
        doc: "Threads for blocking handlers, at most; none is started before it is needed",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 10_000,
            zero: None,
            get: |config| config.blocking_threads as u64,
            set: |config, number| config.blocking_threads = narrow(number),
        },
    },
    finer::BLOCKING_QUEUE,
    Tunable {
        name: "io",
        group: Group::Engine,
        default: "auto",
        doc: "Kernel interface; auto tries io_uring and falls back to epoll",
        field: Field::Choice {
            names: &Io::NAMES,
            get: |config| config.io.as_str(),
            set: |config, place| config.io = Io::ALL[place],
        },
    },
    Tunable {
        name: "scheduler",
        group: Group::Engine,
        default: "pool",
        doc: "Where connections live and which worker may run them",
        field: Field::Choice {
            names: &SchedulerKind::NAMES,
            get: |config| config.scheduler.as_str(),
            set: |config, place| config.scheduler = SchedulerKind::ALL[place],
        },
    },
    Tunable {
        name: "slots",
        group: Group::Engine,
        default: "auto",
        doc: "Connection slots per worker; auto is as many as connections-max",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 16_777_216,
            zero: Some("auto"),
            get: |config| config.slots as u64,
            set: |config, number| config.slots = narrow(number),
        },
    },
    Tunable {
        name: "placement",
        group: Group::Engine,
        default: "spread",
        doc: "New connections stay with the worker that accepts them, or fill one by one",
        field: Field::Choice {
            names: &Placement::NAMES,
            get: |config| config.placement.as_str(),
            set: |config, place| config.placement = Placement::ALL[place],
        },
    },
    Tunable {
        name: "acceptor",
        group: Group::Engine,
        default: "per-worker",
        doc: "Every worker accepts for itself, or one thread accepts for all",
        field: Field::Choice {
            names: &Acceptor::NAMES,
            get: |config| config.acceptor.as_str(),
            set: |config, place| config.acceptor = Acceptor::ALL[place],
        },
    },
    Tunable {
        name: "spin-us",
        group: Group::Engine,
        default: "0",
        doc: "Microseconds a worker without work tries again before it sleeps",
        field: Field::Number {
            unit: Unit::Microseconds,
            min: 0,
            max: 1_000,
            zero: None,
            get: |config| u64::from(config.spin_us),
            set: |config, number| config.spin_us = narrow(number),
        },
    },
    finer::URING_BUFFERS,
    Tunable {
        name: "connections-max",
        group: Group::Limits,
        default: "auto",
        doc: "Open connections at which accepting pauses; auto is what descriptors allow",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 16_777_216,
            zero: Some("auto"),
            get: |config| config.connections_max as u64,
            set: |config, number| config.connections_max = narrow(number),
        },
    },
    Tunable {
        name: "max-requests-per-connection",
        group: Group::Limits,
        default: "unlimited",
        doc: "Requests after which a connection is closed",
        field: Field::Number {
            unit: Unit::Count,
            min: 1,
            max: 4_000_000_000,
            zero: Some("unlimited"),
            get: |config| config.max_requests_per_connection,
            set: |config, number| config.max_requests_per_connection = number,
        },
    },
    Tunable {
        name: "limit-head-bytes",
        group: Group::Limits,
        default: "16k",
        doc: "Largest request head; a larger one is answered 431",
        field: Field::Number {
            unit: Unit::Bytes,
            min: 256,
            max: 65_535,
            zero: None,
            get: |config| config.limit_head_bytes as u64,
            set: |config, number| config.limit_head_bytes = narrow(number),
        },
    },
    finer::LIMIT_TARGET_BYTES,
    finer::LIMIT_HEADER_FIELDS,
    Tunable {
        name: "limit-body-bytes",
        group: Group::Limits,
        default: "1m",
        doc: "Largest request body; a larger one is answered 413",
        field: Field::Number {
            unit: Unit::Bytes,
            min: 0,
            max: 1 << 40,
            zero: None,
            get: |config| config.limit_body_bytes,
            set: |config, number| config.limit_body_bytes = number,
        },
    },
    finer::READ_AHEAD_BYTES,
    finer::STREAM_BUFFER_BYTES,
    finer::FIRST_REQUEST_TIMEOUT,
    Tunable {
        name: "header-timeout",
        group: Group::Time,
        default: "10s",
        doc: "Time for a whole request head; a slower one is answered 408",
        field: Field::Number {
            unit: Unit::Duration,
            min: 10,
            max: HOUR,
            zero: None,
            get: |config| millis(config.header_timeout),
            set: |config, number| config.header_timeout = Duration::from_millis(number),
        },
    },
    Tunable {
        name: "body-timeout",
        group: Group::Time,
        default: "30s",
        doc: "Longest silence while a request body is on its way",
        field: Field::Number {
            unit: Unit::Duration,
            min: 10,
            max: HOUR,
            zero: None,
            get: |config| millis(config.body_timeout),
            set: |config, number| config.body_timeout = Duration::from_millis(number),
        },
    },
    Tunable {
        name: "body-rate-min",
        group: Group::Time,
        default: "240/s",
        doc: "Slowest request body in bytes per second",
        field: Field::Number {
            unit: Unit::BytesPerSecond,
            min: 1,
            max: 1 << 30,
            zero: Some("off"),
            get: |config| config.body_rate_min,
            set: |config, number| config.body_rate_min = number,
        },
    },
    Tunable {
        name: "write-timeout",
        group: Group::Time,
        default: "30s",
        doc: "Longest time without progress while an answer is on its way",
        field: Field::Number {
            unit: Unit::Duration,
            min: 10,
            max: HOUR,
            zero: None,
            get: |config| millis(config.write_timeout),
            set: |config, number| config.write_timeout = Duration::from_millis(number),
        },
    },
    Tunable {
        name: "write-rate-min",
        group: Group::Time,
        default: "240/s",
        doc: "Slowest reader of an answer in bytes per second",
        field: Field::Number {
            unit: Unit::BytesPerSecond,
            min: 1,
            max: 1 << 30,
            zero: Some("off"),
            get: |config| config.write_rate_min,
            set: |config, number| config.write_rate_min = number,
        },
    },
    Tunable {
        name: "timeout-keep-alive",
        group: Group::Time,
        default: "75s",
        doc: "How long a connection may stay open between two requests",
        field: Field::Number {
            unit: Unit::Duration,
            min: 10,
            max: DAY,
            zero: None,
            get: |config| millis(config.timeout_keep_alive),
            set: |config, number| config.timeout_keep_alive = Duration::from_millis(number),
        },
    },
    finer::HALF_CLOSE_TIMEOUT,
    finer::DRAIN_ACCEPT,
    Tunable {
        name: "timeout-graceful-shutdown",
        group: Group::Time,
        default: "10s",
        doc: "How long a drain waits before it cuts what is left",
        field: Field::Number {
            unit: Unit::Duration,
            min: 0,
            max: DAY,
            zero: None,
            get: |config| millis(config.timeout_graceful_shutdown),
            set: |config, number| config.timeout_graceful_shutdown = Duration::from_millis(number),
        },
    },
    pace::ACCEPT_DELAY,
    pace::ACCEPTS_PER_SECOND,
    pace::PASS_DELAY,
    pace::NO_IO_WAIT,
    pace::FIRST_BYTE_DELAY,
    pace::WRITE_RATE,
    pace::WRITE_BURST,
    pace::READ_RATE,
    pace::READ_BURST,
    pace::CLIENT_WRITE_RATE,
    pace::CLIENT_WRITE_BURST,
    pace::CLIENT_READ_RATE,
    pace::CLIENT_READ_BURST,
    pace::SERVER_WRITE_RATE,
    pace::SERVER_WRITE_BURST,
    pace::SERVER_READ_RATE,
    pace::SERVER_READ_BURST,
    pace::REQUESTS_PER_SECOND,
    pace::REQUESTS_BURST,
    pace::PACE_CLIENTS_MAX,
    Tunable {
        name: "cache-bytes",
        group: Group::Files,
        default: "64m",
        doc: "Memory for ready answers of small files, over all workers",
        field: Field::Number {
            unit: Unit::Bytes,
            min: 1,
            max: 1 << 40,
            zero: Some("off"),
            get: |config| config.cache_bytes,
            set: |config, number| config.cache_bytes = number,
        },
    },
    Tunable {
        name: "hidden",
        group: Group::Files,
        default: "false",
        doc: "Serve names that begin with a dot",
        field: Field::Switch { get: |config| config.hidden, set: |config, on| config.hidden = on },
    },
    finer::LISTING,
    finer::FILE_THREADS,
    Tunable {
        name: "server-name",
        group: Group::Output,
        default: "gustnado",
        doc: "Value of the Server field; empty leaves the field out",
        field: Field::Text {
            what: "visible ASCII text of at most 64 characters",
            allowed: is_field_text,
            get: |config| &config.server_name,
            set: |config, text| text.clone_into(&mut config.server_name),
        },
    },
    finer::ANSWER_VERSION,
    finer::STATS_INTERVAL,
    finer::ACCESS_LOG,
    finer::ACCESS_LOG_FORMAT,
    Tunable {
        name: "quiet",
        group: Group::Output,
        default: "false",
        doc: "Print nothing but errors",
        field: Field::Switch { get: |config| config.quiet, set: |config, on| config.quiet = on },
    },
];

/// A timeout as the table keeps it; the ranges stay far below the end of `u64`.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn narrow<T: TryFrom<u64>>(number: u64) -> T {
    T::try_from(number).ok().expect("each range above is within its type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_documented_in_one_plain_line() {
        for (index, tunable) in TUNABLES.iter().enumerate() {
            assert!(TUNABLES[..index].iter().all(|other| other.name != tunable.name));
            assert!(tunable.doc.len() <= 80, "{}", tunable.name);
            assert!(!tunable.doc.ends_with('.') && !tunable.doc.contains('|'));
        }
    }
}
