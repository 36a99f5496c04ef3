//! The plan of one run of the load generator.

mod check;
mod error;
mod round;
mod url;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use error::PlanError;
pub(crate) use round::greatest_common;
pub(crate) use url::UrlParts;

/// Descriptors that are left to everything but connections.
pub(crate) const DESCRIPTORS_APART: u64 = 256;

/// What one run is to do. Made by the command from its flags, checked by
/// [`LoadPlan::check`](LoadPlan::check) before anything is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// What is asked for; each as often as its weight says.
    pub requests: Vec<RequestSpec>,
    /// How load is made.
    pub load: LoadModel,
    /// When it ends; whichever comes first. A run without an end is refused.
    pub end: StopCondition,
    /// Time before measuring, in which the same load runs and nothing is counted.
    pub warm_up: Duration,
    /// Connections that carry requests at once, 1 to 1,000,000.
    pub connections: u64,
    /// Requests under way at once on each connection, 1 to 1,024; 1 is no pipelining.
    pub pipeline: u32,
    /// Whether a connection carries more than one request. Without it each request has its own.
    pub keep_alive: bool,
    /// Whether requests say HTTP/1.0 (with `Connection: keep-alive` if `keep_alive`).
    pub http_1_0: bool,
    /// Threads; none: as many as there are CPUs.
    pub threads: Option<u32>,
    /// `None`: `io_uring` where connections need it, else epoll.
    pub io: Option<BackendChoice>,
    /// Local addresses to connect from, in turn. Empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// A Unix socket to connect to, instead of the hosts of URLs.
    pub unix_socket: Option<PathBuf>,
    /// Statuses of right answers, from the first to the last of each range. Empty: 2xx.
    pub statuses: Vec<(u16, u16)>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take, from sending its request to its last byte.
    pub answer_timeout: Duration,
    /// Of how many answers one is looked at whole (length and hash of its body); 0: none, 1: all.
    /// The length of each is looked at anyway.
    pub check_every: u32,
    /// Clients that are slow on purpose, beside the others or alone.
    pub slowness: SlowClients,
    /// A file that gets a line for each request in ab's columns.
    pub trace: Option<PathBuf>,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSpec {
    /// `http://host:port/path?query`; the host is a name or an address.
    pub url: String,
    /// Other addresses of the same server, used in turn by connections. Empty: that of the URL.
    pub targets: Vec<std::net::SocketAddr>,
    /// GET, HEAD, POST, PUT, …
    pub method: String,
    /// Fields beside Host, Content-Length and Connection, in this order.
    pub fields: Vec<(String, String)>,
    /// The body, which may be empty.
    pub body: Vec<u8>,
    /// How often, relative to the others, 1 and up.
    pub weight: u32,
}

/// How load is made.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadModel {
    /// Each connection asks again as soon as it has its answer: finds the ceiling, hides stalls.
    Closed,
    /// So many requests per second, whatever the server does; latency counts from when each was
    /// due.
    Open {
        /// Requests per second.
        rate_per_s: f64,
    },
    /// An open load in steps, to find where the server no longer keeps up.
    Ramp {
        /// Requests per second of the first step.
        from_per_s: f64,
        /// Those of the last step.
        to_per_s: f64,
        /// How many steps, 2 to 1,000.
        steps: u32,
        /// How long each step is.
        step: Duration,
    },
    /// So many idle connections are held, while [`LoadPlan::connections`] others ask: at a rate, or one
    /// after the other without.
    Hold {
        /// Idle connections.
        idle: u64,
        /// Requests per second of the others; `None`: closed loop.
        rate_per_s: Option<f64>,
    },
}

/// When a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopCondition {
    /// After so many requests.
    pub requests: Option<u64>,
    /// After so long.
    pub after: Option<Duration>,
}

/// Clients that are slow on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowClients {
    /// How many bytes of each answer are read per second; `None`: as they come. (Slow readers.)
    pub read_bytes_per_s: Option<u64>,
    /// How many bytes of each request are sent per second; `None`: at once. (Slowloris.)
    pub send_bytes_per_s: Option<u64>,
}

/// The generator's way into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// Ordinary descriptors and epoll.
    Epoll,
    /// `io_uring`, with direct descriptors: not bounded by the limit on descriptors.
    Uring,
}
