//! The outcome of one run of the load generator: the object that `gustnado bench --json` prints.
//!
//! Durations say their unit in their name. Latencies are microseconds. A field that does not apply
//! to the model is left out of the JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the JSON format; a reader refuses an unknown one.
pub const FORMAT: u32 = 1;

/// Responses that must lie beyond a percentile for it to be shown.
const BEYOND_MIN: f64 = 10.0;
/// Share of the due requests that may have no response in time, for a rate to be reached.
const MISSED_MAX: f64 = 0.01;
/// Share of the due requests that may be under way at the end.
const UNDER_WAY_MAX: f64 = 0.25;

/// The outcome of one run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Outcome {
    /// [`FORMAT`].
    pub format: u32,
    /// Name and version of the load generator.
    pub tool: String,
    /// Requested URLs, in the order given.
    pub urls: Vec<String>,
    /// The load model.
    pub model: ModelSummary,
    /// When measuring began (after the warm-up), in seconds since 1970-01-01.
    pub started_unix_s: f64,
    /// Measured time.
    pub duration_s: f64,
    /// Successful and complete responses: status 2xx, and length and body as expected where
    /// checked.
    pub requests: u64,
    /// Successful responses within `duration_s`. It excludes those of `requests` that arrived after
    /// the end, and includes those to requests of the warm-up.
    #[serde(default)]
    pub requests_in_window: u64,
    /// Successful responses of `requests` that arrived after the end.
    #[serde(default)]
    pub requests_late: u64,
    /// Successful responses to requests of the ramp-up and the warm-up, which `requests` leaves
    /// out.
    #[serde(default)]
    pub requests_before: u64,
    /// Requests sent, with a response or without. Those of the ramp-up and the warm-up are left
    /// out.
    pub sent: u64,
    /// Requests that had no response by the end, nor in the seconds of waiting after it. They are
    /// in no [`Errors`]. On an open loop their latency is the time that they have waited.
    #[serde(default)]
    pub unanswered: u64,
    /// On an open loop: requests that were due and never sent, as no connection was free. Their
    /// latency is the time from then to the end.
    #[serde(default)]
    pub unsent: u64,
    /// `requests_in_window` per second of `duration_s`.
    pub requests_per_s: f64,
    /// All errors, by kind.
    pub errors: Errors,
    /// Share of the requests that ended which succeeded, 0 to 1. Left out if none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_share: Option<f64>,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received, heads included.
    pub bytes_received: u64,
    /// Bytes received per second of `duration_s`, without those that arrived after the end. Left
    /// out if nothing was measured, or the generator does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received_per_s: Option<f64>,
    /// Bytes sent, heads included.
    pub bytes_sent: u64,
    /// Connections opened, each time that one was.
    pub connections_opened: u64,
    /// The connections that carry requests. Left out if the generator does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionCounts>,
    /// Time from the opened connections to the load: until each had a response, or no further one
    /// had.
    #[serde(default)]
    pub ramp_up_s: f64,
    /// Connections that were not established when the ramp-up began.
    #[serde(default)]
    pub connections_missing: u64,
    /// Connections that sent requests, or had to, and never had a response. The figures are those
    /// of the others alone, so they say nothing about the requested load.
    #[serde(default)]
    pub connections_unserved: u64,
    /// Latency of successful responses, up to the last byte: on a closed loop from sending the
    /// request, on an open one from the time it was due. An open one has those of `unanswered` and
    /// `unsent` requests, too.
    pub latency_us: Latency,
    /// On an open loop: latency from sending the request. The difference to `latency_us` is what a
    /// closed loop hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<Latency>,
    /// Time to connect, for each connection; by TLS with its handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_us: Option<Latency>,
    /// What the handshakes of TLS have agreed on. Left out in plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSummary>,
    /// Time from sending a request to the first byte of its response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_us: Option<Latency>,
    /// The full histogram of `latency_us`: `HdrHistogram` V2, compressed, base64. Values are
    /// microseconds.
    pub histogram: String,
    /// Resource usage of the generator, and whether it was the bottleneck.
    pub generator: GeneratorUsage,
    /// Kernel counters of the same interval, for the whole machine.
    pub kernel: Kernel,
    /// Retransmitted segments on this run's connections, by both ends if they are on this machine.
    /// Left out if the kernel does not report it, each request had its own connection, or their
    /// number was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Share of the whole machine's CPU time that its hypervisor gave to others meanwhile, 0 to 1.
    /// It affects all figures.
    #[serde(default)]
    pub steal_share: f64,
    /// Caveats of these figures, as sentences. Empty is good.
    pub warnings: Vec<String>,
    /// Time series by seconds.
    pub series: Vec<OutcomeSecond>,
    /// The steps of a ramp, slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OutcomeStep>,
    /// Idle connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldConnections>,
    /// `WebSocket`s, whose messages are the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocketSummary>,
}

impl Outcome {
    /// Successful responses within `duration_s`, from which `requests_per_s` is computed. Also
    /// known for outcomes without `requests_in_window`, such as those of another generator.
    pub fn responses_in_window(&self) -> f64 {
        self.requests_per_s * self.duration_s
    }

    /// Returns whether a fixed rate was missed: more than a hundredth of the requests that were due
    /// had no response in time. What is always under way is allowed for, and what was never sent is
    /// not.
    ///
    /// - `ended`: the requests that ended in time.
    pub(crate) fn misses_rate(&self, rate_per_s: f64, ended: f64) -> bool {
        let due = rate_per_s * self.duration_s;
        let unsent = crate::figures::real(self.unsent);
        let under_way = (due - ended - unsent).max(0.0);
        let short = unsent + (under_way - self.under_way_more(rate_per_s) - 1.0).max(0.0);
        short > MISSED_MAX * due
    }

    /// Requests that are under way at the end and were not at the begin, at a rate that the server
    /// keeps up with: by Little's law those of one service time. A server that does not keep up has
    /// longer and longer ones, so there are no more than connections can carry, nor more than a
    /// share of all.
    pub(crate) fn under_way_more(&self, rate_per_s: f64) -> f64 {
        use crate::figures::real;
        let service_s = self.service_us.as_ref().map_or(0.0, |service| service.mean / 1e6);
        let places = real(self.model.connections) * f64::from(self.model.pipeline);
        let most = places.min(UNDER_WAY_MAX * rate_per_s * self.duration_s);
        // Responses to requests of the warm-up.
        let before = (self.requests_in_window + self.requests_late).saturating_sub(self.requests);
        ((rate_per_s * service_s).min(most) - real(before)).max(0.0)
    }
}

/// The share of ended requests that succeeded; `None` if none ended.
pub fn success_share(succeeded: u64, failed: u64) -> Option<f64> {
    let ended = succeeded + failed;
    (ended > 0).then(|| crate::figures::real(succeeded) / crate::figures::real(ended))
}

/// The connections of a run that carry requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The requested number.
    pub asked: u64,
    /// Those on which requests were due while measuring: all, or as many as there were requests.
    pub due: u64,
    /// Those that were opened at least once.
    pub opened: u64,
    /// Those that had a response within the measured time.
    pub served: u64,
    /// Those that were held to its end: open, or closed by the server after a whole response and
    /// not refused since. Left out if each request has its own connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
}

/// The handshakes of TLS of a run. Version, cipher and group are those of the first one.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct TlsSummary {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The cipher suite, such as `TLS13_AES_128_GCM_SHA256`.
    pub cipher: String,
    /// The group of the key exchange, such as `X25519`.
    pub group: String,
    /// Handshakes, with those of the ramp-up.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumed: u64,
}

/// The load model of a run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ModelSummary {
    /// `closed`, `open`, `ramp`, `hold` or `churn`.
    pub name: String,
    /// The model in one sentence, numbers included.
    pub sentence: String,
    /// Connections with requests.
    pub connections: u64,
    /// Due requests per second; on a ramp those of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Requests in flight on each connection: streams by HTTP/2, pipelined by HTTP/1.
    pub pipeline: u32,
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2` or `WebSocket`. Empty in outcomes of older versions.
    #[serde(default)]
    pub protocol: String,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// Threads of the generator.
    pub threads: u32,
    /// `epoll` or `uring`.
    pub io: String,
}

/// Errors by kind. Each request counts in one kind at most.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Errors {
    /// Connections that were refused.
    pub refused: u64,
    /// Connections that failed for another reason.
    pub unconnected: u64,
    /// No local port was left.
    pub no_port: u64,
    /// Handshakes of TLS that failed.
    #[serde(default)]
    pub handshake: u64,
    /// Connections that were reset, or ended before a response began.
    pub reset: u64,
    /// Requests without a complete response in time.
    pub timed_out: u64,
    /// Responses that ended before their last byte.
    pub short: u64,
    /// Responses whose status was not 2xx.
    pub status: u64,
    /// Responses of another length than the first one of the same URL.
    pub length: u64,
    /// Responses with another body than the first one of the same URL (a sample is checked).
    pub body: u64,
    /// Responses that are not HTTP.
    pub unreadable: u64,
}

impl Errors {
    /// All kinds, each with its name.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("refused", self.refused),
            ("unconnected", self.unconnected),
            ("no port", self.no_port),
            ("handshake", self.handshake),
            ("reset", self.reset),
            ("timed out", self.timed_out),
            ("short", self.short),
            ("status", self.status),
            ("length", self.length),
            ("body", self.body),
            ("unreadable", self.unreadable),
        ]
    }

    /// Adds those of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.refused += other.refused;
        self.unconnected += other.unconnected;
        self.no_port += other.no_port;
        self.handshake += other.handshake;
        self.reset += other.reset;
        self.timed_out += other.timed_out;
        self.short += other.short;
        self.status += other.status;
        self.length += other.length;
        self.body += other.body;
        self.unreadable += other.unreadable;
    }

    /// All errors.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

/// A latency distribution, in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Latency {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Maximum.
    pub max: f64,
    /// By percentile, with those of these keys that at least ten responses lie beyond: 50, 66, 75,
    /// 80, 90, 95, 98, 99, 99.9 and 99.99; and 100, the maximum.
    pub percentiles: BTreeMap<String, f64>,
}

impl Latency {
    /// A percentile, if at least ten responses lie beyond it: the 99th needs 1,000 and the 99.9th
    /// 10,000. The maximum is always known.
    pub fn percentile(&self, name: &str) -> Option<f64> {
        let share: f64 = name.parse().ok()?;
        // Records of earlier versions hold all of them.
        self.percentiles.get(name).copied().filter(|_| is_told(self.count, share))
    }
}

/// Returns whether so many responses tell a percentile: at least ten lie beyond it, or it is the
/// maximum.
pub(crate) fn is_told(count: u64, percentile: f64) -> bool {
    let beyond = crate::figures::real(count) * (100.0 - percentile) / 100.0;
    // A thousandth for rounding: 99.9 % of 10,000 leave ten.
    count > 0 && (percentile >= 100.0 || beyond > BEYOND_MIN - 1e-3)
}

/// Resource usage of the generator.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct GeneratorUsage {
    /// CPU seconds, user and system.
    pub cpu_s: f64,
    /// User CPU seconds.
    pub cpu_user_s: f64,
    /// System CPU seconds.
    pub cpu_system_s: f64,
    /// Share of its threads' time in which they ran, 0 to 1.
    pub cpu_share: f64,
    /// Share of the busiest thread, 0 to 1.
    pub busiest_thread_share: f64,
    /// Whether the generator was the bottleneck.
    pub bottleneck: bool,
    /// The same in words.
    pub verdict: String,
}

/// Kernel counters while measuring, for the whole machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Kernel {
    /// Retransmitted segments (`RetransSegs`).
    pub retransmits: u64,
    /// Handshakes that found an accept queue full (`ListenOverflows`).
    pub listen_overflows: u64,
    /// Handshakes dropped at a listening socket (`ListenDrops`).
    pub listen_drops: u64,
    /// SYN cookies sent (`SyncookiesSent`).
    pub syn_cookies: u64,
    /// Resets sent (`OutRsts`).
    pub resets: u64,
}

/// One second of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct OutcomeSecond {
    /// End of this interval, in seconds since measuring began.
    pub at_s: f64,
    /// Successful responses.
    pub requests: u64,
    /// Errors.
    pub errors: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Median latency; 0 with fewer than 20 responses.
    pub p50_us: f64,
    /// 99th percentile; 0 with fewer than 1,000.
    pub p99_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// One step of a ramp.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct OutcomeStep {
    /// Due requests per second.
    pub rate_per_s: f64,
    /// Successful responses per second.
    pub answered_per_s: f64,
    /// Errors.
    pub errors: u64,
    /// Latency in this step, as in [`Outcome::latency_us`].
    pub latency_us: Latency,
    /// Whether the server kept up: at least 99 % of what was due ended, and in time.
    pub kept_up: bool,
}

/// Idle connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct HeldConnections {
    /// Requested number.
    pub asked: u64,
    /// Largest number open at the same time.
    pub opened: u64,
    /// Connections lost while idle.
    pub lost: u64,
    /// Time to open them.
    pub opening_s: f64,
}

/// The `WebSocket`s of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct WebSocketSummary {
    /// Bytes of each message.
    pub message_bytes: u64,
    /// Handshakes that the server has accepted, with those of the ramp-up.
    pub opened: u64,
    /// Handshakes to which it has responded otherwise.
    pub refused: u64,
    /// `WebSocket`s that it has closed, or whose connection it has ended.
    pub closed: u64,
    /// Where the server sends each message to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
}

/// Messages that a server sends to all connections. One message is as many deliveries as there are
/// connections that get it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Deliveries {
    /// Deliveries within the measured time.
    pub count: u64,
    /// The same per second.
    pub per_s: f64,
    /// From sending a message to each of its deliveries; at a fixed rate from when it was due.
    pub latency_us: Latency,
}
