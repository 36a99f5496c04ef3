//! What one run of the load generator found: the object that `gustnado bench --json` prints.
//!
//! Durations say their unit in their name. Latencies are microseconds. A field that does not apply
//! to the model is left out of the JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of this shape; a reader refuses one it does not know.
pub const FORMAT: u32 = 1;

/// So many answers must lie beyond a percentile for it to be told.
const BEYOND_MIN: f64 = 5.0;

/// Everything that one run found.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Outcome {
    /// [`FORMAT`].
    pub format: u32,
    /// Name and version of the program that measured.
    pub tool: String,
    /// What was asked for, in the order given.
    pub urls: Vec<String>,
    /// How load was made.
    pub model: ModelSummary,
    /// Seconds since 1970-01-01, when measuring began (after the warm-up).
    pub started_unix_s: f64,
    /// How long was measured.
    pub duration_s: f64,
    /// Right and complete answers: status 2xx, and length and body as expected where checked.
    pub requests: u64,
    /// Right answers that came within `duration_s`. It lacks those of `requests` that came after
    /// the end, and has those to requests of the warm-up.
    #[serde(default)]
    pub requests_in_window: u64,
    /// Requests sent, answered or not.
    pub sent: u64,
    /// Requests that were sent and had no answer by the end, nor in the seconds that it was waited
    /// for then. They are in no count of errors, and no latency holds them.
    #[serde(default)]
    pub unanswered: u64,
    /// `requests_in_window` per second of `duration_s`.
    pub requests_per_s: f64,
    /// Everything that went wrong, by kind.
    pub errors: Errors,
    /// Answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes that were received, heads included.
    pub bytes_received: u64,
    /// Bytes that were sent, heads included.
    pub bytes_sent: u64,
    /// Connections that were opened.
    pub connections_opened: u64,
    /// Connections that did not stand when the load went.
    #[serde(default)]
    pub connections_missing: u64,
    /// Connections that asked, or were to, and never had an answer. The figures are those of the
    /// others alone, so they say nothing about the load that was asked for.
    #[serde(default)]
    pub connections_unserved: u64,
    /// The latency of right answers as the model defines it: on a closed loop from sending the
    /// request, on an open one from the time it was due, to the last byte of its answer.
    pub latency_us: Latency,
    /// Where the model is open: from really sending the request. The difference to `latency_us` is
    /// what a closed loop hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<Latency>,
    /// From beginning to connect until the connection stands, for each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_us: Option<Latency>,
    /// From sending a request to the first byte of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_us: Option<Latency>,
    /// `latency_us` whole: `HdrHistogram` V2, compressed, base64. Values are microseconds.
    pub histogram: String,
    /// What the generator itself used, and whether it was the bottleneck.
    pub generator: GeneratorUsage,
    /// What the kernel counted meanwhile, for the whole machine.
    pub kernel: Kernel,
    /// Segments that were sent again on this run's connections, by both ends as far as they are on
    /// this machine. Left out where the kernel does not tell, or each request had its own
    /// connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// The share of the whole machine's CPU time that its hypervisor gave to others meanwhile, 0 to
    /// 1. All figures hold it.
    #[serde(default)]
    pub steal_share: f64,
    /// Sentences about what makes these figures less than they seem. Empty is good.
    pub warnings: Vec<String>,
    /// Second by second.
    pub series: Vec<OutcomeSecond>,
    /// The steps of a ramp, slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OutcomeStep>,
    /// Idle connections that were held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldConnections>,
}

impl Outcome {
    /// Right answers that came within `duration_s`: what `requests_per_s` is made of. It is known
    /// of outcomes too that do not say `requests_in_window`, such as those of another generator.
    pub fn answered_in_window(&self) -> f64 {
        self.requests_per_s * self.duration_s
    }
}

/// How load was made.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ModelSummary {
    /// `closed`, `open`, `ramp`, `hold` or `churn`.
    pub name: String,
    /// The model in one sentence, numbers included, for people.
    pub sentence: String,
    /// Connections that carry requests at once.
    pub connections: u64,
    /// Requests per second that were due; on a ramp those of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Requests that are under way at once on each connection; 1 is no pipelining.
    pub pipeline: u32,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// Threads of the generator.
    pub threads: u32,
    /// `epoll` or `uring`.
    pub io: String,
}

/// What went wrong, by kind. Each request counts in one kind at most.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Errors {
    /// Connections that were refused.
    pub refused: u64,
    /// Connections that could not be made for another reason.
    pub unconnected: u64,
    /// No local port was left to connect from.
    pub no_port: u64,
    /// Connections that were reset, or ended before an answer began.
    pub reset: u64,
    /// Requests that had no whole answer in time.
    pub timed_out: u64,
    /// Answers that ended before their last byte.
    pub short: u64,
    /// Answers whose status was not 2xx.
    pub status: u64,
    /// Answers of another length than the first one of the same URL.
    pub length: u64,
    /// Answers whose body was another than the first one of the same URL (a sample is looked at).
    pub body: u64,
    /// Answers that are not HTTP.
    pub unreadable: u64,
}

impl Errors {
    /// All kinds, each with its name.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("refused", self.refused),
            ("unconnected", self.unconnected),
            ("no port", self.no_port),
            ("reset", self.reset),
            ("timed out", self.timed_out),
            ("short", self.short),
            ("status", self.status),
            ("length", self.length),
            ("body", self.body),
            ("unreadable", self.unreadable),
        ]
    }

    /// Everything that went wrong.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

/// A distribution of times, in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: f64,
    /// The greatest.
    pub max: f64,
    /// By percentile: 50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99 and 100, written so.
    pub percentiles: BTreeMap<String, f64>,
}

impl Latency {
    /// A percentile, if enough answers lie beyond it to tell it: five, so that the 99th needs 500
    /// answers and the 99.9th 5,000. The greatest is always known.
    pub fn told(&self, name: &str) -> Option<f64> {
        let share: f64 = name.parse().ok()?;
        let beyond = crate::figures::real(self.count) * (100.0 - share) / 100.0;
        // A thousandth for the rounding: 99.9 % of 5,000 leave five.
        let is_told = self.count > 0 && (share >= 100.0 || beyond > BEYOND_MIN - 1e-3);
        self.percentiles.get(name).copied().filter(|_| is_told)
    }
}

/// What the generator itself used.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct GeneratorUsage {
    /// Seconds of CPU, user and system.
    pub cpu_s: f64,
    /// Those in user space.
    pub cpu_user_s: f64,
    /// Those in the kernel.
    pub cpu_system_s: f64,
    /// The share of its threads' time that it was running, 0 to 1.
    pub cpu_share: f64,
    /// The share of the busiest thread, 0 to 1.
    pub busiest_thread_share: f64,
    /// Whether it was the generator that could do no more.
    pub bottleneck: bool,
    /// The same in words.
    pub verdict: String,
}

/// What the kernel counted while measuring, for the whole machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Kernel {
    /// Segments sent again (`RetransSegs`).
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
    /// The end of this interval, in seconds since measuring began.
    pub at_s: f64,
    /// Right answers in it.
    pub requests: u64,
    /// What went wrong in it.
    pub errors: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// The median latency in it; 0 without an answer.
    pub p50_us: f64,
    /// The 99th percentile in it.
    pub p99_us: f64,
    /// The greatest in it.
    pub max_us: f64,
}

/// One step of a ramp.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct OutcomeStep {
    /// Requests per second that were due.
    pub rate_per_s: f64,
    /// Right answers per second.
    pub answered_per_s: f64,
    /// What went wrong.
    pub errors: u64,
    /// Latency in this step, as in [`Outcome::latency_us`].
    pub latency_us: Latency,
    /// Whether the server kept up: answered at least 99 % of what was due, and in time.
    pub kept_up: bool,
}

/// Idle connections that were held.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct HeldConnections {
    /// How many were asked for.
    pub asked: u64,
    /// How many stood at once.
    pub opened: u64,
    /// How many of them were lost while they were held.
    pub lost: u64,
    /// How long opening took.
    pub opening_s: f64,
}
