//! Every setting of the server: one declaration each, and everything else derived from it.
//!
//! [`Config`] holds the values, [`TUNABLES`] declares them (name, unit, default, range, meaning).
//! [`Settings`] is a [`Config`] that remembers where each value came from, and [`Machine`] says
//! what `auto` comes to here. Flags, environment variables, the keys of a configuration file, their
//! schema and `docs/tuning.md` are made from [`TUNABLES`]; nothing else names a setting twice.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;

use gustnado_tasks::{Growth, SocketOptions};

mod answer_version;
mod cgroup;
pub mod config_file;
mod error;
mod file_settings;
mod finer;
mod headers;
mod layers;
mod listing;
mod machine;
mod nearest;
mod networks;
mod numbers;
mod origin;
mod pace;
mod proxies;
mod reference;
mod table;
mod text;
mod tunable;
mod unit;

pub use answer_version::AnswerVersion;
pub use error::ConfigError;
#[doc(hidden)]
pub use file_settings::{FileSetting, FileSettings};
pub use gustnado_tasks::{Acceptor, IoChoice as Io, Placement, SchedulerKind, TrafficClass};
#[doc(hidden)]
pub use headers::Headers;
pub use layers::{Effective, Settings};
pub use listing::Listing;
pub use machine::{Machine, Resolved};
pub use nearest::nearest;
#[doc(hidden)]
pub use networks::{Networks, is_network};
#[doc(hidden)]
pub use numbers::millis;
pub use origin::Origin;
pub use pace::Pace;
pub use proxies::ForwardedFields;
pub use reference::reference;
pub use table::TUNABLES;
pub use tunable::{Field, SettingGroup, Tunable};
pub use unit::Unit;

gustnado_tasks::debug_as_display!(ConfigError, config_file::SiteError);

/// The configuration of a server. [`Config::default`] is the table's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Config {
    /// The folder to serve; `None` is the page that is built in.
    pub root: Option<PathBuf>,
    /// Where to listen, in place of `host`, `port` and `uds`: `127.0.0.1:80`, `[::1]:80`,
    /// `unix:/run/site.sock`.
    pub listen: Vec<String>,
    /// Name or address to listen on, an IPv6 address without brackets.
    pub host: String,
    /// TCP port; 0 takes a free one.
    pub port: u16,
    /// Path of a Unix socket to listen on instead of host and port.
    pub uds: Option<PathBuf>,
    /// Connections that the kernel may hold ready before they are accepted, 1 to 65,535.
    pub backlog: u32,
    /// Whether a TCP connection is accepted only once its first bytes are here, or a second has
    /// passed.
    pub defer_accept: bool,
    /// Proxies that are believed when they say who the client is: `192.0.2.1`, `10.0.0.0/8`,
    /// `2001:db8::/32`, `unix` for those on Unix sockets, `*` for all.
    pub forwarded_allow_ips: Vec<String>,
    /// The fields in which they say so.
    pub forwarded_fields: ForwardedFields,
    /// Whether every connection has to begin with a PROXY header, of version 1 or 2. No server
    /// starts so before `proxy_allow_from` says whose.
    pub proxy_protocol: bool,
    /// Proxies that may begin connections so, as in `forwarded_allow_ips`; others are refused.
    pub proxy_allow_from: Vec<String>,
    /// Bytes that the kernel may hold received for a TCP connection; 0 is as it sees fit.
    pub recv_buffer_bytes: usize,
    /// Bytes that the kernel may hold to be sent on a TCP connection; 0 is as it sees fit.
    pub send_buffer_bytes: usize,
    /// What the packets of TCP connections ask routers for.
    pub socket_preference: TrafficClass,
    /// Worker threads; 0 is auto, see [`Machine::workers`].
    pub workers: usize,
    /// Worker threads at most, those included that are added while all are busy; 0 adds none.
    pub workers_max: usize,
    /// How long all places must have been taken, or all workers held, before a worker is added.
    pub grow_after: Duration,
    /// How often workers that are not needed are let go; zero is never.
    pub shrink_period: Duration,
    /// Whether threads of workers that were let go wait until they are needed again.
    pub cache_workers: bool,
    /// Which kernel interface carries the operations.
    pub io: Io,
    /// Where connections live and who may run them.
    pub scheduler: SchedulerKind,
    /// Connection slots per worker; 0 is auto, which is as many as `connections_max`.
    pub slots: usize,
    /// How new connections are given out to workers.
    pub placement: Placement,
    /// Who accepts new connections.
    pub acceptor: Acceptor,
    /// Microseconds that a worker without work tries again before it sleeps, 0 to 1,000.
    pub spin_us: u32,
    /// Receive buffers of 4 KiB per worker under `io_uring`, 8 to 16,384, rounded up to a power of
    /// two.
    pub uring_buffers: u32,
    /// Open connections at which accepting pauses; 0 is auto, see [`Machine::connections_max`].
    pub connections_max: usize,
    /// Requests after which a connection is closed; 0 is no limit.
    pub max_requests_per_connection: u64,
    /// Largest request head in bytes, 256 to 65,535.
    pub limit_head_bytes: usize,
    /// Largest request target in bytes, 16 to 65,535.
    pub limit_target_bytes: usize,
    /// Most header fields of a request, 1 to 10,000.
    pub limit_header_fields: usize,
    /// Largest request body in bytes.
    pub limit_body_bytes: u64,
    /// Bytes of later requests that are taken while a handler is at work.
    pub read_ahead_bytes: usize,
    /// Bytes of a stream that are gathered before they are sent, if there are more at once.
    pub stream_buffer_bytes: usize,
    /// How long a connection may stay open without its first byte; zero is `header_timeout`.
    pub first_request_timeout: Duration,
    /// Time for a whole request head, from its first byte (or from the connection's start).
    pub header_timeout: Duration,
    /// Longest silence while a request body is on its way.
    pub body_timeout: Duration,
    /// Slowest request body in bytes per second; 0 is no minimum.
    pub body_rate_min: u64,
    /// Longest time without progress while an answer is on its way.
    pub write_timeout: Duration,
    /// Slowest reader of an answer in bytes per second; 0 is no minimum.
    pub write_rate_min: u64,
    /// How long a connection may stay open between two requests.
    pub timeout_keep_alive: Duration,
    /// How long a client that sends no more may wait for a handler's answer.
    pub half_close_timeout: Duration,
    /// Threads for blocking handlers, at most.
    pub blocking_threads: usize,
    /// Calls of blocking handlers that may wait for a thread; more are answered with 503.
    pub blocking_queue: usize,
    /// For how long new connections are still accepted once the server ends; it is over sooner when
    /// none come.
    pub drain_accept: Duration,
    /// Threads that wait for the disk of a served folder, at most, so that no worker does; 0 to
    /// have the workers wait themselves.
    pub file_threads: usize,
    /// How long a drain waits before it cuts what is left.
    pub timeout_graceful_shutdown: Duration,
    /// How fast anything may go.
    pub pace: Pace,
    /// Memory for ready answers of small files, in bytes, over all workers; 0 is none.
    pub cache_bytes: u64,
    /// Whether names that begin with a dot are served.
    pub hidden: bool,
    /// Listing of folders that have no `index.html`.
    pub listing: Listing,
    /// Value of the `Server` field; empty leaves the field out.
    pub server_name: String,
    /// The version that answers call themselves.
    pub answer_version: AnswerVersion,
    /// How often a line of statistics is written to standard error; zero is never.
    pub stats_interval: Duration,
    /// The file that a line for each request is appended to; `-` is standard output, `None` is no
    /// log.
    pub access_log: Option<PathBuf>,
    /// What such a line says: `common`, `combined`, `json`, or a format in gunicorn's atoms.
    pub access_log_format: String,
    /// Whether start and stop are silent but for errors.
    pub quiet: bool,
}

impl Config {
    /// Returns how the number of workers grows and shrinks.
    #[doc(hidden)]
    pub fn growth(&self) -> Growth {
        Growth {
            workers_max: self.workers_max,
            grow_after: self.grow_after,
            shrink_period: self.shrink_period,
            cache_workers: self.cache_workers,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self::blank();
        for tunable in TUNABLES {
            tunable
                .set(&mut config, tunable.default.as_ref())
                .expect("a test sets every default of the table");
        }
        config
    }
}

impl Config {
    /// Returns what the table's defaults are written over.
    fn blank() -> Self {
        Self {
            root: None,
            listen: Vec::new(),
            host: String::new(),
            port: 0,
            uds: None,
            backlog: 0,
            defer_accept: false,
            forwarded_allow_ips: Vec::new(),
            forwarded_fields: ForwardedFields::XForwarded,
            proxy_protocol: false,
            proxy_allow_from: Vec::new(),
            recv_buffer_bytes: 0,
            send_buffer_bytes: 0,
            socket_preference: TrafficClass::None,
            workers: 0,
            workers_max: 0,
            grow_after: Duration::ZERO,
            shrink_period: Duration::ZERO,
            cache_workers: false,
            io: Io::Auto,
            scheduler: SchedulerKind::Pool,
            slots: 0,
            placement: Placement::Spread,
            acceptor: Acceptor::PerWorker,
            spin_us: 0,
            uring_buffers: 0,
            connections_max: 0,
            max_requests_per_connection: 0,
            limit_head_bytes: 0,
            limit_target_bytes: 0,
            limit_header_fields: 0,
            limit_body_bytes: 0,
            read_ahead_bytes: 0,
            stream_buffer_bytes: 0,
            first_request_timeout: Duration::ZERO,
            header_timeout: Duration::ZERO,
            body_timeout: Duration::ZERO,
            body_rate_min: 0,
            write_timeout: Duration::ZERO,
            write_rate_min: 0,
            timeout_keep_alive: Duration::ZERO,
            half_close_timeout: Duration::ZERO,
            blocking_threads: 0,
            blocking_queue: 0,
            drain_accept: Duration::ZERO,
            file_threads: 0,
            timeout_graceful_shutdown: Duration::ZERO,
            pace: Pace::blank(),
            cache_bytes: 0,
            hidden: false,
            listing: Listing::Auto,
            server_name: String::new(),
            answer_version: AnswerVersion::Newest,
            stats_interval: Duration::ZERO,
            access_log: None,
            access_log_format: String::new(),
            quiet: false,
        }
    }

    /// Returns what accepted connections inherit.
    #[doc(hidden)]
    pub fn sockets(&self) -> SocketOptions {
        SocketOptions {
            recv_bytes: self.recv_buffer_bytes,
            send_bytes: self.send_buffer_bytes,
            preference: self.socket_preference,
        }
    }

    /// Receive buffers as the kernel takes them: a power of two.
    #[doc(hidden)]
    pub fn uring_buffers(&self) -> u16 {
        let rounded = self.uring_buffers.clamp(8, 16_384).next_power_of_two();
        u16::try_from(rounded).expect("16,384 at most")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let config = Config::default();
        assert_eq!(config.root, None);
        assert_eq!(config.host, "127.0.0.1");
        assert_eq!(config.port, 8080);
        assert_eq!(config.backlog, 4096);
        assert_eq!((config.workers, config.slots, config.connections_max), (0, 0, 0));
        assert_eq!(config.workers_max, 0);
        assert_eq!(config.grow_after, Duration::from_millis(5));
        assert_eq!(config.shrink_period, Duration::from_secs(10));
        assert!(config.cache_workers);
        assert_eq!(config.limit_head_bytes, 16_384);
        assert_eq!(config.limit_body_bytes, 1_048_576);
        assert_eq!(config.header_timeout, Duration::from_secs(10));
        assert_eq!(config.body_timeout, Duration::from_secs(30));
        assert_eq!(config.body_rate_min, 240);
        assert_eq!(config.timeout_keep_alive, Duration::from_secs(75));
        assert_eq!(config.timeout_graceful_shutdown, Duration::from_secs(10));
        assert_eq!(config.pace, Pace { clients_max: 65_536, ..Pace::blank() });
        assert_eq!(config.cache_bytes, 64 << 20);
        assert_eq!(config.server_name, "gustnado");
        assert!(!config.hidden && !config.quiet);
    }
}
