//! Declaration of every setting; `pace` has those of pace, `handlers` those of handlers.

use super::fields::{choice, duration, file_path, list, number, switch};
use super::listen::ListenSpec;
use super::networks::is_network;
use super::numbers::{DAY, HOUR};
use super::text::{bare, is_field_text, is_host, is_user};
use super::tunable::{Field, SettingGroup, Tunable};
use super::{
    Acceptor, ForwardedFields, Io, Listing, Placement, ResponseVersion, SchedulerKind,
    TrafficClass, bodies, handlers, memory, pace, sockets,
};

const NETWORKS: &str = "an address such as 192.0.2.1, a network such as 10.0.0.0/8, unix, or * \
                        for all";

fn is_listener(text: &str) -> bool {
    ListenSpec::parse(text).is_ok()
}

/// Every setting, in the order of `check` and of the documentation.
pub static TUNABLES: &[Tunable] = &[
    Tunable {
        name: "root",
        group: SettingGroup::Files,
        default: "",
        doc: "Folder to serve; without one the built-in page is served",
        field: file_path!(root),
    },
    Tunable {
        name: "listen",
        group: SettingGroup::Address,
        default: "",
        doc: "Where to listen, in place of host, port and uds; for instance 127.0.0.1:80",
        field: list!(
            listen,
            "an address such as 127.0.0.1:80, [::1]:80, unix:/run/site.sock or fd:3, and behind \
             it its own settings such as proxy-protocol",
            is_listener
        ),
    },
    Tunable {
        name: "host",
        group: SettingGroup::Address,
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
        group: SettingGroup::Address,
        default: "8080",
        doc: "TCP port to listen on; 0 takes a free one and prints it",
        field: number!(port, Count, 0..=65535),
    },
    Tunable {
        name: "uds",
        group: SettingGroup::Address,
        default: "",
        doc: "Unix socket to listen on, instead of host and port",
        field: file_path!(uds),
    },
    sockets::UDS_MODE,
    sockets::UDS_OWNER,
    Tunable {
        name: "backlog",
        group: SettingGroup::Address,
        default: "4096",
        doc: "Connections the kernel may hold ready until they are accepted",
        field: number!(backlog, Count, 1..=65_535),
    },
    Tunable {
        name: "defer-accept",
        group: SettingGroup::Address,
        default: "true",
        doc: "Accept a TCP connection when its first bytes are here, or after a second",
        field: switch!(defer_accept),
    },
    Tunable {
        name: "forwarded-allow-ips",
        group: SettingGroup::Address,
        default: "",
        doc: "Proxies that are trusted to report the client's address; none by default",
        field: list!(forwarded_allow_ips, NETWORKS, is_network),
    },
    Tunable {
        name: "forwarded-fields",
        group: SettingGroup::Address,
        default: "x-forwarded",
        doc: "The fields in which they report it: X-Forwarded-For and its like, or Forwarded",
        field: choice!(forwarded_fields, ForwardedFields),
    },
    Tunable {
        name: "proxy-protocol",
        group: SettingGroup::Address,
        default: "false",
        doc: "Every connection must begin with a PROXY header; needs proxy-allow-from",
        field: switch!(proxy_protocol),
    },
    Tunable {
        name: "proxy-allow-from",
        group: SettingGroup::Address,
        default: "",
        doc: "Peers that may send a PROXY header, none by default; others get 403",
        field: list!(proxy_allow_from, NETWORKS, is_network),
    },
    Tunable {
        name: "recv-buffer-bytes",
        group: SettingGroup::Address,
        default: "system",
        doc: "Bytes the kernel may hold received for a TCP connection (SO_RCVBUF)",
        field: number!(recv_buffer_bytes, Bytes, 1_024..=1 << 30, or "system"),
    },
    Tunable {
        name: "send-buffer-bytes",
        group: SettingGroup::Address,
        default: "system",
        doc: "Bytes the kernel may hold to be sent on a TCP connection (SO_SNDBUF)",
        field: number!(send_buffer_bytes, Bytes, 1_024..=1 << 30, or "system"),
    },
    sockets::NOTSENT_LOWAT,
    Tunable {
        name: "socket-preference",
        group: SettingGroup::Address,
        default: "none",
        doc: "DSCP class of sent packets: low latency (AF21) or high throughput (AF11)",
        field: choice!(socket_preference, TrafficClass),
    },
    Tunable {
        name: "workers",
        group: SettingGroup::Engine,
        default: "auto",
        doc: "Worker threads; auto is the CPUs that affinity and cgroup allow",
        field: number!(workers, Count, 1..=1_024, or "auto"),
    },
    Tunable {
        name: "workers-max",
        group: SettingGroup::Engine,
        default: "off",
        doc: "Worker threads at most; above workers, more are added while all are busy",
        field: number!(workers_max, Count, 1..=1_024, or "off"),
    },
    Tunable {
        name: "grow-after",
        group: SettingGroup::Engine,
        default: "5ms",
        doc: "How long all workers must be held, or all slots taken, before one is added",
        field: duration!(grow_after, 1..=HOUR),
    },
    Tunable {
        name: "shrink-period",
        group: SettingGroup::Engine,
        default: "10s",
        doc: "How often workers that are not needed go, a sixth and one at a time",
        field: duration!(shrink_period, 10..=DAY, or "never"),
    },
    Tunable {
        name: "cache-workers",
        group: SettingGroup::Engine,
        default: "true",
        doc: "Keep the threads of retired workers parked for reuse",
        field: switch!(cache_workers),
    },
    handlers::BLOCKING_THREADS,
    handlers::BLOCKING_QUEUE,
    Tunable {
        name: "io",
        group: SettingGroup::Engine,
        default: "auto",
        doc: "Kernel interface; auto tries io_uring and falls back to epoll",
        field: choice!(io, Io),
    },
    Tunable {
        name: "scheduler",
        group: SettingGroup::Engine,
        default: "pool",
        doc: "Where connections live and which worker may run them",
        field: choice!(scheduler, SchedulerKind),
    },
    Tunable {
        name: "slots",
        group: SettingGroup::Engine,
        default: "auto",
        doc: "Connection slots per worker; auto is as many as connections-max",
        field: number!(slots, Count, 1..=16_777_216, or "auto"),
    },
    Tunable {
        name: "placement",
        group: SettingGroup::Engine,
        default: "spread",
        doc: "New connections stay with the worker that accepts them, or fill one by one",
        field: choice!(placement, Placement),
    },
    Tunable {
        name: "acceptor",
        group: SettingGroup::Engine,
        default: "per-worker",
        doc: "Every worker accepts for itself, or one thread accepts for all",
        field: choice!(acceptor, Acceptor),
    },
    Tunable {
        name: "spin-us",
        group: SettingGroup::Engine,
        default: "0",
        doc: "Microseconds a worker without work tries again before it sleeps",
        field: number!(spin_us, Microseconds, 0..=1_000),
    },
    Tunable {
        name: "uring-buffers",
        group: SettingGroup::Engine,
        default: "64",
        doc: "Receive buffers of 4 KiB per worker under io_uring; rounded up to a power of 2",
        field: number!(uring_buffers, Count, 8..=16_384),
    },
    Tunable {
        name: "user",
        group: SettingGroup::Engine,
        default: "",
        doc: "User that root's privileges are dropped for after binding; NAME or NAME:GROUP",
        field: Field::Text {
            what: "a user such as www-data, or a user and a group such as www-data:web",
            allowed: is_user,
            get: |config| &config.user,
            set: |config, text| text.clone_into(&mut config.user),
        },
    },
    Tunable {
        name: "connections-max",
        group: SettingGroup::Limits,
        default: "auto",
        doc: "Open connections at which accepting pauses; auto is what descriptors allow",
        field: number!(connections_max, Count, 1..=16_777_216, or "auto"),
    },
    Tunable {
        name: "connections-per-client",
        group: SettingGroup::Limits,
        default: "off",
        doc: "Connections of one IPv4 address or IPv6 /64; further ones are closed at once",
        field: number!(connections_per_client, Count, 1..=16_777_216, or "off"),
    },
    Tunable {
        name: "max-requests-per-connection",
        group: SettingGroup::Limits,
        default: "unlimited",
        doc: "Requests after which a connection is closed",
        field: number!(max_requests_per_connection, Count, 1..=4_000_000_000, or "unlimited"),
    },
    memory::MAX_MEMORY,
    memory::LIMIT_BODY_MEMORY,
    memory::LIMIT_HEAD_MEMORY,
    memory::LIMIT_SEND_MEMORY,
    memory::LIMIT_RECEIVE_MEMORY,
    memory::LIMIT_QUEUE_MEMORY,
    Tunable {
        name: "limit-head-bytes",
        group: SettingGroup::Limits,
        default: "16k",
        doc: "Largest request head; a larger one gets 431",
        field: number!(limit_head_bytes, Bytes, 256..=65_535),
    },
    Tunable {
        name: "limit-target-bytes",
        group: SettingGroup::Limits,
        default: "8k",
        doc: "Largest request target; a larger one gets 414",
        field: number!(limit_target_bytes, Bytes, 16..=65_535),
    },
    Tunable {
        name: "limit-header-fields",
        group: SettingGroup::Limits,
        default: "100",
        doc: "Most header fields of a request; more get 431",
        field: number!(limit_header_fields, Count, 1..=10_000),
    },
    bodies::LIMIT_BODY_BYTES,
    bodies::BODY_POLICY,
    bodies::BODY_SPOOL,
    bodies::BODY_SPOOL_BYTES,
    Tunable {
        name: "read-ahead-bytes",
        group: SettingGroup::Limits,
        default: "64k",
        doc: "Bytes of later requests that are read while a handler runs",
        field: number!(read_ahead_bytes, Bytes, 1_024..=1 << 30),
    },
    Tunable {
        name: "stream-buffer-bytes",
        group: SettingGroup::Limits,
        default: "16k",
        doc: "Bytes of a stream gathered into one send; 16 times as many of pieces from 4k on",
        field: number!(stream_buffer_bytes, Bytes, 1..=1 << 26),
    },
    Tunable {
        name: "first-request-timeout",
        group: SettingGroup::Time,
        default: "auto",
        doc: "How long a connection may stay without its first byte; auto is header-timeout",
        field: duration!(first_request_timeout, 10..=HOUR, or "auto"),
    },
    Tunable {
        name: "header-timeout",
        group: SettingGroup::Time,
        default: "10s",
        doc: "Time for a whole request head; a slower one gets 408",
        field: duration!(header_timeout, 10..=HOUR),
    },
    Tunable {
        name: "body-timeout",
        group: SettingGroup::Time,
        default: "30s",
        doc: "Longest silence while a request body is received",
        field: duration!(body_timeout, 10..=HOUR),
    },
    Tunable {
        name: "body-rate-min",
        group: SettingGroup::Time,
        default: "240/s",
        doc: "Slowest request body in bytes per second, over a window as long as body-timeout",
        field: number!(body_rate_min, BytesPerSecond, 1..=1 << 30, or "off"),
    },
    Tunable {
        name: "write-timeout",
        group: SettingGroup::Time,
        default: "30s",
        doc: "Longest time without progress while a response is sent",
        field: duration!(write_timeout, 10..=HOUR),
    },
    Tunable {
        name: "write-rate-min",
        group: SettingGroup::Time,
        default: "240/s",
        doc: "Slowest reader of a response in bytes per second",
        field: number!(write_rate_min, BytesPerSecond, 1..=1 << 30, or "off"),
    },
    Tunable {
        name: "timeout-keep-alive",
        group: SettingGroup::Time,
        default: "75s",
        doc: "How long a connection may stay open between two requests",
        field: duration!(timeout_keep_alive, 10..=DAY),
    },
    Tunable {
        name: "half-close-timeout",
        group: SettingGroup::Time,
        default: "10s",
        doc: "How long a client that sends no more may wait for a handler",
        field: duration!(half_close_timeout, 0..=DAY),
    },
    Tunable {
        name: "drain-accept",
        group: SettingGroup::Time,
        default: "250ms",
        doc: "How long a drain goes on accepting connections at most; less when none come",
        field: duration!(drain_accept, 0..=DAY),
    },
    Tunable {
        name: "timeout-graceful-shutdown",
        group: SettingGroup::Time,
        default: "10s",
        doc: "How long a drain waits before it cuts what is left",
        field: duration!(timeout_graceful_shutdown, 0..=DAY),
    },
    handlers::RESTART_HUNG,
    handlers::LIMIT_CONCURRENCY,
    handlers::HANDLER_QUEUE,
    handlers::HANDLER_QUEUE_TIMEOUT,
    handlers::BLOCKING_QUEUE_TIMEOUT,
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
        group: SettingGroup::Files,
        default: "64m",
        doc: "Memory for ready responses of small files, over all workers",
        field: number!(cache_bytes, Bytes, 1..=1 << 40, or "off"),
    },
    Tunable {
        name: "hidden",
        group: SettingGroup::Files,
        default: "false",
        doc: "Serve names that begin with a dot",
        field: switch!(hidden),
    },
    Tunable {
        name: "listing",
        group: SettingGroup::Files,
        default: "auto",
        doc: "List folders without index.html; auto does at a terminal, on loopback only",
        field: choice!(listing, Listing),
    },
    Tunable {
        name: "file-threads",
        group: SettingGroup::Files,
        default: "4",
        doc: "Threads of each folder that wait for its disk, at most, so that no worker does",
        field: number!(file_threads, Count, 1..=1_000, or "off"),
    },
    Tunable {
        name: "server-name",
        group: SettingGroup::Output,
        default: "gustnado",
        doc: "Value of the Server field; empty leaves the field out",
        field: Field::Text {
            what: "visible ASCII text of at most 64 characters",
            allowed: is_field_text,
            get: |config| &config.server_name,
            set: |config, text| text.clone_into(&mut config.server_name),
        },
    },
    Tunable {
        name: "answer-version",
        group: SettingGroup::Output,
        default: "1.1",
        doc: "HTTP version in status lines: the newest, 1.0 to all, or that of the request",
        field: choice!(answer_version, ResponseVersion),
    },
    Tunable {
        name: "stats-interval",
        group: SettingGroup::Output,
        default: "off",
        doc: "How often a line of statistics is written to standard error",
        field: duration!(stats_interval, 10..=HOUR, or "off"),
    },
    Tunable {
        name: "access-log",
        group: SettingGroup::Output,
        default: "",
        doc: "File that a line for each request is appended to; - is standard output",
        field: file_path!(access_log),
    },
    Tunable {
        name: "access-log-format",
        group: SettingGroup::Output,
        default: "combined",
        doc: "Format of its lines: common, combined, json, brief, or atoms such as %(h)s",
        field: Field::Text {
            what: "common, combined, json, or a format such as %(h)s %(r)s %(s)s",
            // The start reports what exactly is wrong with one.
            allowed: |text| !text.is_empty(),
            get: |config| &config.access_log_format,
            set: |config, text| text.clone_into(&mut config.access_log_format),
        },
    },
    Tunable {
        name: "quiet",
        group: SettingGroup::Output,
        default: "false",
        doc: "Print nothing but errors",
        field: switch!(quiet),
    },
];

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
