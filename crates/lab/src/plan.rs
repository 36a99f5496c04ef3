//! The plan of one run of the load generator.

mod check;
mod error;
mod round;
mod statuses;
mod url;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use gustnado_tls::{ConnectorSettings, TlsVersion, Trust};

pub use error::PlanError;
pub(crate) use round::greatest_common;
pub(crate) use url::UrlParts;

/// Descriptors that are kept for other purposes than connections.
pub(crate) const DESCRIPTORS_APART: u64 = 256;

/// The plan of one run. The command makes it from its flags, and
/// [`LoadPlan::check`](LoadPlan::check) validates it before anything is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// The requests, each as often as its weight says.
    pub requests: Vec<RequestSpec>,
    /// The load model.
    pub load: LoadModel,
    /// The stop condition: the first one that holds. A run without one is refused.
    pub end: StopCondition,
    /// Longest time until every connection has had a response, before measuring; zero: measuring
    /// begins at once. A run of a number of requests begins at once, too: its first requests are
    /// part of the number.
    pub ramp_up_max: Duration,
    /// Time of the same load before measuring, after the ramp-up.
    pub warm_up: Duration,
    /// Connections with requests, 1 to 1,000,000.
    pub connections: u64,
    /// Requests in flight on each connection, 1 to 1,024: by HTTP/2 its streams, by HTTP/1
    /// pipelined.
    pub pipeline: u32,
    /// Whether a connection carries more than one request. Without it each request has its own.
    pub keep_alive: bool,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// The requests are messages over `WebSocket`s that the URLs open; `None`: they are HTTP.
    pub websocket: Option<WebSocketLoad>,
    /// Threads; `None`: as many as there are CPUs.
    pub threads: Option<u32>,
    /// `None`: `io_uring` if the number of connections needs it, else epoll.
    pub io: Option<BackendChoice>,
    /// Local addresses to connect from, in turn. Empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// TLS with the hosts of `https` URLs: whom to trust, and what to show.
    pub tls: ConnectorSettings,
    /// A Unix socket to connect to, instead of the hosts of URLs.
    pub unix_socket: Option<PathBuf>,
    /// Status codes of successful responses, as inclusive ranges. Empty: 2xx.
    pub statuses: Vec<(u16, u16)>,
    /// Time-out of connecting.
    pub connect_timeout: Duration,
    /// Time-out of a response, from sending its request to its last byte.
    pub response_timeout: Duration,
    /// One in this many responses is checked (length and hash of its body); 0: none, 1: all. The
    /// length of each is always checked.
    pub check_every: u32,
    /// Slow clients, with or without others.
    pub slowness: SlowClients,
    /// A file with a line for each request in ab's columns.
    pub trace: Option<PathBuf>,
}

/// The version of HTTP that requests use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0, with `Connection: keep-alive` if connections are kept.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
    /// HTTP/2: by ALPN with https, by prior knowledge in clear (RFC 9113 §3.2, §3.3).
    Http2,
}

impl HttpVersion {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// Bytes of what a message says of itself where it is sent to all: when it was sent, and by which
/// connection.
pub(crate) const STAMP_BYTES: usize = 4 + 16 + 8;

/// Messages over `WebSocket`s. Each is a request, and its response is the message that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketLoad {
    /// Bytes of a message, up to 16 MiB.
    pub bytes: usize,
    /// Messages are bytes, and not text.
    pub is_binary: bool,
    /// The server sends each message to all connections. Each that gets it counts a delivery.
    /// Otherwise it sends each message back.
    pub is_broadcast: bool,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSpec {
    /// `http://host:port/path?query` or `https://…`; the host is a name or an address.
    pub url: String,
    /// Other addresses of the same server, used in turn by connections. Empty: that of the URL.
    pub targets: Vec<std::net::SocketAddr>,
    /// GET, HEAD, POST, PUT, …
    pub method: String,
    /// Fields after Host, Content-Length and Connection, in this order.
    pub fields: Vec<(String, String)>,
    /// The body, which may be empty.
    pub body: Vec<u8>,
    /// Relative weight, 1 and up.
    pub weight: u32,
}

/// A load model.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadModel {
    /// Closed loop: each connection sends a request as soon as it has a response. It finds the
    /// maximum rate, but hides stalls.
    Closed,
    /// Open loop: a fixed rate of requests, independent of the server; latency counts from when
    /// each was due.
    Open {
        /// Requests per second.
        rate_per_s: f64,
    },
    /// Open loop in steps, such as to find the rate at which the server no longer keeps up.
    Ramp {
        /// The steps in their order, 1 to 1,000.
        stages: Vec<RateStage>,
    },
    /// Idle connections, while [`LoadPlan::connections`] others send requests: at a rate, or in a
    /// closed loop.
    Hold {
        /// Idle connections.
        idle: u64,
        /// Requests per second of the others; `None`: closed loop.
        rate_per_s: Option<f64>,
    },
}

/// A step of a ramp: a rate, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStage {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Time of the step.
    pub length: Duration,
}

impl LoadModel {
    /// Returns a ramp of steps of one length, whose rates rise evenly.
    ///
    /// - `rates`: requests per second of the first step and of the last one.
    pub fn rising((from_per_s, to_per_s): (f64, f64), steps: u16, length: Duration) -> Self {
        let last = f64::from(steps.saturating_sub(1).max(1));
        let rate = |index: u16| from_per_s + (to_per_s - from_per_s) * f64::from(index) / last;
        let stage = |index| RateStage { rate_per_s: rate(index), length };
        Self::Ramp { stages: (0..steps).map(stage).collect() }
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopCondition {
    /// Number of requests.
    pub requests: Option<u64>,
    /// Measured time.
    pub after: Option<Duration>,
}

/// Slow clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowClients {
    /// Bytes of each response that are read per second; `None`: unlimited. (Slow readers.)
    pub read_bytes_per_s: Option<u64>,
    /// Bytes of each request that are sent per second; `None`: unlimited. (Slowloris.)
    pub send_bytes_per_s: Option<u64>,
}

/// The I/O backend of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// Ordinary descriptors and epoll.
    Epoll,
    /// `io_uring` with direct descriptors, which the limit on descriptors does not bound.
    Uring,
}
