//! Every setting of the server: one declaration each, and everything else derived from it.
//!
//! [`Config`] holds the values, [`TUNABLES`] declares them (name, unit, default, range, meaning).
//! [`Settings`] is a [`Config`] that remembers where each value came from, and [`Machine`]
//! resolves `auto`. Flags, environment variables, the keys of a configuration file,
//! their schema and `docs/tuning.md` are made from [`TUNABLES`].
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;

use gustnado_tasks::{Growth, SocketOptions, Throttle, WorkerPlan};

#[macro_use]
mod declare;

mod access;
mod acme;
mod address;
mod bodies;
mod cgroup;
mod compression;
pub mod config_file;
mod deploys;
mod early_hints;
mod error;
mod error_pages;
mod fields;
mod file_settings;
mod folder_settings;
mod forbidden;
mod forwarded_fields;
mod handlers;
mod headers;
mod http2;
mod layers;
mod listen;
mod listing;
mod machine;
mod memory;
mod nearest;
mod networks;
pub mod nginx;
mod numbers;
mod origin;
mod output;
mod own_setting;
mod pace;
mod pages;
mod path_pattern;
mod reference;
mod response_version;
mod route_settings;
mod socket_memory;
mod sockets;
mod table;
mod text;
mod tls;
mod tunable;
mod unit;
mod websocket;
mod wildcard;

pub use access::{AccessSettings, HeaderRule, RequestRate, RouteLimits, StatusRange};
pub use acme::AcmeChallenge;
pub use bodies::BodyPolicy;
pub use compression::{Compress, Dictionaries, Precompressed};
pub use deploys::{CacheControl, CacheRule};
pub use early_hints::{EarlyHints, preload_link};
pub use error::ConfigError;
#[doc(hidden)]
pub use error_pages::{error_page_content, error_page_of};
pub use file_settings::{FilePlace, FileSetting, FileSettings};
pub use folder_settings::{TrailingSlash, TryFile};
#[doc(hidden)]
pub use folder_settings::{is_extension, is_media_type, mime_pair};
#[doc(hidden)]
pub use forbidden::is_forbidden;
pub use forwarded_fields::ForwardedFields;
pub use gustnado_tasks::{Acceptor, IoChoice as Io, Placement, SchedulerKind, TrafficClass};
#[doc(hidden)]
pub use headers::Headers;
pub use layers::{Effective, Settings};
pub use listen::ListenSpec;
pub use listing::{Archives, Listing};
pub use machine::{Machine, Resolved};
pub use memory::MemoryPlan;
#[doc(hidden)]
pub use memory::UNCHARGED_BYTES;
pub use nearest::nearest;
#[doc(hidden)]
pub use networks::{Networks, is_network};
#[doc(hidden)]
pub use numbers::millis;
pub use origin::Origin;
pub use own_setting::OwnSetting;
pub use pace::Pace;
pub use path_pattern::path_matches;
pub use reference::reference;
pub use response_version::ResponseVersion;
pub use route_settings::{RouteSettings, RouteTuning};
pub use socket_memory::SocketMemory;
pub use table::TUNABLES;
pub use tls::{TlsClientAuth, TlsRecords, TlsVersionMin};
pub use tunable::{Field, SettingGroup, Tunable};
pub use unit::Unit;
pub use websocket::WebSocketDeflate;
#[doc(hidden)]
pub use websocket::WebSocketSettings;

gustnado_tasks::debug_as_display!(ConfigError, config_file::SiteError);

settings! { $
    /// The configuration of a server. [`Config::default`] is the table's defaults.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Config, each_setting;
    own {
        /// The folder to serve; `None` is the page that is built in.
        root: Option<PathBuf>,
        /// Where to listen, in place of `host`, `port` and `uds`: `127.0.0.1:80`, `[::1]:80`,
        /// `unix:/run/site.sock`; each may have settings of its own, see [`ListenSpec`].
        listen: Vec<String>,
        /// Name or address to listen on, an IPv6 address without brackets.
        host: String,
        /// Path of a Unix socket to listen on instead of host and port.
        uds: Option<PathBuf>,
        /// Path of the control socket of `gustnado serve`; `None` is none. (A program opens a
        /// `ControlSocket` itself.)
        control: Option<PathBuf>,
        /// Permissions of Unix sockets, in octal such as `660`; empty is what the umask leaves.
        uds_mode: String,
        /// User, and group after a colon, of Unix sockets; empty is the process's.
        uds_owner: String,
        /// The server's certificate with its chain, in PEM; `None` is no TLS.
        tls_cert: Option<PathBuf>,
        /// Its private key, in PEM; `None` is in the file of the certificate.
        tls_key: Option<PathBuf>,
        /// The authorities that may have issued clients' certificates, in PEM.
        tls_client_ca: Option<PathBuf>,
        /// Lists of clients' certificates that are revoked, in PEM.
        tls_client_crl: Option<PathBuf>,
        /// Keys of session tickets that servers on several machines share; `None` is keys of the
        /// process, which it replaces every six hours.
        tls_ticket_keys: Option<PathBuf>,
        /// Names that a certificate is obtained for from an authority (ACME): hosts and addresses.
        acme: Vec<String>,
        /// Where the authority may write to; empty is nowhere.
        acme_email: String,
        /// The authority, by the URL of its directory.
        acme_directory: String,
        /// Who vouches for the authority's own server, in PEM; `None` is who the system trusts.
        acme_ca: Option<PathBuf>,
        /// The folder of the certificate and the account; `None` is one of the user.
        acme_dir: Option<PathBuf>,
        /// The profile of the certificate.
        acme_profile: String,
        /// Id of the account elsewhere that some authorities want to know; empty is none.
        acme_eab_id: String,
        /// File with the key of that account.
        acme_eab_key: Option<PathBuf>,
        /// Proxies that are trusted to name the client: `192.0.2.1`, `10.0.0.0/8`,
        /// `2001:db8::/32`, `unix` for those on Unix sockets, `*` for all.
        forwarded_allow_ips: Vec<String>,
        /// Peers that may send a PROXY header, as in `forwarded_allow_ips`; others are refused.
        proxy_allow_from: Vec<String>,
        /// The folder on whose disk bodies are kept that do not stay in memory; `None` is `TMPDIR`,
        /// or else `/var/tmp`.
        body_spool: Option<PathBuf>,
        /// Limits of pace.
        pace: Pace = Pace::blank(),
        /// Settings that a site and a route may have of their own.
        routes: RouteSettings = RouteSettings::blank(),
        /// The user, and after a colon the group, that a server started by root changes to once it
        /// listens; empty is no change.
        user: String,
        /// Path of a page with all counters for Prometheus; empty is none.
        metrics_path: String,
        /// Path of a page with all counters in JSON; empty is none.
        stats_path: String,
        /// The clients that get these pages, as in `forwarded_allow_ips`.
        metrics_allow_from: Vec<String>,
        /// Pages for errors, where a site has none of its own: a status and a file, such as
        /// `404=404.html` or `5xx=50x.html`.
        error_page_files: Vec<String>,
        /// Value of the `Server` field; empty leaves the field out.
        server_name: String,
        /// The file that a line for each request is appended to; `-` is standard output, `None` is
        /// no log.
        access_log: Option<PathBuf>,
        /// Format of such a line: `common`, `combined`, `json`, or a format in gunicorn's atoms.
        access_log_format: String,
    }
    usual {
        /// TCP port; 0 takes a free one.
        port: u16,
        /// Connections that the kernel may hold ready before they are accepted, 1 to 65,535.
        backlog: u32,
        /// Whether a TCP connection is accepted only once its first bytes are here, or a second has
        /// passed.
        defer_accept: bool,
        /// The oldest version of TLS that clients may speak.
        tls_version_min: TlsVersionMin = TlsVersionMin::V12,
        /// How long a TLS handshake may take.
        tls_handshake_timeout: Duration,
        /// What seals and opens the records of TLS after the handshake.
        tls_records: TlsRecords = TlsRecords::Own,
        /// Whether clients are refused that ask for no name, or for one that no certificate has.
        tls_strict_names: bool,
        /// Whether clients have to present a certificate.
        tls_client_auth: TlsClientAuth = TlsClientAuth::None,
        /// How the server proves to an authority that names are its own.
        acme_challenge: AcmeChallenge = AcmeChallenge::Auto,
        /// How many TLS handshakes may be under way; beyond it, the oldest one ends.
        tls_handshakes: usize,
        /// Whether HTTP/1 is served, too.
        http1: bool,
        /// Whether HTTP/2 is offered to clients that come by TLS.
        http2: bool,
        /// Whether HTTP/2 is taken in clear.
        h2c: bool,
        /// Requests of one HTTP/2 connection at once.
        h2_streams: u32,
        /// How much of a body may come by HTTP/2 before any of it is read.
        h2_window_bytes: u32,
        /// How far that grows while the body is read.
        h2_window_bytes_max: u32,
        /// Silence after which a client with open requests is sent a PING; zero never.
        h2_ping: Duration,
        /// Time in which something has to come then.
        h2_ping_timeout: Duration,
        /// Bytes beyond those under way that the kernel may hold for an HTTP/2 client that reads
        /// slowly; 0 is as many as for others.
        h2_notsent_lowat: usize,
        /// Resets, errors and idle frames of one HTTP/2 connection at once; 0 is no limit.
        h2_glitches: u32,
        /// How many of them a connection is forgiven each second.
        h2_glitches_per_second: u32,
        /// Silence after which the peer of a WebSocket is pinged; zero never.
        ws_ping: Duration,
        /// Time in which something has to come then.
        ws_ping_timeout: Duration,
        /// Largest message of a WebSocket in bytes.
        ws_message_bytes_max: u64,
        /// Largest frame of a WebSocket in bytes.
        ws_frame_bytes_max: u64,
        /// Most frames of a message, 1 to 100,000,000.
        ws_fragments_max: u32,
        /// Most messages and control frames of a peer per second; 0 is no limit.
        ws_messages_per_second_max: u32,
        /// Bytes that may wait to be sent on a WebSocket before senders wait.
        ws_unsent_bytes_max: usize,
        /// Time that a peer has to answer a close frame.
        ws_close_timeout: Duration,
        /// Whether messages of `WebSocket`s are compressed.
        ws_deflate: WebSocketDeflate = WebSocketDeflate::On,
        /// Smallest message that is compressed, in bytes.
        ws_deflate_bytes_min: usize,
        /// Whether plain HTTP is answered with 308 to the same URL of https.
        https_redirect: bool,
        /// For how long browsers shall use https only; zero says nothing to them.
        hsts: Duration,
        /// The fields in which trusted proxies name the client.
        forwarded_fields: ForwardedFields = ForwardedFields::XForwarded,
        /// Whether every connection has to begin with a PROXY header, of version 1 or 2. No server
        /// starts so without `proxy_allow_from`.
        proxy_protocol: bool,
        /// Bytes that the kernel may hold received for a TCP connection; 0 is the system's default.
        recv_buffer_bytes: usize,
        /// Bytes that the kernel may hold to be sent on a TCP connection; 0 is the system's
        /// default.
        send_buffer_bytes: usize,
        /// Bytes beyond those under way that the kernel may hold to be sent on a TCP connection; 0
        /// is as many as its send buffer takes.
        notsent_lowat: usize,
        /// Traffic class of the packets of TCP connections.
        socket_preference: TrafficClass = TrafficClass::None,
        /// Worker threads; 0 is auto, see [`Machine::workers`].
        workers: usize,
        /// Worker threads at most, those included that are added while all are busy; 0 adds none.
        workers_max: usize,
        /// How long all slots must be taken, or all workers be held, before a worker is added.
        grow_after: Duration,
        /// How often unneeded workers are retired; zero is never.
        shrink_period: Duration,
        /// Whether the threads of retired workers are kept parked for reuse.
        cache_workers: bool,
        /// Which kernel interface carries the operations.
        io: Io = Io::Auto,
        /// Where connections live and who may run them.
        scheduler: SchedulerKind = SchedulerKind::Pool,
        /// Connection slots per worker; 0 is auto, which is as many as `connections_max`.
        slots: usize,
        /// How new connections are given out to workers.
        placement: Placement = Placement::Spread,
        /// Who accepts new connections.
        acceptor: Acceptor = Acceptor::PerWorker,
        /// Microseconds that a worker without work polls before it sleeps, 0 to 1,000.
        spin_us: u32,
        /// Receive buffers of 4 KiB per worker under `io_uring`, 8 to 16,384, rounded up to a power
        /// of two.
        uring_buffers: u32,
        /// Open connections at which accepting pauses; 0 is auto, see [`Machine::connections_max`].
        connections_max: usize,
        /// Connections that one client may have open, by IPv4 address or IPv6 /64; 0 is no limit.
        connections_per_client: u32,
        /// Requests after which a connection is closed; 0 is no limit.
        max_requests_per_connection: u64,
        /// Memory in bytes that connections, bodies and caches may hold together; 0 is auto, see
        /// [`Machine::max_memory`].
        max_memory: u64,
        /// Memory in bytes that request bodies may hold together.
        limit_body_memory: u64,
        /// Memory in bytes that parts of request heads may hold together; 0 is auto.
        limit_head_memory: u64,
        /// Memory in bytes that responses which clients have not taken may hold together; 0 is
        /// auto.
        limit_send_memory: u64,
        /// Memory in bytes that buffers which requests are received into may hold together; 0 is
        /// auto.
        limit_receive_memory: u64,
        /// Memory in bytes that requests which wait for a handler may hold together; 0 is auto.
        limit_queue_memory: u64,
        /// Memory in bytes that messages of `WebSocket`s may hold together; 0 is auto.
        limit_websocket_memory: u64,
        /// Largest request head in bytes, 256 to 65,535.
        limit_head_bytes: usize,
        /// Largest request target in bytes, 16 to 65,535.
        limit_target_bytes: usize,
        /// Most header fields of a request, 1 to 10,000.
        limit_header_fields: usize,
        /// Largest request body in bytes.
        limit_body_bytes: u64,
        /// Where bodies are kept for handlers that read them whole.
        body_policy: BodyPolicy = BodyPolicy::Spool,
        /// Bytes of disk that bodies may take together; beyond it they stay in memory.
        body_spool_bytes: u64,
        /// Bytes of later requests that are read while a handler runs.
        read_ahead_bytes: usize,
        /// Bytes of a stream that are gathered before they are sent, if there are more at once.
        stream_buffer_bytes: usize,
        /// How long a connection may stay open without its first byte; zero is `header_timeout`.
        first_request_timeout: Duration,
        /// Time for a whole request head, from its first byte (or from the connection's start).
        header_timeout: Duration,
        /// Longest silence while a request body is received.
        body_timeout: Duration,
        /// Slowest request body in bytes per second, over a window as long as `body_timeout`; 0 is
        /// no minimum.
        body_rate_min: u64,
        /// Longest time without progress while a response is sent.
        write_timeout: Duration,
        /// Slowest reader of a response in bytes per second; 0 is no minimum.
        write_rate_min: u64,
        /// How long a connection may stay open between two requests.
        timeout_keep_alive: Duration,
        /// How long a client that has shut its sending side may wait for a handler.
        half_close_timeout: Duration,
        /// Threads for blocking handlers, at most.
        blocking_threads: usize,
        /// Requests that wait for such a thread at most; the oldest of more gets 503.
        blocking_queue: usize,
        /// How long a request waits for a thread before it gets 503.
        blocking_queue_timeout: Duration,
        /// Handlers that run at a time: tasks, blocking calls, Python; 0 is no limit.
        limit_concurrency: usize,
        /// Requests that wait for a handler at most; the oldest of more gets 503.
        handler_queue: usize,
        /// How long a request waits for a handler before it gets 503.
        handler_queue_timeout: Duration,
        /// For how long new connections are still accepted during a drain; less if none come.
        drain_accept: Duration,
        /// Threads that wait for the disk of a served folder, at most, so that no worker does; 0 to
        /// have the workers wait themselves.
        file_threads: usize,
        /// Archives of folders that are made at once.
        archives_max: u64,
        /// How long a handler may hold a worker before the process ends, so that its supervisor
        /// starts it again; zero is for ever.
        restart_hung: Duration,
        /// How long a drain waits before it cuts what is left.
        timeout_graceful_shutdown: Duration,
        /// Memory for prepared responses of small files, in bytes, over all workers; 0 is none.
        cache_bytes: u64,
        /// The HTTP version in the status line of responses.
        answer_version: ResponseVersion = ResponseVersion::Newest,
        /// Which requests get early hints.
        early_hints: EarlyHints = EarlyHints::Navigations,
        /// How often a line of statistics is written to standard error; zero is never.
        stats_interval: Duration,
        /// Whether errors that end HTTP/2 connections are told on standard error.
        log_connection_errors: bool,
        /// Whether `gustnado serve` looks at the configuration file, and reads it again when it has
        /// changed. (A program calls `Running::reload` itself.)
        watch_config: bool,
        /// Whether start and stop are silent but for errors.
        quiet: bool,
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
    /// Returns the plan of a server's workers.
    ///
    /// - `workers`: how many there are at the start.
    #[doc(hidden)]
    pub fn worker_plan(&self, workers: usize) -> WorkerPlan {
        // The kernel takes a number of receive buffers that is a power of two.
        let buffers = self.uring_buffers.clamp(8, 16_384).next_power_of_two();
        WorkerPlan {
            workers,
            growth: Growth {
                workers_max: self.workers_max,
                grow_after: self.grow_after,
                shrink_period: self.shrink_period,
                cache_workers: self.cache_workers,
            },
            io: self.io,
            scheduler: self.scheduler,
            slots: self.slots,
            connections_max: self.connections_max,
            placement: self.placement,
            acceptor: self.acceptor,
            backlog: self.backlog,
            defer_accept: self.defer_accept,
            drain_accept: self.drain_accept,
            sockets: SocketOptions {
                recv_bytes: self.recv_buffer_bytes,
                send_bytes: self.send_buffer_bytes,
                notsent_lowat: self.notsent_lowat,
                preference: self.socket_preference,
            },
            spin_us: u64::from(self.spin_us),
            buffers: u16::try_from(buffers).expect("16,384 at most"),
            throttle: Throttle {
                accept_delay_ms: millis(self.pace.accept_delay),
                accepts_per_second: self.pace.accepts_per_second,
                pass_delay_us: self.pace.pass_delay_us,
                no_io_wait_us: self.pace.no_io_wait_us,
            },
        }
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
        assert!(!config.routes.hidden && !config.quiet);
    }
}
